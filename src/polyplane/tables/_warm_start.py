"""Initial states of the training of a member: tangent planes at cluster centres, or its current planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane, SmoothState
from polyplane.learners.tangents import tangent_start
from polyplane.scaling import AffineScaling
from polyplane.tables._choice import EncodedRows
from polyplane.tables._model import Member


def cold_start(
    member: Member, rows: EncodedRows, max_iter: int, seed: int
) -> tuple[SmoothMultiHyperplane, SmoothState]:
    """Return the method, and a state with the number of planes of a member: tangent planes at centres of the rows.

    Parameters
    ----------
    member : Member
        The member, with a preparation and a number of planes.
    rows : EncodedRows
        Rows, of all classes if possible.
    max_iter : int
        Number of passes over which the step size decreases.
    seed : int
        Seed of centres and row orders.
    """
    data = rows.data(member.preparation)
    method = SmoothMultiHyperplane(noise=rows.noise(member.preparation.name), max_iter=max_iter)
    scaling = AffineScaling.common(data.X, data.training_weight)
    tangents = tangent_start(data, np.diff(member.planes.indptr), scaling, method.scale, seed)
    return method, method.begin(tangents, scaling, seed)


def warm_start(
    member: Member, rows: EncodedRows, max_iter: int, seed: int
) -> tuple[SmoothMultiHyperplane, SmoothState]:
    """Return the same with the planes of the member; the rows only determine the scaling."""
    method, cold = cold_start(member, rows, max_iter, seed)
    # Few rows have fewer centres than planes; all planes are kept.
    n_planes = np.diff(member.planes.indptr)
    mask = np.arange(cold.tangents.mask.shape[1]) < n_planes[:, None]
    state = method.begin(replace(cold.tangents, mask=mask), cold.scaling, seed)
    coef = member.planes.coef
    state.W[mask, :-1] = coef / coef.dtype.type(cold.scaling.factor)
    state.W[mask, -1] = member.planes.intercept + coef @ cold.scaling.centre
    return method, state
