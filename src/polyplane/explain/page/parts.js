"use strict";
// Functions shared by all scripts of the page. Text from the data is always inserted as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function show(value) {
  if (value === null) return "–";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

function signed(share) {
  return (share > 0 ? "+" : "") + (data.words.decimals ? share.toFixed(data.words.decimals) : show(share));
}

function table(title, heads, rows) {
  const box = element("div", undefined, "scroll");
  const made = box.appendChild(element("table"));
  made.appendChild(element("caption", title));
  const head = made.appendChild(element("thead")).appendChild(element("tr"));
  heads.forEach((text, j) => {
    const cell = head.appendChild(element("th", text, j === 0 ? "name" : ""));
    cell.scope = "col";
  });
  const body = made.appendChild(element("tbody"));
  rows.forEach((cells) => {
    const line = body.appendChild(element("tr"));
    cells.forEach((cell) => line.appendChild(cell));
  });
  return box;
}

// A cell whose text is not wrapped unless it is long: a date is not broken at its hyphens.
function short(text) {
  return element("td", text, text.length <= 12 ? "short" : "");
}

function track(share, largest) {
  const cell = element("td", undefined, "track");
  const bar = cell.appendChild(element("span", undefined, share < 0 ? "bar against" : "bar"));
  bar.style.width = (100 * Math.abs(share)) / (largest || 1) + "%";
  return cell;
}
