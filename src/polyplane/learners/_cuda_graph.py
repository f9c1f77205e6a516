"""Repetition of a step; on an NVIDIA device as a CUDA graph, which reduces the cost of kernel launches."""

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
        Updates arrays in place and returns an array, without synchronising with the host.
    batches : sequence of arrays
        The inputs of the steps; first axis: steps.
    paces : sequence of tuples of float
        Further arguments of each step. A recorded step gets them as zero-dimensional arrays.
    out : array
        The results of the steps; first axis: steps.
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
        # The recorded step is the same each time: its number is stored on the device.
        inputs = [batch.index_select(0, at)[0] for batch in batches]
        out.index_copy_(0, at, step(*inputs, *numbers.index_select(0, at)[0].unbind())[None])
        at.add_(1)

    stream = torch.cuda.Stream(out.device)
    stream.wait_stream(torch.cuda.current_stream(out.device))
    try:
        with torch.cuda.stream(stream):
            numbered_step()  # not recorded: libraries are initialised on the first call
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                numbered_step()
            for _ in range(len(paces) - 1):
                graph.replay()
    finally:
        # The memory of the graph is released on return, so all steps must have finished, even after an interrupt.
        stream.synchronize()
