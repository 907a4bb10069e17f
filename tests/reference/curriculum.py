"""FlexMatch's thresholds with a Python list and a Counter, for low-entropy images only."""

from collections import Counter

from tests.reference.arithmetic import Array


class Curriculum:
    def __init__(self, images: int, threshold: float, uncertainty: float) -> None:
        self.threshold, self.uncertainty = threshold, uncertainty
        self.last: list[int | None] = [None] * images

    def select(self, probs: list[Array], index: list[int], entropies: list[float]) -> list[bool]:
        counts = Counter(self.last)
        chosen = []
        for row, entropy in zip(probs, entropies, strict=True):
            learned = counts[int(row.argmax())] / max(counts.values())
            limit = self.threshold * learned / (2 - learned)
            chosen.append(bool(row.max() >= limit) and entropy <= self.uncertainty)
        for row, place, entropy in zip(probs, index, entropies, strict=True):
            if row.max() >= self.threshold and entropy <= self.uncertainty:
                self.last[place] = int(row.argmax())
        return chosen
