"""
Bounds and observed generalisation
==================================

The convex polytope paper bounds the error on new rows by the hinge loss on the training rows plus a capacity: the sum
of the norms of the planes divided by the square root of the number of rows (Theorem 1, up to a constant). The figures
show it next to the observed gap, held-out error minus training error, against the strength of the regularisation and
the number of planes. Two forms are compared: the total margin, which the paper trains, and the worst-case margin, which
it argues against.
"""

# %%
# Six of twenty features are informative, and each class has four clusters; 600 rows are used for training and 3,000 for
# testing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from polyplane import ConvexPolytopeClassifier, PolyhedralMixtureClassifier, WorstCasePolytopeClassifier
from polyplane.theory import mixture_bound, multi_hyperplane_bound, polytope_bound, polytope_margins

PARTS = []
for seed in range(3):
    X, y = make_classification(
        3600, 20, n_informative=6, n_redundant=0, n_clusters_per_class=4, flip_y=0.05, class_sep=1.2, random_state=seed
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    PARTS.append((X[:600], y[:600], X[600:], y[600:]))


def total(n_planes, alpha):
    return ConvexPolytopeClassifier(n_planes, enclosed=0, alpha=alpha, max_iter=50, backoff=0, random_state=0)


def worst_case(n_planes, alpha):
    return WorstCasePolytopeClassifier(n_planes, enclosed=0, alpha=alpha, max_iter=50, random_state=0)


def measured(make, **settings):
    """Return capacity, and held-out minus training error in percentage points; means over three data sets."""
    figures = []
    for X, y, X_test, y_test in PARTS:
        model = make(**settings).fit(X, y)
        gap = 100 * (model.score(X, y) - model.score(X_test, y_test))
        figures.append((polytope_bound(model.planes_, X, y).capacity, gap))
    return np.mean(figures, axis=0)


# %%
# Stronger regularisation lowers both capacity and gap, so for `alpha` the capacity ranks models correctly. The capacity
# also grows with the number of planes, while the gap levels off: here the bound is too pessimistic, as the paper
# remarks. At the same `alpha` the worst-case form, which regularises only the plane with the largest norm, has the
# larger capacity over most of the range.
FORMS = {"total margin": (total, "#0072B2", "o"), "worst-case margin": (worst_case, "#D55E00", "s")}
AXES = [
    ("alpha", [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3], {"n_planes": 16}, "alpha (16 planes)"),
    ("n_planes", [1, 2, 4, 8, 16, 32, 64], {"alpha": 3e-3}, "planes (alpha = 0.003)"),
]
fig, panels = plt.subplots(2, 2, figsize=(9, 5.6), sharex="col", sharey="row", layout="constrained")
for (name, values, fixed, label), (upper, lower) in zip(AXES, panels.T, strict=True):
    for form, (make, colour, marker) in FORMS.items():
        capacity, gap = np.transpose([measured(make, **{name: value}, **fixed) for value in values])
        upper.plot(values, capacity, color=colour, marker=marker, label=form)
        lower.plot(values, gap, color=colour, marker=marker)
    upper.set(xscale="log", yscale="log")
    lower.set(xlabel=label, ylim=(0, None))
    if name == "n_planes":
        lower.set_xticks(values, [str(value) for value in values], minor=False)
        lower.minorticks_off()
for ax in panels.flat:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3)
panels[0, 0].set(ylabel="capacity: sum of norms / √n", title="Regularisation lowers capacity and gap")
panels[0, 1].set_title("Planes raise capacity, the gap levels off")
panels[0, 0].set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
panels[1, 0].set_ylabel("held-out minus\ntraining error, points")
panels[0, 1].legend(frameon=False, loc="upper left")

# %%
# Both margins of Section 3.2, for the two forms. The classes overlap, so the worst-case margin is negative:
X, y, X_test, y_test = PARTS[0]
for form, (make, _, _) in FORMS.items():
    margins = polytope_margins(make(8, 1e-2).fit(X, y).planes_, X, y)
    used = np.sum(margins.counts > 0)
    print(f"{form:18} worst case {margins.worst_case:.2f}, total {margins.total:.1f}, planes used {used}")

# %%
# The values of all three bounds are far above 1 and therefore vacuous: the bounds show how the terms depend on planes,
# norms and rows.
radius = np.sqrt((X**2).sum(axis=1).max() + 1)
polytope = total(4, 0.1).fit(X, y)
mixture = PolyhedralMixtureClassifier(n_planes=3, random_state=0).fit(X, y)
print(f"error of the polytope: {1 - polytope.score(X_test, y_test):.2f}")
print(f"bounds: {polytope_bound(polytope.planes_, X, y, constant=2 * radius).bound:.2g} (CPM, with A = 2 R), ", end="")
print(f"{multi_hyperplane_bound(polytope.planes_, X, y).bound:.2g} (GAMM), ", end="")
print(f"e^{mixture_bound(mixture.planes_, X, y).log_factor:.0f} (the factor of PLUME's)")
