"""Features of test images in the plane."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fullmatch.errors import UserError
from fullmatch.reproduce.figures.runs import FigureRun, describe_runs
from fullmatch.reproduce.figures.style import TITLE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from fullmatch.experiment.classifier import Classifier

IMAGES = 1000  # at most, so that t-SNE is quick on a CPU
LISTED_CLASSES = 20  # in a legend, at most
CHUNK = 100  # images through the network at once


def tsne(runs: Sequence[FigureRun]) -> "Figure":
    """The network's features of test images, mapped to the plane by t-SNE."""
    from matplotlib import colormaps

    if other := [run for run in runs if run.config.data.name != runs[0].config.data.name]:
        raise UserError(
            f"{other[0].path} is of other data than {runs[0].path}; choose runs of the same data"
        )
    images, labels = load_test_images(runs[0])
    colors = colormaps["tab10" if int(labels.max()) < 10 else "tab20"]
    columns = len(runs)
    figure, axes = canvas(1, columns, width=1.2 + 3.6 * columns, height=3.9, squeeze=False)
    for run, axis in zip(runs, axes[0], strict=True):
        classifier = run.classifier()
        features, probs = compute_features(classifier, images)
        scatter_classes(axis, project(features), labels, classifier.classes, colors)
        accuracy = 100 * float((probs.argmax(dim=1) == labels).double().mean())
        axis.set_title(f"{run.label}: {accuracy:.1f} % of {len(images):,} right", loc="left")
    figure.supxlabel(f"{describe_runs(runs)}; test images", fontsize=9).set_gid(TITLE)
    if len(classifier.classes) <= LISTED_CLASSES:
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(), loc="outside right upper", markerscale=2.5
        )
    return figure


def load_test_images(run: FigureRun) -> "tuple[Tensor, Tensor]":
    """Evenly spaced test images and their labels."""
    from fullmatch.data.stores.image_store import evenly_spaced

    source = run.source()
    if source.test is None or source.test_labels is None:
        raise UserError(f"{source.name} has no test images; add a folder test/CLASS/*")
    index = evenly_spaced(len(source.test), IMAGES)
    return source.test.read(index), source.test_labels[index]


def compute_features(classifier: "Classifier", images: "Tensor") -> "tuple[Tensor, Tensor]":
    """Pooled features and probabilities."""
    import torch

    chunks: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for chunk in torch.split(images, CHUNK):
            view = classifier.augment(chunk, "plain")
            output = classifier.network(view)
            probs = classifier.algorithm.predict(classifier.network, view)
            chunks.append((output.features, probs))
    features, probabilities = zip(*chunks, strict=True)
    return torch.cat(features), torch.cat(probabilities)


def project(features: "Tensor") -> Any:  # (N, d) -> (N, 2) array
    import torch
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    directions = torch.nn.functional.normalize(features, dim=1).numpy()
    return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(directions)


def scatter_classes(
    axis: "Axes", points: Any, labels: "Tensor", classes: Sequence[str], colors: Any
) -> None:
    """One color per class, and no ticks, since positions have no unit."""
    for index, name in enumerate(classes):
        chosen = (labels == index).numpy()
        x, y = points[chosen].T
        axis.scatter(x, y, s=6, linewidths=0, color=colors(index % colors.N), label=name)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
