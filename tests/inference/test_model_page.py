"""A model as a page, in a real browser: it sees the pixels that `predict` sees, and loads nothing.

The runtime is a stand-in that answers with a function of the pixels; the true one is too large.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from fullmatch.data.stores import pictures
from fullmatch.errors import UserError
from fullmatch.inference import export
from fullmatch.inference.export import ExportSummary, export_page
from fullmatch.inference.model_page import BINARY, CODE, read_runtime, render_model_page
from fullmatch.inference.trained_run import TrainedRun
from tests.browser import browser, resize, visit
from tests.served import digits_run, pets_run

STAND_IN = """
export const env = { wasm: {} };
export class Tensor {
  constructor(type, data, dims) { Object.assign(this, { type, data, dims }); }
}
window.inputs = [];
export const InferenceSession = {
  async create(model, options) {
    const text = (bytes) => new TextDecoder().decode(bytes);
    window.given = [text(model), text(env.wasm.wasmBinary), env.wasm.numThreads];
    return {
      async run({ images }) {
        window.inputs.push([images.type, images.dims, Array.from(images.data)]);
        const classes = CLASSES, sum = images.data.reduce((a, b) => a + b, 0);
        const data = new Float32Array(classes).fill(0.1 / (classes - 1));
        data[sum % classes] = 0.9;
        return { probabilities: { data } };
      },
    };
  },
};
"""

OWN = ("file:", "blob:", "data:", "chrome:")  # the last one is the browser's first tab


def write_runtime(folder: Path, classes: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / CODE).write_text(STAND_IN.replace("CLASSES", str(classes)), encoding="utf-8")
    (folder / BINARY).write_bytes(b"the binary")
    return folder


def write_page(run: TrainedRun, folder: Path) -> Path:
    runtime = read_runtime(write_runtime(folder / "dist", len(run.result.classes)))
    page = folder / "model.html"
    page.write_text(render_model_page(run, b"the model", runtime), encoding="utf-8")
    return page


def make_pictures(folder: Path) -> dict[str, int]:
    """Pictures of many kinds, and how far a pixel may be off.

    JPEG decoders round differently, and so do versions of Pillow where a picture is enlarged.
    """
    noise = np.random.default_rng(0).integers(0, 255, (6, 9, 3), np.uint8)
    photo = Image.fromarray(noise).resize((300, 200), Image.Resampling.BICUBIC)
    faded = photo.convert("RGBA")
    faded.putalpha(Image.linear_gradient("L").resize(photo.size))
    rotated = Image.Exif()
    rotated[0x0112] = 6
    photo.save(folder / "photo.png")
    photo.resize((41, 33)).save(folder / "odd.png")
    photo.resize((5, 90)).save(folder / "narrow.png")
    photo.resize((8, 8)).convert("L").save(folder / "gray.png")
    faded.save(folder / "faded.png")
    photo.save(folder / "photo.jpg", quality=90)
    photo.save(folder / "rotated.jpg", exif=rotated, quality=90)
    exact = {"photo.png": 0, "odd.png": 0, "gray.png": 0, "narrow.png": 1}
    return {path.name: exact.get(path.name, 2) for path in folder.iterdir()}


def drop(driver: webdriver.Chrome, files: list[Path]) -> None:
    ready = "Ready. Your pictures stay on this computer."
    wait = WebDriverWait(driver, 60, 0.05)
    wait.until(lambda d: d.find_element(By.ID, "status").text == ready)
    driver.find_element(By.ID, "pictures").send_keys("\n".join(map(str, files)))
    wait.until(lambda d: len(d.find_elements(By.CSS_SELECTOR, "[data-done]")) == len(files))


def decode(run: TrainedRun, path: Path) -> NDArray[np.int64]:
    channels, height, width = run.classifier.picture
    return pictures.decode(str(path), (height, width), channels).astype(np.int64)


def test_the_page_sees_what_predict_sees(tmp_path: Path) -> None:
    place = tmp_path / "pictures"
    place.mkdir()
    tolerance = make_pictures(place)
    (place / "broken.png").write_bytes(b"nothing")
    files = [place / name for name in tolerance]
    with browser() as driver:
        for run in (TrainedRun(digits_run()), TrainedRun(pets_run())):
            visit(driver, write_page(run, tmp_path).as_uri())
            drop(driver, [*files, place / "broken.png"])
            inputs: list[Any] = driver.execute_script("return window.inputs")
            cards = driver.find_elements(By.TAG_NAME, "article")[::-1]  # the last one is on top
            for path, card, (kind, shape, values) in zip(files, cards, inputs, strict=False):
                expected = decode(run, path)
                assert (kind, shape) == ("uint8", [1, *expected.shape])
                pixels = np.array(values).reshape(expected.shape)
                assert np.abs(pixels - expected).max() <= tolerance[path.name], path.name
                label = run.result.classes[int(pixels.sum()) % len(run.result.classes)]
                assert card.find_element(By.CLASS_NAME, "label").text == label
                assert card.find_element(By.CLASS_NAME, "share").text == "90.0 %"
            assert len(inputs) == len(files)
            assert "broken.png\nThis file cannot be read as a picture." in cards[-1].text
            given = driver.execute_script("return window.given")
            assert given == ["the model", "the binary", 1]
        assert_silent(driver)


def assert_silent(driver: webdriver.Chrome) -> None:
    """No errors, and no request but for the page itself and what is inside of it."""
    assert driver.get_log("browser") == []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            assert message["params"]["request"]["url"].startswith(OWN)


def test_it_fits_a_phone_and_may_connect_to_nothing(tmp_path: Path) -> None:
    page = write_page(TrainedRun(pets_run()), tmp_path)
    with browser() as driver:
        resize(driver, 390, 844)
        visit(driver, page.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        script = "return fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
        assert driver.execute_script(script) == "refused"
        messages = [each["message"] for each in driver.get_log("browser")]
        assert any("Content Security Policy" in message for message in messages)


def test_names_cannot_end_the_data(tmp_path: Path) -> None:
    text = write_page(TrainedRun(pets_run()), tmp_path).read_text(encoding="utf-8")
    data = text.split('id="settings">')[1].split("</script>")[0]
    assert json.loads(data)["classes"] == ["cat | tiger", "dög 2"]
    assert "unsure" in data
    assert str(pets_run().parent) not in text  # no paths of this machine


def test_the_runtime_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"npm pack onnxruntime-web, .*--runtime package/dist"):
        read_runtime(None)
    with pytest.raises(UserError, match=r"is not the dist folder .*mjs: No such file"):
        read_runtime(tmp_path)


def test_export_compares_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the ONNX file is refused, there is no page."""
    dist, target = write_runtime(tmp_path / "dist", 2), tmp_path / "pets.html"

    def write(run: TrainedRun, path: Path, **options: Any) -> ExportSummary:
        path.write_bytes(b"model")
        return ExportSummary((3, 32, 32), 0.0, 3)

    def refuse(run: TrainedRun, path: Path, **options: Any) -> ExportSummary:
        raise UserError("not exported")

    run = TrainedRun(pets_run())
    monkeypatch.setattr(export, "export_onnx", refuse)
    with pytest.raises(UserError, match="not exported"):
        export_page(run, target, dist)
    assert not target.exists()
    monkeypatch.setattr(export, "export_onnx", write)
    assert export_page(run, target, dist).images == 3
    with pytest.raises(UserError, match="exists already"):
        export_page(run, target, dist)
    export_page(run, target, dist, overwrite=True)
