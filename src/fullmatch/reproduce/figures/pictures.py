"""Figures that need the network and the pictures: features in the plane, and one real batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from fullmatch.errors import UserError
from fullmatch.reproduce.figures.shown import Shown, about
from fullmatch.reproduce.figures.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from fullmatch.experiment.classifier import Classifier

IMAGES = 1000  # in the plane
BATCH = 448  # unlabeled images that decide k
EXAMPLES = 4  # of the batch, drawn
CLASSES = 20  # at most, in a drawing
PART = 100  # images through the network at once
ROLES = {
    "pseudo-label": "#7B3294",
    "non-target": "#0072B2",
    "undecided": "#8C8C8C",
    "negative": "#009E73",
}


def tsne(runs: Sequence[Shown]) -> "Figure":
    """The network's features of test images, brought to the plane by t-SNE."""
    import torch
    from matplotlib import colormaps
    from sklearn.manifold import TSNE

    if other := [run for run in runs if run.config.data.name != runs[0].config.data.name]:
        raise UserError(f"{other[0].path} is of other data than {runs[0].path}; name runs of one")
    test, labels = tested(runs[0])
    colors = colormaps["tab10" if int(labels.max()) < 10 else "tab20"]
    columns = len(runs)
    figure, axes = canvas(1, columns, width=1.2 + 3.6 * columns, height=3.9, squeeze=False)
    for run, axis in zip(runs, axes[0], strict=True):
        classifier = run.classifier()
        features, probs = features_of(classifier, test)
        right = float((probs.argmax(dim=1) == labels).double().mean())
        places = TSNE(perplexity=min(30.0, (len(test) - 1) / 3), init="pca", random_state=0)
        plane = places.fit_transform(torch.nn.functional.normalize(features, dim=1).numpy())
        for c in range(len(classifier.classes)):
            chosen = (labels == c).numpy()
            axis.scatter(
                *plane[chosen].T,
                s=6,
                linewidths=0,
                color=colors(c % colors.N),
                label=classifier.classes[c],
            )
        axis.set_title(f"{run.label}: {100 * right:.1f} % of {len(test):,} right", loc="left")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.grid(visible=False)
    figure.supxlabel(f"{about(runs)}; test images", fontsize=9)
    if len(classifier.classes) <= CLASSES:
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(), loc="outside right upper", markerscale=2.5
        )
    return figure


def tested(run: Shown) -> "tuple[Tensor, Tensor]":
    """Some test images, as many of them as are quick enough on a CPU."""
    from fullmatch.data.stores.image_store import evenly_spaced

    source = run.source()
    if source.test is None or source.test_labels is None:
        raise UserError(f"{source.name} has no test images; add a folder test/CLASS/*")
    index = evenly_spaced(len(source.test), IMAGES)
    return source.test.read(index), source.test_labels[index]


def features_of(classifier: "Classifier", images: "Tensor") -> "tuple[Tensor, Tensor]":
    """Pooled features and probabilities."""
    import torch

    found: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for part in torch.split(images, PART):
            view = classifier.augment(part, "plain")
            output = classifier.network(view)
            found.append((output.features, classifier.algorithm.predict(classifier.network, view)))
    features, probs = zip(*found, strict=True)
    return torch.cat(features), torch.cat(probs)


class Roles(NamedTuple):
    """What FullMatch makes of a batch."""

    weak: "Tensor"  # (U, channels, H, W) pictures in [0, 1]
    strong: "Tensor"
    probs: "Tensor"  # (U, C) of the weak view
    negative: "Tensor"  # (U, C) bool
    selected: "Tensor"  # (U,) bool
    k: int


def roles(classifier: "Classifier", images: "Tensor", threshold: float) -> Roles:
    """Pseudo-labels, k and negatives of a batch, by the losses' own functions."""
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
            parts = torch.split(view, PART)
            probs[name] = torch.cat(
                [classifier.algorithm.predict(classifier.network, part) for part in parts]
            )
    k = int(adaptive_k(probs["strong"], probs["weak"]))
    weak = probs["weak"]
    selected = weak.amax(dim=1) >= threshold
    return Roles(views["weak"], views["strong"], weak, negative_labels(weak, k), selected, k)


def overview(runs: Sequence[Shown]) -> "Figure":
    """A few unlabeled images of one batch, and which role each class has for each."""
    import torch
    from matplotlib.patches import Patch

    run = runs[0]
    classifier, source = run.classifier(), run.source()
    threshold = float(getattr(run.config.algorithm, "threshold", 0.95))
    generator = torch.Generator().manual_seed(run.config.seed)
    index = torch.randperm(len(source.images), generator=generator)[:BATCH]
    found = roles(classifier, source.images.read(index), threshold)
    chosen = examples(found)
    figure, axes = canvas(
        len(chosen), 3, width=9.2, height=0.9 + 1.35 * len(chosen), width_ratios=[1, 1, 4.6]
    )
    axes = axes.reshape(len(chosen), 3)
    for at, (weak, strong, bars) in zip(chosen, axes, strict=True):
        for axis, picture in ((weak, found.weak), (strong, found.strong)):
            axis.imshow(picture[at].permute(1, 2, 0).numpy(), cmap="gray", interpolation="nearest")
            axis.axis("off")
        order = found.probs[at].argsort(descending=True)[:CLASSES].tolist()
        bars.bar(
            range(len(order)),
            # A bar of no height could not show its colour.
            [max(100 * float(found.probs[at, c]), 1.5) for c in order],
            color=[ROLES[role(found, at, c)] for c in order],
        )
        bars.axhline(100 * threshold, color="black", linestyle=":", linewidth=1)
        bars.set_xticks(
            range(len(order)), [classifier.classes[c][:10] for c in order], fontsize=7.5
        )
        bars.set_ylim(0, 105)
        bars.set_yticks([0, 50, 100])
        bars.grid(axis="x", visible=False)
        for text, c in zip(bars.get_xticklabels(), order, strict=True):
            text.set_color(ROLES[role(found, at, c)])
        truth = int(source.labels[index[at]])
        if truth >= 0:
            bars.set_title(f"in truth: {classifier.classes[truth]}", loc="right", fontsize=9)
    axes[0, 0].set_title("weak", fontsize=9)
    axes[0, 1].set_title("strong", fontsize=9)
    axes[0, 2].set_title("confidence of the weak view (%)", loc="left", fontsize=9)
    figure.suptitle(
        f"{run.label}, {run.about}: k = {found.k} of {len(classifier.classes)} classes in this "
        f"batch, {100 * float(found.selected.double().mean()):.0f} % with a pseudo-label",
        fontsize=10,
    )
    figure.legend(
        handles=[Patch(color=color, label=name) for name, color in ROLES.items()],
        loc="outside lower center",
        ncols=4,
    )
    return figure


def examples(found: Roles) -> list[int]:
    """The first sure images and the least sure ones, half of each where there are both."""
    sure = found.selected.nonzero().flatten().tolist()
    order = found.probs.amax(dim=1).argsort().tolist()
    unsure = [at for at in order if not found.selected[at]]
    half = EXAMPLES // 2
    first = sure[: max(half, EXAMPLES - len(unsure))]
    return [*first, *unsure[: EXAMPLES - len(first)]]


def role(found: Roles, image: int, c: int) -> str:
    if found.negative[image, c]:
        return "negative"
    if not found.selected[image]:
        return "undecided"
    return "pseudo-label" if c == int(found.probs[image].argmax()) else "non-target"
