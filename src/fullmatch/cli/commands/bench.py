"""`fullmatch bench`: how fast a training step is on this machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.cli.parameters import Integer, Settings

if TYPE_CHECKING:
    from fullmatch.experiment.bench import BenchResult, KernelTime

KERNELS = 30  # of the slowest, that are listed


def bench(
    data: str = "cifar10",
    *,
    algorithm: str = "fullmatch",
    model: str | None = None,
    batch: Integer = None,
    steps: Integer = 100,
    profile: bool = False,
    json: bool = False,
    set_: Settings = None,
) -> None:
    """Time training steps, on random images shaped like a data set or on your pictures.

    Parameters
    ----------
    data
        A benchmark whose image shape to use (its files are not needed), or a folder of pictures.
    algorithm
        See: fullmatch list algorithms.
    model
        See: fullmatch list models. [default: that of the data set]
    batch
        Labeled images per step. [default: that of the data set]
    steps
        Steps of each of three timings.
    profile
        Also list the kernels that take the most time.
    json
        Print everything as JSON.
    set_
        Any setting, as a.b=value; can be repeated.
    """
    from json import dumps

    from fullmatch.errors import UserError
    from fullmatch.experiment.bench import measure_speed
    from fullmatch.experiment.settings import resolve

    if steps is None or steps < 1:
        raise UserError(f"--steps is {steps}, expected 1 or more")
    flags = {"model.name": model, "training.batch": batch}
    assignments = [f"{name}={value}" for name, value in flags.items() if value is not None]
    settings = resolve(data=data, algorithm=algorithm, assignments=[*assignments, *(set_ or ())])
    result = measure_speed(settings, steps=steps, profile=profile)
    if json:
        print(dumps(result.to_table(), indent=1))
    else:
        show(result)


def show(result: "BenchResult") -> None:
    """Steps per second, where the time goes, and how that compares with the machine's peak."""
    from fullmatch.display.terminal import TextTable

    print(f"{result.algorithm} on {result.data}, {result.model}; {result.how}")
    table = TextTable("measure", "value")
    images = f"{result.labeled_images} labeled, {result.unlabeled_images} unlabeled"
    table.add("images per step", images)
    table.add("steps per second", f"{result.steps_per_second:.1f}")
    for stage, milliseconds in result.milliseconds.items():
        name = "one step, ms" if stage == "step" else f"  {stage}, ms"
        table.add(name, f"{milliseconds:.2f}")
    table.add("waiting for pictures, ms", f"{result.milliseconds_waited_for_pictures:.2f}")
    table.add("seconds to the first step", f"{result.seconds_to_first_step:.1f}")
    for name, value in machine_rows(result):
        table.add(name, value)
    table.show()
    show_kernels(result.kernels or ())


def machine_rows(result: "BenchResult") -> list[tuple[str, str]]:
    """What was measured on a GPU only, or with --profile only."""
    from fullmatch.evaluation.wording import percent

    rows = []
    if (machine := result.machine) is not None:
        share, peak = percent(machine.share_of_matrix_peak), machine.matrix_peak_tflops
        rows.append(("share of the matrix peak", f"{share} of {peak:.0f} TFLOP/s"))
        share, peak = percent(machine.share_of_memory_peak), machine.memory_peak_tb_per_s
        rows.append(("share of the memory peak", f"{share} of {peak:.1f} TB/s"))
        rows.append(("peak memory", f"{machine.peak_memory_gib:.1f} GiB"))
    if result.copies_from_host is not None:
        rows.append(("copies from the host per step", f"{result.copies_from_host:g}"))
    return rows


def show_kernels(kernels: Sequence["KernelTime"]) -> None:
    from fullmatch.display.terminal import TextTable

    if not kernels:
        return
    table = TextTable("ms per step", "calls", "kernel")
    for each in kernels[:KERNELS]:
        table.add(f"{each.milliseconds:.3f}", f"{each.calls:.0f}", each.kernel[:90])
    table.show()
