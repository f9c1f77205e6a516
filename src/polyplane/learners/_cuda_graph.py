"""The same step many times: on an NVIDIA device as one recorded graph, so that its launches cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyplane._array_api import is_on_cuda

#: Recording a graph costs as much as a few steps.
WORTH_RECORDING = 16


def run_steps(step: Callable[..., Any], batches: Sequence[Any], paces: Sequence[tuple[float, ...]], out: Any) -> None:
    """Call ``out[i] = step(*(batch[i] for batch in batches), *paces[i])`` for one `i` after the other.

    Parameters
    ----------
    step : callable
        Updates arrays in place and returns an array; it must not ask the device for a result on the way.
    batches : sequence of arrays
        What each step looks at; first axis: steps.
    paces : sequence of tuples of float
        Numbers that change from step to step. A recorded step gets them as arrays without dimensions.
    out : array
        What the steps return; first axis: steps.
    """
    if is_on_cuda(out) and len(paces) >= WORTH_RECORDING:
        _run_recorded(step, batches, paces, out)
        return
    for i, pace in enumerate(paces):
        out[i, ...] = step(*(batch[i, ...] for batch in batches), *pace)


def _run_recorded(
    step: Callable[..., Any], batches: Sequence[Any], paces: Sequence[tuple[float, ...]], out: Any
) -> None:
    import torch

    numbers = torch.tensor(paces, dtype=out.dtype, device=out.device)
    at = torch.zeros(1, dtype=torch.int64, device=out.device)

    def numbered_step() -> None:
        # The step is the same each time, so it finds out by itself, on the device, the how-many-th it is.
        inputs = [batch.index_select(0, at)[0] for batch in batches]
        out.index_copy_(0, at, step(*inputs, *numbers.index_select(0, at)[0].unbind())[None])
        at.add_(1)

    stream = torch.cuda.Stream(out.device)
    stream.wait_stream(torch.cuda.current_stream(out.device))
    try:
        with torch.cuda.stream(stream):
            numbered_step()  # as it is: libraries set themselves up when first called, which cannot be recorded
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                numbered_step()
            for _ in range(len(paces) - 1):
                graph.replay()
    finally:
        # The graph's own memory is given back on return, and whoever interrupts finds no step still under way.
        stream.synchronize()
