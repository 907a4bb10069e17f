"""All algorithms by name; `full-X` adds EML and ANL to any method of the FixMatch family."""

from dataclasses import is_dataclass
from typing import Any

from fullmatch.algorithms.abc import ABC
from fullmatch.algorithms.adamatch import AdaMatch
from fullmatch.algorithms.alphamatch import AlphaMatch
from fullmatch.algorithms.comatch import CoMatch
from fullmatch.algorithms.crmatch import CRMatch
from fullmatch.algorithms.dash import Dash
from fullmatch.algorithms.debiaspl import DebiasPL
from fullmatch.algorithms.doublematch import DoubleMatch
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.freematch import FreeMatch
from fullmatch.algorithms.full import Full, SupportsFull, full, is_full
from fullmatch.algorithms.iomatch import IOMatch
from fullmatch.algorithms.mean_teacher import MeanTeacher
from fullmatch.algorithms.mixmatch import MixMatch
from fullmatch.algorithms.npmatch import NPMatch
from fullmatch.algorithms.ns3l import NS3L
from fullmatch.algorithms.pi_model import PiModel
from fullmatch.algorithms.pseudo_label import PseudoLabel
from fullmatch.algorithms.remixmatch import ReMixMatch
from fullmatch.algorithms.semco import SemCo
from fullmatch.algorithms.simmatch import SimMatch
from fullmatch.algorithms.softmatch import SoftMatch
from fullmatch.algorithms.supervised import Supervised
from fullmatch.algorithms.uda import UDA
from fullmatch.algorithms.ups import UPS
from fullmatch.algorithms.ups_offline import UPSOffline
from fullmatch.algorithms.vat import VAT
from fullmatch.core import About, SpecLike
from fullmatch.errors import UserError, did_you_mean
from fullmatch.plugins import (
    check_call,
    installed,
    is_reference,
    load_installed,
    load_object,
    reference_to,
)

__all__ = [
    "ABC",
    "ALGORITHMS",
    "ALIASES",
    "NS3L",
    "UDA",
    "UPS",
    "VAT",
    "About",
    "AdaMatch",
    "AlphaMatch",
    "CRMatch",
    "CoMatch",
    "Dash",
    "DebiasPL",
    "DoubleMatch",
    "FixMatch",
    "FlexMatch",
    "FreeMatch",
    "Full",
    "IOMatch",
    "MeanTeacher",
    "MixMatch",
    "NPMatch",
    "PiModel",
    "PseudoLabel",
    "ReMixMatch",
    "SemCo",
    "SimMatch",
    "SoftMatch",
    "Supervised",
    "SupportsFull",
    "UPSOffline",
    "algorithm",
    "full",
    "is_algorithm",
    "is_full",
    "name_of",
    "names",
    "offered",
]

ALGORITHMS: dict[str, type[SpecLike]] = {
    "supervised": Supervised,
    "pi_model": PiModel,
    "pseudo_label": PseudoLabel,
    "mean_teacher": MeanTeacher,
    "vat": VAT,
    "mixmatch": MixMatch,
    "remixmatch": ReMixMatch,
    "uda": UDA,
    "fixmatch": FixMatch,
    "flexmatch": FlexMatch,
    "dash": Dash,
    "freematch": FreeMatch,
    "softmatch": SoftMatch,
    "ups": UPS,
    "ups_offline": UPSOffline,
    "semco": SemCo,
    "alphamatch": AlphaMatch,
    "comatch": CoMatch,
    "simmatch": SimMatch,
    "crmatch": CRMatch,
    "npmatch": NPMatch,
    "doublematch": DoubleMatch,
    "ns3l": NS3L,
    "adamatch": AdaMatch,
    "debiaspl": DebiasPL,
    "abc": ABC,
    "iomatch": IOMatch,
}
GROUP = "fullmatch.algorithms"  # the entry points by which installed packages offer methods
ALIASES = {"fullmatch": "full-fixmatch", "fullflex": "full-flexmatch"}


def algorithm(name: str) -> Any:
    """The spec with this name and its defaults, such as 'flexmatch' or 'full-flexmatch'."""
    canonical = ALIASES.get(name, name)
    plain = canonical.removeprefix("full-")
    cls = find_class(plain, name)
    check_call(cls, f"the algorithm {name!r} needs a class whose fields all have defaults")
    spec: Any = cls()
    if not isinstance(spec, SpecLike) or not is_dataclass(spec):
        raise UserError(
            f"{type(spec).__name__} is named as an algorithm but is not a spec; "
            "make it a frozen dataclass that has `ratio` and `build`"
        )
    return spec if canonical == plain else full(spec)


def find_class(plain: str, name: str) -> Any:
    """The class of a spec: of this package, of an installed one, or by `module:Class`."""
    if plain in ALGORITHMS:
        return ALGORITHMS[plain]
    if is_reference(plain):
        return load_object(plain, "algorithm")
    entries = installed(GROUP)
    if plain in entries:
        return load_installed(entries[plain], "algorithm")
    hint = did_you_mean(name, [*names(), *ALIASES, *entries])
    raise UserError(f"unknown algorithm {name!r} (see: fullmatch list algorithms){hint}")


def is_algorithm(name: str) -> bool:
    """Whether `algorithm` accepts a name."""
    plain = name.removeprefix("full-")
    return name in {*names(), *ALIASES} or is_reference(plain) or plain in installed(GROUP)


def names() -> list[str]:
    """Every name that `algorithm` accepts, except the aliases."""
    full_names = [f"full-{n}" for n, cls in ALGORITHMS.items() if isinstance(cls(), SupportsFull)]
    return [*ALGORITHMS, *full_names]


def offered() -> dict[str, str]:
    """The methods of installed packages, by name, each with what it stands for."""
    return {name: entry.value for name, entry in installed(GROUP).items()}


def name_of(spec: object) -> str:
    """The plain name of a spec, without `full-`, which is one of its fields."""
    for name, cls in ALGORITHMS.items():
        if type(spec) is cls:
            return name
    reference = reference_to(type(spec))
    for name, entry in installed(GROUP).items():
        if entry.value == reference:
            return name
    if reference is not None:
        return reference
    raise UserError(
        f"{type(spec).__name__} cannot be imported by a name, so a config cannot name it; "
        "move it to the top of a module"
    )
