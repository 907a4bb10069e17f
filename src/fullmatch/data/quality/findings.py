"""Sentences about pictures: what was found among them, and what training will do with each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fullmatch.data.dataset import class_order
from fullmatch.data.quality.duplicates import exact_groups, near_groups
from fullmatch.data.quality.fingerprints import Looks
from fullmatch.data.quality.outliers import strangers
from fullmatch.data.sources.listing import LOUD, TOO_MANY
from fullmatch.errors import many

FEW = 4  # labels of a class below which little can be promised
UNEVEN = 2.0  # how many times more pictures the largest class may have before it is remarked on
PARTS = ("labeled", "unlabeled", "test")
REFUSES = "training refuses until it is mended"


@dataclass(frozen=True)
class Picture:
    name: str
    part: str
    label: str


@dataclass(frozen=True)
class Remark:
    """Something about the data: what it is, what will happen, and which pictures."""

    kind: str
    words: str
    then: str
    files: tuple[str, ...] = ()
    blocks: bool = False  # training would refuse

    def sentence(self) -> str:
        return f"{self.words}: {self.then}"


@dataclass
class Remarks:
    """Collects remarks on the pictures that could be read."""

    pictures: list[Picture]
    looks: Looks
    found: list[Remark] = field(default_factory=list)

    def add(self, kind: str, words: str, then: str, at: Sequence[int] = ()) -> None:
        names = tuple(self.pictures[position].name for position in at)
        self.found.append(Remark(kind, words, then, names))

    def copies(self) -> None:
        groups = exact_groups(self.looks.digests)
        twice = [at for group in groups for at in group[1:]]
        disputed: list[int] = []
        leaked: list[int] = []
        for group in groups:
            members = [self.pictures[at] for at in group]
            if len({one.label for one in members if one.part == "labeled"}) > 1:
                disputed += [at for at in group if self.pictures[at].part == "labeled"]
            if any(one.part == "test" for one in members):
                leaked += [at for at in group if self.pictures[at].part != "test"]
        if disputed:
            words = f"the same picture with two labels, {many(disputed, 'file')}"
            self.add("two labels", words, "their labels are not used", disputed)
        if leaked:
            words = f"{many(leaked, 'training picture')} also among the test pictures"
            self.add("test copies", words, "left out of training", leaked)
        self.lost_classes({*disputed, *leaked})
        if twice:
            words = f"{many(twice, 'exact copy', 'exact copies')} of other pictures"
            self.add("copies", words, "kept, and kept together when accuracy is estimated", twice)
        self.near_copies(set(twice))

    def lost_classes(self, unused: set[int]) -> None:
        labeled = self.positions("labeled")
        left = {self.pictures[at].label for at in labeled if at not in unused}
        for name in class_order({self.pictures[at].label for at in labeled} - left):
            words = f"no label of the class {name!r} is left without these"
            self.found.append(Remark("lost class", words, REFUSES, blocks=True))

    def near_copies(self, copies: set[int]) -> None:
        kept = [at for at in range(len(self.pictures)) if at not in copies]
        looks = self.looks
        colors = looks.features[kept, :3]
        groups = near_groups(looks.hashes[kept], looks.miniatures[kept], colors)
        near = [[kept[at] for at in group] for group in groups]
        if not near:
            return
        members = [at for group in near for at in group]
        words = f"{many(members, 'picture')} in {many(near, 'group')} nearly alike"
        self.add("near copies", words, "kept; look whether they are meant", members)
        parts = [{self.pictures[at].part for at in group} for group in near]
        across = [
            at
            for group, seen in zip(near, parts, strict=True)
            for at in group
            if "test" in seen and len(seen) > 1 and self.pictures[at].part == "test"
        ]
        if across:
            words = f"{many(across, 'test picture')} nearly like training pictures"
            then = "kept, but they make the test too easy; take them out if they are copies"
            self.add("near test copies", words, then, across)

    def strangers(self) -> None:
        own = {part: self.positions(part) for part in PARTS}
        features = self.looks.features
        odd = strangers(features[own["labeled"]], features[own["unlabeled"]])
        at = [position for position, is_odd in zip(own["unlabeled"], odd, strict=True) if is_odd]
        if not at:
            return
        share = len(at) / len(own["unlabeled"])
        loud = f"WARNING, {share:.0%} of them: " if share > LOUD else ""
        words = f"{loud}{many(at, 'unlabeled picture')} unlike the labeled ones in colour or edges"
        self.add("strangers", words, "kept; take out what belongs to no class", at)

    def positions(self, part: str) -> list[int]:
        return [at for at, picture in enumerate(self.pictures) if picture.part == part]


def unreadable_remarks(pictures: Sequence[Picture], broken: Sequence[Picture]) -> list[Remark]:
    remarks = []
    for part in PARTS:
        bad = [picture.name for picture in broken if picture.part == part]
        if not bad:
            continue
        share = len(bad) / sum(picture.part == part for picture in pictures)
        blocks = part == "labeled" or share > TOO_MANY
        loud = f"WARNING, {share:.0%} of them: " if share > LOUD and not blocks else ""
        words = f"{loud}{many(bad, f'{part} picture')} cannot be read"
        then = REFUSES if blocks else "left out"
        remarks.append(Remark("unreadable", words, then, tuple(bad), blocks))
    return remarks


def label_remarks(classes: Counter[str], test: Counter[str], unlabeled: int) -> list[Remark]:
    remarks = []
    if len(classes) < 2:
        words = f"{many(classes, 'class', 'classes')} with labels, 2 are needed"
        remarks.append(Remark("classes", words, REFUSES, blocks=True))
    if strays := class_order(set(test) - set(classes)):
        words = f"test pictures of {strays[0]!r}, which no labeled picture has"
        remarks.append(Remark("stray class", words, REFUSES, blocks=True))
    if few := [label for label in class_order(classes) if classes[label] < FEW]:
        words = f"{many(few, 'class', 'classes')} with fewer than {FEW} labels ({some(few)})"
        remarks.append(Remark("few labels", words, "label more of these first"))
    if classes and max(classes.values()) > UNEVEN * min(classes.values()):
        times = max(classes.values()) / min(classes.values())
        words = f"the largest class has {times:.1f} times the labels of the smallest"
        remarks.append(Remark("imbalance", words, "labels of small classes are shown more often"))
    if not unlabeled:
        words = "no unlabeled pictures"
        remarks.append(Remark("unlabeled", words, "only the labeled ones are learned from"))
    return remarks


def some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest
