"""What a run is: typed dataclasses, TOML both ways, and dotted overrides that name their typos."""

import dataclasses
import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fullmatch.errors import UserError, did_you_mean
from fullmatch.limits import Amount, Count, Limits, Seed, Share, check

T = TypeVar("T")
Table = dict[str, Any]


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


class Text(str):
    """A value as typed on the command line: its type is decided by the field it goes to."""


def to_table(value: Any) -> Any:
    """Plain containers for TOML and JSON; None is left out, since TOML has none."""
    if dataclasses.is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: to_table(part) for name, part in pairs if part is not None}
    return list(value) if isinstance(value, tuple) else value


def from_table(cls: type[T], table: Mapping[str, Any], where: str = "") -> T:
    """A dataclass from a table; a wrong key or type is an error that names its place."""
    hints = get_type_hints(cls)
    known = {f.name for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise UserError(f"unknown setting {where + key!r}{did_you_mean(key, known)}")
    return cls(**{key: typed(value, hints[key], where + key) for key, value in table.items()})


def typed(value: Any, to: Any, where: str) -> Any:
    """The value as the type of its field."""
    if to is Any:
        return value
    if get_origin(to) in (Union, UnionType):
        if value is None or (isinstance(value, Text) and value.lower() == "none"):
            return None
        (to,) = (option for option in get_args(to) if option is not NoneType)
    if dataclasses.is_dataclass(to) and isinstance(to, type):
        if isinstance(value, Text) and value.lower() == "default":
            return to()
        return from_table(to, expected(value, Mapping, "a table", where), f"{where}.")
    if get_origin(to) is Literal:
        if value not in get_args(to):
            choices = ", ".join(map(str, get_args(to)))
            hint = did_you_mean(str(value), map(str, get_args(to)))
            raise UserError(f"{where} is {value!r}, expected one of {choices}{hint}")
        return str(value)
    if get_origin(to) is tuple:
        values = (
            value.split(",") if isinstance(value, Text) else expected(value, list, "a list", where)
        )
        return tuple(typed(retyped(value, v), get_args(to)[0], where) for v in values)
    return scalar(value, to, where)


def retyped(whole: Any, part: Any) -> Any:
    return Text(part) if isinstance(whole, Text) else part


def scalar(value: Any, to: Any, where: str) -> Any:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if isinstance(value, Text) and to is not str:
        try:
            value = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            raise UserError(f"{where} is {str(value)!r}, expected {words[to]}") from None
    if to is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if to is int and isinstance(value, bool):
        raise UserError(f"{where} is {value!r}, expected {words[to]}")
    found = expected(value, to, words[to], where)
    if to is float and not math.isfinite(found):
        raise UserError(f"{where} is {found}, expected a finite number")
    return str(found) if to is str else found


def expected(value: Any, to: Any, words: str, where: str) -> Any:
    if not isinstance(value, to):
        raise UserError(f"{where} is {value!r}, expected {words}")
    return value


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """`over` laid on `base`, table by table."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        nested = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below, value) if nested else value  # type: ignore[arg-type]
    return result


def overrides(assignments: Iterable[str]) -> Table:
    """A table from `a.b=c` texts."""
    table: Table = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path or "\n" in value.strip():
            raise UserError(
                f"--set {assignment!r}: expected a.b=value on one line, such as training.steps=1000"
            )
        *parents, last = path.strip().split(".")
        place = table
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"--set {assignment!r}: {parent!r} was set to a value before")
        place[last] = Text(value.strip())
    return table


def read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"cannot read the config {path}: {error.strerror}; check its path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the config {path} is not TOML: {error}") from None


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
