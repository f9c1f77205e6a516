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

// A number in a string, as Python reads it; NaN if it is none.
const expressions = new Map();
function numberOf(format, text) {
  if (!expressions.has(format)) {
    expressions.set(format, [new RegExp(`^(?:${format.pattern})$`), new RegExp(format.separators, "g")]);
  }
  const [pattern, separators] = expressions.get(format), found = pattern.exec(text);
  if (!found) return NaN;
  const [, opened, sign, inner, written, multiple, last] = found;
  const signs = [opened, sign, inner, last].filter(Boolean);
  const digits = written.replace(separators, "").replace(format.decimal, ".");
  const isWrong = Boolean(opened) !== text.endsWith(")") || signs.length > 1 || (multiple && /e/i.test(digits));
  if (isWrong) return NaN;
  return (signs.length && signs[0] !== "+" ? -1 : 1) * Number(digits + (multiple ? multiples[multiple] : ""));
}

// The functions below convert a cell that is not missing to numbers.
function number(column, cell) {
  const x = typeof cell === "string" ? numberOf(column.format ?? plain, cell)
    : typeof cell === "boolean" ? Number(cell) : cell;
  if (typeof x !== "number" || !(Math.abs(x) <= largest)) reject(column, cell, "finite number");
  return [x];
}

// The index of a level, or -1 if it is unknown.
const levels = new Map();
for (const column of columns) {
  if (column.levels) levels.set(column, new Map(column.levels.map((level, i) => [level, i])));
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

// The known words of a text: the indices of those that it contains.
function knownWords(column, cell) {
  const known = levels.get(column), text = typeof cell === "number" ? numberText(cell) : String(cell);
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
  return [...words].filter((word) => known.has(word)).map((word) => known.get(word));
}

const words = {true: 1, t: 1, yes: 1, y: 1, 1: 1, on: 1, false: 0, f: 0, no: 0, n: 0, 0: 0, off: 0};

function boolean(column, cell) {
  const text = String(cell).toLowerCase();
  if (!Object.hasOwn(words, text)) reject(column, cell, "boolean (true, false, yes, no, 1, 0)");
  return [words[text]];
}

const zone = / ?(?:Z|[+-]\d\d:?\d\d)$/;
const datePattern = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:[.,]\d{1,9})?))?)?$/;

// Year, month, day, hour, minute and second of a date in the format of its column; null if it is in another one.
function datePartsOf(column, text) {
  if (!expressions.has(column)) expressions.set(column, new RegExp(`^(?:${column.format})$`, "i"));
  const found = expressions.get(column).exec(text)?.groups;
  if (!found) return null;
  const part = (name, otherwise) => (found[name] === undefined ? otherwise : Number(found[name].replace(",", ".")));
  if (found.G !== undefined) {
    const first = new Date(0), monday = new Date(0), week = part("V"), year = part("G");
    first.setUTCFullYear(year, 0, 4);
    monday.setTime(first.getTime() + (7 * week - 7 - (first.getUTCDay() + 6) % 7) * 864e5);
    const thursday = new Date(monday.getTime() + 3 * 864e5);
    if (week < 1 || thursday.getUTCFullYear() !== year) return null;
    return [monday.getUTCFullYear(), monday.getUTCMonth() + 1, monday.getUTCDate(), 0, 0, 0];
  }
  const short = part("y", 0), year = part("Y", short + (short >= 69 ? 1900 : 2000));
  const names = "janfebmaraprmayjunjulaugsepoctnovdec";
  const month = found.b !== undefined ? names.indexOf(found.b.slice(0, 3).toLowerCase()) / 3 + 1
    : found.q !== undefined ? 3 * part("q") - 2 : part("m", 1);
  let hour = part("H", 0);
  if (found.p !== undefined) {
    if (hour < 1 || hour > 12) return null;
    hour = hour % 12 + (found.p.toLowerCase() === "p" ? 12 : 0);
  }
  return [year, month, part("d", 1), hour, part("M", 0), part("S", 0)];
}

// Days since 1970 and parts of the date, in local time: time zones are ignored.
function date(column, cell) {
  const found = datePattern.exec(String(cell).replace(zone, ""));
  const digits = found?.slice(1).map((text) => Number((text ?? "0").replace(",", ".")))
    ?? (column.format && datePartsOf(column, String(cell)));
  if (!digits) reject(column, cell, "date like 2024-05-31 or 2024-05-31 17:30");
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
  if (column.kind === "text") {
    if (cell !== null) knownWords(column, cell).forEach((j) => add(planes, column.first + j, 1));
    return;
  }
  let numbers = null;
  if (column.kind === "category" && cell !== null) {
    const level = category(column, cell);
    if (level >= 0 && level < column.own) add(planes, column.first + level, 1);
    else if (column.other !== null) add(planes, column.other, 1);
    numbers = column.values?.map((value) => value.byLevel[level] ?? 0);
  } else if (cell !== null) {
    numbers = readers[column.kind](column, cell);
    const code = column.special ? column.special.indexOf(numbers[0]) : -1;
    if (code >= 0) {
      add(planes, column.first + code, 1);
      numbers = null;
    }
  }
  column.values?.forEach((value, i) => {
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

// The score of a class in a member: the largest of the scores of its planes, or their log-sum-exp.
function classScore(planes, edges, c) {
  const most = largestScore(planes, edges[c], edges[c + 1]);
  if (!isSoft) return most;
  let sum = 0;
  for (let k = edges[c]; k < edges[c + 1]; k++) sum += Math.exp(planes[k] - most);
  return Math.log(sum) + most;
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
