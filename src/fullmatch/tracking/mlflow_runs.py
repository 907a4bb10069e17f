"""MLflow: the server that MLFLOW_TRACKING_URI names, or files in ./mlruns."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

# MLflow refuses plain files unless it is told; reading them needs no database and no server.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from fullmatch.tracking.tracker import Outcome, TrackedRun

EXPERIMENT = "fullmatch"  # unless MLFLOW_EXPERIMENT_NAME names another one
LONGEST = 500  # characters of a parameter, at least in older servers
MOST = 100  # parameters per request


class MLflow:
    """One run of MLflow per run folder."""

    def begin(self, run: TrackedRun) -> str:
        address = os.environ.get("MLFLOW_TRACKING_URI") or Path("mlruns").resolve().as_uri()
        self.client = MlflowClient(address)
        if run.identity:
            self.id = run.identity
            self.client.set_terminated(self.id, "RUNNING")
            return self.id
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        experiment = self.client.get_experiment_by_name(name)
        place = experiment.experiment_id if experiment else self.client.create_experiment(name)
        self.id = str(self.client.create_run(place, run_name=run.name).info.run_id)
        params = [Param(key, str(value)[:LONGEST]) for key, value in run.settings.items()]
        for start in range(0, len(params), MOST):
            self.client.log_batch(self.id, params=params[start : start + MOST])
        return self.id

    def log(self, values: Mapping[str, float], step: int) -> None:
        now = int(1000 * time.time())
        self.client.log_batch(
            self.id, metrics=[Metric(name, value, now, step) for name, value in values.items()]
        )

    def finish(self, outcome: Outcome) -> None:
        for name, value in outcome.scores.items():
            self.client.log_metric(self.id, name, value)
        for path in (*outcome.figures, *outcome.files):
            self.client.log_artifact(self.id, str(path))
        self.client.set_tag(self.id, "mlflow.note.content", outcome.summary)
        self.client.set_terminated(self.id, "FINISHED")

    def close(self) -> None:
        """Every call is written at once."""
        if self.client.get_run(self.id).info.status == "RUNNING":
            self.client.set_terminated(self.id, "KILLED")


def make() -> MLflow:
    return MLflow()
