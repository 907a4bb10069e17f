"""Preset, file, flags, --set: each overrides those before it."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fullmatch.algorithms import FixMatch, FlexMatch, Full, Supervised, algorithm, full, name_of
from fullmatch.config import config_table
from fullmatch.errors import UserError
from fullmatch.experiment.presets import digits
from fullmatch.experiment.settings import display_name, read_config, resolve
from tests.small_runs import begin, config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.toml"
    path.write_text(
        "seed = 5\n[data]\nlabels = 30\n[training]\nsteps = 70\nbatch = 8\n[algorithm]\n"
        'name = "flexmatch"\nthreshold = 0.8\n'
    )
    return path


def test_the_default_is_the_demo() -> None:
    assert resolve() == digits(40, "fullmatch")


def test_file_over_preset(file: Path) -> None:
    resolved = resolve(file=file)
    assert (resolved.seed, resolved.data.labels, resolved.training.steps) == (5, 30, 70)
    assert resolved.algorithm == FlexMatch(threshold=0.8)
    assert resolved.model == digits().model
    assert resolved.training.ema == 0.99


def test_flags_over_file(file: Path) -> None:
    resolved = resolve(file=file, seed=6, labels=20, steps=9)
    assert (resolved.seed, resolved.data.labels, resolved.training.steps) == (6, 20, 9)
    assert resolved.training.batch == 8


def test_assignments_over_flags(file: Path) -> None:
    resolved = resolve(
        file=file, steps=9, assignments=["training.steps=10", "algorithm.threshold=0.7"]
    )
    assert resolved.training.steps == 10
    assert resolved.algorithm == FlexMatch(threshold=0.7)


@pytest.mark.parametrize("name", ["fixmatch", "fullflex", "supervised", "vat", "flexmatch"])
def test_an_algorithm_named_by_a_flag_has_its_own_fields(name: str, file: Path) -> None:
    assert resolve(file=file, algorithm=name).algorithm == algorithm(name)


@pytest.mark.parametrize("data", ["digits", "cifar100", "some/folder"])
@pytest.mark.parametrize(
    ("old", "new"),
    [("fullmatch", "npmatch"), ("npmatch", "fullflex"), ("fixmatch", "mixmatch"), ("vat", "uda")],
)
def test_another_algorithm_drops_the_recipe_of_the_old_one(
    old: str, new: str, data: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(tomli_w.dumps(config_table(resolve(data=data, algorithm=old), name_of)))
    assert resolve(file=path, algorithm=new) == resolve(data=data, algorithm=new)
    by_hand = ["training.ratio=5", "optimizer.clip=0.7", "optimizer.cosine=0.1"]
    changed = config_table(resolve(data=data, algorithm=old, assignments=by_hand), name_of)
    path.write_text(tomli_w.dumps(changed))
    resolved = resolve(file=path, algorithm=new)
    assert (resolved.training.ratio, resolved.optimizer.clip, resolved.optimizer.cosine) == (
        5,
        0.7,
        0.1,
    )


def test_an_unknown_algorithm_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[algorithm]\nname = "gone"\n[training]\nratio = 2\n')
    assert resolve(file=path, algorithm="uda").training.ratio == 2
    path.write_text('training = 5\n[algorithm]\nname = "fixmatch"\n')
    with pytest.raises(UserError, match="training is 5, expected a table"):
        resolve(file=path, algorithm="vat")


def test_a_split_decides_how_many_labels_there_are() -> None:
    assert resolve(assignments=["data.split=some.json"]).data.labels is None
    assert resolve(labels=40, assignments=["data.split=some.json"]).data.labels == 40


def test_a_run_can_be_repeated_from_its_config(tmp_path: Path) -> None:
    chosen = config("fullflex", "algorithm.full.form=ce", "data.labels=none", seed=3)
    run = begin(chosen, tmp_path / "run")
    assert run.config.data.labels == 200  # all there are, written out
    assert resolve(file=run.folder.config) == read_config(run.folder) == run.config


def test_a_budget_chooses_the_preset_and_flags_go_over_it() -> None:
    config = resolve(data="cifar10", labels=250, budget="fast", steps=7)
    assert (config.training.steps, config.training.pseudo_labels) == (7, "teacher")
    assert resolve(data="cifar10", labels=250, budget="paper") == resolve(
        data="cifar10", labels=250
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"budget": "fats"}, "unknown budget 'fats': expected paper or fast or usb; did you mean"),
        ({"budget": "fast", "data": "some/folder"}, "use --minutes for your own pictures"),
    ],
)
def test_a_budget_that_would_change_nothing_is_refused(flags: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolve(**flags)


def test_presets_of_an_algorithm_reach_the_optimizer() -> None:
    assert resolve(algorithm="npmatch").optimizer.clip == 3.0
    assert resolve(algorithm="npmatch", assignments=["optimizer.clip=0"]).optimizer.clip == 0.0


def test_wrong_types_are_refused() -> None:
    with pytest.raises(UserError, match=r"data.labels is 'few', expected an integer"):
        resolve(assignments=["data.labels=few"])
    with pytest.raises(UserError, match=r"data is 'digits', expected a table"):
        resolve(assignments=["data=digits"])


def test_display_names() -> None:
    assert display_name(FixMatch()) == "fixmatch"
    assert display_name(full(FixMatch())) == "fullmatch"
    assert display_name(full(FlexMatch(), alpha=2.0)) == "fullflex"
    assert display_name(Supervised()) == "supervised"
    assert display_name(algorithm("full-softmatch")) == "full-softmatch"


def test_config_file_is_complete(tmp_path: Path) -> None:
    """Every field that is not None, so that changing a default later changes no old run."""
    table = config_table(resolve(), name_of)
    assert set(table["training"]) >= {"steps", "batch", "ratio", "ema", "precision", "execution"}
    assert table["algorithm"]["full"] == {
        name: getattr(Full(), name) for name in Full.__dataclass_fields__
    }
    tomli_w.dumps(table)


def test_a_wrong_setting_of_a_run_is_reported_with_its_file(tmp_path: Path) -> None:
    folder = begin(config(), tmp_path / "run").folder
    text = folder.config.read_text(encoding="utf-8").replace("cosine = 0.4375", "cosine = 0.75")
    folder.config.write_text(text, encoding="utf-8")
    message = f"in {folder.config}: optimizer.cosine is 0.75, expected 0 to 0.5"
    with pytest.raises(UserError, match=message):
        read_config(folder)
