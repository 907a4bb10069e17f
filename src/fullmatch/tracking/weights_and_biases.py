"""Weights & Biases: online as its own settings say, or offline in the run folder."""

import os
from collections.abc import Mapping

import wandb

from fullmatch.tracking.tracker import Outcome, TrackedRun

PROJECT = "fullmatch"  # unless WANDB_PROJECT names another one


class WeightsAndBiases:
    """One run of W&B per run folder."""

    def begin(self, run: TrackedRun) -> str:
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=run.name,
            id=run.identity or None,
            resume="allow" if run.identity else None,
            dir=str(run.folder),
            config=dict(run.settings),
            settings=wandb.Settings(console="off", silent=True),
        )
        # Steps of its own never go back; ours do after a NaN loss or a resume.
        self.run.define_metric("*", step_metric="step")
        return str(self.run.id)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.run.log({**values, "step": step})

    def finish(self, outcome: Outcome) -> None:
        self.run.summary.update(dict(outcome.scores))
        figures = {f"figures/{path.stem}": wandb.Image(str(path)) for path in outcome.figures}
        pages = {
            path.stem: wandb.Html(path.read_text(encoding="utf-8"))
            for path in outcome.files
            if path.suffix == ".html"
        }
        if figures or pages:
            self.run.log({**figures, **pages})
        self.run.notes = outcome.summary

    def close(self) -> None:
        self.run.finish()


def make() -> WeightsAndBiases:
    return WeightsAndBiases()
