"""The configuration of a run as typed dataclasses, and its table of settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fullmatch.config.limits import (
    Amount,
    Count,
    Limits,
    Natural,
    Number,
    Positive,
    Seed,
    Share,
    Side,
    check_limits,
)
from fullmatch.config.tables import (
    SettingsTable,
    from_table,
    merge_tables,
    require_type,
    to_table,
)
from fullmatch.errors import UserError, did_you_mean
from fullmatch.plugins import is_reference


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which pictures, and which of their labels."""

    name: str = "digits"  # a known data set, or the path of a folder, CSV or NPZ
    labels: int | None = None  # number of labels of a benchmark; own pictures use all
    split_seed: Seed | None = None  # None: the run's seed
    split: str | None = None  # a split file to use instead of a random split
    # Size of the first class over that of the last, among the labels; sizes fall exponentially.
    imbalance: Annotated[float, Limits(1)] = 1.0
    unlabeled: Count | None = None  # number of unlabeled images; None: all, and the labeled ones
    # The same ratio among the unlabeled images; negative: reversed, the last class is the largest;
    # None: as the images are.
    unlabeled_imbalance: Number | None = None
    balance: bool = True  # repeat labeled pictures of small classes; benchmarks never do
    # Names of classes whose labels are hidden: their images are unlabeled, and unknown in the test.
    unknown_classes: tuple[str, ...] = ()
    root: str | None = None  # folder of benchmark files; None: $FULLMATCH_DATA, then ./data
    size: Side | None = None  # side that own pictures are resized to
    flip: bool | None = None  # mirror pictures; None: yes, except for digits and letters
    strong: Literal["torchssl", "released"] = "torchssl"  # variant of the strong augmentation

    def __post_init__(self) -> None:
        ratio = self.unlabeled_imbalance
        if ratio is not None and abs(ratio) < 1:
            raise UserError(
                f"data.unlabeled_imbalance is {ratio}, expected 1 or more, or -1 or less for the "
                "reversed order"
            )


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The network, and what it starts from."""

    name: str = "wrn-28-2"
    pretrained: bool = False
    start: str | None = None  # a finished run whose weights initialize the network
    weights: str | None = None  # a file of weights that initialize the network
    norm_momentum: Share = 0.001  # of a Wide ResNet's running statistics
    torchssl_blocks: bool = False  # a Wide ResNet whose later groups read raw sums, as TorchSSL's
    # frozen: pretrained weights stay as they are, and only a linear head is trained on their
    # features; tuned: all of it is trained, from that head.
    body: Literal["trained", "frozen", "tuned"] = "trained"
    # What the head of a pretrained body starts from: zero, logistic regression on the labels, or
    # labels propagated to the unlabeled pictures.
    head: Literal["zero", "logistic", "propagation"] = "zero"
    crops: Natural = 1  # weak and strong crops per picture that a frozen body computes beforehand
    sizes: tuple[Count, ...] = ()  # that a pretrained body sees pictures in; none: as suits them


# Names and descriptions, for `fullmatch list`.
VIEW_KINDS = {
    "plain": "the picture itself, cut to size",
    "flip_crop": "a random flip, unless data.flip is false, and a random crop; as weak views are",
    "cutout": "then a gray square, up to half the width",
    "color": "then random operations on colors and sharpness",
    "geometry": "then random rotations, shears and shifts",
    "randaugment": "then random operations of both kinds, and cutout; as strong views are",
    "module:function": "then your own, called with images (B, C, H, W), in uint8, and a strength",
}
OPTIMIZERS = {
    "sgd": "with momentum, Nesterov's unless optimizer.nesterov is false",
    "adamw": "Adam with decoupled weight decay",
    "module:Class": "a torch.optim.Optimizer, such as torch.optim:RMSprop or one of your own",
}
ScheduleName = Literal["cosine", "linear", "constant", "one_cycle", "step"]
SCHEDULES = {
    "cosine": "the share optimizer.cosine of half a cosine wave; 7/16 ends at 0.195 of the rate",
    "linear": "falls to 0 in a straight line",
    "constant": "stays, after the warm-up",
    "one_cycle": "rises from 1/25 over the warm-up, or 30 % of the steps, then falls to 0",
    "step": "times optimizer.gamma at each share of the steps in optimizer.milestones",
}
EmaScheduleName = Literal["constant", "warmup", "cosine"]
EMA_SCHEDULES = {
    "constant": "training.ema at every step",
    "warmup": "(1 + step) / (10 + step), until that is training.ema",
    "cosine": "rises from training.ema to 1 along half a cosine wave",
}


@dataclass(frozen=True, kw_only=True)
class ViewConfig:
    """How a view of an image is made."""

    name: str | None = None  # None: flip_crop for weak views, randaugment for strong ones
    strength: Share = 1.0  # scales all magnitudes; 1: as published
    operations: Count | None = None  # random operations per image; None: as published

    def __post_init__(self) -> None:
        name = self.name
        if name is not None and name not in VIEW_KINDS and not is_reference(name):
            raise UserError(
                f"the view {name!r} is unknown (see: fullmatch list views)"
                f"{did_you_mean(name, VIEW_KINDS)}"
            )


@dataclass(frozen=True, kw_only=True)
class AugmentConfig:
    """The views that methods ask for. `data.strong` is the variant of their operations."""

    weak: ViewConfig = ViewConfig()
    strong: ViewConfig = ViewConfig()


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """The optimizer and its learning rate."""

    name: str = "sgd"  # sgd, adamw, or module:Class
    options: tuple[str, ...] = ()  # arguments of a module:Class, such as alpha=0.9
    rate: Amount = 0.03
    momentum: Share = 0.9  # of AdamW, the first of its two averages
    nesterov: bool = True
    weight_decay: Amount = 5e-4
    # Share of half a cosine wave that the learning rate follows; with 1/2 it ends at 0.
    cosine: Annotated[float, Limits(0, 0.5)] = 7 / 16
    schedule: ScheduleName = "cosine"
    milestones: tuple[Share, ...] = (0.5, 0.75)  # of the schedule `step`, as shares of the steps
    gamma: Share = 0.1  # of the schedule `step`: the factor at each milestone
    warmup: Natural = 0  # steps over which the learning rate rises
    layer_decay: Share = 1.0  # factor of the learning rate per layer, from the head to the input
    clip: Amount = 0.0  # largest norm of the gradient; 0: no limit

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS and not is_reference(self.name):
            hint = did_you_mean(self.name, OPTIMIZERS)
            raise UserError(
                f"optimizer.name is {self.name!r}, expected one of {', '.join(OPTIMIZERS)}{hint}"
            )
        if self.options and not is_reference(self.name):
            raise UserError(
                f"optimizer.options is for an optimizer named by module:Class, not {self.name}; "
                "leave it out"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, in which batches, and how a step is executed."""

    steps: Count = 2**20
    batch: Count = 64  # labeled images per step
    ratio: Positive | None = None  # unlabeled images per labeled image; None: as published
    # If there are fewer labeled images than `batch`: repeat them, as TorchSSL does, or else shrink
    # the batch.
    repeat_labels: bool = False
    accumulate: Count = 1  # parts that a batch is split into, to save memory
    ema: Share = 0.999  # decay of the averaged model
    ema_schedule: EmaScheduleName = "constant"
    evaluate_every: Count = 1024
    # Largest share of the work that evaluations during training may be: `evaluate_every` is doubled
    # until they are; None: no limit.
    evaluate_share: Annotated[float, Limits(0.001, 1)] | None = None
    log_every: Count = 64
    checkpoint_every: Count = 1024
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    # graph: compiled, then recorded as a CUDA graph; recorded: not compiled, for short trainings
    execution: Literal["auto", "eager", "compiled", "graph", "recorded"] = "auto"
    weak_gradient: bool = True  # False: weak views in a separate pass, without gradient
    # Who labels the unlabeled images: the student, or the averaged model, on running statistics
    # and in a pass without gradient.
    pseudo_labels: Literal["student", "teacher"] = "student"
    labeled_view: Literal["weak", "strong", "both"] = "weak"  # that labels are learned on
    # Unlabeled images per step grow from a quarter to a half to all; the larger the number, the
    # later (Fast FixMatch: 0.7). None: always all.
    curriculum: Annotated[float, Limits(0, 0.95)] | None = None
    # Share of the steps, at the start, that train on the images without any label.
    self_supervised: Annotated[float, Limits(0, 0.9)] = 0.0
    deterministic: bool = False  # bit-exact on a GPU, but slower; a CPU always is
    threads: Count | None = None  # of the CPU; None: torch's number, or 1 on a busy machine

    def __post_init__(self) -> None:
        if self.ratio is not None and float(self.ratio).is_integer():
            # As an integer, which it is in the settings of older runs.
            object.__setattr__(self, "ratio", int(self.ratio))

    def unlabeled_batch(self, published: int) -> int:
        """Unlabeled images per step, for a method published with this ratio."""
        return max(1, round(self.batch * (published if self.ratio is None else self.ratio)))


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """Everything that decides a run."""

    data: DataConfig = field(default_factory=DataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    algorithm: Any  # a spec such as FixMatch(...) or full(FlexMatch(...)); see `core.Spec`
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    baseline: bool = False  # also train the same network on the labels only, and compare
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_limits(self)
        model = self.model
        if model.head != "zero" and model.body == "trained":
            raise UserError(f"model.head = {model.head} needs model.body = frozen or tuned")
        if model.torchssl_blocks and model.body != "trained":
            raise UserError(f"model.body = {model.body} needs model.torchssl_blocks = false")
        if model.weights is not None and (model.pretrained or model.start is not None):
            other = "model.pretrained" if model.pretrained else "model.start"
            raise UserError(f"model.weights and {other} are both set; remove one of them")


def experiment_config(
    table: Mapping[str, Any], algorithm: Callable[[str], Any]
) -> ExperimentConfig:
    """The config in a table; `algorithm` returns the spec for the name in `algorithm.name`."""
    sections = dict(table)
    section = require_type(
        sections.pop("algorithm", {}), Mapping, "a table with a name", "algorithm"
    )
    if "name" not in section:
        raise UserError('the config has no algorithm: add [algorithm] name = "fullmatch"')
    spec = algorithm(str(section["name"]))
    fields = merge_tables(to_table(spec), {k: v for k, v in section.items() if k != "name"})
    spec = from_table(type(spec), fields, "algorithm.")
    return from_table(ExperimentConfig, sections | {"algorithm": spec})


def config_table(config: ExperimentConfig, name: Callable[[Any], str]) -> SettingsTable:
    """The config as a table, enough to repeat the run."""
    table: SettingsTable = to_table(config)
    return table | {"algorithm": {"name": name(config.algorithm)} | table["algorithm"]}
