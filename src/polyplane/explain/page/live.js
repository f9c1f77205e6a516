// The section "Try it": inputs to change the values of a row, and the prediction for the changed row.
(function () {
  const model = polyplaneModel, live = data.live;
  const start = document.getElementById("start"), now = document.getElementById("now");
  const place = document.getElementById("reasons");
  const mostClasses = 4, mostColumns = 8;
  const unsafe = /[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;
  const rows = [...live.rows, live.reference];
  let first = [], row = [], waiting = 0;

  function visible(text) {
    return String(text).replace(unsafe, (found) => "\\u" + found.charCodeAt(0).toString(16).padStart(4, "0"));
  }

  function quoted(label) {
    return `“${live.labels[model.classes.indexOf(label)]}”`;
  }

  function shown(cell) {
    if (cell === null) return "missing";
    return typeof cell === "number" ? String(Number(cell.toPrecision(6))) : visible(cell);
  }

  // Formats a signed number with the decimals that the largest number of its column needs.
  function aligned(share, largest) {
    if (data.words.decimals || !(largest > 1e-4 && largest < 1e6)) return signed(share);
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(largest)));
    return (share > 0 ? "+" : "") + share.toFixed(decimals);
  }

  // Sets a new value of a column; a value that the model rejects does not change the row.
  function change(column, cell) {
    const changed = row.slice();
    changed[column.position] = cell;
    try {
      model.predict(changed);
    } catch (refusal) {
      return;
    }
    row = changed;
    update();
  }

  function option(select, text, cell) {
    select.appendChild(element("option", text)).cell = cell;
  }

  // A menu of the levels of a category, or of true and false.
  function choice(input, column) {
    const select = element("select");
    const levels = column.kind === "boolean" ? ["true", "false"] : column.levels;
    levels.forEach((level) => option(select, visible(level), level));
    const unknown = rows.map((cells) => cells[column.position]).find((cell) => cell !== null && !levels.includes(cell));
    if (column.kind === "category" && (column.other !== null || unknown !== undefined)) {
      let name = "another level";
      while (levels.includes(name)) name += " ";
      option(select, "another level", unknown ?? name);
    }
    if (input.missing) option(select, "missing", null);
    select.addEventListener("change", () => change(column, select.selectedOptions[0].cell));
    const sync = (cell) => {
      const same = Array.from(select.options).findIndex((item) => item.cell === cell);
      select.selectedIndex = same >= 0 ? same : levels.length;
    };
    return {main: select, others: [], sync};
  }

  // A slider and a field for the same number.
  function numeric(input, column) {
    const slider = element("input"), field = element("input");
    const values = [input.low, input.high, ...rows.map((cells) => cells[column.position])];
    const known = values.filter((value) => value !== null), low = Math.min(...known), high = Math.max(...known);
    const step = input.whole || high === low ? 1 : 10 ** Math.floor(Math.log10((high - low) / 500));
    const digits = Math.max(0, Math.min(20, -Math.round(Math.log10(step))));
    Object.assign(slider, {type: "range", min: low, max: high, step: input.whole ? 1 : "any"});
    Object.assign(field, {type: "number", step, inputMode: "decimal"});
    slider.setAttribute("aria-label", `${visible(column.name)}, slider`);
    slider.addEventListener("input", () => {
      const value = Number((Math.round(slider.valueAsNumber / step) * step).toFixed(digits));
      change(column, Math.min(Math.max(value, low), high));
    });
    field.addEventListener("input", () => {
      if (!Number.isNaN(field.valueAsNumber)) change(column, field.valueAsNumber);
    });
    const sync = (cell) => {
      if (cell === null) return;
      slider.value = cell;
      if (field !== document.activeElement || field.valueAsNumber !== cell) field.value = cell;
    };
    return {main: field, others: [slider], sync};
  }

  function text(input, column) {
    const field = element("input");
    field.addEventListener("input", () => change(column, field.value));
    const sync = (cell) => {
      if (cell !== null && field !== document.activeElement) field.value = cell;
    };
    return {main: field, others: [], sync};
  }

  function calendar(input, column) {
    const field = element("input");
    Object.assign(field, {type: input.timed ? "datetime-local" : "date", step: 1});
    field.addEventListener("input", () => {
      if (field.value !== "") change(column, field.value.replace("T", " "));
    });
    const length = input.timed ? 19 : 10;
    const sync = (cell) => {
      if (cell !== null) field.value = (cell.length === 10 && input.timed ? `${cell} 00:00:00` : cell).slice(0, length).replace(" ", "T");
    };
    return {main: field, others: [], sync};
  }

  // The line of a column: its name, its inputs, and a checkbox for a missing value.
  function line(input, home) {
    const column = model.columns[input.column], box = home.appendChild(element("div", undefined, "field"));
    const made = {number: numeric, date: calendar, text}[column.kind]?.(input, column) ?? choice(input, column);
    made.main.id = `value-${input.column}`;
    const label = box.appendChild(element("label", visible(column.name)));
    label.htmlFor = made.main.id;
    const was = label.appendChild(element("span", "", "quiet"));
    const controls = box.appendChild(element("div", undefined, "controls"));
    [...made.others, made.main].forEach((control) => controls.appendChild(control));
    let missing = null;
    if (input.missing && made.main.tagName !== "SELECT") {
      const around = controls.appendChild(element("label"));
      missing = around.appendChild(element("input"));
      missing.type = "checkbox";
      around.append(" missing");
      missing.setAttribute("aria-label", `${visible(column.name)} is missing`);
      missing.addEventListener("change", () => change(column, missing.checked ? null : present(column)));
    }
    const sync = () => {
      const cell = row[column.position], before = first[column.position];
      made.sync(cell);
      if (missing) missing.checked = cell === null;
      [made.main, ...made.others].forEach((control) => { control.disabled = missing !== null && cell === null; });
      box.classList.toggle("changed", cell !== before);
      was.textContent = cell === before ? "" : ` was ${shown(before)}`;
    };
    made.main.addEventListener("blur", sync);
    return sync;
  }

  // The value of a cell that is no longer missing.
  function present(column) {
    return first[column.position] ?? live.reference[column.position];
  }

  function classTable(title, outcome, classes) {
    const sizes = outcome.probabilities ?? outcome.scores, largest = Math.max(...sizes.map(Math.abs));
    const lines = classes.map((c) => [
      element("td", live.labels[c], "name"), element("td", outcome.scores[c].toFixed(2)),
      ...(outcome.probabilities ? [element("td", outcome.probabilities[c].toFixed(3))] : []),
      track(sizes[c], outcome.probabilities ? 1 : largest)]);
    return table(title, ["class", "score", ...(outcome.probabilities ? ["probability"] : []), ""], lines);
  }

  function verdict(why, before) {
    const text = now.querySelector(".verdict");
    const isChanged = row.some((cell, i) => cell !== first[i]);
    text.replaceChildren(`Predicted class: ${quoted(why.label)} `);
    if (isChanged) text.appendChild(element("span", `(without your changes: ${quoted(before)})`, "quiet"));
    const classes = why.order.slice(0, mostClasses);
    if (model.classes.length <= mostClasses) classes.sort((a, b) => a - b);
    document.getElementById("classes").replaceChildren(classTable("", why, classes));
    now.dataset.label = JSON.stringify(why.label);
    now.dataset.scores = JSON.stringify(why.scores);
    now.dataset.probabilities = JSON.stringify(why.probabilities);
    now.dataset.contributions = JSON.stringify(why.contributions);
  }

  // A column name with its value, which is not wrapped if it is short.
  function valued(j) {
    const column = model.columns[j], text = shown(row[column.position]);
    const cell = element("td", `${visible(column.name)} = `, "name");
    cell.appendChild(element("span", text, text.length <= 12 ? "short" : ""));
    return cell;
  }

  function contributions(why) {
    const sizes = why.contributions, order = sizes.map((_, j) => j).filter((j) => sizes[j] !== 0);
    order.sort((a, b) => Math.abs(sizes[b]) - Math.abs(sizes[a]));
    const shares = order.slice(0, mostColumns).map((j) => [valued(j), sizes[j]]), rest = order.slice(mostColumns);
    if (rest.length) {
      const text = `${rest.length} other ${rest.length > 1 ? data.words.many : data.words.one}`;
      shares.push([element("td", text, "name"), rest.reduce((sum, j) => sum + sizes[j], 0)]);
    }
    shares.push([element("td", "at the reference row", "name"), why.base]);
    const largest = Math.max(...shares.map(([, share]) => Math.abs(share)));
    const lines = shares.map(([name, share]) => [name, element("td", aligned(share, largest)), track(share, largest)]);
    lines.push(["sum", aligned(why.difference, largest), ""].map((text, i) => element("td", text, i ? "sum" : "sum name")));
    const rival = live.labels[why.order[1]];
    return table(`Why ${quoted(why.label)} and not “${rival}”`, [data.words.one, data.words.head, ""], lines);
  }

  function flip(found) {
    const box = element("div", undefined, "flip"), text = box.appendChild(element("p"));
    const none = `No change of one ${data.words.one} within its range that leads to another class was found.`;
    if (found === null) {
      text.append(none);
      return box;
    }
    const column = model.columns[found.input.column];
    const words = `${visible(column.name)} from ${shown(row[column.position])} to ${shown(found.value)}`;
    const isFlip = found.label !== null;
    const smallest = `The smallest change found in one ${data.words.one}: `;
    text.append(isFlip ? smallest : `${none} The closest: `, element("strong", words));
    text.append(isFlip ? ` leads to class ${quoted(found.label)}. ` : `${fallen(column, found.value)}. `);

    const button = box.appendChild(element("button", "Apply this change"));
    button.type = "button";
    button.addEventListener("click", () => change(column, found.value));
    return box;
  }

  // The probability of the predicted class after a change that does not lead to another class.
  function fallen(column, value) {
    const {label, probabilities} = model.predict(row), changed = row.slice();
    if (probabilities === null) return "";
    changed[column.position] = value;
    const after = model.predict(changed).probabilities[model.classes.indexOf(label)];
    return `, where the probability of ${quoted(label)} is ${after.toFixed(3)}`;
  }

  function update() {
    lines.forEach((sync) => sync());
    const why = reasons.explain(row);
    verdict(why, model.predict(first).label);
    const nearest = element("div", undefined, "flip");
    nearest.appendChild(element("p", "Searching for the smallest change …", "quiet"));
    const kept = place.querySelector(".flip");
    place.replaceChildren(kept ?? nearest, contributions(why));
    if (model.classes.length > mostClasses) {
      const all = place.appendChild(element("details"));
      all.appendChild(element("summary", `All ${model.classes.length} classes`));
      all.appendChild(classTable("", why, why.order));
    }
    // The search takes some milliseconds, so it waits until the input pauses.
    clearTimeout(waiting);
    waiting = setTimeout(() => place.querySelector(".flip").replaceWith(flip(reasons.nearestFlip(row))), 80);
  }

  function restart() {
    first = rows[start.selectedIndex];
    row = first.slice();
    update();
  }

  const home = document.getElementById("inputs");
  const lines = [], shownFirst = live.inputs.slice(0, live.shown), folded = live.inputs.slice(live.shown);
  function fill(where, inputs) {
    inputs.forEach((input) => lines.push(line(input, where)));
  }
  fill(home, shownFirst);
  if (folded.length) {
    const more = home.appendChild(element("details"));
    more.appendChild(element("summary", `${folded.length} other ${data.words.many}`));
    fill(more, folded);
  }
  data.rows.forEach((item) => start.appendChild(element("option", item.name)));
  start.appendChild(element("option", "the reference row"));
  start.addEventListener("change", restart);
  document.getElementById("reset").addEventListener("click", restart);
  restart();
})();
