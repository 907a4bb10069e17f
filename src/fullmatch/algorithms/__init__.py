"""All algorithms by name; `full-X` adds EML and ANL to any method of the FixMatch family."""

from dataclasses import is_dataclass
from typing import Any

from fullmatch.algorithms.alphamatch import AlphaMatch
from fullmatch.algorithms.comatch import CoMatch
from fullmatch.algorithms.crmatch import CRMatch
from fullmatch.algorithms.dash import Dash
from fullmatch.algorithms.doublematch import DoubleMatch
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.freematch import FreeMatch
from fullmatch.algorithms.full import Full, SupportsFull, full, is_full
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

__all__ = [
    "ALGORITHMS",
    "ALIASES",
    "NS3L",
    "UDA",
    "UPS",
    "VAT",
    "About",
    "AlphaMatch",
    "CRMatch",
    "CoMatch",
    "Dash",
    "DoubleMatch",
    "FixMatch",
    "FlexMatch",
    "FreeMatch",
    "Full",
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
    "is_full",
    "name_of",
    "names",
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
}
ALIASES = {"fullmatch": "full-fixmatch", "fullflex": "full-flexmatch"}


def algorithm(name: str) -> Any:
    """The spec with this name and its defaults, such as 'flexmatch' or 'full-flexmatch'."""
    canonical = ALIASES.get(name, name)
    plain = canonical.removeprefix("full-")
    if plain not in ALGORITHMS:
        hint = did_you_mean(name, [*names(), *ALIASES])
        raise UserError(f"unknown algorithm {name!r} (see: fullmatch list algorithms){hint}")
    spec: Any = ALGORITHMS[plain]()
    if not isinstance(spec, SpecLike) or not is_dataclass(spec):
        raise UserError(
            f"{type(spec).__name__} is in the table of algorithms but is not a spec; "
            "make it a frozen dataclass that has `ratio` and `build`"
        )
    return spec if canonical == plain else full(spec)


def names() -> list[str]:
    """Every name that `algorithm` accepts, except the aliases."""
    full_names = [f"full-{n}" for n, cls in ALGORITHMS.items() if isinstance(cls(), SupportsFull)]
    return [*ALGORITHMS, *full_names]


def name_of(spec: object) -> str:
    """The plain name of a spec, without `full-`, which is one of its fields."""
    for name, cls in ALGORITHMS.items():
        if type(spec) is cls:
            return name
    raise UserError(
        f"{type(spec).__name__} is not in the table of algorithms, so a config cannot name it; "
        "add it to ALGORITHMS in fullmatch/algorithms/__init__.py"
    )
