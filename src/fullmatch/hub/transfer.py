"""Sending a model to the Hugging Face hub, and fetching one from there.

Only these two functions reach a network. `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_CACHE` have their
usual meanings. A model is data: its files are TOML, JSON and safetensors, others are not fetched.
"""

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from fullmatch.config.tables import read_toml
from fullmatch.errors import UserError
from fullmatch.hub.shared_model import FILES, refuse_code, write_shared
from fullmatch.inference.trained_run import SHARED, TrainedRun

HUB = "hf:"
DEFAULT_ENDPOINT = "https://huggingface.co"
PATIENCE = 10.0  # seconds to wait for a connection
LONGEST_REASON = 200  # characters of an error of another library
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class HubPlace(NamedTuple):
    """A model on the hub: its repository, and a branch, tag or commit of it."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}" if self.revision else self.repository


def is_on_hub(run: str) -> bool:
    return run.startswith(HUB)


def parse_place(text: str) -> HubPlace:
    """A place from `user/name` or `user/name@revision`."""
    repository, _, revision = text.removeprefix(HUB).partition("@")
    if not REPOSITORY.fullmatch(repository) or ".." in repository:
        raise UserError(f"{text!r} is not a model on the hub; expected user/name")
    return HubPlace(repository, revision or None)


def push_model(run: TrainedRun, repository: str, *, private: bool = False) -> str:
    """Send a model to the hub, where its repository is made if need be; returns its address."""
    place = parse_place(repository)
    hub = import_hub()
    if hub.get_token() is None:
        raise UserError(
            "there is no token for the hub; log in with: hf auth login, or set HF_TOKEN"
        )
    api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    with TemporaryDirectory() as folder:
        files = write_shared(run, Path(folder), place.repository)
        with explained(hub, place):
            made = api.create_repo(place.repository, private=private or None, exist_ok=True)
            operations = [hub.CommitOperationAdd(path.name, str(path)) for path in files]
            api.create_commit(
                place.repository,
                operations,
                commit_message="Add a model of fullmatch",
                revision=place.revision,
            )
    return str(made)


def fetch_model(text: str) -> Path:
    """The folder of a model on the hub, fetched unless it is on this machine already."""
    place, hub = parse_place(text), import_hub()
    options: dict[str, Any] = {
        "repo_id": place.repository,
        "endpoint": os.environ.get("HF_ENDPOINT"),
        "cache_dir": os.environ.get("HF_HUB_CACHE"),
        "local_files_only": not can_connect(),  # the library would retry for half a minute
    }
    with explained(hub, place):
        first = Path(hub.hf_hub_download(filename=SHARED, revision=place.revision, **options))
        folder = first.parent
        for name in FILES[1:]:  # of the same commit, whose hash is the name of the folder
            hub.hf_hub_download(filename=name, revision=folder.name, **options)
    config = read_toml(folder / "config.toml")
    refuse_code(config, str(place), "a model from the hub may not run any")
    return folder


def can_connect() -> bool:
    """Whether the hub answers; unknown behind a proxy, and then assumed."""
    address = urlsplit(os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT)
    if getproxies():
        return True
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


@contextmanager
def explained(hub: Any, place: HubPlace) -> Iterator[None]:
    """Errors of the hub in one line each."""
    errors = hub.errors
    try:
        yield
    except errors.LocalEntryNotFoundError:
        raise UserError(
            f"cannot reach the hub, and {place} is not on this machine; check the network"
        ) from None
    except errors.EntryNotFoundError:
        raise UserError(
            f"{place} is not a model of fullmatch: it does not have the files "
            f"{', '.join(FILES)}; name another"
        ) from None
    except errors.RevisionNotFoundError:
        raise UserError(f"{place} has no such revision; leave out the part after @") from None
    except (errors.RepositoryNotFoundError, errors.GatedRepoError):
        raise UserError(
            f"there is no {place.repository} on the hub, or you may not see it; check the name, "
            "or log in with: hf auth login"
        ) from None
    except errors.HfHubHTTPError as error:
        raise explain_refusal(place, error.response.status_code) from None
    except (RuntimeError, ValueError) as error:  # while large files are sent or fetched
        if isinstance(error.__cause__, errors.HfHubHTTPError):
            raise explain_refusal(place, error.__cause__.response.status_code) from None
        reason = shorten(error)
        raise UserError(f"the hub refused {place} ({reason}); try again later") from None
    except (errors.OfflineModeIsEnabled, OSError, *list_network_errors()) as error:
        reason = shorten(error)
        raise UserError(f"cannot reach the hub for {place} ({reason}); check the network") from None


def explain_refusal(place: HubPlace, status: int) -> UserError:
    advice = "your token may not write there" if status in (401, 403) else "try again later"
    return UserError(f"the hub refused {place} (status {status}); {advice}")


def shorten(error: BaseException) -> str:
    """What an error says, on one line of a bounded length."""
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__


def list_network_errors() -> list[type[Exception]]:
    """Errors of the HTTP library that the hub's package uses, which differs between versions."""
    found: list[type[Exception]] = []
    for name in ("httpx", "httpx2", "requests"):
        try:
            error = getattr(import_module(name), "RequestError", None)
        except ImportError:
            continue
        found += [error] if error is not None else []
    return found


def import_hub() -> Any:
    try:
        hub = import_module("huggingface_hub")
    except ImportError:
        raise UserError(
            "models on the hub need the package huggingface_hub; run pip install 'fullmatch[hub]'"
        ) from None
    hub.logging.set_verbosity_error()  # what matters is said in our own words
    if not sys.stderr.isatty():  # its bars would fill a log file
        import_module("huggingface_hub.utils").disable_progress_bars()
    return hub
