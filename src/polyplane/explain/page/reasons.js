// Explains the prediction for a row: the contributions of its columns, and the smallest change of one column that leads
// to another class.
const reasons = (function () {
  const model = polyplaneModel, live = data.live;
  const nPlanes = model.intercept.length;
  const isAdditive = model.members.every((edges) => edges.every((edge, c) => c === 0 || edge === edges[c - 1] + 1));

  function added(a, b, sign) {
    return a.map((value, k) => value + sign * b[k]);
  }

  // The contribution of a value of a column to the scores of the planes.
  function partOf(j, cell) {
    const part = new Float64Array(nPlanes);
    model.addColumn(part, model.columns[j], cell);
    return part;
  }

  function partsOf(row) {
    return model.columns.map((column, j) => partOf(j, row[column.position]));
  }

  const referenceParts = partsOf(live.reference);
  const atReference = referenceParts.reduce((sum, part) => added(sum, part, 1), Float64Array.from(model.intercept));

  // The weight of each plane in the score of its class in its member, and these scores.
  function weigh(planes) {
    const shares = new Float64Array(planes.length), scores = [];
    for (const edges of model.members) {
      for (let c = 0; c < model.classes.length; c++) {
        let best = edges[c], sum = 0;
        for (let k = edges[c]; k < edges[c + 1]; k++) if (planes[k] > planes[best]) best = k;
        for (let k = edges[c]; k < edges[c + 1]; k++) {
          shares[k] = live.soft ? Math.exp(planes[k] - planes[best]) : Number(k === best);
          sum += shares[k];
        }
        for (let k = edges[c]; k < edges[c + 1]; k++) shares[k] /= sum;
        scores.push(planes[best] + Math.log(sum));
      }
    }
    return {shares, scores};
  }

  const weighedReference = weigh(atReference);

  // Nodes and weights of the Gauss-Legendre quadrature from 0 to 1.
  const rules = new Map();
  function rule(n) {
    if (rules.has(n)) return rules.get(n);
    const nodes = Array.from({length: n}, (_, i) => {
      let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5)), slope = 1, step = 1;
      for (let turn = 0; turn < 50 && Math.abs(step) > 1e-15; turn++) {
        let before = 1, value = x;
        for (let k = 2; k <= n; k++) [before, value] = [value, ((2 * k - 1) * x * value - (k - 1) * before) / k];
        slope = (n * (x * value - before)) / (x * x - 1);
        step = value / slope;
        x -= step;
      }
      return [0.5 * (1 + x), 1 / ((1 - x * x) * slope * slope)];
    });
    rules.set(n, nodes);
    return nodes;
  }

  // The weights of the planes: those at the row or, if class scores are smooth, their mean on the line from the
  // reference to the row, with as many points as an accurate sum of the contributions requires.
  function meanShares(change) {
    const end = weigh(added(atReference, change, 1));
    if (!live.soft || isAdditive) return end.shares;
    const rise = end.scores.map((score, i) => score - weighedReference.scores[i]);
    for (let n = 16; ; n *= 2) {
      const mean = new Float64Array(change.length);
      rule(n).forEach(([t, weight]) => {
        const {shares} = weigh(atReference.map((score, k) => score + t * change[k]));
        for (let k = 0; k < mean.length; k++) mean[k] += weight * shares[k];
      });
      const size = 1 + Math.max(...rise.map(Math.abs));
      if (n >= 1024 || sums(mean, change).every((sum, i) => Math.abs(sum - rise[i]) <= 1e-7 * size)) return mean;
    }
  }
  // The weighted sum over the planes of each class in each member.
  function sums(shares, part) {
    return model.members.flatMap((edges) => model.classes.map((_, c) => {
      let sum = 0;
      for (let k = edges[c]; k < edges[c + 1]; k++) sum += shares[k] * part[k];
      return sum;
    }));
  }

  // The predicted class, its rival, and the contribution of each column to the difference of their scores.
  function explain(row) {
    const outcome = model.predict(row);
    const order = outcome.scores.map((_, c) => c).sort((a, b) => outcome.scores[b] - outcome.scores[a] || a - b);
    const [c, d] = order, n = model.classes.length;
    const parts = partsOf(row).map((part, j) => added(part, referenceParts[j], -1));
    const shares = meanShares(parts.reduce((sum, part) => added(sum, part, 1), new Float64Array(nPlanes)));
    const contributions = parts.map((part) => sums(shares, part).reduce((sum, size, i) =>
      sum + live.weights[Math.floor(i / n)] * (i % n === c ? size : i % n === d ? -size : 0), 0) / live.unit);
    const difference = (outcome.scores[c] - outcome.scores[d]) / live.unit;
    const base = contributions.reduce((rest, size) => rest - size, difference);
    return {...outcome, order, contributions, difference, base};
  }

  function textOfDay(day) {
    return new Date(864e5 * day).toISOString().slice(0, 10);
  }

  function dayOfText(text) {
    return Date.parse(text.slice(0, 10)) / 864e5;
  }

  // Searches from x towards a limit in growing steps for the first accepted value, and refines it by bisection.
  function outwards(x, limit, input, accepts) {
    const side = Math.sign(limit - x), isDate = input.timed !== undefined, isWhole = input.whole || isDate;
    const rounded = (value) => (isWhole ? x + side * Math.ceil(Math.abs(value - x)) : value);
    const within = (value) => side * (limit - value) >= 0;
    let before = x, found = null;
    // The day of the week may matter, so dates are tried day by day for more than a year.
    const next = (far) => (isDate && far < 400 ? far + 1 : 1.1 * far);
    for (let far = isWhole ? 1 : 1e-4 * input.spread; side !== 0 && found === null; far = next(far)) {
      let value = rounded(x + side * far);
      if (!within(value)) value = isWhole ? x + side * Math.floor(Math.abs(limit - x)) : limit;
      if (value !== before && accepts(value)) found = value;
      else before = value;
      if (side * (x + side * far - limit) >= 0) break;
    }
    if (found === null) return null;
    while (Math.abs(found - before) > (isWhole ? 1 : 1e-7 * input.spread)) {
      const middle = isWhole ? before + side * Math.floor(Math.abs(found - before) / 2) : (before + found) / 2;
      if (middle === before || middle === found) break;
      if (accepts(middle)) found = middle;
      else before = middle;
    }
    for (let digits = 2; !isWhole && digits < 15; digits++) {
      const value = Number(found.toPrecision(digits));
      const isNear = Math.abs(value - found) <= 0.02 * Math.abs(found - x);
      if (isNear && within(value) && side * (value - x) > 0 && accepts(value)) return value;
    }
    return found;
  }

  // The accepted values of one column with their distances; another level has distance 1, as in Python.
  function nearestOf(input, column, cell, accepts) {
    if (column.kind === "boolean" || column.kind === "category") {
      const values = column.kind === "boolean" ? ["true", "false"] : column.levels;
      return values.filter((value) => value !== cell && accepts(value)).map((value) => ({value, distance: 1}));
    }
    const isDate = column.kind === "date", x = isDate ? dayOfText(cell) : cell;
    const valueOf = (number) => (isDate ? textOfDay(number) : number);
    return [input.low, input.high].flatMap((limit) => {
      if (limit === input.low ? limit >= x : limit <= x) return [];
      const found = outwards(x, limit, input, (number) => accepts(valueOf(number)));
      return found === null ? [] : [{value: valueOf(found), distance: Math.abs(found - x) / input.spread}];
    });
  }

  function leadOf(scores, c) {
    return scores[c] - Math.max(...scores.filter((_, other) => other !== c));
  }

  // The smallest change of one column that leads to another class. If none is found, the change that comes closest,
  // without a label; null if no change comes closer.
  function nearestFlip(row) {
    const {scores: before} = model.predict(row), c = before.indexOf(Math.max(...before));
    const planes = partsOf(row).reduce((sum, part) => added(sum, part, 1), Float64Array.from(model.intercept));
    let best = null, closest = null, least = leadOf(before, c);
    live.inputs.forEach((input) => {
      const column = model.columns[input.column], cell = row[column.position];
      if (cell === null || column.kind === "text") return;
      const rest = added(planes, partOf(input.column, cell), -1);
      const leadAt = (value) => leadOf(model.classScores(added(rest, partOf(input.column, value), 1)), c);
      const accepts = (value) => {
        const lead = leadAt(value);
        if (lead < least) [closest, least] = [{input, value, label: null}, lead];
        return lead < 0;
      };
      nearestOf(input, column, cell, accepts).forEach(({value, distance}) => {
        const lead = leadAt(value);
        if (best && (distance > best.distance || (distance === best.distance && lead >= best.lead))) return;
        const changed = row.slice();
        changed[column.position] = value;
        const after = model.predict(changed).label;
        if (after !== model.classes[c]) best = {input, value, distance, lead, label: after};
      });
    });
    return best ?? closest;
  }

  return {explain, nearestFlip};
})();
