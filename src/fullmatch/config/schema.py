"""The configuration of a run as typed dataclasses, and its table of settings."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fullmatch.config.limits import Amount, Count, Limits, Natural, Seed, Share, check_limits
from fullmatch.config.tables import (
    SettingsTable,
    from_table,
    merge_tables,
    require_type,
    to_table,
)
from fullmatch.errors import UserError


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which pictures, and which of their labels."""

    name: str = "digits"  # a known data set, or the path of a folder, CSV or NPZ
    labels: int | None = None  # number of labels of a benchmark; own pictures use all
    split_seed: Seed | None = None  # None: the run's seed
    split: str | None = None  # a split file to use instead of a random split
    root: str | None = None  # folder of benchmark files; None: $FULLMATCH_DATA, then ./data
    size: Count | None = None  # side that own pictures are resized to
    flip: bool | None = None  # mirror pictures; None: yes, except for digits and letters
    strong: Literal["torchssl", "released"] = "torchssl"  # variant of the strong augmentation


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network, and what it starts from."""

    name: str = "wrn-28-2"
    pretrained: bool = False
    start: str | None = None  # a finished run whose weights initialize the network
    weights: str | None = None  # a file of weights that initialize the network
    norm_momentum: Share = 0.001  # of a Wide ResNet's running statistics
    body: Literal["trained", "frozen"] = "trained"  # frozen: only a linear head is trained
    # What the head of a frozen body starts from: zero, logistic regression on the labels, or labels
    # propagated to the unlabeled pictures.
    head: Literal["zero", "logistic", "propagation"] = "zero"
    crops: Natural = 1  # weak and strong crops per picture that a frozen body computes beforehand


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """SGD and its learning rate."""

    rate: Amount = 0.03
    momentum: Share = 0.9
    nesterov: bool = True
    weight_decay: Amount = 5e-4
    # Share of half a cosine wave that the learning rate follows; with 1/2 it ends at 0.
    cosine: Annotated[float, Limits(0, 0.5)] = 7 / 16
    clip: Amount = 0.0  # largest norm of the gradient; 0: no limit


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, in which batches, and how a step is executed."""

    steps: Count = 2**20
    batch: Count = 64  # labeled images per step
    ratio: Count | None = None  # unlabeled images per labeled image; None: as published
    ema: Share = 0.999
    evaluate_every: Count = 1024
    log_every: Count = 64
    checkpoint_every: Count = 1024
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    execution: Literal["auto", "eager", "compiled", "graph"] = "auto"
    weak_gradient: bool = True  # False: weak views in a separate pass, without gradient
    deterministic: bool = False  # bit-exact on a GPU, but slower; a CPU always is
    threads: Count | None = None  # of the CPU; None: torch's default


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """Everything that decides a run."""

    data: DataConfig = field(default_factory=DataConfig)
    algorithm: Any  # a spec such as FixMatch(...) or full(FlexMatch(...)); see `core.Spec`
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    baseline: bool = False  # also train the same network on the labels only, and compare
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_limits(self)
        model = self.model
        if model.head != "zero" and model.body != "frozen":
            raise UserError(f"model.head = {model.head} needs model.body = frozen")
        if model.weights is not None and (model.pretrained or model.start is not None):
            other = "model.pretrained" if model.pretrained else "model.start"
            raise UserError(f"model.weights and {other} are both set; remove one of them")


def experiment_config(
    table: Mapping[str, Any], algorithm: Callable[[str], Any]
) -> ExperimentConfig:
    """The config in a table; `algorithm` returns the spec for the name in `algorithm.name`."""
    sections = dict(table)
    section = require_type(
        sections.pop("algorithm", {}), Mapping, "a table with a name", "algorithm"
    )
    if "name" not in section:
        raise UserError('the config has no algorithm: add [algorithm] name = "fullmatch"')
    spec = algorithm(str(section["name"]))
    fields = merge_tables(to_table(spec), {k: v for k, v in section.items() if k != "name"})
    spec = from_table(type(spec), fields, "algorithm.")
    return from_table(ExperimentConfig, sections | {"algorithm": spec})


def config_table(config: ExperimentConfig, name: Callable[[Any], str]) -> SettingsTable:
    """The config as a table, enough to repeat the run."""
    table: SettingsTable = to_table(config)
    return table | {"algorithm": {"name": name(config.algorithm)} | table["algorithm"]}


# Settings that fullmatch 0.1 did not have, with the values that do what it did.
ADDED_SINCE_0_1: dict[str, dict[str, Any]] = {
    "model": {"body": "trained", "head": "zero", "crops": 1},
}


def without_added_defaults(table: Mapping[str, Any]) -> SettingsTable:
    """The table without settings added later that have their default: an old run has none."""
    return {
        name: {k: v for k, v in part.items() if k not in added or added[k] != v}
        if (added := ADDED_SINCE_0_1.get(name)) and isinstance(part, Mapping)
        else part
        for name, part in table.items()
    }


def fingerprint(table: Mapping[str, Any]) -> str:
    """A hash that changes with every setting; the same for a run of an earlier version."""
    text = json.dumps(without_added_defaults(table), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
