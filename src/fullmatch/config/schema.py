"""What a run is: typed dataclasses, and the table of settings they are read from."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fullmatch.config.limits import Amount, Count, Limits, Seed, Share, check
from fullmatch.config.tables import Table, expected, from_table, merged, to_table
from fullmatch.errors import UserError


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    name: str = "digits"  # a known data set, or the path of a folder, CSV or NPZ
    labels: int | None = None  # how many labels a benchmark keeps; own pictures keep all
    split_seed: Seed | None = None  # None: the run's seed
    split: str | None = None  # a split file to use instead of drawing one
    root: str | None = None  # where benchmark files are; None: $FULLMATCH_DATA, then ./data
    size: Count | None = None  # side that own pictures are brought to
    flip: bool | None = None  # mirror pictures; None: unless they are of digits or letters
    strong: Literal["torchssl", "released"] = "torchssl"  # setting of the strong augmentation


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    name: str = "wrn-28-2"
    pretrained: bool = False
    start: str | None = None  # a finished run whose weights the network starts from
    weights: str | None = None  # a file of weights that the network starts from
    norm_momentum: Share = 0.001  # of a Wide ResNet's running statistics


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    rate: Amount = 0.03
    momentum: Share = 0.9
    nesterov: bool = True
    weight_decay: Amount = 5e-4
    # Share of half a cosine wave that the rate falls along; at 1/2 it has come down to 0.
    cosine: Annotated[float, Limits(0, 0.5)] = 7 / 16
    clip: Amount = 0.0  # largest norm of the gradient; 0: no limit


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    steps: Count = 2**20
    batch: Count = 64  # labeled images a step
    ratio: Count | None = None  # unlabeled images per labeled one; None: as published
    ema: Share = 0.999
    evaluate_every: Count = 1024
    log_every: Count = 64
    checkpoint_every: Count = 1024
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    execution: Literal["auto", "eager", "compiled", "graph"] = "auto"
    weak_gradient: bool = True  # False: weak views in a pass of their own, without gradient
    deterministic: bool = False  # bit for bit on a GPU too, and slower; a CPU always is
    threads: Count | None = None  # of the CPU; None: torch's choice


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    data: DataConfig = field(default_factory=DataConfig)
    algorithm: Any  # a spec: FixMatch(...), full(FlexMatch(...)), or any object with `build`
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    baseline: bool = False  # also train the same network on the labels alone, and compare
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self)
        model = self.model
        if model.weights is not None and (model.pretrained or model.start is not None):
            other = "model.pretrained" if model.pretrained else "model.start"
            raise UserError(f"model.weights and {other} are both set, and a network starts once")


def experiment_config(
    table: Mapping[str, Any], algorithm: Callable[[str], Any]
) -> ExperimentConfig:
    """The config of a table; `algorithm` finds a spec by the name in `algorithm.name`."""
    rest = dict(table)
    named = expected(rest.pop("algorithm", {}), Mapping, "a table with a name", "algorithm")
    if "name" not in named:
        raise UserError('the config names no algorithm: add [algorithm] name = "fullmatch"')
    spec = algorithm(str(named["name"]))
    fields = merged(to_table(spec), {k: v for k, v in named.items() if k != "name"})
    spec = from_table(type(spec), fields, "algorithm.")
    return from_table(ExperimentConfig, rest | {"algorithm": spec})


def config_table(config: ExperimentConfig, name: Callable[[Any], str]) -> Table:
    """The table of a config, enough to repeat the run."""
    table: Table = to_table(config)
    return table | {"algorithm": {"name": name(config.algorithm)} | table["algorithm"]}


def fingerprint(table: Mapping[str, Any]) -> str:
    """A hash that changes with any setting."""
    text = json.dumps(table, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
