"""
Unlimited training data
=======================

`InfiniteDigits` generates any number of deformed images from given ones; image number i is always the same. A model
that never sees an image twice generalises better.
"""

# %%
# The base images can have any size. Here they are the 8 x 8 digits of scikit-learn; 400 of them are held out for
# testing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from polyplane import MultiHyperplaneClassifier
from polyplane.datasets import InfiniteDigits

images, labels = load_digits(return_X_y=True)
images = (images * 15.9).astype(np.uint8)
base, test = slice(0, 1397), slice(1397, None)
digits = InfiniteDigits(images[base], labels[base], shift=0.5, elastic=0.25, scale=0.1)

fig, panels = plt.subplots(4, 12, figsize=(9, 3.2), layout="constrained")
for ax, row in zip(panels.T.ravel(), (r * 1397 + c for c in range(12) for r in range(4)), strict=True):
    ax.imshow(digits[row][0].reshape(8, 8), cmap="gray_r")
    ax.axis("off")
title = fig.suptitle("Twelve images (above) and three deformations of each")

# %%
for name, rows in {"the images themselves": 1397, "with 30 deformations of each": 31 * 1397}.items():
    X, y = digits[:rows]
    model = MultiHyperplaneClassifier(n_planes=16, max_iter=max(4, 60 * 1397 // rows), random_state=0)
    error = 100 * (1 - model.fit(X / np.float32(255), y).score(images[test] / np.float32(255), labels[test]))
    print(f"{name}: {error:.1f} % error")
