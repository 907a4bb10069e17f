"""Bar charts: confidences on one image, entropies of predictions, time per step."""

import itertools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.errors import UserError
from fullmatch.reproduce.figures.groups import RunGroup, group_seeds
from fullmatch.reproduce.figures.runs import FigureRun, describe_runs, runs_with
from fullmatch.reproduce.figures.style import COLORS, add_title, canvas

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from torch import Tensor

LOW_ENTROPY = 0.25  # nats
SHOWN_CLASSES = 12  # at most, the most confident ones


def ambiguous(runs: Sequence[FigureRun]) -> "Figure":
    """Confidences on the test image whose second class has the highest one, by the first run."""
    first = runs[0]
    probs, labels = first.predictions()
    image = int(probs.topk(2, dim=1).values[:, 1].argmax())
    pixels = read_test_image(first, image, len(labels))
    widths = [0.01, 1] if pixels is None else [1, 2.6]
    figure, (left, right) = canvas(1, 2, width=7.6, height=3.6, width_ratios=widths)
    left.axis("off")
    if pixels is not None:
        left.imshow(pixels, cmap="gray", interpolation="nearest")
        left.set_title(f"test image {image}:\n{first.classes[int(labels[image])]}", loc="left")
    draw_confidences(right, runs, image, probs, labels)
    return figure


def draw_confidences(
    axes: "Axes", runs: Sequence[FigureRun], image: int, probs: "Tensor", labels: "Tensor"
) -> None:
    """One bar per run and class; `probs` and `labels` are those of the first run."""
    first = runs[0]
    order = sorted(probs[image].argsort(descending=True)[:SHOWN_CLASSES].tolist())
    width = 0.8 / len(runs)
    for at, (run, color) in enumerate(zip(runs, COLORS, strict=False)):
        other, true_classes = run.predictions()
        if other.shape != probs.shape or not true_classes.equal(labels):
            raise UserError(
                f"{run.path} was tested on other images than {first.path}; choose runs of the "
                "same data"
            )
        heights = [100 * float(other[image, label]) for label in order]
        places = [place + (at - (len(runs) - 1) / 2) * width for place in range(len(order))]
        axes.bar(places, heights, width, color=color, label=run.label)
    names = [first.classes[label] for label in order]
    axes.set_xticks(range(len(order)), names, rotation=40, ha="right")
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("confidence (%)")
    axes.set_ylim(0, 100)
    add_title(axes, describe_runs(runs))
    axes.legend()


def read_test_image(run: FigureRun, index: int, count: int) -> "NDArray[np.uint8] | None":
    """The image itself, if the data is on this machine."""
    import torch

    try:
        test = run.source().test
    except UserError:
        return None
    if test is None or len(test) != count:
        return None
    return test.read(torch.tensor([index]))[0].permute(1, 2, 0).numpy()


def entropy(runs: Sequence[FigureRun]) -> "Figure":
    """Histogram of the entropy of each prediction, and how many have a low one."""
    import torch

    figure, axes = canvas()
    groups = group_seeds(runs)
    entropies = [compute_entropies(group) for group in groups]
    top = max(float(values.max()) for values in entropies)
    edges = [LOW_ENTROPY * i for i in range(int(top / LOW_ENTROPY) + 2)]
    width = 0.8 * LOW_ENTROPY / len(groups)
    for at, (group, values, color) in enumerate(zip(groups, entropies, COLORS, strict=False)):
        counts = torch.histogram(values, torch.tensor(edges, dtype=values.dtype)).hist
        shares = (100 * counts / len(values)).tolist()
        low = 100 * float((values < LOW_ENTROPY).double().mean())
        offset = LOW_ENTROPY / 2 + (at - (len(groups) - 1) / 2) * width
        places = [edge + offset for edge in edges[:-1]]
        label = f"{group.label}: {low:.1f} % below {LOW_ENTROPY}"
        axes.bar(places, shares, width, color=color, label=label)
    axes.set_xticks(edges)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("entropy of the prediction (nats)")
    axes.set_ylabel("test images (%)")
    add_title(axes, describe_runs(runs))
    axes.legend()
    return figure


def compute_entropies(group: RunGroup) -> "Tensor":
    """Of every prediction of every run; the share of a bin is then the mean over seeds."""
    import torch

    return torch.cat([torch.special.entr(run.predictions()[0]).sum(dim=1) for run in group.runs])


def time(runs: Sequence[FigureRun]) -> "Figure":
    """The median time of a step; the line spans the middle half of the measurements."""
    shown = runs_with(runs, "seconds", "fullmatch train")
    groups = group_seeds(shown)
    figure, axes = canvas(height=1.3 + 0.5 * len(groups))
    devices = {run.device for run in shown}
    for at, (group, color) in enumerate(zip(groups, COLORS, strict=False)):
        low, median, high = step_time_quartiles(group)
        axes.barh(at, median, 0.6, color=color)
        axes.plot([low, high], [at, at], color="black", linewidth=1)
        axes.annotate(f" {median:.2f} ms", (max(high, median), at), va="center")
    names = [
        group.label if len(devices) == 1 else f"{group.label}\n{group.runs[0].device}"
        for group in groups
    ]
    axes.set_yticks(range(len(groups)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.15)
    axes.set_xlabel("time per training step (ms)")
    where = f", {shown[0].device}" if len(devices) == 1 else ""
    add_title(axes, describe_runs(shown) + where)
    return figure


def step_time_quartiles(group: RunGroup) -> tuple[float, float, float]:
    """Milliseconds per step, from the times between two lines of the log."""
    times = [each for run in group.runs for each in step_times(run)]
    if len(times) < 2:
        path = group.runs[0].path
        raise UserError(f"{path} is too short to measure the time of a step; train it further")
    low, median, high = statistics.quantiles(times, n=4)
    return low, median, high


def step_times(run: FigureRun) -> list[float]:
    curve = run.curves["seconds"]
    spans = itertools.pairwise(zip(curve.steps, curve.values, strict=True))
    return [1000 * (t - s) / (b - a) for (a, s), (b, t) in spans if t > s]
