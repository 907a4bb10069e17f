"""Errors for users: what they carry and how they read."""

import pickle

from fullmatch.errors import NonFiniteLoss, UserError, escape_controls


def test_non_finite_loss_carries_its_step() -> None:
    error = NonFiniteLoss(7, ": lower the learning rate")
    assert isinstance(error, UserError)
    assert error.step == 7
    assert str(error) == "the loss became NaN at step 7: lower the learning rate"


def test_non_finite_loss_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(NonFiniteLoss(7, ": stop")))
    assert (error.step, str(error)) == (7, "the loss became NaN at step 7: stop")


def test_names_cannot_control_the_terminal() -> None:
    assert escape_controls("a\x1b[31m\nb\x9b\u202e\udcff ä") == (
        "a\\x1b[31m\\nb\\x9b\\u202e\\udcff ä"
    )
