"""`fullmatch export` as it is typed."""

from pathlib import Path

import onnxruntime
import pytest
from cyclopts import App

from fullmatch.cli.commands.export import export
from fullmatch.errors import UserError
from tests.served import pets_run

app = App(result_action="return_value")
app.command(export)


def test_prints_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "pets.onnx"
    app(["export", str(pets_run()), str(target)])
    text = capsys.readouterr().out
    assert "uint8 (batch, 3, 32, 32) -> probabilities, float32 (batch, 2)" in text
    assert "Largest difference from PyTorch on 12 pictures: " in text
    assert "not calibrated" in text
    names = onnxruntime.InferenceSession(str(target)).get_modelmeta().custom_metadata_map
    assert names["classes"] == '["cat | tiger", "dög 2"]'
    with pytest.raises(UserError, match="exists already"):
        app(["export", str(pets_run()), str(target)], exit_on_error=False)
