"""scikit-learn's checks of an estimator, in a process of their own.

In a process that has run other tests, the check of default parameters has failed.
"""

import multiprocessing
import warnings
from functools import partial
from unittest import mock

from sklearn.utils.estimator_checks import check_estimator

from fullmatch.estimator import FullMatchClassifier, run
from fullmatch.experiment.cross_validation import FoldOptions
from fullmatch.experiment.strategies import StrategyChooser

Outcomes = dict[str, dict[str, str]]  # by status: check names, and what went wrong


def run_checks(estimator: FullMatchClassifier, expected_to_fail: dict[str, str]) -> Outcomes:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(check, (estimator, expected_to_fail))


def check(estimator: FullMatchClassifier, expected_to_fail: dict[str, str]) -> Outcomes:
    outcomes: Outcomes = {"failed": {}, "passed": {}, "xfail": {}, "skipped": {}}
    # Strategies are compared on one fold each: every check fits several times.
    one_fold = partial(StrategyChooser, folds=FoldOptions(many=0))
    with warnings.catch_warnings(), mock.patch.object(run, "StrategyChooser", one_fold):
        warnings.simplefilter("ignore")
        results = check_estimator(
            estimator, expected_failed_checks=expected_to_fail, on_fail=None, on_skip=None
        )
    for each in results:
        outcomes[each["status"]][each["check_name"]] = str(each["exception"])
    return outcomes
