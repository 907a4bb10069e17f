"""Files of arrays with typed facts beside them; needs no torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from fullmatch.files.reading import parse_json, require_tensors
from fullmatch.storage.atomic import replacing

FACTS = "fullmatch"  # the metadata's key


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], facts: Mapping[str, object]) -> None:
    """Replace a file at once; it gets the permissions that other files have."""
    with replacing(path) as place:
        place.touch()
        mode = place.stat().st_mode
        save_file(arrays, place, metadata={FACTS: json.dumps(facts)})
        place.chmod(mode)  # safetensors lets only the owner read it, whatever the umask


def read_arrays(path: Path, version: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays by name, and the facts; `ValueError` if another version wrote them."""
    require_tensors(path)
    with safe_open(path, framework="numpy") as file:
        facts = parse_json((file.metadata() or {}).get(FACTS, "{}"))
        if not isinstance(facts, dict) or facts.get("format") != version:
            raise ValueError("another version of fullmatch wrote it")
        return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
