"""`fullmatch sweep`: the same training with several settings and seeds."""

from pathlib import Path
from typing import Literal

from fullmatch.cli.parameters import Integer, Settings


def sweep(
    data: str | None = None,
    *,
    set_: Settings = None,
    seeds: str | None = None,
    trials: Integer = None,
    score: Literal["held-out", "test"] | None = None,
    algorithm: str | None = None,
    model: str | None = None,
    labels: Integer = None,
    steps: Integer = None,
    budget: Literal["paper", "fast"] | None = None,
    minutes: float | None = None,
    out: Path | None = None,
) -> None:
    """Train with every combination of settings and seeds, or search, and compare them.

    The same command again, or sweep --out FOLDER, continues a sweep that was stopped. Several
    processes or machines with a common disk may work on one sweep: start the same command in each.

    Parameters
    ----------
    data
        A data set by name, your pictures, or a TOML file of settings. [default: digits]
    set_
        A setting with its values, such as optimizer.rate=0.01,0.03; can be repeated. With --trials
        also a range, such as optimizer.rate=0.001..0.1, which is searched on a log scale if it is
        positive and its ends differ by a factor of 10 or more.
    seeds
        Seeds of the runs of each combination, such as 0-4 or 0,2. [default: 0]
    trials
        Search with Optuna: so many combinations, each with all seeds. [default: all combinations]
    score
        What settings are compared by: accuracy on labels that are held out of the training, or,
        for benchmarks only, test accuracy, which the table then marks as chosen on test.
        [default: held-out]
    algorithm
        See: fullmatch list algorithms. To compare several: --set algorithm.name=fixmatch,fullmatch.
        [default: fullmatch]
    model
        See: fullmatch list models. [default: chosen for the data and this machine]
    labels
        How many labels of a benchmark to use; the others are hidden.
    steps
        Number of training steps of each run.
    budget
        Settings of a benchmark: the paper's, or the fast ones. [default: paper]
    minutes
        Time limit of each run on your own pictures. [default: 10]
    out
        Folder of the sweep. [default: one under sweeps/, the same for the same command]
    """
    from fullmatch.api import sweeping
    from fullmatch.display.terminal import TextTable, print_line

    table = sweeping.sweep(
        data,
        set_ or (),
        seeds=seeds,
        trials=trials,
        score=score,
        algorithm=algorithm,
        model=model,
        labels=labels,
        steps=steps,
        budget=budget,
        minutes=minutes,
        out=out,
    )
    listing = TextTable(*table.headings)
    for row in table.rows:
        listing.add(*table.cells(row))
    listing.show()
    for note in table.notes:
        print_line(note)
    if command := sweeping.describe_best(table):
        print_line("Train with the best settings:")
        print_line(f"  {command}")
