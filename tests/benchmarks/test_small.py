"""Small benchmarks: the implementations they compare do the same work."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks import decoding, feature_pass, kernels


def test_kernels_and_libraries_agree() -> None:
    tolerance = 0.05 if torch.cuda.is_available() else 1e-3
    torch.manual_seed(0)
    works = [*kernels.compare_convolutions(2, 32, 16, 4), *kernels.compare_normalizations(2, 32, 4)]
    assert len(works) == 5
    for name, library, ours in works:
        torch.testing.assert_close(
            ours().float(), library().float(), rtol=tolerance, atol=10 * tolerance, msg=name
        )


def test_kernels_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        kernels.main(["--images", "4"])
        assert "forward and gradient" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit):
        kernels.main([])
    assert "only on NVIDIA's Hopper generation; no such GPU" in capsys.readouterr().err


def test_decoding(capsys: pytest.CaptureFixture[str]) -> None:
    decoding.main(["--pictures", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert all(float(rate) > 0 for rate in lines[2].split())


def test_feature_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert feature_pass.run_pass(2, 32, (32,), tmp_path) > 0
    assert len(list(tmp_path.glob("*.npy"))) == 1
    feature_pass.main(["--memory-of", "2"])
    assert json.loads(capsys.readouterr().out)["mebibytes"] > 0
