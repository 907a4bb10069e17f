"""Data sets by `module:function`."""

from collections.abc import Callable

import pytest
import torch

from fullmatch import data
from fullmatch.data import Source, find_benchmark, load
from fullmatch.data.sources.own import load_own_data
from fullmatch.data.sources.places import data_exists
from fullmatch.errors import UserError
from fullmatch.plugins import load_object
from tests.own_things import use_own_module

use_module = pytest.fixture(use_own_module)
MODULE = """
from dataclasses import replace

import numpy as np
import torch

from fullmatch.data import from_arrays

calls = []
number = 7

def own():
    calls.append(1)
    pixels = np.zeros((12, 8, 8), np.uint8)
    return from_arrays(pixels, np.arange(12) % 3, pixels[:6], np.arange(6) % 3)

def benchmark():
    return replace(own(), benchmark=True)

def array():
    return np.zeros(3)

def failing():
    raise FileNotFoundError("no\\nimages")

def arguments(folder):
    return own()

def too_large():
    return replace(own(), labels=torch.full((12,), 3))

def unlabeled_test():
    return replace(own(), test_labels=torch.full((6,), -1))

def floats():
    return replace(own(), labels=torch.zeros(12))

def too_few():
    return replace(own(), labels=torch.zeros(5, dtype=torch.int64))

def half_a_test():
    return replace(own(), test_labels=None)

def no_test():
    return replace(own(), test=None, test_labels=None, benchmark=True)

def one_class():
    return replace(own(), classes=("a", "a", "b"))
"""


@pytest.fixture(autouse=True)
def module(use_module: Callable[[str, str], None]) -> None:
    use_module("own_data", MODULE)


def test_a_function_is_a_data_set() -> None:
    source = load("own_data:own")
    assert isinstance(source, Source)
    assert (source.name, len(source.images), source.benchmark) == ("own_data:own", 12, False)
    assert data_exists("own_data:own")
    assert find_benchmark("own_data:own") is None
    hidden = load("own_data:own", unknown_classes=["2"])
    assert hidden.unknown_classes == ("2",)


def test_it_is_called_once() -> None:
    first, second = load_own_data("own_data:own"), load_own_data("own_data:own")
    assert torch.equal(first.labels, second.labels)
    assert load_object("own_data:calls", "list") == [1]


def test_a_benchmark_by_function() -> None:
    facts = find_benchmark("own_data:benchmark")
    assert facts is not None
    assert (facts.train, facts.test, facts.num_classes, facts.shape) == (12, 6, 3, (1, 8, 8))
    assert facts.is_present()
    assert find_benchmark("digits") is data.DATASETS["digits"]
    assert find_benchmark("somewhere/pictures") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("onw", "has no data set 'onw'; did you mean 'own'"),
        ("number", "is not a function"),
        ("array", r"returned ndarray; return a fullmatch\.data\.Source"),
        ("failing", r"failed \(FileNotFoundError: no images\)"),
        ("arguments", r"failed \(TypeError: .*\); it is called without arguments"),
        ("too_large", "labels have the value 3, expected 0 to 2, or -1 for unlabeled"),
        ("unlabeled_test", "test_labels have the value -1, expected 0 to 2$"),
        ("floats", "labels are not a tensor of int64"),
        ("too_few", r"labels have the shape \(5,\) for 12 images"),
        ("half_a_test", "one of test and test_labels"),
        ("no_test", "is a benchmark without test images"),
        ("one_class", "needs 2 classes or more with different names"),
    ],
)
def test_what_cannot_be_used_is_one_line(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(f"own_data:{name}")
    assert "\n" not in str(caught.value)


def test_a_module_that_is_missing() -> None:
    with pytest.raises(UserError, match="cannot import 'no_such_module' for the data set"):
        load("no_such_module:own")


def test_its_images_have_a_size() -> None:
    with pytest.raises(UserError, match="already have a size; leave the size out"):
        load("own_data:own", size=16)
