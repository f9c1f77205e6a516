"""The page that compares `TableClassifier` with other classifiers, its pictures, and the README's tables.

``python -m benchmarks.harness.comparison`` makes them of what `benchmarks.peers.table_classifier`,
`benchmarks.peers.learning_curves`, `benchmarks.peers.multi_hyperplane` and `benchmarks.peers.table_counterfactuals`
have measured.
"""

import io
import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from benchmarks.data.package_tables import LISTED, NUMBERS
from benchmarks.data.tables import GENERATED, TABLES
from benchmarks.harness.report import markdown_table
from benchmarks.harness.results import ROOT, our_version
from scipy import stats

RESULTS = ROOT / "benchmarks" / "peers" / "results"
PAGE, README = ROOT / "docs" / "comparison.md", ROOT / "README.md"
PICTURE, CURVES = (ROOT / "docs" / "images" / f"{name}.svg" for name in ("comparison-ranks", "learning-curves"))
#: The models, as the page names them.
NAMES = {
    "TableClassifier": "`TableClassifier()`",
    "CatBoost": "CatBoost",
    "LightGBM": "LightGBM",
    "HistGB": "`HistGradientBoostingClassifier`",
    "RandomForest": "`RandomForestClassifier`",
    "SVC": "`SVC`",
    "MLP": "`MLPClassifier`",
    "LogisticRegression": "`LogisticRegression`",
    "EBM": "EBM",
    "RealMLP": "RealMLP-TD",
}
#: Names in the tables of all models, which would be too wide for a page.
SHORT = {"TableClassifier": "ours", "RandomForest": "Forest", "LogisticRegression": "Logistic"}
OURS = "TableClassifier"
#: Models that were measured on the tables of the fewest rows times columns.
SMALLEST = ("EBM", "RealMLP")
LEVEL = 0.05
#: Colours that the colour-blind tell apart (Okabe and Ito), and markers, of the learning curves.
LOOKS = {
    "TableClassifier": ("#0072B2", "o"),
    "CatBoost": ("#CC79A7", "v"),
    "LightGBM": ("#E69F00", "s"),
    "HistGB": ("#56B4E9", "^"),
    "RandomForest": ("#009E73", "D"),
}
#: Errors that are marked on the logarithmic axes of the learning curves.
TICKS = (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 13, 14, 15, 16, 17, 20, 25, 30, 40, 50)
#: Mean figures of a model: on which table, of which model, which figure.
Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]

INTRODUCTION = """# Comparison

Where Polyplane wins and where it loses, measured. Written by `python -m benchmarks.harness.comparison`.

## Real tables on which nothing was chosen

{n_tables} real tables of the package `{package}` {version} (data sets of R packages), at most {max_rows:,} rows of \
each, {folds}. The list (`benchmarks/data/package_tables.toml`) was fixed before any classifier was run on it; it \
names the columns that are left out because they number the rows, follow from the label or are free text. No \
default, rule or constant was chosen on these tables. All classifiers have their default parameters: nothing is \
tuned.

Each classifier gets a table as its users would give it. `TableClassifier`: the raw frame. LightGBM, CatBoost, EBM \
and `HistGradientBoostingClassifier`: native categories (the last at most 254 of a column), parsed dates, missing \
values as they are. The others: numbers standardised, gaps filled, categories one-hot encoded (the 100 most frequent \
ones of a column), parsed dates as numbers. Preparation counts as time. Times are CPU seconds of one thread, means \
over the tables; ranks are by error. Versions: {versions}.
"""
PUBLIC = """## The public tables on which defaults were chosen

{n_tables} real tables of {n_all} public ones, {folds} (`python -m benchmarks.peers.table_classifier --public`). \
**These figures are not evidence for `TableClassifier`**: its preparations and a few limits were chosen by means \
over these tables, with their folds in sight ([the list](reproduction_defaults.md)). They show how choices carry \
over.
"""
GENERATORS = """## Generated data

{names}: synthetic, {n_tables} of the public tables above, and kept apart, since hyperplanes over squares and norms \
describe some of them exactly.
"""
LARGE = """## A larger table

The adult census table as it comes: 32,561 rows to train on, 16,281 to test on (`python -m \
benchmarks.peers.table_classifier --large`).
"""
ROWS = """## Error by the number of training rows

Test errors after training on the first rows of a random order, all classifiers with their default parameters and two \
threads; the points of a set share its test rows (`python -m benchmarks.peers.learning_curves`). **These figures show \
how errors change with more rows, not which classifier is better**: constants of `TableClassifier` were chosen with \
parts of these sets in sight, for ijcnn1, letter and mnist with their test errors \
([the list](reproduction_defaults.md)). Each point is one training sample, so small differences may be chance. \
Versions: {versions}.
"""
NUMERIC = """## Larger numeric data

Test error, and time on one core relative to an RBF-SVM (`python -m benchmarks.peers.multi_hyperplane`). C and gamma \
of the SVM are the best of several choices on held-out training rows. All test errors \
were known when defaults of `MultiHyperplaneClassifier` were set ([the list](reproduction_defaults.md)); that of \
weather decided none of them. Diamonds and weather are from the package `{package}`.
"""
WORDS = """## Which one to take

* **`TableClassifier`** for tables of up to a few hundred thousand rows where accuracy, calibrated probabilities and \
exact explanations matter. It is slower to train than LightGBM or a forest on small tables.
* **Gradient boosting** (CatBoost, LightGBM) where interactions of many columns with sharp thresholds decide, and \
training time matters.
* **`SVC`** for small numeric data without missing values, if prediction time does not matter.
* **`LogisticRegression`** if it is as accurate: nothing is simpler.

## Other measurements

* Counterfactuals on adult beside DiCE: {dice_random:.0f} times faster than its random method, {dice_genetic:.0f} \
times faster than its genetic one; all of {found} feasible, {proven} proven to change the fewest columns \
(`benchmarks/peers/table_counterfactuals.py`).
* [The methods of the five papers](reproduction.md), beside the figures of the papers.
"""


def read(name: str) -> dict[str, Any]:
    """The figures of an experiment."""
    return json.loads((RESULTS / f"{name}.json").read_text())["figures"]


def means(figures: Mapping[str, Any], names: Iterable[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """By table and model the mean over the folds of each figure, and the errors of the folds: of those of ours."""
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in names}
    measured = [figures[key]["error"] for name in found if (key := f"{name}: {OURS}") in figures]
    n_folds = min(map(len, measured), default=None)
    for key, values in figures.items():
        table, _, model = key.partition(": ")
        if table in found and model in NAMES:
            lists = {name: each[:n_folds] for name, each in values.items() if isinstance(each, list)}
            found[table][model] = {name: float(np.mean(each)) for name, each in lists.items()}
            found[table][model] |= {"errors": lists["error"], "version": values.get("version", "")}
    return found


def complete(tables: Tables) -> list[str]:
    """The models that were measured on all tables."""
    return [model for model in NAMES if all(model in table for table in tables.values())]


def ranks(tables: Tables, models: Iterable[str]) -> dict[str, float]:
    """The mean rank of each model by its error; equal errors share their ranks."""
    models = list(models)
    places = [stats.rankdata([table[model]["error"] for model in models]) for table in tables.values()]
    return dict(zip(models, np.mean(places, axis=0).tolist(), strict=True))


def critical_difference(n_models: int, n_tables: int) -> float:
    """By how much mean ranks must differ to be significantly different (Nemenyi's test)."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, n_models, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_models * (n_models + 1) / (6 * n_tables)))


def summary(tables: Tables) -> list[str]:
    """The table of means, the best rank first."""
    models = complete(tables)
    place = ranks(tables, models)
    rows = []
    for model in sorted(models, key=place.__getitem__):
        mean = {
            figure: np.mean([table[model][figure] for table in tables.values()])
            for figure in ("error", "loss", "fit", "predict")
            if all(figure in table[model] for table in tables.values())
        }
        rows.append(
            [
                NAMES[model],
                f"{place[model]:.2f}",
                f"{mean['error']:.2f} %",
                f"{mean['loss']:.3f}" if "loss" in mean else "",
                f"{mean['fit']:.2f} s",
                f"{1000 * mean['predict']:.0f} ms",
            ]
        )
    return markdown_table(["", "mean rank", "error", "log-loss", "fit", "predict"], rows)


def made_with(tables: Tables) -> str:
    """The versions of all models, and whether ours is today's."""
    found = sorted({version for table in tables.values() for row in table.values() if (version := row["version"])})
    later = f" (today {our_version()}; `--models {OURS} --again` measures it)" if our_version() not in found else ""
    return ", ".join(version + (later if version.startswith(OURS) else "") for version in found)


def duels(tables: Tables) -> list[str]:
    """`TableClassifier` against each model, over the tables and folds that both have."""
    rows = []
    for model in NAMES:
        both = [(table[OURS], table[model]) for table in tables.values() if OURS in table and model in table]
        if model == OURS or not both:
            continue
        theirs = np.array([np.mean(other["errors"]) for _, other in both])
        ours = np.array([np.mean(own["errors"][: len(other["errors"])]) for own, other in both])
        better, worse = int((ours < theirs).sum()), int((ours > theirs).sum())
        probability = stats.wilcoxon(ours, theirs).pvalue if better + worse else 1.0
        fit = np.mean([own["fit"] for own, _ in both]) / np.mean([other["fit"] for _, other in both])
        rows.append(
            [
                NAMES[model],
                *map(str, (len(both), better, len(both) - better - worse, worse)),
                f"{np.mean(ours - theirs):+.2f}",
                "< 0.0001" if probability < 1e-4 else f"{probability:.4f}",
                f"{fit:.1f} x",
            ]
        )
    head = ["against", "tables", "better", "equal", "worse", "points of error", "p (Wilcoxon)", "our time to fit"]
    return markdown_table(head, rows)


def extremes(tables: Tables, n_worst: int = 10) -> str:
    """The tables on which the best of the others is furthest ahead, and how often it is behind."""
    models = [model for model in complete(tables) if model != OURS]
    rows = []
    for name, table in tables.items():
        best = min(models, key=lambda model: table[model]["error"])
        rows.append((table[OURS]["error"] - table[best]["error"], name, best))
    rows.sort(reverse=True)
    worst = ", ".join(f"{name} ({gap:+.1f}, {best})" for gap, name, best in rows[:n_worst])
    ahead = [f"{name} ({gap:+.1f})" for gap, name, _ in reversed(rows) if gap < 0]
    return (
        f"Against the *best* of the {len(models)} others on each table, in points of error. The {n_worst} worst "
        f"tables: {worst}. `TableClassifier` alone is best on {len(ahead)} of {len(rows)} tables"
        f"{': ' + ', '.join(ahead[:n_worst]) if ahead else ''}{' and others' if len(ahead) > n_worst else ''}."
    )


def by_table(tables: Tables) -> list[str]:
    """The errors of each table, the least in bold, of models that were measured on more than a third of them."""
    models = [m for m in NAMES if 3 * sum(m in table for table in tables.values()) > len(tables)]
    rows = []
    for name, table in tables.items():
        shown = {model: f"{table[model]['error']:.1f}" for model in models if model in table}
        least = min(shown.values(), key=float)
        rows.append([name, *(f"**{e}**" if (e := shown.get(model, "")) == least else e for model in models)])
    return markdown_table(["error, %", *(SHORT.get(model, model) for model in models)], rows)


def rank_figure(tables: Tables) -> Any:
    """Mean ranks on a line; those that do not differ significantly are joined (Demsar, 2006)."""
    from matplotlib.figure import Figure

    place = sorted(ranks(tables, complete(tables)).items(), key=lambda item: item[1])
    critical = critical_difference(len(place), len(tables))
    figure = Figure(figsize=(9, 0.42 * len(place) + 1.3), layout="constrained")
    axes = figure.subplots()
    for height, (model, rank) in enumerate(place):
        axes.plot(rank, height, "o", color="#0072B2" if model == OURS else "0.35")
        axes.text(rank, height - 0.15, f"{model}  {rank:.2f}", va="bottom", fontsize=11)
        axes.plot([rank, rank + critical], [height, height], color="0.7", linewidth=2, zorder=0)
    axes.set_ylim(len(place) - 0.5, -0.7)
    axes.set_xlim(right=place[-1][1] + critical + 1.0)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xlabel(
        f"mean rank by error over {len(tables)} tables; each line is as long as the critical difference, {critical:.2f}"
    )
    return figure


def curves() -> dict[str, dict[int, dict[str, Any]]]:
    """The figures of the learning curves: of which set, at how many rows, of which model."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for path in sorted(RESULTS.glob("learning_curves_*.json")):
        points = found.setdefault(path.stem.removeprefix("learning_curves_"), {})
        parts = [(*key.split(": "), row) for key, row in read(path.stem).items()]
        for n_rows, model, row in sorted(parts, key=lambda part: int(part[0])):
            points.setdefault(int(n_rows), {})[model] = row
    return found


def errors_by_rows(points: Mapping[int, Any], model: str) -> list[tuple[int, float]]:
    """The errors of a model at the points that were measured."""
    return [(n_rows, row[model]["error"]) for n_rows, row in points.items() if model in row]


def curve_figure(found: Mapping[str, Mapping[int, Any]]) -> Any:
    """The errors of each set by the number of training rows, one line per classifier."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.8 * -(-len(found) // 3) + 0.5), layout="constrained")
    all_axes = figure.subplots(-(-len(found) // 3), 3, squeeze=False).ravel()
    for axes, (name, points) in zip(all_axes, found.items(), strict=False):
        for model, (colour, marker) in LOOKS.items():
            if line := errors_by_rows(points, model):
                axes.plot(*zip(*line, strict=True), marker=marker, color=colour, label=model, markersize=5)
        axes.set(xscale="log", yscale="log", title=name)
        low, high = axes.get_ylim()
        ticks: list[float] = []
        for tick in TICKS:
            if low <= tick <= high and (not ticks or np.log(tick / ticks[-1]) > np.log(high / low) / 8):
                ticks.append(tick)
        axes.set_yticks(ticks, [f"{tick:g} %" for tick in ticks])
        axes.set_xticks(list(points), [f"{n_rows:,}" for n_rows in points], rotation=40, ha="right", fontsize=8)
        axes.minorticks_off()
        axes.spines[["right", "top"]].set_visible(False)
    for axes in all_axes[len(found) :]:
        axes.set_visible(False)
    handles = {label: line for axes in all_axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=len(LOOKS), frameon=False)
    figure.supxlabel("training rows (all axes are logarithmic; those of the errors differ)", fontsize=11)
    figure.supylabel("test error", fontsize=11)
    return figure


def curve_table(found: Mapping[str, Mapping[int, Any]]) -> list[str]:
    """Errors, the least in bold, and CPU seconds of the fits."""
    models = [name for name in NAMES if any(name in row for points in found.values() for row in points.values())]
    rows = []
    for name, points in found.items():
        for n_rows, row in points.items():
            least = min(figures["error"] for figures in row.values())
            errors = {m: f"**{e:.2f}**" if (e := row[m]["error"]) == least else f"{e:.2f}" for m in models if m in row}
            seconds = (f"{row[m]['cpu']:.{0 if row[m]['cpu'] >= 9.5 else 1}f}" if m in row else "" for m in models)
            rows.append([name, f"{n_rows:,}", *(errors.get(model, "") for model in models), *seconds])
    short = [SHORT.get(model, model) for model in models]
    return markdown_table(
        ["error, %", "rows", *short, *(f"{'CPU s of a fit: ' * (i == 0)}{m}" for i, m in enumerate(short))], rows
    )


def rises(found: Mapping[str, Mapping[int, Any]]) -> str:
    """Where an error is larger with more rows."""
    told: dict[str, list[str]] = {}
    for name, points in found.items():
        for model in NAMES:
            told.setdefault(model, []).extend(
                f"{name} ({before:,} rows {less:.2f} %, {after:,} rows {more:.2f} %)"
                for (before, less), (after, more) in pairwise(errors_by_rows(points, model))
                if more > less
            )
    listed = "; ".join(f"{NAMES[model]}: {', '.join(places)}" for model, places in told.items() if places)
    return f"Where an error is larger with more rows: {listed or 'nowhere'}."


def picture(figure: Any) -> bytes:
    """A picture as SVG, with its text as text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "comparison"}):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def large(figures: Mapping[str, Any]) -> list[str]:
    """What was measured on adult."""
    keys = {name: f"large: adult: {model}" for model, name in NAMES.items()}
    found = {name: figures[key] for name, key in keys.items() if key in figures}
    rows = [[name, f"{row['error']:.2f} %", f"{row['auc']:.3f}"] for name, row in found.items()]
    return markdown_table(["", "error", "AUC"], rows)


def numeric() -> list[str]:
    """Errors and relative times on larger numeric data."""
    figures = read("multi_hyperplane")
    rows = []
    for name in sorted({key.partition(": ")[0] for key in figures}, key=lambda name: (name in NUMBERS, name)):
        svm, ours, five = (figures[f"{name}: {model}"] for model in ("RBF-SVM", "defaults", "committee of five"))
        cells = [name, f"{svm['error']:.2f} %"]
        for model in (ours, five):
            cells.append(f"{model['error']:.2f} %")
            cells += [times(svm[what] / model[what]) for what in ("fit", "predict")]
        rows.append(cells)
    one, many = "`MultiHyperplaneClassifier()`", "with `n_estimators=5`"
    return markdown_table(["", "RBF-SVM, tuned", one, "fit", "predict", many, "fit", "predict"], rows)


def times(ratio: float) -> str:
    """How much faster or slower, in words."""
    if 0.95 < ratio < 1.05:
        return "the same"
    number = ratio if ratio > 1 else 1 / ratio
    return f"{number:.{0 if number >= 9.5 else 1}f} x {'faster' if ratio > 1 else 'slower'}"


def headline() -> Tables:
    """The tables on which nothing was chosen."""
    return means(read("table_classifier"), LISTED["tables"])


def markdown() -> str:
    """The page."""
    figures = read("table_classifier")
    first = headline()
    real = means(figures, (name for name in TABLES if name not in GENERATED))
    made = means(figures, GENERATED)
    place = ranks(first, complete(first))
    matrix = [[table[model]["error"] for model in place] for table in first.values()]
    friedman = stats.friedmanchisquare(*np.transpose(matrix)).pvalue
    critical = critical_difference(len(place), len(first))
    best = min((model for model in place if model != OURS), key=place.__getitem__)
    ahead = place[best] - place[OURS]
    found, by_rows = read("table_counterfactuals"), curves()
    gpu = json.loads((ROOT / "benchmarks" / "gpu" / "results" / "figures.json").read_text())["figures"][
        "table, covtype"
    ]
    parts = [
        INTRODUCTION.format(n_tables=len(first), folds=_folds(first, 3), versions=made_with(first), **LISTED),
        "\n".join(summary(first)),
        f"![Mean ranks](images/{PICTURE.name})",
        f"That all are equally good has p = {friedman:.1g} (Friedman's test). Mean ranks differ significantly by "
        f"{critical:.2f} or more "
        f"(Nemenyi, 5 %). `TableClassifier` is {abs(ahead):.2f} {'ahead of' if ahead > 0 else 'behind'} {NAMES[best]}, "
        f"which is {'significant' if abs(ahead) >= critical else 'not significant'}. Pair by pair:",
        "\n".join(duels(first)),
        *_partly(first),
        extremes(first),
        "\n".join(by_table(first)),
        PUBLIC.format(n_tables=len(real), n_all=len(TABLES), folds=_folds(real, 5)),
        "\n".join(summary(real)),
        "\n".join(duels(real)),
        *_partly(real),
        "\n".join(by_table(real)),
        GENERATORS.format(names=", ".join(GENERATED), n_tables=len(made)),
        "\n".join(by_table(made)),
        LARGE,
        "\n".join(large(figures)),
        ROWS.format(
            versions=made_with({f"{name}: {n}": row for name, own in by_rows.items() for n, row in own.items()})
        ),
        f"![Learning curves](images/{CURVES.name})",
        "\n".join(curve_table(by_rows)),
        f"{rises(by_rows)} Points that are not listed were not measured on two cores. With all {gpu['rows']:,} rows of "
        f"covtype, on an H200, `TableClassifier` has {gpu['error']:.2f} % after {gpu['fit_s']:.1f} s of training "
        "(`benchmarks/gpu/figures.py`).",
        NUMERIC.format(**LISTED),
        "\n".join(numeric()),
        WORDS.format(
            dice_random=found["dice"]["random"]["times_slower"],
            dice_genetic=found["dice"]["genetic"]["times_slower"],
            found=found["ours"]["found"],
            proven=found["ours"]["proven"],
        ),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _folds(tables: Tables, n_folds: int) -> str:
    """On how many folds ours was measured."""
    least = min(len(table[OURS]["errors"]) for table in tables.values())
    return f"{n_folds} folds" if least == n_folds else f"{least} of {n_folds} folds"


def _partly(tables: Tables) -> list[str]:
    """Which models were not measured on all tables."""
    counts = {m: sum(m in table for table in tables.values()) for m in NAMES if m not in complete(tables)}
    told = ", ".join(
        f"{NAMES[m]} on {'the smallest ' * (m in SMALLEST)}{n} of {len(tables)} tables" for m, n in counts.items() if n
    )
    return [f"Not measured on all tables, as its fits take long: {told}."] if told else []


def in_readme(text: str) -> str:
    """The README with today's tables between its marks."""
    for mark, lines in {"tables": summary(headline()), "numeric": numeric()}.items():
        begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + begin + "\n".join(["", *lines, "", ""]) + end + after
    return text


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    PICTURE.write_bytes(picture(rank_figure(headline())))
    CURVES.write_bytes(picture(curve_figure(curves())))
    README.write_text(in_readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Written: {', '.join(str(path.relative_to(ROOT)) for path in (PAGE, PICTURE, CURVES, README))}")
