"""Digits as arrays, Hugging Face Arrow, Parquet and tar shards: the same run, bit for bit."""

import csv
import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fullmatch.api.checking import check_data
from fullmatch.cli.commands.predict import predict
from fullmatch.cli.commands.report import report
from fullmatch.data.sources.picture_tables import from_table
from fullmatch.data.stores.encoded import EncodedStore
from fullmatch.errors import UserError
from fullmatch.experiment.run import Run
from fullmatch.experiment.source_scan import scan_source
from fullmatch.experiment.start import resume, start
from fullmatch.inference.evaluate import evaluate_run
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
from tests.small_runs import config, digits, finish, read_outputs, stop_after

FORMS = {"hub": "hf:saved", "parquet": "{train,test}.parquet", "tar": "{train-{000..001},test}.tar"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 digits, a quarter of them labeled, and 20 for the test, in every form."""
    folder, source = tmp_path_factory.mktemp("digits"), digits()
    assert source.test is not None
    assert source.test_labels is not None
    images = source.images.read(torch.arange(120))[:, 0].numpy()
    test, test_labels = source.test.read(torch.arange(20))[:, 0].numpy(), source.test_labels[:20]
    labels = np.where(np.arange(120) < 30, source.labels[:120].numpy(), -1)
    np.savez(
        folder / "arrays.npz",
        train_x=images,
        train_y=labels,
        test_x=test,
        test_y=test_labels.numpy(),
    )
    train = hub_dataset(images, labels.tolist(), "0123456789")
    save_hub(
        folder / "saved",
        {"train": train, "test": hub_dataset(test, test_labels.tolist(), "0123456789")},
    )
    files, test_files = ([encode(each) for each in part] for part in (images, test))
    write_parquet(folder / "train.parquet", files, labels)
    write_parquet(folder / "test.parquet", test_files, test_labels.numpy())
    write_shard(folder / "train-000.tar", members(files[:70], labels[:70].tolist()))
    write_shard(folder / "train-001.tar", members(files[70:], labels[70:].tolist()))
    write_shard(folder / "test.tar", members(test_files, test_labels.tolist()))
    return folder


def place(folder: Path, form: str) -> str:
    name = FORMS[form]
    return f"hf:{folder}/saved" if name.startswith("hf:") else f"{folder}/{name}"


def begin(data: str, out: Path) -> Run:
    return start(config("fullmatch", data=data), RunFolder.planned("tables", out))


def numbers(run: Run) -> dict[str, Any]:
    """All numbers that a run wrote; only its data has another name."""
    outputs = read_outputs(run.folder.path)
    return {name: outputs[name] for name in ("checkpoint", "state", "predictions", "metrics")}


@pytest.fixture(scope="module")
def from_arrays(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finish(begin(str(folder / "arrays.npz"), tmp_path_factory.mktemp("runs") / "arrays"))


@pytest.mark.parametrize("form", FORMS)
def test_same_run_as_from_arrays(folder: Path, from_arrays: Run, form: str, tmp_path: Path) -> None:
    run = finish(begin(place(folder, form), tmp_path / "run"))
    assert numbers(run) == numbers(from_arrays)
    assert run.result.teacher == from_arrays.result.teacher
    assert evaluate_run(run.folder).scores == evaluate_run(from_arrays.folder).scores


def test_commands_work_on_tables(folder: Path, from_arrays: Run, tmp_path: Path) -> None:
    """Resume, predict and report, from another working directory."""
    run = begin(place(folder, "tar"), tmp_path / "run")
    stop_after(run, 5)
    run = finish(resume(RunFolder(tmp_path / "run")))
    assert numbers(run) == numbers(from_arrays)
    with redirect_stdout(io.StringIO()):
        report(run.folder.path)
    assert "data:image" in (run.folder.path / "report.html").read_text()
    out = tmp_path / "predictions.csv"
    predict(run.folder.path, f"{folder}/test.parquet", f"{folder}/test.tar", csv=out)
    rows = list(csv.reader(out.read_text().splitlines()))[1:]
    assert rows[3][0] == f"{folder}/test.parquet, row 3"
    assert rows[23][0] == f"{folder}/test.tar, 0003.png"
    assert [row[1:] for row in rows[:20]] == [row[1:] for row in rows[20:]]


def test_data_that_is_gone(folder: Path, tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "a.tar", [])
    shard.write_bytes((folder / "train-000.tar").read_bytes())
    run = finish(begin(str(shard), tmp_path / "run"))
    assert run.config.data.name == str(shard)
    shard.unlink()
    with pytest.raises(UserError, match=r"a.tar, which .* was trained on, is gone; put it back"):
        evaluate_run(run.folder)


def test_a_changed_shard_is_not_resumed(folder: Path, tmp_path: Path) -> None:
    shard = tmp_path / "a.tar"
    shard.write_bytes((folder / "train-000.tar").read_bytes())
    stop_after(begin(str(shard), tmp_path / "run"), 5)
    write_shard(shard, members([encode(each) for each in noise(20)], [*range(10)] * 2))
    with pytest.raises(UserError, match="have changed since"):
        resume(RunFolder(tmp_path / "run"))


@pytest.mark.parametrize("form", FORMS)
def test_plan_and_check_see_the_same(folder: Path, form: str) -> None:
    scan, result = scan_source(place(folder, form)), check_data(place(folder, form))
    assert scan.images.shape == (1, 8, 8)
    assert (result.side, result.channels) == (8, 1)
    assert int((scan.labels < 0).sum()) == result.unlabeled == 90
    assert sum(result.classes.values()) == 30
    assert sum(result.test.values()) == 20
    assert result.can_train


def test_check_names_file_and_row(tmp_path: Path) -> None:
    files = [encode(each) for each in digits().images.read(torch.arange(6))[:, 0].numpy()]
    path = write_parquet(
        tmp_path / "a.parquet", [*files, b"damaged", files[0]], [*"ababab", "", ""]
    )
    findings = {file for finding in check_data(str(path)).findings for file in finding.files}
    assert {f"{path}, row 6", f"{path}, row 7"} <= findings


def test_large_tables_train_the_same(folder: Path, from_arrays: Run, tmp_path: Path) -> None:
    """Pictures that stay encoded are decoded for every batch."""
    source = from_table(place(folder, "hub"), max_bytes=100)
    assert isinstance(source.images, EncodedStore)
    run = start(
        config("fullmatch", data=place(folder, "hub")),
        RunFolder.planned("tables", tmp_path / "run"),
        source,
    )
    assert numbers(finish(run)) == numbers(from_arrays)
