"""What a run is: typed settings, their limits, and TOML both ways; nothing heavy is imported."""

from fullmatch.config.schema import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
    config_table,
    experiment_config,
    fingerprint,
)
from fullmatch.config.tables import Table, from_table, merged, overrides, read_toml, to_table

__all__ = [
    "DataConfig",
    "ExperimentConfig",
    "ModelConfig",
    "OptimizerConfig",
    "Table",
    "TrainingConfig",
    "config_table",
    "experiment_config",
    "fingerprint",
    "from_table",
    "merged",
    "overrides",
    "read_toml",
    "to_table",
]
