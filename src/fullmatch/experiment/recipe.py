"""What the settings of a training change about an algorithm: who labels, and which views."""

from fullmatch.algorithms.pseudo_labeling import PseudoLabeling
from fullmatch.config import TrainingConfig
from fullmatch.core import Algorithm
from fullmatch.errors import UserError

LABELED_VIEWS = {"weak": ("weak",), "strong": ("strong",), "both": ("weak", "strong")}


def apply_training_settings(algorithm: Algorithm, training: TrainingConfig) -> None:
    """Adapt a new algorithm; raises an error for what it cannot do."""
    algorithm.weak_gradient = training.weak_gradient
    algorithm.teacher_labels = training.pseudo_labels == "teacher"
    if algorithm.teacher_labels and not isinstance(algorithm, PseudoLabeling):
        raise UserError(
            "training.pseudo_labels = teacher is for methods of FixMatch's family, such as "
            "fullmatch and fullflex; set it to student, or choose one of them"
        )
    if training.labeled_view == "weak":
        return
    if algorithm.views.labeled != ("weak",):
        raise UserError(
            f"training.labeled_view = {training.labeled_view} is for methods that read one weak "
            "view of a labeled image; this one has views of its own: set it to weak"
        )
    algorithm.views = algorithm.views._replace(labeled=LABELED_VIEWS[training.labeled_view])
