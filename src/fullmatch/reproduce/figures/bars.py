"""Figures of amounts: confidences of an image, entropies of predictions, time of a step."""

import itertools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.errors import UserError
from fullmatch.reproduce.figures.shown import Shown, about, having
from fullmatch.reproduce.figures.style import COLORS, canvas

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LOW = 0.25  # nats; a prediction below is called sure
CLASSES = 12  # shown at most, those of the largest confidence


def ambiguous(runs: Sequence[Shown]) -> "Figure":
    """Confidences of the test image whose second best class is the likeliest, by the first run."""
    first = runs[0]
    probs, labels = first.predictions()
    chosen = int(probs.topk(2, dim=1).values[:, 1].argmax())
    names, truth = first.classes(), int(labels[chosen])
    picture = picture_of(first, chosen, len(labels))
    figure, axes = canvas(
        1, 2, width=7.6, height=3.6, width_ratios=[1, 2.6] if picture is not None else [0.01, 1]
    )
    axes[0].axis("off")
    if picture is not None:
        axes[0].imshow(picture, cmap="gray", interpolation="nearest")
        axes[0].set_title(f"test image {chosen}:\n{names[truth]}", loc="left")
    order = probs[chosen].argsort(descending=True)[:CLASSES].tolist()
    order.sort()
    width = 0.8 / len(runs)
    for at, (run, color) in enumerate(zip(runs, COLORS, strict=False)):
        theirs, truths = run.predictions()
        if theirs.shape != probs.shape or not truths.equal(labels):
            raise UserError(f"{run.path} was tested on other images than {first.path}")
        heights = [100 * float(theirs[chosen, c]) for c in order]
        places = [place + (at - (len(runs) - 1) / 2) * width for place in range(len(order))]
        axes[1].bar(places, heights, width, color=color, label=run.label)
    axes[1].set_xticks(range(len(order)), [names[c] for c in order], rotation=40, ha="right")
    axes[1].grid(axis="x", visible=False)
    axes[1].set_ylabel("confidence (%)")
    axes[1].set_ylim(0, 100)
    axes[1].set_title(about(runs), loc="left")
    axes[1].legend()
    return figure


def picture_of(run: Shown, index: int, count: int) -> "NDArray[np.uint8] | None":
    """The image itself, where its data is at hand."""
    import torch

    try:
        test = run.source().test
    except UserError:
        return None
    if test is None or len(test) != count:
        return None
    return test.read(torch.tensor([index]))[0].permute(1, 2, 0).numpy()


def entropy(runs: Sequence[Shown]) -> "Figure":
    """Histogram of the entropy of each prediction, and the share of sure ones."""
    import torch

    figure, axes = canvas()
    found = [torch.special.entr(run.predictions()[0]).sum(dim=1) for run in runs]
    top = max(float(values.max()) for values in found)
    edges = [LOW * i for i in range(int(top / LOW) + 2)]
    width = 0.8 * LOW / len(runs)
    for at, (run, values, color) in enumerate(zip(runs, found, COLORS, strict=False)):
        counts = torch.histogram(values, torch.tensor(edges, dtype=values.dtype)).hist
        shares = (100 * counts / len(values)).tolist()
        sure = 100 * float((values < LOW).double().mean())
        places = [edge + LOW / 2 + (at - (len(runs) - 1) / 2) * width for edge in edges[:-1]]
        axes.bar(places, shares, width, color=color, label=f"{run.label}: {sure:.1f} % below {LOW}")
    axes.set_xticks(edges)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("entropy of the prediction (nats)")
    axes.set_ylabel("test images (%)")
    axes.set_title(about(runs), loc="left")
    axes.legend()
    return figure


def time(runs: Sequence[Shown]) -> "Figure":
    """The usual time of a step; the line spans the middle half of what was measured."""
    shown = having(runs, "seconds", "fullmatch train")
    figure, axes = canvas(height=1.3 + 0.5 * len(shown))
    devices = {run.device for run in shown}
    for at, (run, color) in enumerate(zip(shown, COLORS, strict=False)):
        low, middle, high = quartiles(run)
        axes.barh(at, middle, 0.6, color=color)
        axes.plot([low, high], [at, at], color="black", linewidth=1)
        axes.annotate(f" {middle:.2f} ms", (max(high, middle), at), va="center")
    names = [run.label if len(devices) == 1 else f"{run.label}\n{run.device}" for run in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.15)
    axes.set_xlabel("time of a training step (ms)")
    where = f", {shown[0].device}" if len(devices) == 1 else ""
    axes.set_title(about(shown) + where, loc="left")
    return figure


def quartiles(run: Shown) -> tuple[float, float, float]:
    """Milliseconds of a step between lines of the log."""
    steps, seconds = run.curves["seconds"]
    spans = itertools.pairwise(zip(steps, seconds, strict=True))
    times = [1000 * (t - s) / (b - a) for (a, s), (b, t) in spans if t > s]
    if len(times) < 2:
        raise UserError(f"{run.path} is too short to tell the time of a step; train it further")
    low, middle, high = statistics.quantiles(times, n=4)
    return low, middle, high
