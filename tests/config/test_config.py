"""Configs: to and from TOML for every algorithm, and errors that name the setting."""

import dataclasses
import math
from pathlib import Path
from typing import Literal

import pytest
import tomli_w

from fullmatch.algorithms import FixMatch, Full, algorithm, full, name_of, names
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
    config_table,
    experiment_config,
    from_table,
    merge_tables,
    parse_overrides,
    read_toml,
)
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve


def config(**changes: object) -> ExperimentConfig:
    return ExperimentConfig(algorithm=FixMatch(), **changes)  # type: ignore[arg-type]


def through_toml(one: ExperimentConfig, tmp_path: Path) -> ExperimentConfig:
    path = tmp_path / "config.toml"
    path.write_text(tomli_w.dumps(config_table(one, name_of)), encoding="utf-8")
    return experiment_config(read_toml(path), algorithm)


@pytest.mark.parametrize("name", names())
def test_every_spec_survives_toml(name: str, tmp_path: Path) -> None:
    one = ExperimentConfig(algorithm=algorithm(name))
    assert through_toml(one, tmp_path) == one


@pytest.mark.parametrize("name", names())
def test_every_field_survives_toml(name: str, tmp_path: Path) -> None:
    """Uses values other than the defaults, so that a lost value is noticed."""
    spec = algorithm(name)
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        changed: object = {
            bool: lambda v: not v,
            int: lambda v: v + 1,
            float: lambda v: v / 2 + 0.125,
        }.get(type(value), lambda v: v)(value)
        one = ExperimentConfig(algorithm=dataclasses.replace(spec, **{field.name: changed}))
        assert through_toml(one, tmp_path) == one, field.name


def test_unusual_values_survive_toml(tmp_path: Path) -> None:
    one = ExperimentConfig(
        data=DataConfig(name='of "Zoë" & \\ 猫', labels=7, split_seed=0, root="/x y", size=9),
        algorithm=full(FixMatch(threshold=1 / 3), variant="paper", alpha=1e-17),
        model=ModelConfig(pretrained=True),
        optimizer=OptimizerConfig(rate=0.1 + 0.2, clip=1.0),
        training=TrainingConfig(ratio=None, threads=3, deterministic=True),
        baseline=True,
        seed=2**62,
    )
    assert through_toml(one, tmp_path) == one


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"sed": 1}, "unknown setting 'sed'; did you mean 'seed'?"),
        ({"training": {"stesp": 1}}, "unknown setting 'training.stesp'; did you mean 'steps'?"),
        ({"training": {"qqqqqq": 1}}, "unknown setting 'training.qqqqqq'"),
        ({"algorithm": {"name": "fixmatch", "treshold": 0.9}}, "did you mean 'threshold'?"),
        ({"algorithm": {"name": "fullmatch", "full": {"alfa": 1}}}, "did you mean 'alpha'?"),
        ({"algorithm": {"name": "fixmach"}}, "unknown algorithm 'fixmach'"),
        ({"algorithm": "fixmatch"}, "algorithm is 'fixmatch', expected a table with a name"),
        ({"training": 3}, "training is 3, expected a table"),
        ({"training": {"steps": "10"}}, "training.steps is '10', expected an integer"),
        ({"training": {"steps": 1.5}}, "training.steps is 1.5, expected an integer"),
        ({"training": {"steps": True}}, "training.steps is True, expected an integer"),
        ({"optimizer": {"rate": "fast"}}, "optimizer.rate is 'fast', expected a number"),
        ({"optimizer": {"nesterov": 1}}, "optimizer.nesterov is 1, expected true or false"),
        ({"data": {"name": 3}}, "data.name is 3, expected a string"),
        ({"data": {"strong": "torchsl"}}, "did you mean 'torchssl'?"),
        ({"data": {"size": 99999}}, "data.size is 99999, expected 1 to 4096"),
        ({"training": {"steps": 0}}, "training.steps is 0, expected 1 or more"),
        ({"training": {"log_every": 0}}, "training.log_every is 0, expected 1 or more"),
        ({"training": {"ema": 1.5}}, "training.ema is 1.5, expected 0 to 1"),
        ({"seed": -1}, "seed is -1, expected 0 to"),
        ({"optimizer": {"cosine": 0.75}}, "optimizer.cosine is 0.75, expected 0 to 0.5"),
        ({"algorithm": {"name": "fullmatch", "full": {"beta": -1}}}, "algorithm.full.beta is -1.0"),
        ({"optimizer": {"rate": math.nan}}, "optimizer.rate is nan, expected a finite number"),
    ],
)
def test_errors_name_the_setting(table: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        experiment_config({"algorithm": {"name": "fixmatch"}} | table, algorithm)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_algorithm_must_be_named() -> None:
    with pytest.raises(UserError, match="has no algorithm"):
        experiment_config({}, algorithm)


def test_strings_are_converted_to_the_type_of_their_field() -> None:
    table = parse_overrides(
        [
            "training.steps=12",
            "optimizer.rate=1",
            "optimizer.nesterov=false",
            "data.name = 12",
            "data.labels=none",
            "training.precision=fp32",
            "algorithm.full.alpha=0.5",
        ]
    )
    one = experiment_config(merge_tables({"algorithm": {"name": "fixmatch"}}, table), algorithm)
    assert (one.training.steps, one.optimizer.rate, one.optimizer.nesterov) == (12, 1.0, False)
    assert isinstance(one.optimizer.rate, float)
    assert (one.data.name, one.data.labels, one.training.precision) == ("12", None, "fp32")
    assert one.algorithm.full == Full(alpha=0.5)


def read_assignment(assignment: str) -> ExperimentConfig:
    table = parse_overrides([assignment])
    return experiment_config(merge_tables({"algorithm": {"name": "fixmatch"}}, table), algorithm)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("training.steps", "expected a.b=value"),
        ("=3", "expected a.b=value"),
        ("training.steps=1\ntraining.batch=2", "expected a.b=value on one line"),
        ("training.steps=many", "training.steps is 'many', expected an integer"),
        ("training.steps=1.5", "training.steps is 1.5, expected an integer"),
        ("training.steps=", "training.steps is '', expected an integer"),
        ("optimizer.nesterov=True", "expected true or false"),
        ("training=3", "training is '3', expected a table"),
        ("training.execution=fast", "expected one of auto, eager, compiled, graph"),
        ("algorithm.full=yes", "expected a table"),
    ],
)
def test_wrong_assignments(assignment: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        read_assignment(assignment)
    assert words in str(error.value)


def test_a_setting_with_a_value_cannot_be_a_table() -> None:
    with pytest.raises(UserError, match="'training' already has a value"):
        parse_overrides(["training=3", "training.steps=4"])


def test_full_can_be_added_and_removed() -> None:
    def of(name: str, *assignments: str) -> object:
        table = merge_tables({"algorithm": {"name": name}}, parse_overrides(assignments))
        return experiment_config(table, algorithm).algorithm

    assert of("fixmatch", "algorithm.full=default") == full(FixMatch())
    assert of("fullmatch", "algorithm.full=none") == FixMatch()
    assert of("fullmatch", "algorithm.full.form=ce") == full(FixMatch(), form="ce")


def test_tuples_are_lists_in_toml_and_comma_separated_in_overrides() -> None:
    @dataclasses.dataclass(frozen=True)
    class Shapes:
        sides: tuple[float, ...] = (1.0,)
        kind: Literal["a", "b"] = "a"
        names: tuple[str, ...] = ()

    assert from_table(Shapes, {"sides": [1, 2.5]}).sides == (1.0, 2.5)
    for text in ("1,2.5", " [ 1, 2.5 , ]", "['1', \"2.5\"]"):
        assert from_table(Shapes, parse_overrides([f"sides={text}"])).sides == (1.0, 2.5)
    for text, expected in {
        '["8", "9"]': ("8", "9"),
        "red fox,it's": ("red fox", "it's"),
        "'a, b',\"c\"": ("a, b", "c"),
        "[]": (),
    }.items():
        assert from_table(Shapes, parse_overrides([f"names={text}"])).names == expected
    with pytest.raises(UserError, match="sides is 3, expected a list"):
        from_table(Shapes, {"sides": 3})


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"[training\n", "is not TOML"), (b"\xff\xfe", "is not text in UTF-8"), (None, "cannot read")],
)
def test_unreadable_file(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_toml(path)
    with pytest.raises(UserError, match="is not a regular file; fix it"):
        read_toml(tmp_path)


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
@pytest.mark.parametrize("where", ["optimizer.rate", "algorithm.full.alpha"])
def test_numbers_are_finite(where: str, value: str) -> None:
    with pytest.raises(UserError, match=rf"{where} is -?(inf|nan), expected a finite number"):
        resolve(assignments=[f"{where}={value}"])


@pytest.mark.parametrize("text", ["64,96", "[64, 96]"])
def test_several_numbers_in_one_setting(text: str) -> None:
    config = resolve(data="digits", assignments=(f"model.sizes={text}",))
    assert config.model.sizes == (64, 96)


def test_every_one_of_several_numbers_has_limits() -> None:
    with pytest.raises(UserError, match=r"model.sizes is 0, expected 1 or more"):
        resolve(data="digits", assignments=("model.sizes=64,0",))
