"""The settings of a run: typed, with limits, to and from TOML; imports nothing heavy."""

from fullmatch.config.fingerprint import fingerprint, identifying_table
from fullmatch.config.schema import (
    AugmentConfig,
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
    ViewConfig,
    config_table,
    experiment_config,
)
from fullmatch.config.tables import (
    SettingsTable,
    from_table,
    merge_tables,
    parse_overrides,
    read_toml,
    to_table,
)

__all__ = [
    "AugmentConfig",
    "DataConfig",
    "ExperimentConfig",
    "ModelConfig",
    "OptimizerConfig",
    "SettingsTable",
    "TrainingConfig",
    "ViewConfig",
    "config_table",
    "experiment_config",
    "fingerprint",
    "from_table",
    "identifying_table",
    "merge_tables",
    "parse_overrides",
    "read_toml",
    "to_table",
]
