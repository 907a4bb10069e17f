"""`fullmatch evaluate`: a finished model on test images."""

from pathlib import Path


def evaluate(run: Path, data: str | None = None) -> None:
    """Measure a finished run's model on the test images of its data, or of other data.

    Parameters
    ----------
    run
        A run folder.
    data
        Another data set with the same classes; its test images are used.
    """
    from fullmatch.cli.terminal import show_evaluation
    from fullmatch.inference.evaluate import evaluate_run
    from fullmatch.storage.run_folder import RunFolder

    show_evaluation(evaluate_run(RunFolder.existing(run), data))
