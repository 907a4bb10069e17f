"""Ways to run the same training step: eager, compiled, or replayed as a CUDA graph."""

import os
import shutil
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from torch import nn
from torch.utils._triton import has_triton

from fullmatch import distributed
from fullmatch.core import Batch
from fullmatch.data.feed import RawBatch
from fullmatch.errors import UserError
from fullmatch.training.cached_views import CachedViews
from fullmatch.training.step import Augmentation

Execution = Literal["auto", "eager", "compiled", "graph", "recorded"]
Resolved = Literal["eager", "compiled", "graph", "recorded"]
Precision = Literal["auto", "fp32", "bf16"]
CXX = "clang++" if sys.platform == "darwin" else "g++"  # torch's compiler for a CPU
WARM_UP = 3  # training steps before the recording


def resolve_execution(
    requested: Execution,
    device: torch.device,
    *,
    recordable: bool = True,
    own_views: bool = False,
) -> Resolved:
    """Replace `auto` by what suits this machine; raise an error for what it cannot do.

    `recordable`: whether the optimizer reads its learning rate from a tensor. `own_views`: whether
    views are functions of the user, which may do what cannot be recorded; only a user who names an
    execution has them recorded.
    """
    if not recordable:
        if requested in ("graph", "recorded"):
            raise UserError(
                f"training.execution = {requested} needs the optimizer sgd or adamw; leave it at "
                "auto, or use compiled"
            )
        requested = "eager" if requested == "auto" else requested
    if distributed.world_size() > 1:
        if requested in ("graph", "recorded"):
            raise UserError(
                f"training.execution = {requested} is for a single process; under torchrun leave "
                "it at auto, which trains eagerly, or use compiled"
            )
        requested = "eager" if requested == "auto" else requested
    if requested == "auto":
        if device.type != "cuda" or not has_triton():
            return "eager"
        return "compiled" if own_views else "graph"
    if requested in ("graph", "recorded") and device.type != "cuda":
        raise UserError(
            f"training.execution = {requested} needs an NVIDIA GPU, and none is in use here; "
            "leave it at auto, or use eager"
        )
    if device.type == "cuda" and requested in ("compiled", "graph") and not has_triton():
        raise UserError(
            f"training.execution = {requested} needs Triton, which is missing or does not support "
            "this GPU; install it with: pip install triton, or use eager"
        )
    compiler = os.environ.get("CXX", CXX)
    if requested == "compiled" and device.type == "cpu" and not shutil.which(compiler):
        raise UserError(
            f"training.execution = compiled needs a C++ compiler, and {compiler} was not found; "
            "install one, or leave it at auto"
        )
    return requested


def resolve_precision(requested: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    """Replace `auto` by what suits this machine; raise an error for what it cannot do."""
    supported = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if requested == "auto":
        return "bf16" if supported else "fp32"
    if requested == "bf16" and not supported:
        raise UserError(
            "training.precision = bf16 needs a GPU that supports it (Ampere or newer); "
            "use auto or fp32 on this machine"
        )
    return requested


def compile_augmentation(module: Augmentation | CachedViews) -> Callable[[RawBatch], Batch]:
    """Compile everything but the drawing of random numbers, so that their order is kept."""
    compiled = torch.compile(module, fullgraph=True, dynamic=False)
    return lambda raw: compiled(raw, module.draw(raw))


def compile_loss(module: nn.Module) -> nn.Module:
    """Compile with options that prefer recomputing a value to storing it.

    A step is limited by memory bandwidth, so cheap values are recomputed wherever they are read.
    The augmentation has longer chains of operations, where that would be slower.
    """
    # A warning of torch 2.11 for its own developers.
    warnings.filterwarnings("ignore", message=r"\s*Online softmax is disabled on the fly")
    options: dict[str, Any] = {
        "fallback_random": True,
        "realize_reads_threshold": 16,
        "realize_opcount_threshold": 200,
        "realize_acc_reads_threshold": 32,
    }
    # torch's own synchronized batch norm, on several GPUs, breaks a graph in two.
    whole = distributed.world_size() == 1
    compiled: Any = torch.compile(module, fullgraph=whole, dynamic=False, options=options)
    return cast(nn.Module, compiled)


def explain_out_of_memory(
    step: Callable[[], None], device: torch.device, batch: int
) -> Callable[[], None]:
    """Wrap a step: if the GPU runs out of memory, the error says what to change."""

    def guarded() -> None:
        try:
            step()
        except torch.OutOfMemoryError as error:
            free, total = torch.cuda.mem_get_info(device)
            used = torch.cuda.max_memory_allocated(device)
            others = max(total - free - torch.cuda.memory_reserved(device), 0)
            advice = f"--set training.batch={batch // 2} needs about half, " if batch > 1 else ""
            raise UserError(
                f"a step needs more than {format_gib(used)} of GPU memory; there are "
                f"{format_gib(total)}, of which other programs use {format_gib(others)}: {advice}"
                "a smaller --model or picture size needs less"
            ) from error

    return guarded


def format_gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


class RecordedStep:
    """Runs a step a few times, then records it once and replays the recording.

    If the step cannot be recorded, it continues without, and the reason is reported.
    """

    def __init__(self, step: Callable[[], None], report: Callable[[str], None]) -> None:
        self.step, self.report = step, report
        self.calls = 0
        self.recordable = True
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
        elif self.calls < WARM_UP or not self.recordable:
            # On a side stream, as recording requires; these are real training steps.
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.step()
            torch.cuda.current_stream().wait_stream(self.stream)
            self.calls += 1
        else:
            self.record()
            self()  # recording does not run the step

    def record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # Of this thread only: another one may be sending images at the same time.
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self.step()
        except RuntimeError as error:
            torch.cuda.synchronize()
            self.recordable = False
            reason = str(error).strip().splitlines()[0]
            self.report(
                f"the step cannot be recorded as a CUDA graph ({reason}): "
                "training continues without, but slower"
            )
        else:
            self.graph = graph
