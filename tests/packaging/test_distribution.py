"""The files of a release: complete, clean, small, and working without the source tree."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import fullmatch
from tests.patterns import find_blocks
from tests.small_pictures import write_pets

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fullmatch"
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
MEGABYTE = 1_000_000
TINY = shlex.split("--steps 2 --model wrn-10-1 --set training.batch=10 --set training.ratio=1")
# Runs commands of the installed package, whose modules must all come from there.
INSTALLED = """
import json, sys
place, source, commands = sys.argv[1:]
sys.path = [place, *(path for path in sys.path if path != source)]
from fullmatch.cli import main
for command in json.loads(commands):
    main(command)
homes = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "fullmatch"]
assert len(homes) > 10 and all(home.startswith(place) for home in homes), homes
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    call("-m", "hatchling", "build", "-d", str(out), folder=ROOT)
    return out


def call(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel(built: Path) -> Path:
    return built / f"fullmatch-{fullmatch.__version__}-py3-none-any.whl"


def test_checkers_have_no_complaint(built: Path) -> None:
    files = sorted(str(path) for path in built.iterdir())
    assert len(files) == 2
    assert call("-m", "twine", "check", "--strict", *files, folder=built).count("PASSED") == 2
    assert "OK" in call("-m", "check_wheel_contents", str(wheel(built)), folder=built)


def test_wheel_holds_the_package_alone(built: Path) -> None:
    with zipfile.ZipFile(wheel(built)) as archive:
        names = set(archive.namelist())
    inside = {name for name in names if name.startswith("fullmatch/")}
    assert {name.split("/")[0].rpartition(".")[2] for name in names - inside} == {"dist-info"}
    on_disk = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == on_disk
    assert {"fullmatch/py.typed", "fullmatch/pages/frame.html.j2"} <= inside
    assert wheel(built).stat().st_size < MEGABYTE


def test_sdist_holds_what_builds_the_wheel(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.split("/")[0] for name in names}
    others = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert tops == {"src", *others}
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert path.stat().st_size < MEGABYTE


def readme_commands(heading: str) -> list[list[str]]:
    """The commands of a section of the README, as words."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    (block,) = find_blocks("sh", section.partition("\n## ")[0])
    return [shlex.split(line)[1:] for line in block.splitlines()]


def test_wheel_works_without_the_source_tree(built: Path, tmp_path: Path) -> None:
    """With the README's commands for pictures, as written but for the length of the training."""
    place = tmp_path / "installed"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    call("-m", "pip", "install", *quiet, "--target", str(place), str(wheel(built)), folder=tmp_path)

    write_pets(tmp_path).rename(tmp_path / "pictures")
    shutil.copytree(tmp_path / "pictures" / "test", tmp_path / "new")
    commands = readme_commands("With your own pictures")
    assert {"check", "train", "suggest", "predict", "export"} <= {words[0] for words in commands}
    commands = [words + TINY if words[0] == "train" else words for words in commands]
    commands += [["--version"], ["list", "algorithms"], ["train", "digits", "--out", "run", *TINY]]
    words = (str(place), str(ROOT / "src"), json.dumps(commands))
    output = call("-c", INSTALLED, *words, folder=tmp_path)
    for text in (f"\n{fullmatch.__version__}\n", "full-fixmatch", "test accuracy"):
        assert text in output
    for name in ("predictions.csv", "model.onnx", "runs/pictures/report.html", "run/result.json"):
        assert (tmp_path / name).is_file()
    assert (place / "bin" / "fullmatch").is_file()


@pytest.mark.parametrize(("tag", "code"), [(f"v{fullmatch.__version__}", 0), ("v9.9.9", 1)])
def test_release_needs_the_tag_of_the_version(tag: str, code: int) -> None:
    """The line of the workflow that compares them, run as it is."""
    (line,) = (
        line.split("run: ", 1)[1]
        for line in WORKFLOW.read_text(encoding="utf-8").splitlines()
        if "hatchling version" in line
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "GITHUB_REF_NAME": tag, "PATH": path}
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, check=False)
    assert done.returncode == code
