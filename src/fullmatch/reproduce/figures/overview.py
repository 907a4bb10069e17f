"""One batch of unlabeled images: which role each class has for each image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fullmatch.reproduce.figures.runs import FigureRun
from fullmatch.reproduce.figures.style import TITLE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from fullmatch.experiment.classifier import Classifier

BATCH = 448  # unlabeled images, which decide k
EXAMPLES = 4  # images of the batch that are drawn
SHOWN_CLASSES = 20  # per image, at most
CHUNK = 100  # images through the network at once
THRESHOLD = 0.95  # for methods without one
MIN_HEIGHT = 1.5  # of a bar, in percent, so that its color is visible
COLORS = {
    "pseudo-label": "#7B3294",
    "non-target": "#0072B2",
    "undecided": "#8C8C8C",
    "negative": "#009E73",
}


class BatchRoles(NamedTuple):
    """The views of a batch, and what FullMatch makes of them."""

    weak: "Tensor"  # (U, channels, H, W) in [0, 1]
    strong: "Tensor"
    probs: "Tensor"  # (U, C) of the weak view
    negative: "Tensor"  # (U, C) bool
    selected: "Tensor"  # (U,) bool
    k: int

    def role(self, image: int, label: int) -> str:
        """The role of a class for an image."""
        if self.negative[image, label]:
            return "negative"
        if not self.selected[image]:
            return "undecided"
        return "pseudo-label" if label == int(self.probs[image].argmax()) else "non-target"


def overview(runs: Sequence[FigureRun]) -> "Figure":
    """A few unlabeled images of one batch, and which role each class has for each."""
    import torch

    run = runs[0]
    classifier, source = run.classifier(), run.source()
    threshold = run.config.algorithm.selection_threshold()
    threshold = THRESHOLD if threshold is None else threshold
    generator = torch.Generator().manual_seed(run.config.seed)
    index = torch.randperm(len(source.images), generator=generator)[:BATCH]
    roles = compute_roles(classifier, source.images.read(index), threshold)
    examples = choose_examples(roles)
    height = 0.9 + 1.35 * len(examples)
    figure, axes = canvas(len(examples), 3, width=9.2, height=height, width_ratios=[1, 1, 4.6])
    axes = axes.reshape(len(examples), 3)
    for image, (weak, strong, bars) in zip(examples, axes, strict=True):
        draw_view(weak, roles.weak[image])
        draw_view(strong, roles.strong[image])
        draw_confidences(bars, roles, image, classifier.classes)
        bars.axhline(100 * threshold, color="black", linestyle=":", linewidth=1)
        truth = int(source.labels[index[image]])
        if truth >= 0:
            bars.set_title(f"true class: {classifier.classes[truth]}", loc="right", fontsize=9)
    add_titles(figure, axes, run, roles)
    return figure


def compute_roles(classifier: "Classifier", images: "Tensor", threshold: float) -> BatchRoles:
    """Pseudo-labels, k and negatives of a batch, computed by the losses' own functions."""
    import torch

    from fullmatch.losses import adaptive_k, negative_labels

    views: dict[str, Tensor] = {}
    probs: dict[str, Tensor] = {}
    augment = classifier.augment
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for name in ("weak", "strong"):
            view = augment(images, name)
            views[name] = (view * augment.std + augment.mean).clamp(0, 1)
            chunks = torch.split(view, CHUNK)
            probs[name] = torch.cat(
                [classifier.algorithm.predict(classifier.network, chunk) for chunk in chunks]
            )
    k = int(adaptive_k(probs["strong"], probs["weak"]))
    weak = probs["weak"]
    selected = weak.amax(dim=1) >= threshold
    return BatchRoles(views["weak"], views["strong"], weak, negative_labels(weak, k), selected, k)


def choose_examples(roles: BatchRoles) -> list[int]:
    """The first selected images and the least confident ones, half of each if possible."""
    selected = roles.selected.nonzero().flatten().tolist()
    order = roles.probs.amax(dim=1).argsort().tolist()
    unselected = [image for image in order if not roles.selected[image]]
    first = selected[: max(EXAMPLES // 2, EXAMPLES - len(unselected))]
    return [*first, *unselected[: EXAMPLES - len(first)]]


def draw_view(axis: "Axes", image: "Tensor") -> None:
    axis.imshow(image.permute(1, 2, 0).numpy(), cmap="gray", interpolation="nearest")
    axis.axis("off")


def draw_confidences(axis: "Axes", roles: BatchRoles, image: int, classes: Sequence[str]) -> None:
    """One bar per class, the most confident first, in the color of its role."""
    probs = roles.probs[image]
    order = probs.argsort(descending=True)[:SHOWN_CLASSES].tolist()
    colors = [COLORS[roles.role(image, label)] for label in order]
    heights = [max(100 * float(probs[label]), MIN_HEIGHT) for label in order]
    axis.bar(range(len(order)), heights, color=colors)
    axis.set_xticks(range(len(order)), [classes[label][:10] for label in order], fontsize=7.5)
    for text, color in zip(axis.get_xticklabels(), colors, strict=True):
        text.set_color(color)
    axis.set_ylim(0, 105)
    axis.set_yticks([0, 50, 100])
    axis.grid(axis="x", visible=False)


def add_titles(figure: "Figure", axes: Any, run: FigureRun, roles: BatchRoles) -> None:
    from matplotlib.patches import Patch

    axes[0, 0].set_title("weak", fontsize=9)
    axes[0, 1].set_title("strong", fontsize=9)
    axes[0, 2].set_title("confidence on the weak view (%)", loc="left", fontsize=9)
    share = 100 * float(roles.selected.double().mean())
    title = figure.suptitle(
        f"{run.label}, {run.description}: k = {roles.k} of {roles.probs.shape[1]} classes in this "
        f"batch, {share:.0f} % with a pseudo-label",
        fontsize=10,
    )
    title.set_gid(TITLE)
    handles = [Patch(color=color, label=role) for role, color in COLORS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(COLORS))
