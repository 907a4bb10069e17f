"""Trained runs for the tests of reports."""

from pathlib import Path

import pytest

from tests.trained_runs import train_digits, train_pets


@pytest.fixture(scope="session")
def digits_run() -> Path:
    return train_digits()


@pytest.fixture(scope="session")
def pets_run() -> Path:
    return train_pets()
