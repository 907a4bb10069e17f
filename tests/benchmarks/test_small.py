"""Benchmarks measure what they say: both sides do the same work, on whatever machine this is."""

import pytest
import torch

from benchmarks import decoding, kernels


def test_libraries_and_we_do_the_same() -> None:
    near = 0.05 if torch.cuda.is_available() else 1e-3
    torch.manual_seed(0)
    works = [*kernels.convolutions(2, 32, 16, 4), *kernels.normalizations(2, 32, 4)]
    assert len(works) == 5
    for name, library, ours in works:
        torch.testing.assert_close(
            ours().float(), library().float(), rtol=near, atol=10 * near, msg=name
        )


def test_kernels_say_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        kernels.main(["--images", "4"])
        assert "forward and gradient" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit):
        kernels.main([])
    assert "Hopper generation alone; there is none here" in capsys.readouterr().err


def test_decoding(capsys: pytest.CaptureFixture[str]) -> None:
    decoding.main(["--pictures", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3 and all(float(rate) > 0 for rate in lines[2].split())
