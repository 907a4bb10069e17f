"""`fullmatch pack`: pictures in a few large files instead of many small ones."""

from pathlib import Path

from fullmatch.cli.parameters import Count


def pack(data: Path, out: Path, *, shard_mib: Count = 256) -> None:
    """Copy pictures into tar shards, which start and read faster where files are many or far away.

    The pictures stay as they are. Train on the shards with: fullmatch train 'OUT/*.tar'

    Parameters
    ----------
    data
        A folder with labeled/CLASS/* and unlabeled/*, or a CSV with path,label.
    out
        The folder to write, which must not exist.
    shard_mib
        The size of a shard, in MiB.
    """
    from fullmatch.data.sources.packing import pack_pictures
    from fullmatch.display.terminal import print_line
    from fullmatch.errors import pluralize

    counts = pack_pictures(data.expanduser(), out.expanduser(), shard_bytes=shard_mib * 2**20)
    pictures, shards = pluralize(sum(counts.values()), "picture"), pluralize(counts, "shard")
    print_line(f"Packed {pictures} into {shards}. Train on them with:")
    print_line(f"  fullmatch train '{out}/*.tar'")
