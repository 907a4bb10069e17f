"""`fullmatch rounds`: UPS as published, round after round."""

from pathlib import Path

from fullmatch.cli.parameters import Count, Settings, Whole


def rounds(
    data: str = "digits",
    *,
    rounds: Count = 3,
    labels: Whole = None,
    steps: Whole = None,
    seed: Whole = None,
    set_: Settings = None,
    out: Path | None = None,
) -> None:
    """Train UPS in rounds, each a new network taught by the one before.

    Called again with the same --out, it keeps finished rounds and goes on with a broken one.

    Parameters
    ----------
    data
        A data set by name, or your pictures.
    rounds
        How many rounds; the paper has 20. It decides what every round hands on, so another
        number needs another folder.
    labels
        How many labels of a benchmark to use.
    steps
        Training steps of each round.
    seed
        Of the labels drawn, the network's start, and every random number. [default: 0]
    set_
        Any setting, as a.b=value; may be repeated.
    out
        Folder of the rounds. [default: runs/DATA-ups-rounds]
    """
    from fullmatch.cli.progress import follow
    from fullmatch.cli.terminal import say, show_rounds
    from fullmatch.experiment import settings
    from fullmatch.experiment.ups_rounds import rounds as run_rounds

    chosen = settings.resolve(
        data=data,
        algorithm="ups_offline",
        labels=labels,
        steps=steps,
        seed=seed,
        assignments=set_ or (),
    )
    parent = out or Path("runs") / f"{Path(chosen.data.name).resolve().stem}-ups-rounds"
    try:
        show_rounds(list(run_rounds(chosen, parent, rounds, follow)))
    except SystemExit:  # the run has said how it alone goes on
        say("or give the same command again: it goes on with this round and does the others")
        raise
