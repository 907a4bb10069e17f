"""Each tracker's files, read back with its own reader and compared with metrics.jsonl."""

import json
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore

import fullmatch
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.run_folder import RunFolder
from fullmatch.tracking.tracker import flatten_record

TINY = {
    "training.batch": 4,
    "training.ratio": 2,
    "training.log_every": 3,
    "training.evaluate_every": 4,
    "model.name": "wrn-10-1",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One run that all three have tracked, paused and resumed in between."""
    place = tmp_path_factory.mktemp("tracked")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("WANDB_MODE", "offline")
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_PROJECT"):
            patch.delenv(name, raising=False)
        training = fullmatch.start(
            "digits",
            labels=20,
            steps=9,
            settings=TINY,
            out="run",
            track="tensorboard, mlflow,wandb",
            progress=False,
        )
        for record in training:
            if record.step == 4:
                training.pause()
        del training
        fullmatch.resume("run", progress=False)
        yield place


@pytest.fixture(scope="module")
def records(place: Path) -> list[LogRecord]:
    records = RunFolder(place / "run").read_records()
    assert [record.step for record in records] == [3, 4, 6, 8, 9]
    return records


def test_tensorboard(place: Path, records: list[LogRecord]) -> None:
    events = EventAccumulator(str(place / "run" / "tensorboard"))
    events.Reload()
    for name in {name for record in records for name in flatten_record(record)}:
        expected = [
            (record.step, flatten_record(record)[name])
            for record in records
            if name in flatten_record(record)
        ]
        logged = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in logged] == [step for step, _ in expected]
        values = [value for _, value in expected]
        assert [value for _, value in logged] == pytest.approx(values, nan_ok=True)
    assert set(events.Tags()["images"]) == {
        "figures/accuracy",
        "figures/loss",
        "figures/pseudo_labels",
    }
    (settings, _) = events.Tensors("settings/text_summary")
    assert b"| training.batch | 4 |" in settings.tensor_proto.string_val[0]
    (result,) = events.Tensors("result/text_summary")
    assert b"# Classifier for digits" in result.tensor_proto.string_val[0]


def test_mlflow(place: Path, records: list[LogRecord]) -> None:
    client = MlflowClient((place / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("fullmatch")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run"
    assert run.data.params["training.batch"] == "4"
    for name in ("train/loss", "test/teacher.top1"):
        history = client.get_metric_history(run.info.run_id, name)
        assert [(point.step, point.value) for point in history] == [
            (record.step, flatten_record(record)[name])
            for record in records
            if name in flatten_record(record)
        ]
    result = RunFolder(place / "run").read_result()
    assert result.teacher is not None
    assert run.data.metrics["result/accuracy"] == result.teacher.top1
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {
        *("accuracy.png", "loss.png", "pseudo_labels.png"),
        *("report.html", "result.json", "config.toml"),
    }


def read_wandb(path: Path) -> list[Any]:
    """The records of an offline run."""
    store = DataStore()
    store.open_for_scan(str(path))
    records = []
    while (data := store.scan_data()) is not None:
        record: Any = getattr(wandb_internal_pb2, "Record")()  # noqa: B009  (it has no types)
        record.ParseFromString(data)
        records.append(record)
    return records


def test_wandb(place: Path, records: list[LogRecord]) -> None:
    files = sorted((place / "run" / "wandb").glob("offline-run-*/*.wandb"))
    entries = [record for path in files for record in read_wandb(path)]
    rows = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in row}
        for row in (entry.history.item for entry in entries if entry.HasField("history"))
    ]
    logged = {row["step"]: row for row in rows if "train/loss" in row}
    assert sorted(logged) == [record.step for record in records]
    for record in records:
        values = flatten_record(record)
        assert {name: logged[record.step][name] for name in values} == pytest.approx(values)
    started = [entry.run for entry in entries if entry.HasField("run")]
    assert len({run.run_id for run in started}) == 1  # also after the resume
    config = {update.key: update.value_json for update in started[0].config.update}
    assert config["training.batch"] == "4"
    names = {name.split("/")[0] for row in rows for name in row}
    assert {"report", "figures"} <= names, sorted(names)
