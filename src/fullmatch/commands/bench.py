"""`fullmatch bench`: how fast a training step is on this machine."""

from fullmatch.commands.parameters import Settings, Whole


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

    from fullmatch.bench import bench as measured
    from fullmatch.display import show_bench
    from fullmatch.errors import UserError
    from fullmatch.settings import resolve

    if steps is None or steps < 1:
        raise UserError(f"--steps is {steps}, expected 1 or more")

    chosen = {"model.name": model, "training.batch": batch}
    flags = [f"{name}={value}" for name, value in chosen.items() if value is not None]
    config = resolve(data=data, algorithm=algorithm, assignments=[*flags, *(set_ or ())])
    found = measured(config, steps=steps, profile=profile)
    if json:
        print(dumps(found, indent=1))
    else:
        show_bench(found)
