"""FlexMatch's thresholds as in the authors' code: a Counter over all images at every step."""

from collections import Counter


class CounterThresholds:
    def __init__(self, threshold: float, classes: int, images: int, *, warmup: bool) -> None:
        self.threshold, self.classes, self.warmup = threshold, classes, warmup
        self.status = [-1] * images

    def of_classes(self) -> list[float]:
        counts = Counter(self.status)
        learned = [counts[label] for label in range(self.classes)]
        largest = max(*learned, counts[-1]) if self.warmup else max(learned)
        shares = [count / largest if largest else 0.0 for count in learned]
        return [self.threshold * share / (2 - share) for share in shares]

    def step(self, probs: list[list[float]], index: list[int]) -> list[float]:
        """Weights by the current thresholds; then stores the confident labels."""
        thresholds, weights = self.of_classes(), []
        for row, image in zip(probs, index, strict=True):
            confidence = max(row)
            label = row.index(confidence)
            weights.append(float(confidence >= thresholds[label]))
            if confidence >= self.threshold:
                self.status[image] = label
        return weights
