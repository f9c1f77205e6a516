// Shows the explanation of one row at a time.
(function () {
  const select = document.getElementById("row");
  const place = document.getElementById("why");
  const start = document.getElementById("start");

  function picture(values, name, colour) {
    const [height, width] = data.image_shape;
    const canvas = element("canvas");
    canvas.width = width;
    canvas.height = height;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", name);
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(width, height);
    values.forEach((value, i) => pixels.data.set([...colour(value), 255], 4 * i));
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  function ink(values) {
    const low = Math.min(...values), high = Math.max(...values);
    return (value) => Array(3).fill(high > low ? 255 - Math.round((255 * (value - low)) / (high - low)) : 255);
  }

  // White at 0, blue for positive weights, red for negative ones.
  function forAndAgainst(values) {
    const largest = Math.max(...values.map(Math.abs)) || 1;
    return (value) => {
      const end = value > 0 ? [0, 82, 140] : [178, 40, 20];
      return end.map((part) => Math.round(255 + (Math.abs(value) / largest) * (part - 255)));
    };
  }

  function gallery() {
    const home = document.getElementById("planes");
    (data.planes || []).forEach((plane) => {
      const figure = home.appendChild(element("figure"));
      figure.appendChild(picture(plane.weights, `the weights of ${plane.name}`, forAndAgainst(plane.weights)));
      figure.appendChild(element("figcaption", plane.name));
    });
  }

  // A link to the section in which the values of this row can be changed.
  function tryIt() {
    const around = element("p"), link = around.appendChild(element("a", "Try it: change the values of this row"));
    link.href = "#start";
    link.addEventListener("click", () => {
      start.selectedIndex = select.selectedIndex;
      start.dispatchEvent(new Event("change"));
      start.focus();
    });
    return around;
  }

  function explain(row) {
    place.replaceChildren();
    const verdict = element("p", `Row ${row.number}: predicted class “${row.label}”`, "verdict");
    const right = row.truth === row.label;
    verdict.appendChild(element("span", right ? ", correct." : `; the true class is “${row.truth}”.`, right ? "" : "wrong"));
    place.appendChild(verdict);
    place.appendChild(element("p", row.lead));
    if (data.image_shape && row.image) {
      place.appendChild(picture(row.image, "the row as an image", ink(row.image)));
    }
    if (start) place.appendChild(tryIt());
    const largest = Math.max(...row.shares.map((s) => Math.abs(s.share)), Math.abs(row.base), Math.abs(row.others));
    const lines = row.shares.map((s) => [
      element("td", s.name, "name"), short(show(s.value)), short(show(s.reference)),
      element("td", signed(s.share)), track(s.share, largest)]);
    const extra = [["at the reference row", row.base]];
    if (row.n_others) extra.unshift([`${row.n_others} other ${data.words.many}`, row.others]);
    extra.forEach(([name, share]) => lines.push([
      element("td", name, "name"), element("td"), element("td"),
      element("td", signed(share)), track(share, largest)]));
    const shares = table(`Why: each ${data.words.one}'s ${data.words.share}`, [data.words.one, "value", "reference", data.words.head, ""], lines);
    shares.id = "shares";
    place.appendChild(shares);
    if (row.flip === null) {
      place.appendChild(element("p", row.no_flip));
      return;
    }
    const changes = row.flip.changes.map((c) => [
      element("td", c.name, "name"), short(show(c.from)), short(show(c.to))]);
    place.appendChild(table(row.flip.title, [data.words.one, "from", "to"], changes));
    if (row.flip.n_others) place.appendChild(element("p", `and smaller changes of ${row.flip.n_others} other ${data.words.many}.`, "quiet"));
  }

  function pick(position) {
    const last = data.rows.length - 1;
    select.selectedIndex = Math.min(Math.max(position, 0), last);
    explain(data.rows[select.selectedIndex]);
  }

  data.rows.forEach((row) => select.appendChild(element("option", row.name)));
  select.addEventListener("change", () => pick(select.selectedIndex));
  document.getElementById("before").addEventListener("click", () => pick(select.selectedIndex - 1));
  document.getElementById("after").addEventListener("click", () => pick(select.selectedIndex + 1));
  document.querySelectorAll("a[data-row]").forEach((link) => link.addEventListener("click", () => {
    pick(Number(link.dataset.row));
    select.focus();
  }));
  gallery();
  pick(0);
})();
