"""`fullmatch evaluate`: a finished model on test images."""

from pathlib import Path


def evaluate(run: Path, data: str | None = None) -> None:
    """Measure a finished run's model on the test images of its data, or of other data.

    Parameters
    ----------
    run
        A run folder, or a model on the hub as hf:user/name.
    data
        Another data set with the same classes; its test images are used.
    """
    from fullmatch.api.finished_run import evaluate as evaluate_model
    from fullmatch.cli.changes import noting_changes
    from fullmatch.display.terminal import show_evaluation

    with noting_changes(run):
        show_evaluation(evaluate_model(run, data))
