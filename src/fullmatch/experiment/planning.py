"""What training chooses by itself for a user's pictures, from the data, the machine and the time.

Photos start from pretrained weights where there are any. Small pictures may be better off from
scratch: both are measured on held-out labels, and the better one is used.
"""

import torch

from fullmatch.data import Source
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.plan_types import PlanOptions, Strategy, TrainingPlan
from fullmatch.experiment.pretrained_plan import PassTimer, plan_pretrained
from fullmatch.experiment.scratch_plan import StepTimer, plan_scratch
from fullmatch.models.pretrained import WeightsFile, download_preferred, preferred_weights

PHOTO_SIDE = 64  # pictures at least this large are taken for photos
SCRATCH_SHARE = 0.5  # of the time for a network from scratch; comparing takes the rest


def make_plan(
    source: Source,
    name: str,
    options: PlanOptions | None = None,
    *,
    device: torch.device | None = None,
    measure: StepTimer | None = None,
    measure_pass: PassTimer | None = None,
) -> TrainingPlan:
    """A config for these pictures that finishes within the minutes, or has so many steps."""
    options, device = options or PlanOptions(), device or choose_device()
    weights = usable_weights(options, device)
    if weights is None:
        return plan_scratch(source, name, options, device, measure)
    plan = plan_pretrained(source, name, options, weights, device, measure_pass)
    if min(source.images.shape[1:]) >= PHOTO_SIDE:
        return plan
    scratch = plan_scratch(source, name, options, device, measure, share=SCRATCH_SHARE)
    return TrainingPlan(
        plan.config,
        plan.seconds + scratch.seconds,
        (*plan.notes, "small pictures may do better from scratch: both are tried"),
        compare_strategies=True,
        alternatives=(Strategy("from scratch", scratch.config, scratch.seconds),),
        training_seconds=scratch.training_seconds,
    )


def usable_weights(options: PlanOptions, device: torch.device) -> WeightsFile | None:
    """Pretrained weights to start from, where nobody asked for something else."""
    if options.model or options.weights or options.steps or not options.pretrained:
        return None
    if options.download:
        return download_preferred(device)
    return preferred_weights(device)
