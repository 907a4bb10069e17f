"""The same training step three ways: eager, compiled, or one CUDA graph that is replayed."""

import os
import shutil
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn
from torch.utils._triton import has_triton

from fullmatch import distributed
from fullmatch.core import Batch
from fullmatch.data.feed import RawBatch
from fullmatch.errors import UserError
from fullmatch.training.step import Augmentation

Execution = Literal["auto", "eager", "compiled", "graph"]
Precision = Literal["auto", "fp32", "bf16"]
CXX = "clang++" if sys.platform == "darwin" else "g++"  # what torch compiles for a CPU with
WARM_UP = 3  # real training steps that run before the recording


def chosen_execution(
    asked: Execution, device: torch.device
) -> Literal["eager", "compiled", "graph"]:
    """What `auto` means here; asking for what this machine cannot do is an error."""
    if distributed.processes() > 1:
        if asked in ("compiled", "graph"):
            raise UserError(
                f"training.execution = {asked} is for a single process; leave it at auto under "
                "torchrun, which trains eagerly"
            )
        return "eager"
    if asked == "auto":
        return "graph" if device.type == "cuda" and has_triton() else "eager"
    if asked == "graph" and device.type != "cuda":
        raise UserError(
            "training.execution = graph needs an NVIDIA GPU, and none is in use here; "
            "leave it at auto, or use eager"
        )
    if device.type == "cuda" and asked != "eager" and not has_triton():
        raise UserError(
            f"training.execution = {asked} needs Triton, which is missing or does not know this "
            "GPU; install it with: pip install triton, or use eager"
        )
    compiler = os.environ.get("CXX", CXX)
    if asked == "compiled" and device.type == "cpu" and not shutil.which(compiler):
        raise UserError(
            f"training.execution = compiled needs a C++ compiler, and there is no {compiler} here; "
            "install one, or leave it at auto"
        )
    return asked


def chosen_precision(asked: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if asked == "auto":
        return "bf16" if able else "fp32"
    if asked == "bf16" and not able:
        raise UserError(
            "training.precision = bf16 needs a GPU that computes in it (Ampere or newer); "
            "use auto or fp32 on this machine"
        )
    return asked


def compiled_augmentation(module: Augmentation) -> Callable[[RawBatch], Batch]:
    """One compiled graph of all but the drawing of random numbers, which keeps its order."""
    compiled = torch.compile(module, fullgraph=True, dynamic=False)
    return lambda raw: compiled(raw, module.draw(raw))


def compiled_loss(module: nn.Module) -> Callable[..., Any]:
    """One compiled graph that would rather compute twice than write in between.

    A step is bound by memory, not by arithmetic: what is quickly computed is computed again
    wherever it is read. In the augmentation, with its long chains, that would cost more.
    """
    # A remark for PyTorch's developers (torch 2.11 makes it), which nobody here can act on.
    warnings.filterwarnings("ignore", message=r"\s*Online softmax is disabled on the fly")
    options: dict[str, Any] = {
        "fallback_random": True,
        "realize_reads_threshold": 16,
        "realize_opcount_threshold": 200,
        "realize_acc_reads_threshold": 32,
    }
    return torch.compile(module, fullgraph=True, dynamic=False, options=options)


def within_memory(step: Callable[[], None], device: torch.device, batch: int) -> Callable[[], None]:
    """The same step, which says what to do when the device has too little memory for it."""

    def guarded() -> None:
        try:
            step()
        except torch.OutOfMemoryError as error:
            free, whole = torch.cuda.mem_get_info(device)
            used = torch.cuda.max_memory_allocated(device)
            elsewhere = whole - free - torch.cuda.memory_reserved(device)
            advice = f"--set training.batch={batch // 2} takes about half, " if batch > 1 else ""
            raise UserError(
                f"a step needs more than {gib(used)} of GPU memory; there are {gib(whole)}, of "
                f"which other programs hold {gib(max(elsewhere, 0))}: {advice}"
                "a smaller --model or picture size takes less"
            ) from error

    return guarded


def gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


class Recorded:
    """Runs a step a few times, then records it once and replays the recording.

    A step that cannot be recorded goes on as it is, after saying why.
    """

    def __init__(self, step: Callable[[], None], say: Callable[[str], None]) -> None:
        self.step, self.say = step, say
        self.calls = 0
        self.recordable = True
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
        elif self.calls < WARM_UP or not self.recordable:
            # On a side stream, as recording needs; these are real training steps.
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.step()
            torch.cuda.current_stream().wait_stream(self.stream)
            self.calls += 1
        else:
            self.record()
            self()  # recording runs nothing: the step itself is still to be done

    def record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # Of this thread alone: another may be sending pictures meanwhile.
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self.step()
        except RuntimeError as error:
            torch.cuda.synchronize()
            self.recordable = False
            reason = str(error).strip().splitlines()[0]
            self.say(f"the step cannot be recorded ({reason}): going on compiled, and slower")
        else:
            self.graph = graph
