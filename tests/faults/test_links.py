"""Links in a run folder of someone else: what they lead to is never written to."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.data import TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment.feature_pass import FeaturePass
from fullmatch.experiment.verification import verify_run
from fullmatch.pages.frame import write_page
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_run
from tests.frozen_runs import tiny_model
from tests.trained_runs import train_pets

MINE = b"a file of the user\n" * 3


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.write_bytes(MINE)
    return path


def test_a_log_is_not_written_through_a_link(mine: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.metrics.symlink_to(mine)
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged \(a link, or no regular"):
        folder.truncate_metrics(3)
    with pytest.raises(UserError, match="put the file itself there"):
        folder.append_record(LogRecord(1, {}))
    assert mine.read_bytes() == MINE


def test_a_log_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    os.mkfifo(folder.metrics)
    with pytest.raises(UserError, match="no regular file"):
        folder.append_record(LogRecord(1, {}))  # opening it would wait forever


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_features_are_not_written_through_a_link(suffix: str, mine: Path, tmp_path: Path) -> None:
    pictures = TensorStore(torch.arange(4 * 3 * 8 * 8).view(4, 3, 8, 8).to(torch.uint8))

    def describe() -> list[float]:
        work = FeaturePass(tiny_model(), tmp_path / "cache", torch.device("cpu"))
        rows = work.describe(pictures, 0, 0, lambda *_: None)
        return np.asarray(rows, np.float32).ravel().tolist()

    expected = describe()
    (path,) = (tmp_path / "cache").glob(f"*{suffix}")
    path.replace(tmp_path / "whole")
    for target in (mine, tmp_path / "whole"):
        before = target.read_bytes()
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        assert describe() == expected
        assert target.read_bytes() == before


def test_a_report_is_not_put_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "report.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link that leads nowhere; choose another"):
        write_page(tmp_path / "report.html", "a page")
    assert not (tmp_path / "elsewhere").exists()


def test_a_baseline_that_leads_back_to_its_run(tmp_path: Path) -> None:
    shutil.copytree(train_pets(), tmp_path / "run")
    (tmp_path / "run" / "baseline").symlink_to(".")
    run = read_run(tmp_path / "run")
    assert run.baseline is not None
    assert run.baseline.baseline is None
    checks = verify_run(RunFolder(tmp_path / "run"))
    assert not any(check.name.count("baseline") > 1 for check in checks)
