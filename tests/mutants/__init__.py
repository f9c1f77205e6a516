"""Mutations of the kernels and of the rules beside them, each with the tests that must fail.

A mutation is a line of the source and what replaces it. It stands for a mistake that is easily made and hard to see: a
strict inequality, a forgotten factor, a wrong sign, a guarantee that is rarely needed.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
#: Exit codes.
PASSED, FAILED = 10, 11


class Mutant(NamedTuple):
    """A mutation: a text of a file of the package, which occurs once, its replacement, and tests."""

    file: str
    old: str
    new: str
    tests: str


CPM = "tests/learners/test_convex_polytope.py::test_without_backoff_the_kernel_is_the_paper[True-0.9-asarray]"
SKIPPING = (
    "tests/learners/test_convex_polytope.py::test_skipped_rows_are_checked_at_their_rate "
    "tests/learners/test_convex_polytope.py::test_a_check_stands_for_the_rows_that_were_not_checked "
    "tests/learners/test_convex_polytope.py::test_caution_follows_the_checks "
    "tests/learners/test_convex_polytope.py::test_a_row_is_skipped_as_long_as_its_slack_outlasts_the_movement"
)
JOINT = "tests/learners/test_joint_polytope.py::test_without_backoff_the_kernel_is_the_box[True-0.9-asarray]"
MULTI = "tests/learners/test_multi_hyperplane.py"
HINGE = f"{MULTI}::test_the_margin_kernel_is_plain_descent[asarray-31]"
LOG = f"{MULTI}::test_contested_passes_are_adam_on_the_planes_in_contention"
LEFT_OUT = f"{MULTI}::test_what_candidates_leave_out_is_measured_and_bounded"
VISITS = (
    f"{MULTI}::test_visits_stand_for_skipped_ones "
    f"{MULTI}::test_rows_are_visited_again_when_skipped_ones_lose_their_probability"
)
AMM = "tests/learners/test_adaptive_multi_hyperplane.py -k 'papers_box and asarray'"
POLYCEPTRON = "tests/learners/test_polyceptron.py::test_the_online_form_is_the_box_of_the_paper[True-asarray]"
WORST = "tests/learners/test_worst_case_polytope.py -k 'kernel and asarray or total'"
CUTS = "tests/learners/test_cutting_plane.py"
EDGES = "tests/kernels/test_edges.py"
CANDIDATES = f"{EDGES} -k candidates"
ONLINE = f"{EDGES} -k polyceptron"
COMMITTEE = "tests/test_model.py::TestCommittee"
PLANES = f"tests/test_planes.py {COMMITTEE}"
KERNEL = "tests/test_model.py::TestKernel -k 'matrix_products or far_apart'"
ROBUST = "tests/learners/test_robust.py"
MONOTONE = "tests/learners/test_monotone.py"
LEVELS = "tests/tables/test_preparation.py -k 'level or folded or same'"
RACE = "tests/engine/test_race.py"

MUTANTS = [
    # The convex polytope machine.
    Mutant(
        "kernels/convex_polytope.py", "raises = counts[k] < counts[old] - 1", "raises = counts[k] < counts[old]", CPM
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "if raises and (best < 0 or score[k] > score[best]):",
        "if raises and best < 0:",
        CPM,
    ),
    Mutant(
        "kernels/convex_polytope.py", "if total >= 5 * counts.shape[0] and", "if total >= 4 * counts.shape[0] and", CPM
    ),
    Mutant(
        "kernels/convex_polytope.py", "        counts[old] -= 1\n", "        counts[old] -= 0\n", f"{EDGES} -k n_log_n"
    ),
    Mutant(
        "kernels/convex_polytope.py", "    memory.recorded[i] = natural\n", "    memory.recorded[i] = chosen\n", CPM
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "after += _n_log_n(counts[old] - 1) - _n_log_n(counts[old])",
        "after -= _n_log_n(counts[old])",
        f"{EDGES} -k n_log_n",
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "    for k in range(score.shape[0]):\n        least =",
        "    for k in range(1):\n        least =",
        f"{EDGES} -k inner_row",
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "length * movement[z])",
        "length * movement[0])",
        f"{EDGES} -k inner_row",
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "                    if score[k] > -margin:\n",
        "                    if k == z:\n",
        CPM,
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "add(rows, i, planes, k, -weights[i] * amount)",
        "add(rows, i, planes, k, -amount)",
        CPM,
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "loss += weights[i] * (1.0 + score[k] / margin)",
        "loss += 1.0 + score[k] / margin",
        CPM,
    ),
    Mutant(
        "kernels/convex_polytope.py",
        "return after if score[after] > score[before] else before",
        "return after",
        JOINT,
    ),
    Mutant("kernels/convex_polytope.py", "            add(rows, i, planes, rival, -weights[i] * amount)\n", "", JOINT),
    Mutant(
        "kernels/convex_polytope.py",
        "of_class = Memory(kept.recorded, kept.counts[first:last], kept.sums[labels[i]])",
        "of_class = Memory(kept.recorded, kept.counts[:n_planes], kept.sums[labels[i]])",
        JOINT,
    ),
    # Skipped rows.
    Mutant("kernels/skipping.py", "    if not slack > 0.0:\n        return 0\n", "", SKIPPING),
    Mutant("kernels/skipping.py", "slack / (0.7 * movement)", "slack / movement", SKIPPING),
    Mutant("kernels/skipping.py", "TO_FRACTION < checks.rate * weight", "TO_FRACTION < checks.rate", SKIPPING),
    Mutant("kernels/skipping.py", "        skip[i] = 0\n", "", SKIPPING),
    Mutant("kernels/skipping.py", "max(0.0, 1.0 / checks.rate - weight)", "1.0 / checks.rate", SKIPPING),
    Mutant("kernels/skipping.py", "checks.found[1] += n_planes * weight", "checks.found[1] += weight", SKIPPING),
    Mutant(
        "learners/tangents.py",
        "excess = (missed - MOST_MISSED * (missed + made))",
        "excess = (missed - MOST_MISSED * made)",
        SKIPPING,
    ),
    Mutant("learners/tangents.py", "self.skip[...] = self.skip * (self.caution / caution) ** power", "pass", SKIPPING),
    Mutant("learners/tangents.py", "LESS_PER_HIT ** (excess / power)", "LESS_PER_HIT**excess", SKIPPING),
    Mutant(
        "learners/tangents.py",
        "factor = astype(self.skip, chance.dtype) + 1.0",
        "factor = astype(self.skip, chance.dtype) * 0.0 + 1.0",
        VISITS,
    ),
    Mutant(
        "learners/tangents.py",
        "            self.skip[...] = 0\n            return replace(self, strikes",
        "            return replace(self, strikes",
        VISITS,
    ),
    Mutant(
        "learners/tangents.py",
        "strikes=self.strikes + 1, pause=2**self.strikes",
        "strikes=self.strikes + 1, pause=1",
        VISITS,
    ),
    Mutant("learners/tangents.py", "astype(skip > 0, weight.dtype)", "astype(skip >= 0, weight.dtype)", VISITS),
    # The margin loss.
    Mutant(
        "kernels/multi_hyperplane.py",
        "            add(X, i, planes, rival, -step)\n",
        "            add(X, i, planes, rival, -0.5 * step)\n",
        HINGE,
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "step = weights[i] * (steps.length - visit * steps.fall)",
        "step = weights[i] * steps.length",
        HINGE,
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "if not is_checked(clocks.first_visit + visit, weights[i], clocks.checks):",
        "if True:",
        HINGE,
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "reached - 1.0 >= clocks.longest * reach[i]",
        "reached >= clocks.longest * reach[i]",
        f"{EDGES} -k margin_outlasts",
    ),
    Mutant("kernels/multi_hyperplane.py", "if owner[k] == labels[i]:\n", "if owner[k] >= labels[i]:\n", HINGE),
    # Adaptive multi-hyperplane machines.
    Mutant("kernels/multi_hyperplane.py", "(mine == answer and best[c] > best[rival])", "False", f"{EDGES} -k answer"),
    Mutant(
        "kernels/multi_hyperplane.py",
        "if where[c] < 0 or counts[c] < unused else best[c]",
        "if where[c] < 0 else best[c]",
        f"{EDGES} -k answer",
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "elif own < 0 or (own_score <= 0.0 and counts[label] < unused):",
        "elif own < 0:",
        AMM,
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "            if own_score > 0.0 and growth.draws",
        "            if growth.draws",
        AMM,
    ),
    Mutant("kernels/multi_hyperplane.py", "chance *= growth.decay", "chance *= 1.0", AMM),
    Mutant("kernels/multi_hyperplane.py", "and counts[label] < growth.most", "and counts[label] <= growth.most", AMM),
    Mutant(
        "kernels/multi_hyperplane.py",
        "_copy_plane(planes.coef, planes.intercept, planes.shift, own, copy)",
        "pass",
        AMM,
    ),
    Mutant(
        "kernels/multi_hyperplane.py",
        "margin = max(growth.alpha * t, before, TINY)",
        "margin = max(growth.alpha * t, TINY)",
        AMM,
    ),
    # The log-loss.
    Mutant(
        "kernels/log_loss.py",
        "        if n_higher >= n:\n",
        "        if n_higher >= n - 1:\n",
        CANDIDATES,
    ),
    Mutant("kernels/log_loss.py", "    if n_own == 0 or n_own == n:\n", "    if n_own == 0:\n", CANDIDATES),
    Mutant("kernels/log_loss.py", "    if n_own == 0 or n_own == n:\n", "    if n_own == n:\n", CANDIDATES),
    Mutant(
        "kernels/log_loss.py",
        "n_found = _collect(all_scores, low + step, np.inf, candidates, 0)",
        "n_found = 0",
        CANDIDATES,
    ),
    Mutant(
        "kernels/log_loss.py",
        "            slope *= 1 - 1 / probability\n",
        "            slope *= -1 / probability\n",
        LOG,
    ),
    Mutant("kernels/log_loss.py", "        if abs(slope) > NEGLIGIBLE:\n", "        if slope > NEGLIGIBLE:\n", LOG),
    Mutant("kernels/log_loss.py", "        slope[i] = 0\n", "", LOG),
    Mutant(
        "kernels/log_loss.py",
        "second[i] = b2 * second[i] + a2 * slope[i] * slope[i]",
        "second[i] = b2 * second[i] + a2 * abs(slope[i])",
        LOG,
    ),
    Mutant("kernels/log_loss.py", "weight = rows.weight[row] / n_rows", "weight = 1.0 / n_rows", LOG),
    Mutant(
        "kernels/log_loss.py",
        "missed[0] += weight * (2.0 * (total - own) - kept) / total",
        "missed[0] += weight * (total - own - kept) / total",
        LEFT_OUT,
    ),
    Mutant(
        "learners/log_loss.py",
        "if turn >= SETTLED and self.missed > MOST_LEFT_OUT:",
        "if turn > SETTLED and self.missed > MOST_LEFT_OUT:",
        LEFT_OUT,
    ),
    Mutant(
        "learners/log_loss.py",
        "return turn in (0, 1, 3) or",
        "return turn in (0, 1) or",
        f"{MULTI} -k 'missed_share or renew'",
    ),
    # The choice of the number of planes.
    Mutant(
        "learners/tangents.py",
        "WORSE = 1.5",
        "WORSE = -9.0",
        "tests/engine/test_race.py -k 'plane and not a9a'",
    ),
    # Polyceptron.
    Mutant("kernels/polyceptron.py", "if sign[i] * score[r] <= 0.0:", "if sign[i] * score[r] < 0.0:", ONLINE),
    Mutant("kernels/polyceptron.py", "if values[k] < values[best]:", "if values[k] <= values[best]:", ONLINE),
    Mutant("kernels/polyceptron.py", "sign[i] * step[i])", "step[i])", POLYCEPTRON),
    # The worst-case margin.
    Mutant(
        "kernels/worst_case_polytope.py",
        "norm[k] *= shrink * shrink",
        "norm[k] *= shrink",
        WORST,
    ),
    Mutant(
        "kernels/worst_case_polytope.py",
        "if k == longest or not longest_alone:\n                norm",
        "if not longest_alone:\n                norm",
        WORST,
    ),
    Mutant(
        "kernels/worst_case_polytope.py",
        "for k in range(z, z + 1) if outside else range(n_planes):",
        "for k in range(z, z + 1):",
        WORST,
    ),
    # Cutting planes.
    Mutant(
        "kernels/cutting_plane.py",
        "violated = current[i] + mu * (candidate[i] - current[i]) >= 0.0",
        "violated = current[i] >= 0.0",
        f"{CUTS} -k 'TestPaper or TestRowSums'",
    ),
    Mutant(
        "kernels/cutting_plane.py",
        "(v >= largest if column < 0 else v > largest)",
        "(v >= largest)",
        f"{CUTS} -k 'TestPaper or TestRowSums'",
    ),
    Mutant(
        "kernels/cutting_plane.py",
        "if mu < crossing or (mu == crossing and s > steeper):",
        "if mu < crossing:",
        f"{EDGES} -k kink",
    ),
    Mutant(
        "kernels/cutting_plane.py",
        "at[count], rise[count] = crossing, weight[i] * (steeper - slope)",
        "at[count], rise[count] = crossing, weight[i] * steeper",
        f"{CUTS} -k 'TestExactSearch'",
    ),
    Mutant(
        "kernels/cutting_plane.py",
        "        if slope + curvature * at[i] >= 0.0:\n            break\n",
        "",
        f"{CUTS} -k 'TestExactSearch'",
    ),
    Mutant(
        "learners/cuts.py",
        "    while f_low < f_mid:\n        width *= 2.0\n",
        "    while f_low < f_mid:\n",
        f"{CUTS} -k 'TestPaper'",
    ),
    Mutant(
        "kernels/simplex_qp.py",
        "if direction[i] < 0.0 and x[support[i]] < -step * direction[i]:",
        "if direction[i] < 0.0 and x[support[i]] > -step * direction[i]:",
        f"{CUTS} -k 'TestBundle'",
    ),
    Mutant(
        "kernels/simplex_qp.py",
        "factor[k, i + 1] = cosine * right - sine * left",
        "factor[k, i + 1] = cosine * right + sine * left",
        f"{CUTS} -k 'TestBundle'",
    ),
    Mutant(
        "kernels/simplex_qp.py",
        "    level = (total - 1.0) / ones\n",
        "    level = total / ones\n",
        f"{CUTS} -k 'TestBundle'",
    ),
    # Pooling.
    Mutant(
        "planes.py", "return best + np.log(np.add.reduceat(parts, self.indptr[:-1], axis=1))", "return best", PLANES
    ),
    Mutant("planes.py", "parts = np.exp(scores - np.repeat(best, sizes, axis=1))", "parts = np.exp(scores)", PLANES),
    Mutant(
        "planes.py",
        "return parts / np.repeat(np.add.reduceat(parts, starts, axis=-1), sizes, axis=-1)",
        "return parts",
        COMMITTEE,
    ),
    Mutant(
        "planes.py", "        lead = math.log(self._sizes.max()) + NEARLY_TIED", "        lead = NEARLY_TIED", PLANES
    ),
    Mutant("planes.py", "is_close[row[self.owners[plane] != found[row]]] = True", "pass", PLANES),
    Mutant(
        "planes.py",
        'return self.n_members == 1 and (self.pooling == "max" or self.n_planes == self.n_classes)',
        "return self.n_members == 1",
        PLANES,
    ),
    Mutant(
        "planes.py",
        "found.append(PlaneSet(self.coef[own, :], self.intercept[own], edges, pooling=self.pooling))",
        "found.append(PlaneSet(self.coef[own, :], self.intercept[own], edges))",
        COMMITTEE,
    ),
    Mutant("planes.py", "return self.pooling == other.pooling and all(", "return all(", PLANES),
    Mutant(
        "planes.py",
        "            intercept = self.pooled(scores)[0] - coef @ x\n",
        "            intercept = np.bincount(self.owners, share * self.intercept, self.n_classes) * largest\n",
        COMMITTEE,
    ),
    Mutant(
        "planes.py",
        'return best if self.pooling == "max" else best + xp.log(xp.sum(xp.exp(scores - best[..., None]), axis=-1))',
        "return best",
        "tests/test_array_api.py -k scores_on_any_device",
    ),
    Mutant(
        "learners/multi_hyperplane.py",
        'in own), pooling="logsumexp"',
        'in own), pooling="max"',
        f"{MULTI}::test_scores_are_pooled_as_trained",
    ),
    Mutant(
        "learners/many.py",
        'PlaneSet.of_classes(unscaled, pooling="logsumexp")',
        "PlaneSet.of_classes(unscaled)",
        "tests/learners/test_many.py::test_a_machine_is_what_it_is_alone",
    ),
    Mutant(
        "model.py",
        "shares += 0.5 * size * planes.shares(start + 0.5 * (1.0 + node) * change)",
        "shares += 0.5 * size * planes.shares(start + change)",
        "tests/test_model.py -k steep",
    ),
    Mutant(
        "model.py",
        "MAX_PATH_POINTS:\n            return shares\n        n_points *= 2",
        "MAX_PATH_POINTS:\n            return shares\n        return shares",
        "tests/test_model.py -k steep",
    ),
    # Robust planes.
    Mutant(
        "learners/robust.py",
        'return super().planes(state).replace(pooling="max")',
        "return super().planes(state)",
        f"{ROBUST} -k saved",
    ),
    Mutant(
        "learners/robust.py",
        "width = (self.high - self.low - 2 * self.eps) / self.n_bins",
        "width = (self.high - self.low) / self.n_bins",
        f"{ROBUST} -k all_changes",
    ),
    Mutant(
        "learners/robust.py",
        "start = (low - change).astype(X.dtype)",
        "start = low.astype(X.dtype)",
        f"{ROBUST} -k all_changes",
    ),
    Mutant(
        "learners/robust.py",
        "half[:, :-1] = 0.5 * (high - low) * factor",
        "half[:, :-1] = (high - low) * factor",
        f"{ROBUST} -k all_changes",
    ),
    Mutant(
        "learners/robust.py",
        'given["anchor"] = np.zeros_like(state.W) if self.alpha else None',
        "pass",
        f"{ROBUST} -k shrink",
    ),
    Mutant(
        "learners/robust.py",
        "W.dtype.type(1 - method.clean) * weight, x @ flat.T",
        "weight, x @ flat.T",
        f"{ROBUST} -k mean_of_those",
    ),
    Mutant("kernels/robust.py", "abs(rival[j] - own[j]) * half[j]", "abs(rival[j]) * half[j]", f"{ROBUST} -k gradient"),
    Mutant(
        "kernels/robust.py",
        "if not first <= k < end and scores[k] > values[-1]:",
        "if scores[k] > values[-1]:",
        f"{ROBUST} -k gradient",
    ),
    Mutant("kernels/robust.py", "        shares[j] /= total\n", "", f"{ROBUST} -k gradient"),
    Mutant("kernels/robust.py", "        total = np.exp(-top)\n", "        total = 0.0\n", f"{ROBUST} -k gradient"),
    Mutant(
        "kernels/robust.py",
        "point = amount * (x[j] + (half[j] if rival[j] > own[j] else -half[j]))",
        "point = amount * (x[j] + (half[j] if rival[j] > 0 else -half[j]))",
        f"{ROBUST} -k gradient",
    ),
    Mutant(
        "kernels/robust.py",
        "largest = j if abs(rival[j] - own[j]) > abs(rival[largest] - own[largest]) else largest",
        "largest = j if rival[j] - own[j] > rival[largest] - own[largest] else largest",
        f"{ROBUST} -k gradient",
    ),
    Mutant(
        "kernels/robust.py",
        "_add_multiple(gradient[first + j], -shares[j], point_of_own)",
        "_add_multiple(gradient[first + j], -1.0 / len(shares), point_of_own)",
        f"{ROBUST} -k gradient",
    ),
    # Monotone columns.
    Mutant(
        "kernels/monotone.py",
        "if before < rank or (before == rank and W[planes[at - 1], j] <= W[k, j]):",
        "if before < rank or W[planes[at - 1], j] <= W[k, j]:",
        f"{MONOTONE} -k projection",
    ),
    Mutant(
        "kernels/monotone.py",
        "if before < rank or (before == rank and W[planes[at - 1], j] <= W[k, j]):",
        "if before <= rank:",
        f"{MONOTONE} -k projection",
    ),
    Mutant("kernels/monotone.py", "share = size[n_blocks] / total", "share = 0.5", f"{MONOTONE} -k projection"),
    Mutant(
        "kernels/monotone.py",
        "while n_blocks > 0 and value[n_blocks - 1] > value[n_blocks]:",
        "if n_blocks > 0 and value[n_blocks - 1] > value[n_blocks]:",
        f"{MONOTONE} -k projection",
    ),
    Mutant(
        "learners/monotone.py",
        "return np.arange(len(labels))",
        "return np.arange(len(labels))[::-1]",
        f"{MONOTONE} -k 'order_of_the_classes and 31-1-3'",
    ),
    # Levels of numbers.
    Mutant(
        "tables/preparation.py", "knots = levels[count >= LEAST_LEVEL]", "knots = levels[count > LEAST_LEVEL]", LEVELS
    ),
    Mutant(
        "tables/preparation.py",
        "len(levels) <= MOST_LEVELS and len(knots) > 2",
        "len(knots) <= MOST_LEVELS and len(knots) > 2",
        LEVELS,
    ),
    Mutant("tables/preparation.py", "weight, before = weight - before, weight", "before = weight", LEVELS),
    Mutant("tables/preparation.py", "intercept, before = intercept + weight, weight", "before = weight", LEVELS),
    Mutant("tables/preparation.py", "return below[:, :-1] - below[:, 1:]", "return below[:, :-1]", LEVELS),
    # The choice of planes and steps.
    Mutant(
        "learners/tangents.py",
        "sizes.append(min(GROWTH * sizes[-1], last))",
        "sizes.append(min(2 * sizes[-1], last))",
        f"{RACE} -k growing",
    ),
    Mutant(
        "learners/tangents.py",
        "held_out, rest = np.sort(rows[:n_held_out]), rows[n_held_out:]",
        "held_out, rest = np.sort(rows[:n_held_out]), rows",
        f"{RACE} -k growing",
    ),
    Mutant(
        "learners/tangents.py",
        "found = race.run([usual, best], rungs)",
        "found = [usual]",
        f"{RACE} -k small_steps",
    ),
    Mutant(
        "learners/tangents.py",
        "best = next((each for each in near if each.n_planes == 1), fitted)",
        "best = fitted",
        f"{RACE} -k 'along_a_plane and 200 or within_the_noise'",
    ),
    Mutant(
        "learners/tangents.py",
        "left += _more_planes(race, left, [rung], min(most_planes(data), MOST_PLANES))",
        "pass",
        f"{RACE} -k many_rows",
    ),
    Mutant(
        "learners/tangents.py",
        "settings, chosen = settings | own, replace(chosen, **own)",
        "settings |= own",
        f"{RACE} -k small_steps",
    ),
    Mutant(
        "learners/tangents.py",
        "return np.clip(data.class_counts // ROWS_PER_PLANE, 1, n_planes)",
        "return np.clip(data.class_counts, 1, n_planes)",
        f"{RACE} -k each_plane",
    ),
    Mutant(
        "learners/tangents.py", 'rows = rows[np.argsort(data.y[rows], kind="stable")]', "pass", f"{RACE} -k rare_class"
    ),
    # Doubted labels.
    Mutant(
        "learners/tangents.py",
        "factor if self.trust is None else factor * self.trust",
        "factor",
        f"{RACE} -k noisy_labels",
    ),
    Mutant(
        "learners/multi_hyperplane.py",
        "probability / (probability + self.doubt(state))",
        "probability",
        f"{RACE} -k doubtful_labels",
    ),
    Mutant(
        "learners/log_loss.py",
        "weight = weight * (probability / (probability + doubt))",
        "pass",
        f"{RACE} -k doubt_labels_too",
    ),
    Mutant("engine/run.py", "difference.std() / len(difference) ** 0.5", "difference.std()", f"{RACE} -k excess"),
    # Scores of many planes.
    Mutant(
        "kernels/pooling.py",
        "top = max(pooled[i, pool], _largest(found, start - first, end - first))",
        "top = _largest(found, start - first, end - first)",
        KERNEL,
    ),
    Mutant("kernels/pooling.py", "                sums[i, pool] *= np.exp(pooled[i, pool] - top)\n", "", KERNEL),
    Mutant(
        "kernels/pooling.py", "while indptr[first_pool + 1] <= first:", "while indptr[first_pool + 1] < first:", KERNEL
    ),
    Mutant(
        "kernels/robust.py",
        "                most = max(most, rise)\n",
        "                most = rise\n",
        f"{ROBUST} -k gradient",
    ),
    Mutant(
        "kernels/robust.py",
        "                if rise > most:\n",
        "                if rise > 0:\n",
        f"{ROBUST} -k gradient",
    ),
]


def run(source, log, tests):
    """Run tests with the package in `source`; the exit code tells their result from an error of this process."""
    import pytest

    with open(log, "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = source
    sys.path.insert(0, source)
    sys.dont_write_bytecode = True
    sys.exit(PASSED + int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *shlex.split(tests)])))
