"""The constant parts of a JavaScript program."""

from polyplane.exports._program import CLIP, LARGEST, LARGEST_CELL, LEAST

HEAD = """\
// A {learner} as JavaScript, written by polyplane {version}.

"""

#: The start of a script; a module is always strict.
STRICT = """const NAME = (() => {
"use strict";
"""

#: The features by kind, as functions of u and its limits.
FEATURES = {
    "value": "(u) => u",
    "limited": "(u, most, least) => Math.min(Math.max(u, least), most)",
    "scaled": f"(u) => Math.min(Math.max(u, -{LARGEST:g}), {LARGEST:g})",
    "clipped": f"(u) => u / Math.sqrt(1 + u * u / {CLIP**2:g})",
    "clipped square": f"(u) => u * u / (1 + u * u / {CLIP**2:g})",
    "square": "(u, most) => Math.min(u * u, most)",
    "bin": "(u) => Math.min(Math.max(u, 0), 1)",
}

NUMBER = f"""
// Whitespace as defined by Python.
const whitespace = "[\\\\t-\\\\r\\\\x1c-\\\\x20\\\\x85\\\\xa0\\\\u1680\\\\u2000-\\\\u200a\\\\u2028\\\\u2029\\\\u202f" +
  "\\\\u205f\\\\u3000]+";
const ends = new RegExp("^" + whitespace + "|" + whitespace + "$", "g");

function reject(column, cell, wanted) {{
  throw new Error(`Column ${{JSON.stringify(column.name)}} holds ${{String(cell)}}, which is not a ${{wanted}}.`);
}}

// Removes leading and trailing whitespace; null for a missing value.
function trimmed(cell) {{
  if (typeof cell === "string") cell = cell.replace(ends, "");
  return cell === null || cell === undefined || Number.isNaN(cell) || missingTexts.includes(cell) ? null : cell;
}}

const numberPatterns = {{
  ".": /^[+-]?(\\d+(\\.\\d*)?|\\.\\d+)([eE][+-]?\\d+)?$/,
  ",": /^[+-]?(\\d+(,\\d*)?|,\\d+)([eE][+-]?\\d+)?$/,
}};

// The functions below convert a cell that is not missing to numbers.
function number(column, cell) {{
  const text = typeof cell === "string" && numberPatterns[column.decimal ?? "."].test(cell);
  const x = text ? Number(cell.replace(",", ".")) : typeof cell === "boolean" ? Number(cell) : cell;
  if (typeof x !== "number" || !(Math.abs(x) <= {LARGEST_CELL:g})) reject(column, cell, "finite number");
  return [x];
}}
"""

KINDS = {
    "category": """
// The index of a level, or -1 if it is unknown.
const levels = new Map();
for (const column of columns) {
  if (column.kind === "category") levels.set(column, new Map(column.levels.map((level, i) => [level, i])));
}

function category(column, cell) {
  return levels.get(column).get(String(cell)) ?? -1;
}
""",
    "boolean": """
const words = {true: 1, t: 1, yes: 1, y: 1, 1: 1, on: 1, false: 0, f: 0, no: 0, n: 0, 0: 0, off: 0};

function boolean(column, cell) {
  const text = String(cell).toLowerCase();
  if (!Object.hasOwn(words, text)) reject(column, cell, "boolean (true, false, yes, no, 1, 0)");
  return [words[text]];
}
""",
    "date": """
const zone = /\\s?(?:Z|[+-]\\d\\d:?\\d\\d)$/;
const datePattern = /^(\\d{4})-(\\d\\d)-(\\d\\d)(?:[T ](\\d\\d):(\\d\\d)(?::(\\d\\d(?:[.,]\\d{1,9})?))?)?$/;

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
""",
}

READ = """
const readers = {KINDS};

function cellOf(row, column) {
  if (Array.isArray(row)) return row[column.position];
  if (!Object.hasOwn(row, column.name)) throw new Error(`The row has no column ${JSON.stringify(column.name)}.`);
  return row[column.name];
}
"""

ADD_UNIFORM = """
// Adds value times the weights of a feature to the scores of the planes.
function add(planes, feature, value) {
  const start = feature * planes.length;
  for (let k = 0; k < planes.length; k++) planes[k] += value * weights[start + k];
}
"""

ADD_RANGES = """
// Adds value times the weights of a feature to the scores of the planes that use it.
function add(planes, feature, value) {
  const end = offsets[feature + 1];
  for (let i = offsets[feature], k = starts[feature]; i < end; i++, k++) planes[k] += value * weights[i];
}
"""

ADD_NUMBERS = """
function addColumn(planes, column, cell) {
  if (trimmed(cell) === null) throw new Error(`Column ${JSON.stringify(column.name)} has no value.`);
  add(planes, column.values[0].terms[0], readers[column.kind](column, trimmed(cell))[0]);
}
"""

ADD_SCALED = """
function addColumn(planes, column, cell) {
  const {neutral = null, terms: [j]} = column.values[0];
  const x = trimmed(cell) === null ? neutral : number(column, trimmed(cell))[0];
  if (x === null) throw new Error(`Column ${JSON.stringify(column.name)} has no value.`);
  const [kind, centre, factor, most, least] = terms[j];
  add(planes, j, features[kind]((x - centre) * factor, most, least));
}
"""

ADD_CELLS = """
function addColumn(planes, column, cell) {
  cell = trimmed(cell);
  if (cell === null && column.missing !== null) add(planes, column.missing, 1);
  if (column.kind === "category") {
    const level = cell === null ? null : category(column, cell);
    if (level !== null && level >= 0) add(planes, column.first + level, 1);
    if (level === -1 && column.other !== null) add(planes, column.other, 1);
    return;
  }
  const numbers = cell === null ? null : readers[column.kind](column, cell);
  column.values.forEach((value, i) => {
    const x = numbers === null ? value.neutral : numbers[i];
    for (let j = value.terms[0]; j < value.terms[1]; j++) {
      const [kind, centre, factor, most] = terms[j];
      add(planes, j, features[kind]((x - centre) * factor, most));
    }
  });
}
"""

HARD = """
// The score of a class is the mean over the members of the largest score of its planes.
function classScores(planes) {
  return classes.map((_, c) => {
    let sum = 0;
    for (const edges of members) {
      let best = -Infinity;
      for (let k = edges[c]; k < edges[c + 1]; k++) best = Math.max(best, planes[k]);
      sum += best;
    }
    return sum / members.length;
  });
}
"""

SOFT = f"""
// The score of a class is the mean over the members of the log-sum-exp of the scores of its planes.
function classScores(planes) {{
  const scores = classes.map(() => 0);
  for (const edges of members) {{
    let most = -Infinity;
    for (let k = edges[0]; k < edges[classes.length]; k++) most = Math.max(most, planes[k]);
    for (let c = 0; c < classes.length; c++) {{
      let sum = 0;
      for (let k = edges[c]; k < edges[c + 1]; k++) sum += Math.exp(planes[k] - most);
      scores[c] += (Math.log(Math.max(sum, {LEAST:g})) + most) / members.length;
    }}
  }}
  return scores;
}}
"""

PREDICT = """
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
"""

MODULE = """
export {classes, columns, predict};
"""

SCRIPT = """
return {classes, columns, predict, intercept, members, temperature, addColumn, classScores};
})();
"""
