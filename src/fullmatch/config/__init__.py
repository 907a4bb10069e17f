"""The settings of a run: typed, with limits, to and from TOML; imports nothing heavy."""

from fullmatch.config.fingerprint import fingerprint, identifying_table
from fullmatch.config.schema import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
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
    "DataConfig",
    "ExperimentConfig",
    "ModelConfig",
    "OptimizerConfig",
    "SettingsTable",
    "TrainingConfig",
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
