"""Files of tensors: complete or not there, with the same permissions as other files."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from fullmatch.storage.atomic import replacing


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    """Replaces a file at once, so that a reader never sees half of it."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as place:
        place.touch()
        mode = place.stat().st_mode
        save_file(contiguous, place, metadata=metadata or None)
        place.chmod(mode)  # safetensors lets only the owner read it, whatever the umask
