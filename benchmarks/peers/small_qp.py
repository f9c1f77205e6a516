"""The quadratic problems over the simplex that a bundle of cuts poses, by several solvers, in one run.

Replays the problems of MNIST-2 and of POKER. Needs POLYPLANE_DATA; solvers that are not installed (daqp, quadprog,
clarabel) are passed over. Prints the mean time per problem and the worst relative excess over the best objective.
"""

import time
import warnings
from unittest.mock import patch

import numpy as np
from scipy import optimize, sparse

from polyplane import CuttingPlaneSVC
from polyplane.datasets import load_dataset
from polyplane.learners.cuts import Bundle


def record(X, y, **params):
    """Train, and keep each problem (G, c) with the time and the solution of our own solver."""
    problems, solve = [], Bundle.solve

    def recorded(bundle, C, tol):
        with patch.object(Bundle, "_without_idle", lambda solved: solved):
            began = time.perf_counter()
            solved, planes, bound = solve(bundle, C, tol)
            seconds = time.perf_counter() - began
        problems.append((bundle.gram.copy(), bundle.offsets / C, solved.x, seconds))
        return solved._without_idle(), planes, bound

    with patch.object(Bundle, "solve", recorded), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CuttingPlaneSVC(**params).fit(X, y)
    return problems


def ridge(G):
    return G + 1e-10 * max(G.diagonal().max(), 1e-300) * np.eye(len(G))


def by_daqp(G, c):
    import daqp

    n = len(c)
    A, upper, lower = np.ones((1, n)), np.r_[np.full(n, 1e30), 1.0], np.r_[np.zeros(n), 1.0]
    sense = np.r_[np.zeros(n), 5].astype(np.int32)
    return daqp.solve(ridge(G), -c, A, upper, lower, sense)[0]


def by_quadprog(G, c):
    import quadprog

    n = len(c)
    return quadprog.solve_qp(ridge(G), c, np.column_stack([np.ones(n), np.eye(n)]), np.r_[1.0, np.zeros(n)], 1)[0]


def by_clarabel(G, c):
    import clarabel

    n = len(c)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sparse.csc_matrix(np.vstack([np.ones((1, n)), -np.eye(n)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    P = sparse.csc_matrix(np.triu(G))
    return np.array(clarabel.DefaultSolver(P, -c, A, np.r_[1.0, np.zeros(n)], cones, settings).solve().x)


def by_scipy(G, c):
    n = len(c)
    return optimize.minimize(
        lambda x: x @ G @ x / 2 - c @ x,
        np.full(n, 1 / n),
        jac=lambda x: G @ x - c,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(n)},
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    ).x


SOLVERS = {"daqp": by_daqp, "quadprog": by_quadprog, "clarabel": by_clarabel, "SciPy, SLSQP": by_scipy}


def value(G, c, x):
    x = np.maximum(np.nan_to_num(x), 0)
    x = x / max(x.sum(), 1e-300)
    return x @ G @ x / 2 - c @ x


def compare(name, problems):
    print(f"{name}: {len(problems)} problems, {len(problems[-1][1])} cuts at the end")
    own = np.array([value(G, c, x) for G, c, x, _ in problems])
    best, outcomes = own.copy(), {"ours, warm": (1e3 * np.mean([p[3] for p in problems]), own)}
    for solver, solve in SOLVERS.items():
        try:
            solve(np.eye(2), np.ones(2))
        except ImportError:
            continue
        used = problems if solver != "SciPy, SLSQP" else problems[:: max(1, len(problems) // 10)]
        began, values = time.perf_counter(), []
        for G, c, _, _ in used:
            scale = G.diagonal().max()  # as is, quadprog finds the constraints of some problems inconsistent
            try:
                values.append(value(G, c, solve(G / scale, c / scale)))
            except ValueError:
                values.append(np.nan)
        seconds = time.perf_counter() - began
        if used is problems:
            best = np.fmin(best, values)
            outcomes[solver] = (1e3 * seconds / len(used), np.array(values))
        else:
            print(f"  {solver:14} {1e3 * seconds / len(used):9.3f} ms (a tenth of the problems)")
    for solver, (milliseconds, values) in outcomes.items():
        excess = np.nanmax((values - best) / np.maximum(np.abs(best), 1e-300))
        failed = np.isnan(values).sum()
        print(f"  {solver:14} {milliseconds:9.3f} ms   worst relative excess {excess:.1e}   failures {failed}")


if __name__ == "__main__":
    poker = load_dataset("poker")
    mnist = load_dataset("mnist")
    rows = sparse.csr_matrix(mnist.data.reshape(60000, -1) / np.float32(255))
    record(np.eye(4), np.arange(4) % 2, max_iter=5)  # compile
    compare("MNIST-2, C=1, tol=1e-3", record(rows, mnist.target == 2, tol=1e-3))
    compare("POKER, C=1, tol=1e-3", record(poker.data.astype(np.float32), poker.target, tol=1e-3, max_iter=300))
