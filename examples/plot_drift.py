"""
Concept drift in a stream
=========================

In a stream with concept drift, old rows are misleading. `half_life` reduces the weight of old rows, which lowers the
error on new rows.
"""

# %%
# The decision boundary makes one full turn in 200 batches.
import matplotlib.pyplot as plt
import numpy as np

from polyplane import PegasosSVC


def batches(n_batches=200, n_rows=100):
    rng = np.random.default_rng(0)
    for day in range(n_batches):
        angle = 2 * np.pi * day / n_batches
        X = rng.normal(size=(n_rows, 2))
        yield X, X @ [np.cos(angle), np.sin(angle)] > 0


fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for half_life, colour in ((None, "#E69F00"), (500, "#0072B2")):
    svm = PegasosSVC(alpha=1e-2, random_state=0).fit_stream(batches, classes=[False, True], half_life=half_life)
    error = 100 * np.array(svm.history_["progressive_error"][1:])
    smooth = np.convolve(error, np.ones(9) / 9, mode="valid")
    ax.plot(smooth, color=colour, label=f"half_life={half_life}: {error.mean():.1f} % on average")
ax.set(xlabel="batch", ylabel="error on rows not yet seen, %", title="Decay of old rows lowers the error under drift")
ax.spines[["top", "right"]].set_visible(False)
legend = ax.legend(frameon=False)
