"""How the experiments of the paper train the Convex Polytope Machine: budgets, the choice of settings, repetitions."""

import time
import tomllib
from pathlib import Path

import numpy as np
from benchmarks.harness.experiment import printed
from sklearn.model_selection import train_test_split

from polyplane import AdaptiveMultiHyperplaneClassifier, ConvexPolytopeClassifier

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
SEEDS = range(5)
#: The paper's grid of alpha, as multiples of 1 / visits.
ALPHA_VISITS = (1, 10, 100, 1000, 10000)


def printed_figure(expected, what):
    """A figure of the paper, with its deviation over the orders of the rows where it has one."""
    std = [expected["std"]] if what == "error" and "std" in expected else []
    return printed([expected[what], *std], len(SEEDS))


#: `backoff` of the paper's loop, which looks at the row of every visit, and of ours, which skips rows for about as long
#: as their margins last.
PAPERS_LOOP, BACK_OFF = 0, 31


def budgeted(n_planes, visits, n_rows, alpha_visits, min_entropy, backoff=BACK_OFF):
    """The machine for a budget of visits; alpha is given as a multiple of 1 / visits, as in the paper."""
    return ConvexPolytopeClassifier(
        n_planes,
        enclosed="each",
        alpha=alpha_visits / visits,
        max_iter=max(1, round(visits / n_rows)),
        min_entropy=min_entropy,
        backoff=backoff,
        average=False,
        n_jobs=-1,
    )


def errors(machine, split, seeds=SEEDS):
    """Test errors over orders of the rows, with the processor time of one run, training and testing."""
    runs, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        machine.set_params(random_state=seed).fit(split.X, split.y)
        runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
        seconds.append(time.process_time() - began)
    return summary(runs) | {"run_seconds": round(float(np.median(seconds)), 2)}


def summary(runs):
    return {
        "error": round(float(np.mean(runs)), 4),
        "std": round(float(np.std(runs)), 4),
        "runs": np.round(runs, 4).tolist(),
    }


def entropies(n_planes):
    """The paper's grid h = log(j K / 10), and 0, as fractions of log K."""
    return [0.0] + [max(0.0, np.log(j * n_planes / 10) / np.log(n_planes)) for j in range(1, 10)]


def by_protocol(split, n_planes, visits, n_held_out, seeds=SEEDS, choice_visits=None, backoff=PAPERS_LOOP):
    """The paper's protocol: alpha by held-out training rows with free entropy, then the entropy, then the test rows.

    `choice_visits` is a smaller budget for the choice; alpha is a multiple of 1 / visits in either.
    """
    kept, held_out = _held_out(split, n_held_out)
    choice_visits = choice_visits or visits

    def held_out_error(alpha, min_entropy):
        machine = budgeted(n_planes, choice_visits, len(kept), alpha, min_entropy, backoff).set_params(random_state=0)
        accuracy = machine.fit(split.X[kept], split.y[kept]).score(split.X[held_out], split.y[held_out])
        return round(100 * (1 - accuracy), 4)

    by_alpha = {alpha: held_out_error(alpha, 0.0) for alpha in ALPHA_VISITS}
    alpha = min(by_alpha, key=by_alpha.get)
    by_entropy = {
        h: by_alpha[alpha] if h == 0 else held_out_error(alpha, h) for h in dict.fromkeys(entropies(n_planes))
    }
    entropy = min(by_entropy, key=by_entropy.get)
    free, tuned = (
        errors(budgeted(n_planes, visits, len(split.y), alpha, h, backoff), split, seeds) for h in (0.0, entropy)
    )
    choice = {
        "alpha_visits": alpha,
        "min_entropy": round(float(entropy), 4),
        "held_out_by_alpha": {str(a): e for a, e in by_alpha.items()},
        "held_out_by_entropy": {f"{h:.4f}": e for h, e in by_entropy.items()},
        "rows": len(split.y),
    }
    return tuned | choice | {"free_entropy": free, "error_free_entropy": free["error"], "std_free_entropy": free["std"]}


def amm_errors(split, n_held_out, seeds=SEEDS, epochs=15, alphas=(1e-7, 1e-6, 1e-5, 1e-4, 1e-3)):
    """AMM as the paper sets it: pruning as it comes, alpha by held-out training rows."""
    kept, held_out = _held_out(split, n_held_out)

    def machine(alpha):
        return AdaptiveMultiHyperplaneClassifier(
            growth=0.0, prune=10.0, average_fraction=0.0, alpha=alpha, max_iter=epochs, random_state=0
        )

    def held_out_error(alpha):
        return 1 - machine(alpha).fit(split.X[kept], split.y[kept]).score(split.X[held_out], split.y[held_out])

    alpha = min(alphas, key=held_out_error)
    return errors(machine(alpha), split, seeds) | {"alpha": alpha, "rows": len(split.y)}


def free_entropy(split, n_planes, visits, n_held_out, seeds):
    """How many planes a machine with free entropy has in use, and its held-out error, for each alpha."""
    kept, held_out = _held_out(split, n_held_out)
    figures = {}
    for alpha_visits in ALPHA_VISITS[2:]:
        machine = budgeted(n_planes, visits, len(kept), alpha_visits, 0.0)
        runs, in_use = [], []
        for seed in seeds:
            machine.set_params(random_state=seed).fit(split.X[kept], split.y[kept])
            runs.append(100 * (1 - machine.score(split.X[held_out], split.y[held_out])))
            in_use.append(int((machine.plane_counts_ > 0).sum()) / 2)
        figures[str(alpha_visits)] = {"held_out_error": round(float(np.mean(runs)), 4), "planes": np.mean(in_use)}
    return figures


def learning_curve(split, n_planes, visits, alpha_visits, min_entropy, shares=(0.25, 0.5, 1.0), seeds=SEEDS):
    """Test errors after training on a share of the rows."""
    figures = {}
    for share in shares:
        runs = []
        for seed in seeds:
            rows = np.random.default_rng(seed).permutation(len(split.y))[: round(share * len(split.y))]
            machine = budgeted(n_planes, visits, len(rows), alpha_visits, min_entropy).set_params(random_state=seed)
            machine.fit(split.X[rows], split.y[rows])
            runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
        figures[str(len(rows))] = round(float(np.mean(runs)), 4)
    return {"error_by_rows": figures}


def visits_curve(split, n_planes, alpha_visits, min_entropy, budgets, seed=0):
    """Test errors against the budget of visits, one run each."""
    figures = {}
    for visits in budgets:
        machine = budgeted(n_planes, visits, len(split.y), alpha_visits, min_entropy).set_params(random_state=seed)
        accuracy = machine.fit(split.X, split.y).score(split.X_test, split.y_test)
        figures[str(round(visits))] = round(100 * (1 - accuracy), 4)
    return {"error_by_visits": figures}


def _held_out(split, n_held_out):
    return train_test_split(np.arange(len(split.y)), test_size=n_held_out, random_state=0, stratify=split.y)
