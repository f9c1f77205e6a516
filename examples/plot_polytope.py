"""
A polytope around a class
=========================

If one class lies inside the other, a convex polytope is the right shape. Each plane of the outer class cuts off a
part of the space; the inner class is the remaining region.
"""

# %%
# Six planes enclose the inner class. `margin=1` draws the margin as dotted lines: a row that keeps its margin has no
# loss.
from polyplane import ConvexPolytopeClassifier
from polyplane.datasets import make_polyhedron
from polyplane.explain import RegionsDisplay

X, y = make_polyhedron(6000, n_features=2, n_planes=6, inside=0.35, random_state=5)
X_test, y_test = X[4000:], y[4000:]

model = ConvexPolytopeClassifier(n_planes=6, enclosed=1, alpha=1e-5, max_iter=60, random_state=0)
model.fit(X[:4000], y[:4000])
display = RegionsDisplay.from_estimator(
    model,
    X_test,
    y_test,
    margin=1.0,
    max_points=500,
    title=f"Class 1 inside six planes: {100 * (1 - model.score(X_test, y_test)):.1f} % test error",
)
