"""The bank against a Python list, for any sizes and choices of rows."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fullmatch.algorithms.banks import Bank


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.lists(st.lists(st.booleans(), max_size=14), max_size=6))
def test_keeps_the_last_chosen_rows_in_order(size: int, batches: list[list[bool]]) -> None:
    bank, written, number = Bank(size, 1), [], 0
    for chosen in batches:
        rows = torch.arange(number, number + len(chosen)).float()[:, None]
        bank.write(rows, torch.tensor(chosen, dtype=torch.bool))
        written += [number + i for i, taken in enumerate(chosen) if taken]
        number += len(chosen)
    assert int(bank.written) == len(written)
    assert bool(bank.is_full()) is (len(written) >= size)
    last = written[-size:]
    actual = {
        int(bank.rows[place % size, 0]) for place in range(len(written) - len(last), len(written))
    }
    assert actual == set(last)
    expected = sum(last) / len(last) if last else 0.0
    torch.testing.assert_close(bank.mean(), torch.tensor([expected]))


def test_without_a_choice_all_rows_are_written() -> None:
    bank = Bank(4, 2)
    place = bank.rows.data_ptr()
    bank.write(torch.ones(3, 2, dtype=torch.bfloat16))
    bank.write(2 * torch.ones(2, 2))
    assert bank.rows[:, 0].tolist() == [2, 1, 1, 2]
    assert bank.rows.data_ptr() == place
