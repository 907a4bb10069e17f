"""How a run starts: its plan, its folder, and the choice between strategies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, fingerprint, identifying_table
from fullmatch.core import as_spec
from fullmatch.data import find_benchmark
from fullmatch.data.sources.places import data_exists, data_folder, is_table, table_title
from fullmatch.display.progress import feature_progress
from fullmatch.display.terminal import print_note, show_strategies
from fullmatch.errors import UserError
from fullmatch.experiment.plan_types import PlanOptions, TrainingPlan
from fullmatch.experiment.planning import make_plan
from fullmatch.experiment.repair import prepare_repairs
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import display_name, read_config
from fullmatch.experiment.source_scan import scan_source
from fullmatch.experiment.start import resume as resume_run
from fullmatch.experiment.start import start
from fullmatch.experiment.strategies import StrategyChooser
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.run_places import taken
from fullmatch.training.stopping import TimeLimit

# Settings by their dotted names, or as in `--set`.
SettingsInput = Mapping[str, object] | Sequence[str]


def to_assignments(settings: SettingsInput) -> list[str]:
    """`a.b=value` strings; a mapping's values are written as in TOML."""
    if isinstance(settings, str):
        return [settings]
    if not isinstance(settings, Mapping):
        return list(settings)
    return [f"{name}={format_value(value)}" for name, value in settings.items()]


def format_value(value: object) -> str:
    if isinstance(value, bool | None):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [format_value(item) for item in value]
        return f"[{', '.join(f'{item!r}' if ',' in item else item for item in items)}]"
    return str(value)


def check_limits(
    data: str | None, steps: int | None, minutes: float | None, config: Path | None
) -> None:
    """`UserError` for limits that do not go together."""
    if minutes is None:
        return
    if own_pictures(data) is None or config is not None:
        raise UserError("--minutes plans a run on your own pictures; use --steps here")
    if steps is not None:
        raise UserError("--minutes and --steps both limit the training; give one of them")


def own_pictures(data: str | None) -> Path | None:
    """The path of the user's own pictures; None for a benchmark."""
    return None if data is None or find_benchmark(data) else data_folder(data)


def network_to_continue(run: Path | None, weights: Path | None) -> str | None:
    """The network of the run to start from; None without such a run."""
    if run is None or weights is not None:
        return None
    return read_config(RunFolder.existing(run)).model.name


def plan_own_pictures(data: str | None, options: PlanOptions) -> TrainingPlan | None:
    """Settings that suit the user's own pictures and this machine; None for a benchmark."""
    if data is None or find_benchmark(data) or not data_exists(data):
        return None  # loading it will say that it does not exist
    return make_plan(scan_source(data), data, options)


def choose_folder(settings: ExperimentConfig, out: Path | None) -> RunFolder:
    """The folder of the new run, which is never among the user's pictures."""
    data = settings.data.name
    title = table_title(data) if is_table(data) else Path(data).resolve().stem
    name = f"{title}-{display_name(settings.algorithm)}".replace(":", "-")
    folder = RunFolder.planned(name, out)
    pictures = own_pictures(data)
    if pictures is not None and folder.path.resolve().is_relative_to(pictures.resolve()):
        raise UserError(
            f"{folder.path} would be among your pictures, where nothing is written; "
            "name a folder elsewhere with --out"
        )
    return folder


def start_run(
    settings: ExperimentConfig, folder: RunFolder, plan: TrainingPlan | None, limit: TimeLimit
) -> Run:
    """A new run, after its plan was shown and its strategies were compared."""
    if plan is None:
        with feature_progress(settings) as progress:
            return start(settings, folder, options=progress)
    notes = list(plan.notes)

    def show_notes() -> None:
        """Before long work, but after what may be refused, so that an error stands by itself."""
        while notes:
            print_note(notes.pop(0))

    compare = plan.compare_strategies and settings.model.body == "frozen"
    if compare and as_spec(settings.algorithm).open_set:
        compare = False  # no other strategy predicts that a picture is unknown
        print_note("strategies are not compared: only this algorithm recognizes unknown pictures")
    choose = StrategyChooser(limit, plan.alternatives, report=print_note) if compare else None
    with feature_progress(settings) as progress:
        options = replace(progress, begin=show_notes)
        run = start(settings, folder, options=options, choose=choose)
    show_notes()
    show_strategies(run.strategies)
    run.stopping_rules += plan.stopping_rules()
    return run


def find_restarted(out: Path | None) -> RunFolder | None:
    """The run that torchrun has started again after a process was lost; None for a new run."""
    if distributed.may_restart() and out is None:
        raise UserError(
            "torchrun --max-restarts starts this command again after a failure; name the run "
            "folder with --out, so that it is found"
        )
    if out is None or not distributed.restarted():
        return None
    found = distributed.on_first(lambda: RunFolder(out).started)
    return RunFolder(out) if found else None


def preset_of_restarted(
    earlier: RunFolder | None, data: str | None, config: Path | None
) -> ExperimentConfig | None:
    """What was planned for the user's own pictures then: a new plan might differ."""
    planned = earlier is not None and config is None and own_pictures(data) is not None
    return read_config(earlier) if planned and earlier is not None else None


def continue_restarted(folder: RunFolder, settings: ExperimentConfig) -> Run:
    """The run from its newest checkpoint, if it has these settings."""
    hashes = {
        fingerprint(identifying_table(each, name_of)) for each in (settings, read_config(folder))
    }
    if len(hashes) > 1:
        raise taken(folder.path)
    for note in distributed.on_first(lambda: prepare_repairs(folder)):
        print_note(note)
    return continue_run(folder)


def continue_run(folder: RunFolder, *, finish: bool = False) -> Run:
    """A run from its newest checkpoint; strategies are compared if they were not yet.

    With `finish`, it has no more training steps.
    """
    with feature_progress(read_config(folder)) as progress:
        run = resume_run(folder, options=progress, choose=plan_again(folder))
    if finish:
        run.end_here("finished on request")
    return run


def plan_again(folder: RunFolder) -> StrategyChooser | None:
    """Strategies for a run that was stopped before they were compared; None where they were."""
    if folder.read_strategies() is not None:
        return None
    config = read_config(folder)
    options = PlanOptions(algorithm=display_name(config.algorithm))
    plan = plan_own_pictures(config.data.name, options)
    alternatives = plan.alternatives if plan else ()
    return StrategyChooser(TimeLimit(options.seconds), alternatives, report=print_note)
