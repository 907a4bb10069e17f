"""From flags, files and presets to one resolved config."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.storage.run_folder import RunFolder


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
    assignments: Iterable[str] = (),
) -> ExperimentConfig:
    """Preset (by data set, unless given), then file, flags, `--set`: the later wins."""
    flags: dict[str, Any] = {
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
    table = read_toml(file) if file else {}
    if start is not None:  # its weights fit its own network, and no others are needed
        same = config_of(RunFolder.existing(start)).model.name
        table = merge_tables({"model": {"name": same, "pretrained": False}}, table)
    if algorithm is not None:
        # These belong to the algorithm that the file names.
        table = without_method(table, str(section(table, "algorithm").get("name")), algorithm)
    table = merge_tables(merge_tables(table, without_none(flags)), parse_overrides(assignments))
    name = str(section(table, "algorithm").get("name", "fullmatch"))
    if preset is None:
        asked = str(section(table, "data").get("labels"))
        preset = presets.default(
            str(section(table, "data").get("name", "digits")),
            int(asked) if asked.isdigit() else None,
            name,
        )
    base = config_table(preset, name_of)
    base["algorithm"]["name"] = name
    if file is not None:
        # A file that names its algorithm's fields means just those, so the preset's give way.
        base["algorithm"] = {"name": name}
    config = experiment_config(merge_tables(base, table), spec_of)
    if config.data.split and "labels" not in section(table, "data"):
        # How many is for the split to say; a preset only knows what would be drawn without one.
        return replace(config, data=replace(config.data, labels=None))
    return config


def without_method(table: SettingsTable, old: str, new: str) -> SettingsTable:
    """A file's settings for another method: less the old one's fields, and less what came with it.

    That is where the presets of the two differ, such as the ratio, and the file has the old one's
    value; what somebody has changed stays.
    """
    kept = {name: part for name, part in table.items() if name != "algorithm"}
    if {old, new} <= {*names(), *ALIASES}:
        data = str(section(table, "data").get("name", "digits"))
        before, after = (
            config_table(presets.default(data, None, name), name_of) for name in (old, new)
        )
        for part in ("optimizer", "training"):
            given, usual, other = section(table, part), before[part], after[part]
            came_with = {k for k, v in given.items() if v == usual.get(k) != other.get(k)}
            if came_with:
                kept[part] = {k: v for k, v in given.items() if k not in came_with}
    return kept


def config_of(folder: RunFolder) -> ExperimentConfig:
    table = read_toml(folder.config)
    try:
        return experiment_config(table, spec_of)
    except UserError as error:  # of another version, or of another hand
        raise UserError(f"in {folder.config}: {error}") from None


def display_name(spec: Any) -> str:
    """The name people use: fullmatch rather than full-fixmatch."""
    plain = name_of(spec)
    name = f"full-{plain}" if is_full(spec) else plain
    return next((alias for alias, target in ALIASES.items() if target == name), name)


def section(table: dict[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name, {})
    return found if isinstance(found, dict) else {}


def without_none(table: dict[str, Any]) -> dict[str, Any]:
    kept = {k: without_none(v) if isinstance(v, dict) else v for k, v in table.items()}
    return {k: v for k, v in kept.items() if v is not None and v != {}}
