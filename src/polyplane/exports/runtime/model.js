// The runtime of exported models; before it come the constants of a model.

// Whitespace as defined by Python.
const whitespace = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f" +
  "\\u205f\\u3000]+";
const ends = new RegExp("^" + whitespace + "|" + whitespace + "$", "g");

function reject(column, cell, wanted) {
  throw new Error(`Column ${JSON.stringify(column.name)} holds ${String(cell)}, which is not a ${wanted}.`);
}

// Removes leading and trailing whitespace, and writes true and false in lower case; null for a missing value.
function trimmed(cell) {
  if (typeof cell === "string") cell = cell.replace(ends, "").replace(/^(true|false)$/i, (text) => text.toLowerCase());
  return cell === null || cell === undefined || Number.isNaN(cell) || missingTexts.includes(cell) ? null : cell;
}

const numberPatterns = {
  ".": /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/,
  ",": /^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$/,
};

// The functions below convert a cell that is not missing to numbers.
function number(column, cell) {
  const text = typeof cell === "string" && numberPatterns[column.decimal ?? "."].test(cell);
  const x = text ? Number(cell.replace(",", ".")) : typeof cell === "boolean" ? Number(cell) : cell;
  if (typeof x !== "number" || !(Math.abs(x) <= largest)) reject(column, cell, "finite number");
  return [x];
}

// The index of a level, or -1 if it is unknown.
const levels = new Map();
for (const column of columns) {
  if (column.kind === "category") levels.set(column, new Map(column.levels.map((level, i) => [level, i])));
}

// The text of a number as Python writes it: 1e-7 is "1e-07".
function numberText(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (Number.isSafeInteger(x)) return String(x);
  const [digits, exponent] = x.toExponential().split("e");
  if (exponent >= -4 && exponent < 16) return Number.isInteger(x) ? `${BigInt(x)}.0` : String(x);
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

function category(column, cell) {
  return levels.get(column).get(typeof cell === "number" ? numberText(cell) : String(cell)) ?? -1;
}

const words = {true: 1, t: 1, yes: 1, y: 1, 1: 1, on: 1, false: 0, f: 0, no: 0, n: 0, 0: 0, off: 0};

function boolean(column, cell) {
  const text = String(cell).toLowerCase();
  if (!Object.hasOwn(words, text)) reject(column, cell, "boolean (true, false, yes, no, 1, 0)");
  return [words[text]];
}

const zone = / ?(?:Z|[+-]\d\d:?\d\d)$/;
const datePattern = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:[.,]\d{1,9})?))?)?$/;

// Days since 1970 and parts of the date, in local time: time zones are ignored.
function date(column, cell) {
  const found = datePattern.exec(String(cell).replace(zone, ""));
  if (!found) reject(column, cell, "date like 2024-05-31 or 2024-05-31 17:30");
  const digits = found.slice(1).map((text) => Number((text ?? "0").replace(",", ".")));
  const [year, month, day, hour, minute, second] = digits;
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  const isDate = midnight.getUTCMonth() === month - 1 && midnight.getUTCDate() === day;
  if (!isDate || hour > 23 || minute > 59 || second >= 60) reject(column, cell, "date");
  const days = midnight.getTime() / 864e5;
  const microseconds = Math.floor(second * 1e6 + 1e-3);
  const parts = {
    "days": days + (hour * 3600 + minute * 60 + microseconds / 1e6) / 86400,
    "year": year,
    "month": month,
    "day of week": ((days + 3) % 7 + 7) % 7 + 1,
    "hour": hour,
  };
  return column.values.map((value) => parts[value.part]);
}

const readers = {number, boolean, date};

function cellOf(row, column) {
  if (Array.isArray(row)) return row[column.position];
  if (!Object.hasOwn(row, column.name)) throw new Error(`The row has no column ${JSON.stringify(column.name)}.`);
  return row[column.name];
}

// The features as functions of u = (x - centre) * factor.
const functions = {
  "value": (u) => u,
  "square": (u) => u * u,
  "smooth": (u) => u / Math.sqrt(1 + u * u / 9),
  "smooth square": (u) => u * u / (1 + u * u / 9),
};

function feature(j, x) {
  if (features === null) return x;
  const [op, centre, factor, low = -Infinity, high = Infinity] = features[j];
  return Math.min(Math.max(functions[op]((x - centre) * factor), low), high);
}

// Adds value times the weights of a feature to the scores of the planes that use it.
function add(planes, feature, value) {
  const start = spans === null ? feature * planes.length : spans.offsets[feature];
  const end = spans === null ? start + planes.length : spans.offsets[feature + 1];
  for (let i = start, k = spans === null ? 0 : spans.starts[feature]; i < end; i++, k++) planes[k] += value * weights[i];
}

function addColumn(planes, column, cell) {
  cell = trimmed(cell);
  if (cell === null && typeof column.missing === "number") add(planes, column.missing, 1);
  if (column.kind === "category") {
    const level = cell === null ? null : category(column, cell);
    if (level !== null && level >= 0) add(planes, column.first + level, 1);
    if (level === -1 && column.other !== null) add(planes, column.other, 1);
    return;
  }
  const numbers = cell === null ? null : readers[column.kind](column, cell);
  column.values.forEach((value, i) => {
    const x = numbers === null ? value.neutral : numbers[i];
    if (x === undefined) throw new Error(`Column ${JSON.stringify(column.name)} has no value.`);
    for (let j = value.features[0]; j < value.features[1]; j++) add(planes, j, feature(j, x));
  });
}

function largestScore(planes, start, end) {
  let most = -Infinity;
  for (let k = start; k < end; k++) most = Math.max(most, planes[k]);
  return most;
}

// The score of a class in a member: the largest of the scores of its planes, or their log-sum-exp, which is at least
// the largest score of the member minus log(1e30).
function classScore(planes, edges, c) {
  if (!isSoft) return largestScore(planes, edges[c], edges[c + 1]);
  const most = largestScore(planes, edges[0], edges[classes.length]);
  let sum = 0;
  for (let k = edges[c]; k < edges[c + 1]; k++) sum += Math.exp(planes[k] - most);
  return Math.log(Math.max(sum, 1e-30)) + most;
}

// The score of a class is the weighted mean of its scores in the members.
function classScores(planes) {
  return classes.map((_, c) => {
    let sum = 0;
    members.forEach((edges, m) => { sum += (memberWeights?.[m] ?? 1) * classScore(planes, edges, c); });
    return sum / members.length;
  });
}

/**
 * Predicts the class of a row.
 *
 * @param {Object|Array} row The values by column name, or of all columns in the order of the table. null, undefined,
 *     NaN and the strings in `missingTexts` are missing values.
 * @returns {{label: *, scores: number[], probabilities: ?number[]}} The label, and the scores and probabilities of the
 *     classes in the order of `classes`; probabilities are null if the model has none.
 * @throws {Error} If a column is absent, or a value is invalid.
 */
function predict(row) {
  const planes = Float64Array.from(intercept);
  for (const column of columns) addColumn(planes, column, cellOf(row, column));
  const scores = classScores(planes);
  const best = Math.max(...scores);
  const label = classes[scores.indexOf(best)];
  if (temperature === null) return {label, scores, probabilities: null};
  const exponentials = scores.map((score) => Math.exp((score - best) / temperature));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return {label, scores, probabilities: exponentials.map((value) => value / sum)};
}
