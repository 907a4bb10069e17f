"""What identifies a run: its settings, in a form that later versions of the schema repeat.

A run is identified by what differs from the defaults. Settings added later are left out as long as
they have their default, so a new field of a config or spec leaves old runs as they are. For this,
the default of a new field has to be what happened before the field existed.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from fullmatch.config.schema import ExperimentConfig
from fullmatch.config.tables import SettingsTable, to_table

Names = Mapping[str, Any]  # of settings, each with the names inside it

# Settings that the first version hashed even with their defaults. This is history: settings added
# since then are in none of these lists.
FIRST_FULL = "variant entropy_meaning adaptive_negative form negatives_on alpha beta"
FIRST_SETTINGS = {
    "data": "name labels split_seed split root size flip strong",
    "model": "name pretrained start weights norm_momentum",
    "optimizer": "rate momentum nesterov weight_decay cosine clip",
    "training": "steps batch ratio ema evaluate_every log_every checkpoint_every precision "
    "execution weak_gradient deterministic threads",
    "baseline": "",
    "seed": "",
}
FIRST_ALGORITHM_SETTINGS = {
    "supervised": "",
    "pi_model": "coefficient ramp",
    "pseudo_label": "threshold coefficient ramp",
    "mean_teacher": "coefficient ramp",
    "vat": "epsilon xi iterations coefficient ramp entropy",
    "mixmatch": "alpha temperature coefficient ramp",
    "remixmatch": "alpha temperature momentum coefficient unmixed rotation ramp",
    "uda": "threshold coefficient full temperature annealing",
    "fixmatch": "threshold coefficient full",
    "flexmatch": "threshold coefficient full warmup",
    "dash": "coefficient full warmup longest_warmup temperature factor gamma every rho_min",
    "freematch": "threshold coefficient full floor momentum fairness",
    "softmatch": "coefficient full momentum deviations alignment",
    "ups": "threshold coefficient full warmup samples dropout uncertainty negatives "
    "negative_threshold negative_spread",
    "ups_offline": "choice dropout",
    "semco": "threshold coefficient full embeddings meaning group_threshold",
    "alphamatch": "coefficient alpha beta weak_weight strong_views align descents rate",
    "comatch": "threshold coefficient full contrast temperature cut smoothing alignment bank width",
    "simmatch": "threshold coefficient full instances temperature smoothing alignment momentum "
    "width",
    "crmatch": "threshold coefficient full distance rotation",
    "npmatch": "threshold coefficient full warmup samples uncertainty divergence latent memory",
    "doublematch": "threshold coefficient full features",
    "ns3l": "threshold coefficient negative_threshold negative_coefficient",
    "adamatch": "threshold coefficient full momentum ramp",
    "debiaspl": "threshold coefficient full factor momentum",
    "abc": "threshold coefficient full balanced balanced_threshold",
    "iomatch": "threshold coefficient full open_threshold one_vs_all open_weight open_start align "
    "batches width",
}


def identifying_table(config: ExperimentConfig, name: Callable[[Any], str]) -> SettingsTable:
    """The config as a table, without added settings that have their default."""
    algorithm = name(config.algorithm)
    first: dict[str, Any] = {part: split_names(text) for part, text in FIRST_SETTINGS.items()}
    first["algorithm"] = split_names(FIRST_ALGORITHM_SETTINGS.get(algorithm, ""))
    first["algorithm"]["full"] = split_names(FIRST_FULL)
    table = without_added_defaults(config, first)
    return table | {"algorithm": {"name": algorithm} | table["algorithm"]}


def split_names(text: str) -> dict[str, Any]:
    return {name: {} for name in text.split()}


def without_added_defaults(settings: Any, first: Names) -> SettingsTable:
    """The table of a dataclass; of settings not in `first`, only those that were changed."""
    table: SettingsTable = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value is None or (field.name not in first and value == default_value(field)):
            continue
        nested = dataclasses.is_dataclass(value)
        inside = first.get(field.name, {})
        table[field.name] = without_added_defaults(value, inside) if nested else to_table(value)
    return table


def default_value(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def fingerprint(table: Mapping[str, Any]) -> str:
    """A hash of a table."""
    text = json.dumps(table, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
