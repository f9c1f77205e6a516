"""
Skip rows that do not change the model
======================================

Late in training the planes move little, and most rows keep a sufficient margin for several passes. Back-off skips
these rows: the error is the same, in a fraction of the time.
"""

# %%
import matplotlib.pyplot as plt

from polyplane import ConvexPolytopeClassifier
from polyplane.datasets import make_polyhedron

X, y = make_polyhedron(40_000, n_features=10, n_planes=12, inside=0.5, random_state=0)
train, test = slice(0, 30_000), slice(30_000, None)
ConvexPolytopeClassifier(enclosed=1, max_iter=1).fit(X[train], y[train])  # compiles the kernels

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for backoff, colour, marker in ((0, "#E69F00", "s"), (31, "#0072B2", "o")):
    model = ConvexPolytopeClassifier(n_planes=16, enclosed=1, backoff=backoff, alpha=1e-5, max_iter=40, random_state=0)
    model.fit(X[train], y[train])
    error = 100 * (1 - model.score(X[test], y[test]))
    time = model.history_["time"]
    label = f"backoff={backoff}: {time[-1]:.2f} s, {error:.2f} % test error"
    ax.plot(time, model.history_["loss"], color=colour, marker=marker, markersize=4, label=label)
ax.set(xlabel="seconds", ylabel="mean loss", yscale="log", title="Forty passes with and without back-off")
ax.spines[["top", "right"]].set_visible(False)
legend = ax.legend(frameon=False)
