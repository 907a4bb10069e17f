"""Sweeps: the same training with several settings and seeds, shared by any number of processes."""

import shlex
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from fullmatch.algorithms import name_of
from fullmatch.api.started_run import Training
from fullmatch.api.starting import (
    SettingsInput,
    check_limits,
    format_value,
    plan_own_pictures,
    start_run,
)
from fullmatch.api.training import resume
from fullmatch.config import ExperimentConfig, config_table, fingerprint, read_toml
from fullmatch.data import DATASETS, load
from fullmatch.data.sources.places import data_exists
from fullmatch.display.terminal import can_draw_bars, print_line, print_note, showing
from fullmatch.errors import NonFiniteLoss, UserError, pluralize
from fullmatch.evaluation.wording import percent
from fullmatch.experiment.plan_types import PlanOptions
from fullmatch.experiment.settings import resolve
from fullmatch.reproduce.grid import parse_folds
from fullmatch.sweeps.figure import draw_sweep
from fullmatch.sweeps.folder import Sweep, SweepFolder, SweepRequest, check_request
from fullmatch.sweeps.score import RunScore, ScoreKind, measure_run
from fullmatch.sweeps.space import SweepRun
from fullmatch.sweeps.table import SweepTable, build_table
from fullmatch.training.stopping import TimeLimit

HOME = Path("sweeps")  # where a sweep goes that was given no folder


def sweep(
    data: str | PathLike[str] | None = None,
    settings: SettingsInput = (),
    *,
    seeds: str | Sequence[int] | None = None,
    trials: int | None = None,
    score: str | None = None,
    algorithm: str | None = None,
    model: str | None = None,
    labels: int | None = None,
    steps: int | None = None,
    budget: str | None = None,
    minutes: float | None = None,
    out: str | PathLike[str] | None = None,
    progress: bool = True,
) -> SweepTable:
    """Train with every combination of values and seeds, or search, and compare the settings.

    The same call again continues a sweep that was stopped; several processes may share one.

    Example::

        table = fullmatch.sweep(
            "digits", {"optimizer.rate": [0.01, 0.03]}, seeds="0-2", labels=40, steps=100
        )
        print(table.best)

    Parameters
    ----------
    data
        A data set by name, your pictures, or a TOML file of settings; None continues `out`.
    settings
        What to vary: lists such as {"optimizer.rate": [0.01, 0.03]}, or with `trials` also ranges
        such as "0.001..0.1"; a range over a decade or more is searched on a log scale.
    seeds
        Seeds of the runs of each combination, such as "0-4"; "0" by default.
    trials
        Search with Optuna, with so many combinations; by default all are tried.
    score
        "held-out", the default: accuracy on labels that models were trained without. "test": test
        accuracy, of benchmarks only; then settings are chosen on test.
    algorithm, model, labels, steps, budget, minutes
        As in `fullmatch.train`, for all runs.
    out
        The folder of the sweep; by default one under sweeps/, the same for the same arguments.
    progress
        Draw bars and print notes.
    """
    given: dict[str, Any] = {"algorithm": algorithm, "model": model, "labels": labels}
    given |= {"steps": steps, "budget": budget, "minutes": minutes}
    asked = settings or seeds or trials or score or {*given.values()} != {None}
    with showing(progress):
        if data is None and out is not None and not asked:
            found = SweepFolder(Path(out))
        else:
            name = "digits" if data is None else fspath(data)
            request = make_request(name, settings, seeds, trials, score, given)
            found = prepare_folder(name, request, None if out is None else Path(out))
        return run_sweep(found.open())


def make_request(
    data: str,
    settings: SettingsInput,
    seeds: str | Sequence[int] | None,
    trials: int | None,
    score: str | None,
    flags: dict[str, Any],
) -> SweepRequest:
    """What was asked for, checked as far as the data is not needed for it."""
    if score is not None and score not in list(ScoreKind):
        raise UserError(f"--score is {score!r}, expected one of {', '.join(ScoreKind)}")
    base = {key: value for key, value in flags.items() if value is not None}
    file = config_file(data)
    base["settings" if file else "data"] = fingerprint(read_toml(file)) if file else data
    listed = "0" if seeds is None else seeds
    text = listed if isinstance(listed, str) else ",".join(map(str, listed))
    request = SweepRequest(
        base=base,
        settings=tuple(list_settings(settings)),
        seeds=parse_folds(text, "seeds"),
        trials=trials,
        score=ScoreKind(score or ScoreKind.HELD_OUT),
    )
    return request


def list_settings(settings: SettingsInput) -> list[str]:
    """`a.b=1,2` strings; a mapping has a list of values, or one value, for each setting."""
    if isinstance(settings, str):
        return [settings]
    if not isinstance(settings, Mapping):
        return list(settings)
    return [f"{name}={join_values(values)}" for name, values in settings.items()]


def join_values(values: object) -> str:
    if isinstance(values, Sequence) and not isinstance(values, str):
        return ",".join(map(format_value, values))
    return format_value(values)


def config_file(data: str) -> Path | None:
    return Path(data) if data.endswith(".toml") else None


def prepare_folder(data: str, request: SweepRequest, out: Path | None) -> SweepFolder:
    """The folder of the sweep, made if it is not there yet."""
    title = Path(data).resolve().stem.replace(":", "-")
    identity = {"settings": request.settings, "seeds": request.seeds, "score": request.score}
    key = fingerprint(request.base | identity | {"search": request.trials is not None})
    folder = SweepFolder(out or HOME / f"{title}-{key[:6]}")
    if not folder.exists:
        base = make_base(data, request)
        with TemporaryDirectory() as place:
            config = Path(place) / "config.toml"
            config.write_text(tomli_w.dumps(config_table(base, name_of)), "utf-8")
            check_request(config, request)
        check_score(base, request)
        folder.create(base, request)
    folder.join(request)
    return folder


def make_base(data: str, request: SweepRequest) -> ExperimentConfig:
    """What all runs have in common. For own pictures it is planned once, on this machine."""
    flags, file = request.base, config_file(data)
    name = None if file else data
    steps, minutes = flags.get("steps"), flags.get("minutes")
    check_limits(name, steps, minutes, file)
    algorithm, model = flags.get("algorithm"), flags.get("model")
    options = PlanOptions(
        algorithm=algorithm or "fullmatch", minutes=minutes, steps=steps, model=model
    )
    if name is not None and name not in DATASETS and not data_exists(name):
        load(name)  # its error says what is there instead
    plan = plan_own_pictures(name, options) if file is None else None
    return resolve(
        file=file,
        data=name,
        algorithm=algorithm,
        labels=flags.get("labels"),
        steps=steps,
        budget=flags.get("budget"),
        model=model,
        preset=plan.config if plan else None,
        assignments=request.constants,
    )


def check_score(base: ExperimentConfig, request: SweepRequest) -> None:
    """`UserError` if settings cannot, or must not, be compared in this way."""
    benchmark = DATASETS.get(base.data.name)
    if request.score is ScoreKind.TEST and benchmark is None:
        raise UserError(
            "--score test is for benchmarks: your own test pictures measure the final model, and "
            "would no longer be an honest test; use --score held-out"
        )
    labels, classes = base.data.labels, benchmark.num_classes if benchmark else 0
    if request.score is ScoreKind.HELD_OUT and labels is not None and labels < 2 * classes:
        raise UserError(
            f"{labels} labels of {classes} classes are too few to hold some out; use more labels, "
            "or --score test"
        )


def run_sweep(sweep: Sweep) -> SweepTable:
    """Do the runs that nobody else does, then write the table and the figure."""
    seeds = len(sweep.request.seeds)
    known = sweep.request.trials or len(sweep.points())
    print_note(
        f"{pluralize(known, 'setting')} with {pluralize(seeds, 'seed')} each, compared by "
        f"{sweep.request.score.heading}; in {sweep.path}"
    )
    try:
        while True:
            with sweep.claim() as run:
                if run is None:
                    break
                do_run(sweep, run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(sweep.folder.resume_command) from None
    table = build_table(sweep)
    for path in (*table.write(), *(draw_sweep(table) if table.best else [])):
        print_note(f"written: {path}")
    return table


def do_run(sweep: Sweep, run: SweepRun) -> None:
    """Train and score one run; one that diverges is recorded as such."""
    folder = sweep.run_folder(run)
    with showing(can_draw_bars()):
        try:
            if folder.started:
                resume(folder.path)
            else:  # perhaps with a few files of a process that was killed right at the start
                begun = start_run(sweep.config_of(run), folder, None, TimeLimit(float("inf")))
                Training(begun).finish()
            benchmark = sweep.base.data.name in DATASETS
            score = measure_run(folder, sweep.request.score, benchmark=benchmark)
        except NonFiniteLoss as error:
            score = RunScore(score=None, diverged=f"the loss became NaN at step {error.step}")
    sweep.write_score(run, score)
    result = score.diverged or f"{sweep.request.score.heading} {percent(score.score or 0.0)}"
    print_line(f"{run.title}: {result}")


def describe_best(table: SweepTable) -> str:
    """The command that trains with the best settings; empty without any."""
    if table.best is None:
        return ""
    config = shlex.quote(str(table.folder / "config.toml"))
    settings = " ".join(f"--set {shlex.quote(each)}" for each in table.best.point.assignments)
    return f"fullmatch train --config {config} {settings}".strip()
