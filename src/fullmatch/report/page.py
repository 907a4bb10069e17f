"""The pages: a report of one run, and a comparison of several."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fullmatch.pages.markup import Markup, join, tag
from fullmatch.report import figures, outcomes, sentences, tables
from fullmatch.report.frame import page, shown
from fullmatch.report.gallery import Pictures, gallery
from fullmatch.storage.runs import Predictions, Run, any_unlabeled

PICTURES = 12  # of each kind
Section = tuple[str, str, Markup]


def report(run: Run, pictures: Pictures | None = None, missing: str = "") -> str:
    """The page of one run; `missing` says why there are no pictures."""
    sections = [
        ("result", "Result", result(run)),
        ("next", "What to do next", sentences.next_steps(run)),
        ("curves", "Training", shown([figures.accuracy(run), figures.loss(run)], "curve")),
        ("unlabeled", "The unlabeled images", unlabeled(run)),
        *(on_the_test(run) if run.scores else on_held_out(run)),
        ("pictures", "Pictures", shown_pictures(run, pictures, missing)),
        ("settings", "Settings", settings(run)),
    ]
    labels = run.result.get("labels") or run.config["data"].get("labels")
    counted = f", {labels} labels" if labels else ""
    title = f"{run.data}{counted}: {run.algorithm}"
    return page(title, f"Run {run.name}", [each for each in sections if each[2]])


def result(run: Run) -> Markup:
    words = [sentences.verdict(run), sentences.how_chosen(run)]
    said = [tag("p", each) for each in words if each]
    return join([tag("div", sentences.headline(run), *said, class_="card"), sentences.health(run)])


def unlabeled(run: Run) -> Markup:
    drawn = shown([figures.use_of_unlabeled(run), figures.ruled_out(run)], "use")
    if not drawn or not any_unlabeled(run.result):
        return Markup("")
    words = (
        "An unlabeled image is used once the model is sure enough of it to give it a pseudo-label."
    )
    if len(run.judged("pseudo_label_accuracy").values):
        words += " The true labels are known here: how many are right is shown, never learned from."
    if len(run.metric("k").values):
        words += " Every class beyond the k likeliest is ruled out for an image (a negative label)."
    return join([tag("p", words), drawn])


def on_the_test(run: Run) -> list[Section]:
    scores, found = run.scores, run.predictions
    bars = outcomes.per_class(scores["per_class"], run.classes, scores["last"])
    classes = tag("div", tables.by_class(run), shown([bars], "class"), class_="grid")
    matrix = shown([outcomes.confusion(scores["confusion"], run.classes)], "matrix")
    sections = [
        ("classes", "Classes", classes),
        (
            "confusion",
            "What it confuses",
            tag("div", matrix, tables.confusions(run), class_="grid"),
        ),
    ]
    if found is not None:
        sections.append(("calibration", "Calibration", calibration(found, scores["ece"])))
    return sections


def on_held_out(run: Run) -> list[Section]:
    """Without test images: the classes, as far as held-out labels tell."""
    shares = (run.result.get("honest") or {}).get("per_class")
    return [("classes", "Classes", tables.held_out(run, shares))] if shares else []


def calibration(found: Predictions, error: float) -> Markup:
    drawing = outcomes.reliability(found, error)
    if drawing is None:
        return tag("p", "There are too few test images to say how far to trust its confidence.")
    words = (
        "Points below the diagonal: it is surer than it should be; above: it is better than it "
        f"says. Steps of confidence with fewer than {outcomes.FIRM} images have no point."
    )
    return join([tag("p", words), shown([drawing], "reliability")])


def shown_pictures(run: Run, pictures: Pictures | None, missing: str) -> Markup:
    if pictures is None:
        return tag("p", missing, class_="faint") if missing else Markup("")
    return (tested if run.predictions is not None else untested)(run, pictures)


def tested(run: Run, pictures: Pictures) -> Markup:
    found = pictures.found
    wrong, unsure = found.surest_mistakes(PICTURES), found.least_sure(PICTURES)
    parts = [tag("h3", f"Wrong, the surest first ({len(wrong)} of {int(found.wrong.sum())})")]
    parts.append(
        gallery(pictures, wrong, run.classes)
        if wrong
        else tag("p", "None: every test image is classified right.")
    )
    parts += [tag("h3", "Least sure"), gallery(pictures, unsure, run.classes)]
    return join(parts)


def untested(run: Run, pictures: Pictures) -> Markup:
    """Without test images: unlabeled ones, for a person to judge."""
    found, count = pictures.found, len(pictures.found.labels)
    unsure = found.least_sure(min(PICTURES, (count + 1) // 2))
    sure = [at for at in found.surest(2 * PICTURES) if at not in unsure][:PICTURES]
    words = (
        f"What the model says of {count:,} unlabeled pictures. Where it is sure and wrong, label "
        "some like that one; those it is unsure of are worth a label too."
    )
    parts = [tag("p", words)]
    for heading, chosen in (("Surest of each class", sure), ("Least sure", unsure)):
        if chosen:
            parts += [tag("h3", heading), gallery(pictures, chosen, run.classes)]
    return join(parts)


def settings(run: Run) -> Markup:
    details = tag("details", tag("summary", "All settings"), tables.settings(run))
    return join([tables.facts(run), sentences.notes(run), details])


def comparison(runs: Sequence[Run]) -> str:
    """The page that sets several runs beside each other."""
    names = names_of(runs)
    said = [] if alike(runs) else [tag("p", DIFFERENT_TESTS, class_="warn")]
    overview = join([*said, tables.comparison(names, runs)])
    sections = [
        ("result", "Result", overview),
        ("curves", "Training", shown(figures.overlaid(names, runs), "curve")),
        ("settings", "Settings", tables.differences(names, runs)),
    ]
    return page(
        f"{len(runs)} runs compared",
        "Overlapping intervals mean that the difference may be chance.",
        [each for each in sections if each[2]],
    )


DIFFERENT_TESTS = (
    "These runs were not measured on the same test images, so their accuracies do not compare."
)


def alike(runs: Sequence[Run]) -> bool:
    """Whether all runs that have an accuracy have it from the same test images."""
    tests = [(run.data, run.predictions.labels) for run in runs if run.predictions is not None]
    # Older results do not know which pictures they were measured on.
    known = {run.result.get("test_hash") for run in runs} - {None}
    return len(known) <= 1 and all(
        data == tests[0][0] and np.array_equal(labels, tests[0][1]) for data, labels in tests
    )


def names_of(runs: Sequence[Run]) -> list[str]:
    """Folder names, or whole paths where those are the same."""
    times = Counter(run.name for run in runs)
    return [run.name if times[run.name] == 1 else str(run.path) for run in runs]
