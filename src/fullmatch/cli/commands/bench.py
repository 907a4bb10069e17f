"""`fullmatch bench`: how fast a training step is on this machine."""

from typing import Any

from fullmatch.cli.parameters import Settings, Whole


def bench(
    data: str = "cifar10",
    *,
    algorithm: str = "fullmatch",
    model: str | None = None,
    batch: Whole = None,
    steps: Whole = 100,
    profile: bool = False,
    json: bool = False,
    set_: Settings = None,
) -> None:
    """Time training steps, on noise in the shape of a data set or on your pictures.

    Parameters
    ----------
    data
        A benchmark whose shape to use (its files are not needed), or a folder of pictures.
    algorithm
        See: fullmatch list algorithms.
    model
        See: fullmatch list models. [default: that of the data set]
    batch
        Labeled images a step. [default: that of the data set]
    steps
        Steps of each of three timings.
    profile
        Also say which kernels the time goes to.
    json
        Print everything as JSON.
    set_
        Any setting, as a.b=value; may be repeated.
    """
    from json import dumps

    from fullmatch.errors import UserError
    from fullmatch.experiment.bench import bench as measured
    from fullmatch.experiment.settings import resolve

    if steps is None or steps < 1:
        raise UserError(f"--steps is {steps}, expected 1 or more")

    chosen = {"model.name": model, "training.batch": batch}
    flags = [f"{name}={value}" for name, value in chosen.items() if value is not None]
    config = resolve(data=data, algorithm=algorithm, assignments=[*flags, *(set_ or ())])
    found = measured(config, steps=steps, profile=profile)
    if json:
        print(dumps(found, indent=1))
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """Steps a second, where their time goes, and how near that is to what the machine can do."""
    from fullmatch.cli.terminal import Listing, percent

    print(f"{found['algorithm']} on {found['data']}, {found['model']}; {found['how']}")
    listing = Listing("measure", "value")
    images = f"{found['labeled_images']} labeled, {found['unlabeled_images']} unlabeled"
    listing.add("images a step", images)
    listing.add("steps a second", f"{found['steps_per_second']:.1f}")
    for stage, spent in found["milliseconds"].items():
        listing.add("a step, ms" if stage == "step" else f"  {stage}, ms", f"{spent:.2f}")
    listing.add("waited for pictures, ms", f"{found['milliseconds_waited_for_pictures']:.2f}")
    listing.add("seconds to the first step", f"{found['seconds_to_first_step']:.1f}")
    if "share_of_matrix_peak" in found:
        share, peak = found["share_of_matrix_peak"], found["matrix_peak_tflops"]
        listing.add("share of the matrix peak", f"{percent(share)} of {peak:.0f} TFLOP/s")
        share, peak = found["share_of_memory_peak"], found["memory_peak_tb_per_s"]
        listing.add("share of the memory peak", f"{percent(share)} of {peak:.1f} TB/s")
        listing.add("peak memory", f"{found['peak_memory_gib']:.1f} GiB")
    if "copies_from_host" in found:
        listing.add("copies from the host a step", f"{found['copies_from_host']:g}")
    listing.show()
    if "kernels" in found:
        kernels = Listing("ms a step", "calls", "kernel")
        for row in found["kernels"][:30]:
            kernels.add(f"{row['milliseconds']:.3f}", f"{row['calls']:.0f}", row["kernel"][:90])
        kernels.show()
