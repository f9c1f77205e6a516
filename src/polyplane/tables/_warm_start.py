"""Machines that go on training from the planes that they have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyplane.learners._smooth_multi_hyperplane import SmoothMultiHyperplane, SmoothState
from polyplane.learners._tangent import tangent_start
from polyplane.scaling import AffineScaling
from polyplane.tables._choice import EncodedRows
from polyplane.tables._model import Member


def warm_start(
    member: Member, rows: EncodedRows, max_iter: int, seed: int
) -> tuple[SmoothMultiHyperplane, SmoothState]:
    """The method, and a state with the planes of a member; `rows` tell how far apart the classes are.

    Parameters
    ----------
    member : Member
        Where training begins.
    rows : EncodedRows
        Some rows, of all classes where that is possible.
    max_iter : int
        Passes in which steps fall.
    seed : int
        Source of the orders of rows.
    """
    data = rows.data(member.preparation)
    method = SmoothMultiHyperplane(noise=rows.noise(member.preparation.name), max_iter=max_iter)
    scaling = AffineScaling.common(data.X, data.training_weight)
    n_planes = np.diff(member.planes.indptr)
    tangents = tangent_start(data, n_planes, scaling, method.scale, seed)
    # Of few rows there are fewer centres than planes; the planes are all kept.
    mask = np.arange(tangents.mask.shape[1]) < n_planes[:, None]
    state = method.begin(replace(tangents, mask=mask), scaling, seed)
    coef = member.planes.coef
    state.W[mask, :-1] = coef / coef.dtype.type(scaling.factor)
    state.W[mask, -1] = member.planes.intercept + coef @ scaling.centre
    return method, state
