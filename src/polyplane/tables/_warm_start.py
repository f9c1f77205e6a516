"""Where the training of a machine begins: at the tangents of some rows, or at the planes that it has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyplane.learners._smooth_multi_hyperplane import SmoothMultiHyperplane, SmoothState
from polyplane.learners._tangent import tangent_start
from polyplane.scaling import AffineScaling
from polyplane.tables._choice import EncodedRows
from polyplane.tables._model import Member


def cold_start(
    member: Member, rows: EncodedRows, max_iter: int, seed: int
) -> tuple[SmoothMultiHyperplane, SmoothState]:
    """The method, and a state with as many planes as a member has, tangent above centres of the rows.

    Parameters
    ----------
    member : Member
        Whose preparation and numbers of planes are to be used.
    rows : EncodedRows
        Some rows, of all classes where that is possible.
    max_iter : int
        Steps in which their lengths fall.
    seed : int
        Source of centres and of the orders of rows.
    """
    data = rows.data(member.preparation)
    method = SmoothMultiHyperplane(noise=rows.noise(member.preparation.name), max_iter=max_iter)
    scaling = AffineScaling.common(data.X, data.training_weight)
    tangents = tangent_start(data, np.diff(member.planes.indptr), scaling, method.scale, seed)
    return method, method.begin(tangents, scaling, seed)


def warm_start(
    member: Member, rows: EncodedRows, max_iter: int, seed: int
) -> tuple[SmoothMultiHyperplane, SmoothState]:
    """The same with the planes of the member; the rows only tell how far apart the classes are."""
    method, cold = cold_start(member, rows, max_iter, seed)
    # Of few rows there are fewer centres than planes; the planes are all kept.
    n_planes = np.diff(member.planes.indptr)
    mask = np.arange(cold.tangents.mask.shape[1]) < n_planes[:, None]
    state = method.begin(replace(cold.tangents, mask=mask), cold.scaling, seed)
    coef = member.planes.coef
    state.W[mask, :-1] = coef / coef.dtype.type(cold.scaling.factor)
    state.W[mask, -1] = member.planes.intercept + coef @ cold.scaling.centre
    return method, state
