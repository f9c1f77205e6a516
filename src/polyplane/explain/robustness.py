"""Certified robustness: how far rows can be changed before a model can predict another class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from polyplane._prediction import encode
from polyplane.explain.displays import axes, bare
from polyplane.explain.geometry.nearest import DUALS, AllowedChange, check_norm
from polyplane.explain.geometry.point_search import counterfactual, signed_distance
from polyplane.inputs.encoding import MatrixInputs, NumberColumn
from polyplane.model import Model

#: Number of values of a block of rows.
BLOCK_VALUES = 1 << 21
#: A radius above 4 to this power counts as infinite; number of halvings of the interval that contains a radius.
MOST_FOURFOLD, HALVINGS = 16, 40


class Change(NamedTuple):
    """The changes of the features of some rows within a distance.

    They are in a box, given by its centre, relative to the features of the rows, and half of its widths, both of shape
    (n_rows, n_features). Features that rise one after another, such as bins of a number, are there with their smallest
    values and no width; `rise`, of shape (n_rows, n_rising), is how far they can rise, in order, `rising` their
    indices, and `edges` are the positions where sequences of them begin and end.
    """

    shift: np.ndarray
    half: np.ndarray
    rise: np.ndarray
    rising: np.ndarray
    edges: list[int]

    def most(self, directions: np.ndarray) -> np.ndarray:
        """Return the largest increase of linear functions, given as rows of a matrix, shape (n_rows, n_functions)."""
        in_box = self.shift @ directions.T + self.half @ np.abs(directions).T
        return np.asarray(in_box + self.most_in_turn(directions.T[self.rising]))

    def most_in_turn(self, directions: np.ndarray) -> Any:
        """Return the part of it that is due to features that rise one after another: the largest partial sums.

        The directions, of these features only, have the shape (n_rising, n_functions), or that for each row,
        (n_rising, n_rows, n_functions).
        """
        total: Any = 0.0
        for first, end in pairwise(self.edges):
            lead: Any = 0.0
            most: Any = 0.0
            for j in range(first, end):
                lead = lead + self.rise[:, j, None] * directions[j]
                most = np.maximum(most, lead)
            total = total + most
        return total

    def of(self, rows: np.ndarray) -> Change:
        """Return the changes of some of the rows."""
        return self._replace(shift=self.shift[rows], half=self.half[rows], rise=self.rise[rows])


def _products(directions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the products of the matrix of each row with its vector, shape (n_rows, n_directions)."""
    return np.asarray(directions @ values[:, :, None])[:, :, 0]


class Certificate:
    r"""Lower bounds of the lead of a class over all others, for all rows within a distance of given rows.

    Let :math:`F_c` be the score of a class, and :math:`s_k(x) = w_k \phi(x) + b_k` that of a plane. A tangent plane of
    the convex function :math:`F_c(\phi)` is below it everywhere, so that for a change :math:`\delta` of the features

    .. math:: F_c(\phi + \delta) - F_r(\phi + \delta) \ge F_c(\phi) - \text{pool}_{k \in r} \big(s_k + \max_{\delta'}
              (w_k - a) \delta'\big)

    where a is the normal of the tangent, and the pooling of class r the maximum, the log-sum-exp, or their mean over
    members. The maximum of a linear function over a ball is the radius times its dual norm, over a box a sum. If
    scores are maxima of planes, each plane of class c is a tangent, and the best one counts.

    Parameters
    ----------
    model : Model
        The model.
    norm : {1, 2, inf}
        The norm of the changes.
    lower, upper : array-like of shape (n_columns,) or float or None
        Bounds of the changed rows of a matrix; used with the infinity norm.
    scale : array-like of shape (n_columns,), float, dict of str to float, or None
        The units of the columns. Columns of a table without a unit do not change.
    """

    def __init__(self, model: Model, norm: Any, lower: Any = None, upper: Any = None, scale: Any = None) -> None:
        self.model = model = model.flat()
        self.norm = check_norm(norm)
        inputs = model.inputs
        self.numbers: list[slice] = []  # the encoded numbers of numeric columns, each before its indicators
        if isinstance(inputs, MatrixInputs):
            sizes = np.asarray(1.0 if scale is None else scale, dtype=np.float64)
            used = np.where(sizes == 0, 1.0, sizes)
            self.allowed = AllowedChange.of(inputs.n_columns, lower, upper, None, used, norm)
            unit = np.where(sizes == 0, 0.0, self.allowed.scale)
        else:
            if lower is not None or upper is not None:
                raise TypeError("lower and upper are bounds of the features of a matrix, and this model takes a table.")
            unit = np.zeros(inputs.n_encoded)
            numbers = {c.name: (c, own) for c, own in zip(inputs.columns, inputs.places, strict=True)}
            numbers = {name: pair for name, pair in numbers.items() if isinstance(pair[0], NumberColumn)}
            for name, size in _units(numbers, scale).items():
                own = numbers[name][1]
                unit[own.start] = size
                self.numbers.append(own)
            self.allowed = AllowedChange.of(inputs.n_encoded)
        self.unit: np.ndarray = unit
        is_limited = np.isfinite(self.allowed.lower).any() or np.isfinite(self.allowed.upper).any()
        is_linear = model.features.is_identity and not inputs.is_table
        if not is_linear and self.norm != np.inf:
            raise TypeError(
                f"norm={norm!r} requires planes over the columns themselves; for this {model.learner}, norm='inf' is "
                "available."
            )
        self.is_box = bool(not is_linear or (self.norm == np.inf and is_limited))
        self.coef = model.planes.coef.astype(np.float64)
        sequences = model.features.sequences
        self.rising = np.concatenate([np.empty(0, dtype=np.intp), *sequences])
        self.edges = np.cumsum([0, *map(len, sequences)]).tolist()

    @property
    def limits(self) -> dict[str, Any]:
        """The same limits, for `counterfactual`."""
        allowed = self.allowed
        limits = {"lower": allowed.lower, "upper": allowed.upper, "scale": allowed.scale, "norm": self.norm}
        return limits | {"frozen": np.flatnonzero(self.unit == 0)}

    def radius(self, Z: Any) -> np.ndarray:
        """Return the largest distance within which the predicted class of each encoded row is certain to be the same.

        Distances are rounded down.
        """
        if self.model.has_winners and not self.is_box:
            return self._by_rows(self._closed_form, Z)

        def search(Z: Any, scores: np.ndarray, own: np.ndarray) -> np.ndarray:
            lead = self._lead(Z, scores, own)
            low, high = np.zeros(len(own)), np.ones(len(own))
            for _ in range(MOST_FOURFOLD):
                is_certain = lead(high) > 0
                if not is_certain.any():
                    break
                low[is_certain] = high[is_certain]
                high[is_certain] *= 4.0
            is_free = low >= 4.0 ** (MOST_FOURFOLD - 1)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                is_certain = lead(middle) > 0
                low, high = np.where(is_certain, middle, low), np.where(is_certain, high, middle)
            return np.where(is_free, np.inf, low)

        return self._by_rows(search, Z)

    def is_certain(self, Z: Any, eps: float) -> np.ndarray:
        """Return whether the predicted class of each encoded row is certain to be the same within a distance."""
        if eps == 0:
            return np.ones(Z.shape[0], dtype=bool)
        if self.model.has_winners and not self.is_box:
            return self.radius(Z) > eps
        return self._by_rows(lambda *rows: self._lead(*rows)(np.full(len(rows[2]), eps)) > 0, Z)

    def _by_rows(self, function: Callable[[Any, np.ndarray, np.ndarray], np.ndarray], Z: Any) -> np.ndarray:
        """Apply a function of encoded rows, scores of the planes and predicted classes to blocks of rows."""
        planes, n_rows = self.model.planes, Z.shape[0]
        each = planes.n_planes * (1 if self.model.has_winners else planes.n_features) + planes.n_features
        size, parts = max(1, BLOCK_VALUES // each), []
        for start in range(0, max(n_rows, 1), size):
            block = Z[start : start + size]
            scores = self.model.plane_scores(block).astype(np.float64)
            parts.append(function(block, scores, planes.pooled(scores).argmax(axis=1)))
        return np.concatenate(parts)

    def _closed_form(self, Z: Any, scores: np.ndarray, own: np.ndarray) -> np.ndarray:
        """For planes over the columns: the best own plane, and its nearest boundary with a plane of another class."""
        found, owners = np.zeros(len(own)), self.model.planes.owners
        for c in np.unique(own):
            rows, rivals = np.flatnonzero(own == c), owners != c
            lengths = cdist(self.coef[~rivals] * self.unit, self.coef[rivals] * self.unit, DUALS[self.norm][0])
            others = scores[np.ix_(rows, rivals)]
            for j, length in zip(np.flatnonzero(~rivals), lengths, strict=True):
                lead = scores[rows, j, None] - others
                with np.errstate(divide="ignore", invalid="ignore"):
                    radius = np.where(length > 0, lead / length, np.where(lead > 0, np.inf, 0.0)).min(axis=1)
                found[rows] = np.maximum(found[rows], radius)
        return found

    def _lead(self, Z: Any, scores: np.ndarray, own: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the lower bound of the lead as a function of the distances, one for each row."""
        Z = (Z.toarray() if sparse.issparse(Z) else np.asarray(Z)).astype(np.float64)
        if self.model.has_winners:
            return lambda eps: self._lead_of_planes(scores, own, self._change(Z, eps))
        return self._lead_of_tangents(Z, scores, own)

    def _change(self, Z: np.ndarray, eps: np.ndarray) -> Change:
        """Return the changes of the features within distances, one for each row, by the infinity norm."""
        unit = self.unit * eps[:, None]
        for own in self.numbers:  # missing values and special codes do not change
            unit[Z[:, own.start + 1 : own.stop].any(axis=1), own.start] = 0.0
        low, high = (np.clip(edge, self.allowed.lower, self.allowed.upper) for edge in (Z - unit, Z + unit))
        features = self.model.features
        least, most = features.bounds(np.minimum(low, Z), np.maximum(high, Z))
        shift, half = 0.5 * (least + most) - features.transform(Z), 0.5 * (most - least)
        rise = 2 * half[:, self.rising]
        shift[:, self.rising] -= half[:, self.rising]
        half[:, self.rising] = 0.0
        return Change(shift, half, rise, self.rising, self.edges)

    def _lead_of_planes(self, scores: np.ndarray, own: np.ndarray, change: Change) -> np.ndarray:
        """For scores that are maxima: the largest lead of a plane of the class, in a box."""
        found, owners = np.full(len(own), -np.inf), self.model.planes.owners
        for c in np.unique(own):
            rows, rivals = np.flatnonzero(own == c), owners != c
            others, part = scores[np.ix_(rows, rivals)], change.of(rows)
            for j in np.flatnonzero(~rivals):
                behind = others - scores[rows, j, None] + part.most(self.coef[rivals] - self.coef[j])
                found[rows] = np.maximum(found[rows], -behind.max(axis=1))
        return found

    def _lead_of_tangents(
        self, Z: np.ndarray, scores: np.ndarray, own: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """For a log-sum-exp, or a mean over members: the lead of the tangent plane at the row.

        The changes of the planes of a member are bounded relative to one plane of this member. This is the tangent of
        the own class; in committees also that of the rival, whose difference to the own one is bounded as a whole.
        """
        planes, n_rows = self.model.planes, len(own)
        shape = n_rows, planes.n_members, planes.n_classes
        shares = planes.shares(scores)[:, :, None] * self.coef
        tangents = np.add.reduceat(shares, planes.indptr[:-1], axis=1).reshape(*shape, -1)
        value = np.einsum("nmc,m->nc", planes.pooled_in_members(scores).reshape(shape), planes.member_weight)
        member = np.repeat(np.arange(planes.n_members), np.diff(planes.indptr[:: planes.n_classes]))
        each = np.arange(n_rows)
        mine, lead = tangents[each, :, own], value[each, own]
        is_rival = own[:, None] != np.arange(planes.n_classes)
        from_own = self._growth(self.coef - mine[:, member])
        from_rivals = []
        for r in range(planes.n_classes if planes.n_members > 1 else 0):
            theirs = tangents[:, :, r]
            between = np.einsum("nmf,m->nf", theirs - mine, planes.member_weight)[:, None]
            is_theirs = planes.owners == r
            around = self._growth((self.coef - theirs[:, member])[:, is_theirs])
            from_rivals.append((self._growth(between), around, is_theirs))

        def smallest(eps: np.ndarray) -> np.ndarray:
            change = self._change(Z, eps) if self.is_box else eps[:, None]
            most = planes.pooled(scores + from_own(change))
            for r, (apart, around, is_theirs) in enumerate(from_rivals):
                increased = scores.copy()
                increased[:, is_theirs] += around(change)
                most[:, r] = np.minimum(most[:, r], apart(change)[:, 0] + planes.pooled(increased)[:, r])
            return np.asarray(lead - np.where(is_rival, most, -np.inf).max(axis=1))

        return smallest

    def _growth(self, directions: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return the largest increase of linear functions as a function of the change, or of the distance."""
        if self.is_box:
            sizes = np.abs(directions)
            in_turn = np.ascontiguousarray(directions[:, :, self.rising].transpose(2, 0, 1))
            return lambda change: (
                _products(directions, change.shift) + _products(sizes, change.half) + change.most_in_turn(in_turn)
            )
        lengths = np.linalg.norm(directions * self.unit, DUALS[self.norm][1], axis=2)
        return lambda eps: eps * lengths


def _units(numbers: Mapping[str, Any], scale: Any) -> dict[str, float]:
    """Return the units of the columns of a table that may change: their spreads, if none are given."""
    if scale is None:
        return {name: column.range.spread for name, (column, _) in numbers.items()}
    if not isinstance(scale, Mapping):
        raise TypeError(f"scale={scale!r} must be a dict of columns with their units: this model takes a table.")
    for name, size in scale.items():
        if name not in numbers:
            raise ValueError(f"scale names {name!r}, which is not a column of numbers that the model uses.")
        if not 0 < size < np.inf:
            raise ValueError(f"scale of {name!r} must be positive, not {size!r}.")
    return {str(name): float(size) for name, size in scale.items()}


def certified_radius(
    estimator: Any,
    X: Any,
    *,
    norm: Any = 2,
    exact: bool = False,
    lower: Any = None,
    upper: Any = None,
    scale: Any = None,
) -> np.ndarray:
    r"""Compute how far each row can be changed without any change of its predicted class.

    By default, this is a lower bound of the distance to the nearest row of another class: a plane of the predicted
    class beats all planes of other classes within it. It takes microseconds, and longer for committees. With
    ``exact=True``, it is this distance, found by one convex program for each plane of another class that can be the
    nearest.

    Parameters
    ----------
    estimator : estimator, Pipeline or Model
        A fitted model that `Model.of` takes. With features other than the columns (tables, and scalers that clip) the
        norm must be "inf". For committees and models that pool by log-sum-exp, such as tables, there is only the bound.
    X : array-like, sparse matrix or data frame
        The rows.
    norm : {1, 2, inf}, default=2
        The norm of the change: the sum of the absolute values, the root of the sum of squares, or the largest one.
    exact : bool, default=False
        Whether to compute the distance itself, for models whose class scores are maxima of planes over the columns.
    lower, upper : float or array-like of shape (n_columns,), default=None
        Bounds of the changed rows of a matrix, such as 0 and 1 of pixels. The bound uses them with ``norm="inf"``.
    scale : float, array-like of shape (n_columns,), or dict of str to float, default=None
        The units in which the columns are changed. None: 1 for a matrix; for a table, the interquartile range of each
        column of numbers. Columns of unit 0 do not change, nor do columns of a table that are not in the dict, levels
        and dates; missing values remain missing.

    Returns
    -------
    radius : ndarray of shape (n_rows,)
        The radii; infinite if no change leads to another class. Rounding errors of predictions are not considered.

    Examples
    --------
    The first row is 0.25 from a side of the unit square, and the last one nearest to a corner:

    >>> import numpy as np
    >>> from polyplane import Model, PlaneSet
    >>> from polyplane.explain import certified_radius
    >>> from polyplane.features import Features
    >>> from polyplane.inputs.encoding import MatrixInputs
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> model = Model(MatrixInputs(2), Features.identity(2), square, np.array(["in", "out"]))
    >>> rows = np.array([[0.25, 0.5], [4.0, 5.0]])
    >>> certified_radius(model, rows), certified_radius(model, rows, exact=True)
    (array([0.25, 4.  ]), array([0.25, 5.  ]))
    """
    model = Model.of(estimator)
    certificate = Certificate(model, norm, lower, upper, scale)
    if not exact:
        return certificate.radius(model.encode(X))
    if not model.is_piecewise_linear:
        raise TypeError(
            f"exact=True requires class scores that are maxima of planes over the columns; for this {model.learner}, "
            f"only the bound is available: leave exact=False{model.how_to_get_winners}."
        )
    return signed_distance(certificate.model.planes, model.encode(X), **certificate.limits)


def robust_error(
    estimator: Any,
    X: Any,
    y: Any,
    eps: Any,
    *,
    norm: Any = 2,
    exact: bool = False,
    lower: Any = None,
    upper: Any = None,
    scale: Any = None,
) -> Any:
    """Compute the share of rows that are misclassified, or may be after a change of at most `eps`.

    No attack can cause a larger error. Without ``exact=True``, the smallest error that attacks can cause may be
    smaller, since `certified_radius` is a lower bound.

    Parameters
    ----------
    estimator : estimator, Pipeline or Model
        A fitted model that `Model.of` takes.
    X : array-like, sparse matrix or data frame
        The rows.
    y : array-like of shape (n_rows,)
        Their labels.
    eps : float or array-like
        The largest change, or several.
    norm, exact, lower, upper, scale
        As in `certified_radius`.

    Returns
    -------
    error : float, or ndarray of the shape of `eps`
        The robust error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.explain import robust_error
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X, y)
    >>> robust_error(model, X, y, [0.0, 0.1, 0.3]).round(2)
    array([0.03, 0.06, 0.11])
    """
    sizes = np.asarray(eps, dtype=np.float64)
    if not (sizes >= 0).all():
        raise ValueError(f"eps={eps!r} must be 0 or more.")
    model = Model.of(estimator)
    Z, truth = model.encode(X), encode(np.asarray(y), model.classes)
    if len(truth) != Z.shape[0]:
        raise ValueError(f"y has {len(truth)} labels, but X has {Z.shape[0]} rows.")
    is_right = model.class_scores(Z).argmax(axis=1) == truth
    if exact:
        limits: dict[str, Any] = {"norm": norm, "lower": lower, "upper": upper, "scale": scale}
        radius = certified_radius(model, X, exact=True, **limits)
        errors = [1.0 - np.mean(is_right & ((radius > size) | (size == 0))) for size in sizes.ravel()]
    else:
        certificate = Certificate(model, norm, lower, upper, scale)
        right = Z[np.flatnonzero(is_right)]
        n_certain = [np.count_nonzero(certificate.is_certain(right, size)) for size in sizes.ravel()]
        errors = [1.0 - n / len(truth) for n in n_certain]
    return float(errors[0]) if sizes.ndim == 0 else np.reshape(errors, sizes.shape)


class Adversarial(NamedTuple):
    """The nearest rows of other classes.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_columns)
        The changed rows; NaN where there is none.
    distances : ndarray of shape (n_rows,)
        Their distances from the rows; infinite where there is none.
    """

    points: np.ndarray
    distances: np.ndarray


def nearest_adversarial(
    estimator: Any, X: Any, *, norm: Any = 2, lower: Any = None, upper: Any = None, scale: Any = None
) -> Adversarial:
    """Find the smallest change of each row that leads to another class than the predicted one.

    If class scores are maxima of planes over the columns, it is the nearest row of another class, slightly beyond the
    boundary: its distance is that of ``certified_radius(exact=True)``. For committees and models that pool by
    log-sum-exp it is found by local search, and its distance is an upper bound.

    Parameters
    ----------
    estimator : estimator, Pipeline or Model
        A fitted model of a matrix, with features that are the columns, possibly scaled.
    X : array-like of shape (n_rows, n_columns)
        The rows.
    norm, lower, upper, scale
        As in `certified_radius`.

    Returns
    -------
    found : Adversarial
        The changed rows and their distances.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.explain import certified_radius, nearest_adversarial
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X, y)
    >>> found = nearest_adversarial(model, X[70:75], norm=1)
    >>> bool((model.predict(found.points) != model.predict(X[70:75])).all())
    True
    >>> bool((abs(found.distances - certified_radius(model, X[70:75], norm=1, exact=True)) < 1e-6).all())
    True
    """
    model = Model.of(estimator)
    if not model.features.is_affine or model.inputs.is_table:
        raise TypeError(
            "nearest_adversarial requires planes over the columns of a matrix; for tables, use table_counterfactual."
        )
    rows, limits = model.encode(X), Certificate(model, norm, lower, upper, scale).limits
    points, distances = np.full(rows.shape, np.nan), np.full(rows.shape[0], np.inf)
    for i in range(rows.shape[0]):
        row = rows[[i]].toarray()[0] if sparse.issparse(rows) else rows[i]
        found = counterfactual(model, row, **limits)
        if found is not None:
            points[i], distances[i] = found.point, found.distance
    return Adversarial(points, distances)


@dataclass(kw_only=True, eq=False, repr=False)
class RobustnessDisplay:
    """The robust error of a model by the size of the largest change.

    Parameters
    ----------
    eps : ndarray of shape (n_sizes,)
        Sizes of the largest change.
    error : ndarray of shape (n_sizes,)
        The robust error for each size.
    norm : float
        The norm of the changes.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.explain import RobustnessDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X, y)
    >>> display = RobustnessDisplay.from_estimator(model, X, y, eps=[0.0, 0.1, 0.3])
    >>> display.error.round(2)
    array([0.03, 0.06, 0.11])
    """

    eps: np.ndarray
    error: np.ndarray
    norm: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, eps: Any = None, norm: Any = 2, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Compute robust errors and draw them.

        Parameters
        ----------
        estimator : estimator, Pipeline or Model
            A fitted model that `Model.of` takes.
        X : array-like, sparse matrix or data frame
            The rows.
        y : array-like of shape (n_rows,)
            Their labels.
        eps : array-like, default=None
            Sizes of the largest change. None: 50 sizes up to the radius that 95 % of the rows do not reach.
        norm : {1, 2, inf}, default=2
            The norm of the changes.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        **kwargs
            Further arguments of `robust_error`.

        Returns
        -------
        display : RobustnessDisplay
            The display, with the attributes `ax_` and `figure_`.
        """
        if eps is None:
            radius = certified_radius(estimator, X, norm=norm, **kwargs)
            most = np.quantile(
                np.where(np.isfinite(radius), radius, radius[np.isfinite(radius)].max(initial=0.0)), 0.95
            )
            eps = np.linspace(0.0, most, 50)
        sizes = np.asarray(eps, dtype=np.float64)
        error = robust_error(estimator, X, y, sizes, norm=norm, **kwargs)
        return cls(eps=sizes, error=error, norm=check_norm(norm)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the robust error.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.

        Returns
        -------
        display : RobustnessDisplay
            The display itself.
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.ax_.plot(self.eps, 100 * self.error, color="#0072B2")
        self.ax_.set(xlabel=f"largest change (norm {self.norm:g})", ylabel="robust error, %", ylim=(0, None))
        bare(self.ax_)
        return self
