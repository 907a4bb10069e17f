"""`fullmatch rounds`: UPS as published, in rounds."""

from pathlib import Path

from fullmatch.cli.parameters import Count, Integer, Settings


def rounds(
    data: str = "digits",
    *,
    rounds: Count = 3,
    labels: Integer = None,
    steps: Integer = None,
    seed: Integer = None,
    set_: Settings = None,
    out: Path | None = None,
) -> None:
    """Train UPS in rounds: each trains a new network on labels chosen by the one before.

    Run it again with the same --out to continue: finished rounds are kept.

    Parameters
    ----------
    data
        A data set by name, or your pictures.
    rounds
        How many rounds; the paper uses 20. The first six keep the same number of labels
        per class; --set algorithm.balanced_rounds=N changes that.
    labels
        How many labels of a benchmark to use.
    steps
        Training steps of each round.
    seed
        Seed of all random numbers: the choice of labels, the initial weights, training.
        [default: 0]
    set_
        Any setting, as a.b=value; can be repeated.
    out
        Folder of the rounds. [default: runs/DATA-ups-rounds]
    """
    from fullmatch.display.progress import train_with_progress
    from fullmatch.display.terminal import print_note, show_rounds
    from fullmatch.experiment.settings import resolve
    from fullmatch.experiment.ups_rounds import train_rounds

    settings = resolve(
        data=data,
        algorithm="ups_offline",
        labels=labels,
        steps=steps,
        seed=seed,
        assignments=set_ or (),
    )
    parent = out or Path("runs") / f"{Path(settings.data.name).resolve().stem}-ups-rounds"
    try:
        show_rounds(list(train_rounds(settings, parent, rounds, train_with_progress)))
    except KeyboardInterrupt:  # after the hint how to resume this round by itself
        print_note("or run the same command again: it resumes this round and does the others")
        raise
