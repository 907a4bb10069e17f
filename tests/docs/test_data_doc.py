"""The page on data and splits: its commands run, its settings and its data sets exist."""

import json
import shlex
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.cli.app import main
from fullmatch.cli.commands.train import train
from fullmatch.data import find_benchmark, load
from fullmatch.data.sources import picture_files, table_parts
from fullmatch.data.sources.places import data_exists
from fullmatch.data.stores import arrow
from fullmatch.experiment.settings import read_config, resolve
from fullmatch.storage.run_folder import RunFolder
from tests.encoded_pictures import (
    encode,
    hub_dataset,
    members,
    noise,
    save_hub,
    write_parquet,
    write_shard,
)
from tests.patterns import find_all

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
COMMANDS = find_all(r"^\$ fullmatch (.*)$", PAGE)
SPLIT = json.loads(find_all(r"```json\n(.*)\n```", PAGE)[0])
SHORT = ["--set", "training.steps=2", "--set", "training.batch=6"]


@pytest.mark.parametrize("setting", find_all(r"`data\.(\w+)`", PAGE))
def test_every_setting_exists(setting: str) -> None:
    assert hasattr(resolve().data, setting)


@pytest.mark.parametrize("command", [line for line in COMMANDS if "digits" in line])
def test_every_split_is_used(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("split.json").write_text(json.dumps(SPLIT))
    app = App(result_action="return_value")
    app.command(train)
    app([*shlex.split(command), *SHORT, "--out", "run"], exit_on_error=False, print_error=False)
    config = read_config(RunFolder(tmp_path / "run")).data
    expected = (10, 12) if "split.json" in command else (40, 500)
    assert (config.labels, config.unlabeled) == expected


def test_the_split_of_the_page_has_every_class() -> None:
    assert sorted(load("digits").labels[SPLIT["labeled"]].tolist()) == list(range(10))


@pytest.mark.parametrize(
    "name",
    [
        shlex.split(line)[1]
        for line in COMMANDS
        if "digits" not in line and line.startswith("train")
    ],
)
def test_every_data_set_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs on such data are trained by `tests/experiment/test_table_runs.py`."""
    monkeypatch.chdir(tmp_path)
    pixels, labels = noise(6), [0, 1, 0, 1, -1, -1]
    files = [encode(each) for each in pixels]
    save_hub(Path("saved"), {"train": hub_dataset(pixels, labels)})
    for table in ("data", "train"):
        write_parquet(Path(f"{table}.parquet"), files, labels)
    write_parquet(Path("test.parquet"), files[:2], labels[:2])
    for shard in ("000", "001"):
        write_shard(Path(f"shards-{shard}.tar"), members(files, labels))
    for number, (content, label) in enumerate(zip(files, labels, strict=True)):
        folder = Path("my-photos", f"labeled/{label}" if label >= 0 else "unlabeled")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.png").write_bytes(content)
    main(shlex.split(next(line for line in COMMANDS if line.startswith("pack"))))
    source = load(name)
    assert find_benchmark(name) is None
    assert data_exists(name)
    assert source.images.shape == (1, 8, 8)
    assert source.num_classes == 2
    assert (source.test is not None) is ("test" in name)


def test_limits_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert (table_parts.MIN_SIDE, picture_files.PICTURE_SIZES[-1]) == (8, 224)
    assert "squares of one size from 8 to 224 pixels" in text
    assert picture_files.MAX_BYTES_IN_MEMORY == 4 * 2**30
    assert "above 4 GiB of pixels" in text
    assert arrow.MAX_PARQUET_IN_MEMORY == 2**30
    assert "a file above 1 GiB" in text
