"""From flags, files and presets to one resolved config."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from fullmatch.algorithms import ALIASES, is_full, name_of, names
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import (
    ExperimentConfig,
    SettingsTable,
    config_table,
    experiment_config,
    merge_tables,
    parse_overrides,
    read_toml,
)
from fullmatch.core import SpecLike
from fullmatch.errors import UserError, did_you_mean
from fullmatch.experiment import presets
from fullmatch.experiment.usb import usb
from fullmatch.storage.run_folder import RunFolder

USB_BUDGET = "usb"  # besides those of `presets`, and not one that tables of the paper have


def resolve(
    *,
    file: Path | None = None,
    data: str | None = None,
    algorithm: str | None = None,
    labels: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    baseline: bool | None = None,
    start: Path | None = None,
    model: str | None = None,
    weights: Path | None = None,
    preset: ExperimentConfig | None = None,
    budget: str | None = None,
    assignments: Iterable[str] = (),
) -> ExperimentConfig:
    """The config of a preset (by data set, unless given), then file, flags and `--set` over it."""
    table = read_toml(file) if file else {}
    if start is not None:
        table = with_network_of(start, table)
    if algorithm is not None:
        table = without_other_algorithm(table, algorithm)
    flags: SettingsTable = {
        "data": {"name": data, "labels": labels},
        "algorithm": {"name": algorithm},
        "model": {
            "name": model,
            "start": None if start is None else str(start),
            "weights": None if weights is None else str(weights),
        },
        "training": {"steps": steps},
        "seed": seed,
        "baseline": baseline,
    }
    table = merge_tables(merge_tables(table, without_none(flags)), parse_overrides(assignments))
    check_budget(budget, file, str(section(table, "data").get("name", "digits")))
    base = preset_table(table, preset, from_file=file is not None, budget=budget or "paper")
    config = experiment_config(merge_tables(base, table), spec_of)
    if config.data.split and "labels" not in section(table, "data"):
        # The split decides how many; a preset only knows the usual number.
        return replace(config, data=replace(config.data, labels=None))
    return config


def with_network_of(start: Path, table: SettingsTable) -> SettingsTable:
    """The network of an earlier run, whose weights fit no other; a file may name another."""
    model = read_config(RunFolder.existing(start)).model
    network = {"name": model.name, "pretrained": False, "torchssl_blocks": model.torchssl_blocks}
    return merge_tables({"model": network}, table)


def without_other_algorithm(table: SettingsTable, algorithm: str) -> SettingsTable:
    """A file's settings without those that belong to another algorithm than this one.

    These are the algorithm's own, and those that its preset sets differently, such as the ratio,
    where the file has the preset's value; what a user has changed stays.
    """
    old = str(section(table, "algorithm").get("name"))
    result = {name: part for name, part in table.items() if name != "algorithm"}
    if not {old, algorithm} <= {*names(), *ALIASES}:
        return result
    data = str(section(table, "data").get("name", "digits"))
    before, after = (
        config_table(presets.default(data, None, name), name_of) for name in (old, algorithm)
    )
    for part in ("optimizer", "training"):
        settings = section(table, part)
        of_preset = {
            name
            for name, value in settings.items()
            if value == before[part].get(name) != after[part].get(name)
        }
        if of_preset:
            result[part] = {k: v for k, v in settings.items() if k not in of_preset}
    return result


def check_budget(budget: str | None, file: Path | None, data: str) -> None:
    """Refuse a budget that is unknown, or where it would change nothing."""
    if budget is None:
        return
    known_budgets = (*presets.BUDGETS, USB_BUDGET)
    if budget not in known_budgets:
        known = " or ".join(known_budgets)
        hint = did_you_mean(budget, known_budgets)
        raise UserError(f"unknown budget {budget!r}: expected {known}{hint}")
    if file is not None:
        raise UserError(f"{file} has the settings of a run; leave --budget out")
    if budget != USB_BUDGET and not presets.is_benchmark(data):
        raise UserError("--budget is for benchmarks; use --minutes for your own pictures")


def preset_table(
    table: SettingsTable, preset: ExperimentConfig | None, *, from_file: bool, budget: str
) -> SettingsTable:
    """The preset that settings build on, for the algorithm that they name."""
    algorithm = str(section(table, "algorithm").get("name", "fullmatch"))
    if preset is None:
        text = str(section(table, "data").get("labels"))
        labels = int(text) if text.isdigit() else None
        data = str(section(table, "data").get("name", "digits"))
        if budget == USB_BUDGET:
            preset = usb(data, labels, algorithm)
        else:
            preset = presets.default(data, labels, algorithm, budget)
    base = config_table(preset, name_of)
    if section(table, "model").keys() & {"weights", "start"}:
        base["model"]["pretrained"] = False  # the settings name other weights
    # A file lists all fields of its algorithm, so those of the preset do not count.
    base["algorithm"] = {} if from_file else base["algorithm"]
    base["algorithm"]["name"] = algorithm
    return base


def read_config(folder: RunFolder) -> ExperimentConfig:
    """The settings of a run, from its folder."""
    table = read_toml(folder.config)
    try:
        return experiment_config(table, spec_of)
    except UserError as error:  # written by another version, or changed by hand
        raise UserError(f"in {folder.config}: {error}") from None


def named_code(folder: RunFolder) -> Callable[[], tuple[str, str]]:
    """The network and the method that a run's config names, which its model may import."""

    def read() -> tuple[str, str]:
        config = read_config(folder)
        return config.model.name, name_of(config.algorithm)

    return read


def display_name(spec: SpecLike) -> str:
    """The name people use: fullmatch rather than full-fixmatch."""
    plain = name_of(spec)
    name = f"full-{plain}" if is_full(spec) else plain
    return next((alias for alias, target in ALIASES.items() if target == name), name)


def section(table: SettingsTable, name: str) -> SettingsTable:
    part = table.get(name, {})
    return part if isinstance(part, dict) else {}


def without_none(table: SettingsTable) -> SettingsTable:
    parts = {k: without_none(v) if isinstance(v, dict) else v for k, v in table.items()}
    return {k: v for k, v in parts.items() if v is not None and v != {}}
