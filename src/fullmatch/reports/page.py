"""The pages: a report on one run, and a comparison of several."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fullmatch.pages.frame import Section, render_page
from fullmatch.pages.markup import Markup, join, tag
from fullmatch.reports import score_charts, sentences, tables, training_curves
from fullmatch.reports.chart import render_charts
from fullmatch.reports.findings import make_findings_section
from fullmatch.reports.gallery import render_gallery
from fullmatch.reports.map import make_map_section
from fullmatch.storage.picture_map import Thumbnails
from fullmatch.storage.predictions import Album, Predictions
from fullmatch.storage.result import FinalScores
from fullmatch.storage.runs import StoredRun

THUMBNAILS = 12  # of each kind
DIFFERENT_TESTS = (
    "These runs were not measured on the same test pictures, so their accuracies cannot be "
    "compared."
)


def render_report(
    run: StoredRun,
    album: Album | None = None,
    missing: str = "",
    thumbnails: Thumbnails | None = None,
) -> str:
    """The page of one run; `missing` says why there is no album, `thumbnails` are for the map."""
    picture_map, findings = run.folder.read_map(), run.folder.read_findings()
    thumbnails = thumbnails or Thumbnails()
    sections = [
        Section("result", "Result", render_result(run)),
        Section("next", "What to do next", sentences.render_next_steps(run)),
        Section("curves", "Training", render_training(run)),
        Section("unlabeled", "Unlabeled pictures", render_unlabeled(run)),
        *make_score_sections(run),
        Section("pictures", "Pictures", render_album(run, album, missing)),
        *([make_findings_section(findings, thumbnails)] if findings else []),
        *([make_map_section(picture_map, thumbnails)] if picture_map else []),
        Section("settings", "Settings", render_settings(run)),
    ]
    labels = run.result.labels if run.result else run.settings.labels
    title = f"{run.data}{f', {labels} labels' if labels else ''}: {run.algorithm}"
    return render_page(title, f"Run {run.name}", sections)


def render_result(run: StoredRun) -> Markup:
    texts = [
        sentences.describe_verdict(run),
        sentences.describe_classes(run),
        sentences.describe_choice(run),
        sentences.describe_unknown(run),
    ]
    paragraphs = [tag("p", text) for text in texts if text]
    card = tag("div", sentences.render_headline(run), *paragraphs, class_="card")
    return join([card, tables.render_strategies(run), sentences.render_health(run)])


def render_training(run: StoredRun) -> Markup:
    charts = [training_curves.draw_accuracy(run), training_curves.draw_loss(run)]
    return render_charts(charts, "curve")


def render_unlabeled(run: StoredRun) -> Markup:
    charts = [training_curves.draw_pseudo_labels(run), training_curves.draw_negative_labels(run)]
    rendered = render_charts(charts, "use")
    if not rendered or not run.has_unlabeled:
        return Markup("")
    text = (
        "An unlabeled picture is used once the model is confident enough to give it a pseudo-label."
    )
    if len(run.judged_metric("pseudo_label_accuracy").values):
        text += " The true labels are known here, but only used to count the correct pseudo-labels."
    if len(run.metric("k").values):
        text += " All classes but the k most likely ones are ruled out (negative labels)."
    return join([tag("p", text), rendered])


def make_score_sections(run: StoredRun) -> list[Section]:
    """How good it is on each class: on test pictures, or else on held-out labels."""
    if run.scores is not None:
        return make_test_sections(run, run.scores)
    if run.estimate is not None:
        table = tables.render_class_estimates(run, run.estimate.per_class)
        return [Section("classes", "Classes", table)]
    return []


def make_test_sections(run: StoredRun, scores: FinalScores) -> list[Section]:
    bars = score_charts.draw_class_recall(scores.per_class, run.classes, scores.top1)
    classes = [tables.render_class_scores(run, scores), render_charts([bars], "class")]
    matrix = score_charts.draw_confusion(scores.confusion, run.classes)
    confusion = [render_charts([matrix], "matrix"), tables.render_confusions(run, scores)]
    sections = [
        Section("classes", "Classes", tag("div", *classes, class_="grid")),
        Section("confusion", "Confusion", tag("div", *confusion, class_="grid")),
    ]
    if run.predictions is not None:
        calibration = render_calibration(run.predictions, scores.ece)
        sections.append(Section("calibration", "Calibration", calibration))
    return sections


def render_calibration(predictions: Predictions, ece: float) -> Markup:
    chart = score_charts.draw_reliability(predictions, ece)
    if chart is None:
        return tag("p", "There are too few test pictures to judge the confidences.")
    text = (
        "Below the diagonal the model is too confident, above it not confident enough. Ranges of "
        f"confidence with fewer than {score_charts.LEAST_IN_BIN} pictures have no point."
    )
    return join([tag("p", text), render_charts([chart], "reliability")])


def render_album(run: StoredRun, album: Album | None, missing: str) -> Markup:
    if album is None:
        return tag("p", missing, class_="faint") if missing else Markup("")
    if run.predictions is not None:
        return render_test_pictures(run, album)
    return render_unlabeled_pictures(run, album)


def render_test_pictures(run: StoredRun, album: Album) -> Markup:
    predictions = album.predictions
    mistakes = predictions.most_confident_mistakes(THUMBNAILS)
    total = int(predictions.wrong.sum())
    parts = [tag("h3", f"Mistakes, the most confident first ({len(mistakes)} of {total})")]
    parts.append(
        render_gallery(album, mistakes, run.classes)
        if mistakes
        else tag("p", "None: every test picture is classified correctly.")
    )
    parts.append(tag("h3", "Least confident"))
    parts.append(render_gallery(album, predictions.least_confident(THUMBNAILS), run.classes))
    return join(parts)


def render_unlabeled_pictures(run: StoredRun, album: Album) -> Markup:
    """Without test pictures: unlabeled ones, for a person to judge."""
    predictions = album.predictions
    count = len(predictions.labels)
    unsure = predictions.least_confident(min(THUMBNAILS, (count + 1) // 2))
    candidates = predictions.most_confident(2 * THUMBNAILS)
    sure = [at for at in candidates if at not in unsure][:THUMBNAILS]
    text = (
        f"Predictions for {count:,} unlabeled pictures. Where the model is confident but wrong, "
        "label a few similar pictures. Those with low confidence are worth labeling too."
    )
    parts = [tag("p", text)]
    if sure:
        heading = tag("h3", "Most confident, class by class")
        parts += [heading, render_gallery(album, sure, run.classes)]
    parts += [tag("h3", "Least confident"), render_gallery(album, unsure, run.classes)]
    return join(parts)


def render_settings(run: StoredRun) -> Markup:
    details = tag("details", tag("summary", "All settings"), tables.render_settings(run))
    return join([tables.render_run_facts(run), sentences.render_notes(run), details])


def render_comparison(runs: Sequence[StoredRun]) -> str:
    """The page that compares several runs."""
    names = distinct_names(runs)
    warning = [] if share_test_pictures(runs) else [tag("p", DIFFERENT_TESTS, class_="warn")]
    charts = render_charts(training_curves.draw_comparisons(names, runs), "curve")
    sections = [
        Section("result", "Result", join([*warning, tables.render_comparison(names, runs)])),
        Section("curves", "Training", charts),
        Section("settings", "Settings", tables.render_differences(names, runs)),
    ]
    subtitle = "Where intervals overlap, the difference may be chance."
    return render_page(f"Comparison of {len(runs)} runs", subtitle, sections)


def share_test_pictures(runs: Sequence[StoredRun]) -> bool:
    """Whether all runs with test scores have them from the same pictures."""
    tests = [(run.data, run.predictions.labels) for run in runs if run.predictions is not None]
    # Older results have no hash.
    hashes = {run.result.test_hash for run in runs if run.result} - {None}
    return len(hashes) <= 1 and all(
        data == tests[0][0] and np.array_equal(labels, tests[0][1]) for data, labels in tests
    )


def distinct_names(runs: Sequence[StoredRun]) -> list[str]:
    """Folder names, or whole paths where several have the same name."""
    counts = Counter(run.name for run in runs)
    return [run.name if counts[run.name] == 1 else str(run.path) for run in runs]
