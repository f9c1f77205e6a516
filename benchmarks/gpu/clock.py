"""Time on a device, and the two floors under it: bytes over bandwidth, operations over the rate of products."""

import time
from contextlib import contextmanager
from typing import NamedTuple

import torch


class Ceilings(NamedTuple):
    """What the device can do, measured: bytes moved and float operations of matrix products per second."""

    bandwidth: float
    full: float
    tf32: float


def seconds(function, device, repeats=1, warm_up=1):
    """The median time of a call, by the device's own events; by the host's clock where there are none."""
    for _ in range(warm_up):
        function()
    times = []
    for _ in range(repeats):
        if device.type != "cuda":
            began = time.perf_counter()
            function()
            times.append(time.perf_counter() - began)
            continue
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        torch.cuda.synchronize(device)
        times.append(start.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


@contextmanager
def products(precision):
    """Matrix products of float32 in full precision, or with their factors rounded to TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def ceilings(device, size=8192):
    """Copy an array of 4 GB and multiply two square matrices; on a CPU, smaller ones."""
    on_cuda = device.type == "cuda"
    n, size = (1 << 30, size) if on_cuda else (1 << 24, 1024)
    source, target = torch.rand(n, device=device), torch.empty(n, device=device)
    bandwidth = 8 * n / seconds(lambda: target.copy_(source), device, 10, 3)
    a, b = torch.rand(size, size, device=device), torch.rand(size, size, device=device)
    rates = []
    for precision in ("full", "tf32"):
        with products(precision):
            rates.append(2 * size**3 / seconds(lambda: a @ b, device, 10, 3))
    return Ceilings(bandwidth, *rates)


def beside_floors(measured, n_bytes, operations, limits, rate="full"):
    """A time, the two floors under it, and the share of the larger floor that is reached."""
    by_bytes, by_operations = n_bytes / limits.bandwidth, operations / getattr(limits, rate)
    return {
        "time_s": round(measured, 5),
        "floor_bytes_s": round(by_bytes, 5),
        "floor_operations_s": round(by_operations, 5),
        "share_of_limit": round(max(by_bytes, by_operations) / measured, 3),
    }
