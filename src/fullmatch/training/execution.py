"""The same training step three ways: eager, compiled, or one CUDA graph that is replayed."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from fullmatch.errors import UserError

Execution = Literal["auto", "eager", "compiled", "graph"]
Precision = Literal["auto", "fp32", "bf16"]
WARM_UP = 3  # real training steps that run before the recording


def chosen_execution(
    asked: Execution, device: torch.device
) -> Literal["eager", "compiled", "graph"]:
    """What `auto` means here; asking for what this machine cannot do is an error."""
    if asked == "auto":
        return "graph" if device.type == "cuda" else "eager"
    if asked == "graph" and device.type != "cuda":
        raise UserError(
            "training.execution = graph needs an NVIDIA GPU, and none is in use here; "
            "leave it at auto, or use eager"
        )
    return asked


def chosen_precision(asked: Precision, device: torch.device) -> Literal["fp32", "bf16"]:
    if asked == "auto":
        able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return "bf16" if able else "fp32"
    if asked == "bf16" and device.type != "cuda":
        raise UserError("training.precision = bf16 needs a GPU; use auto or fp32 on this machine")
    return asked


def compiled(module: nn.Module) -> Callable[..., Any]:
    """The module as one compiled graph that draws the same random numbers as the eager one."""
    options: dict[str, Any] = {
        "fallback_random": True,
        # Recompute normalisation and activation where they are read, rather than write them to
        # memory in between: a step is bound by memory, not by arithmetic.
        "realize_reads_threshold": 16,
        "realize_opcount_threshold": 200,
        "realize_acc_reads_threshold": 32,
    }
    return torch.compile(module, fullgraph=True, dynamic=False, options=options)  # type: ignore[return-value]


class Recorded:
    """Runs a step eagerly a few times, then records it once and replays the recording."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step = step
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
            return
        if self.calls < WARM_UP:
            # On a side stream, as recording needs; these are real training steps.
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.step()
            torch.cuda.current_stream().wait_stream(self.stream)
            self.calls += 1
            return
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self.step()
        self.graph = graph
        graph.replay()  # recording runs nothing: this is the step itself
