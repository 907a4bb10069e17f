"""Tensors in a file: all of them or none, readable to whom the folder's other files are."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from fullmatch.storage.atomic import replacing


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    """Replaces a file at once, so that a reader never sees half of it."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as place:
        place.touch()
        mode = place.stat().st_mode
        save_file(whole, place, metadata=metadata or None)
        place.chmod(mode)  # safetensors' own lets nobody but the owner read, whatever the umask
