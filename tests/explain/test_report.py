"""The page about a model, in a real browser: its figures, its keyboard, and that data stay data."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier, TableClassifier
from polyplane._plain import visible
from polyplane.explain import explain_model, explain_row, model_report

HOSTILE = ["<script>window.hit=1</script>", "</script><b>", "\"'&amp;", "x' onload=window.hit=2", "e\u2028f", "plain"]
LABELS = np.array(["<img src=x onerror=window.hit=3>", "</script><script>window.hit=4</script>"])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page whose names and labels try to become markup."""
    data = load_breast_cancer(as_frame=True)
    X = data.data.iloc[:, :6].set_axis(HOSTILE, axis=1)
    y = LABELS[data.target]
    model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X[::2], y[::2])
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    return model_report(model, X[1::2], y[1::2], path, title="<i>title</i>", n_rows=8), model, X[1::2], y[1::2]


def test_hostile_names_stay_text(hostile, opened):
    page = opened(hostile[0])
    assert page.evaluate("window.hit") is None
    assert page.locator("h1").inner_text() == "<i>title</i>"
    assert page.locator("main img, main b, main i, main script").count() == 0
    text = page.locator("main").inner_text()
    assert HOSTILE[0] in text
    assert sorted(page.locator("#inputs label").all_inner_texts()) == sorted(map(visible, HOSTILE))
    assert LABELS[0] in text
    assert LABELS[1] in text


def test_the_page_itself_holds_no_foreign_markup(hostile):
    text = hostile[0].read_text(encoding="utf-8")
    assert len(re.findall(r"<script", text)) == 3  # the data, the model and the page's own
    assert text.count("</script>") == 3
    assert "<img" not in text
    assert "http://" not in text
    assert "https://" not in text


def test_picked_rows_tell_what_explain_row_tells(hostile, opened):
    path, model, X, y = hostile
    page = opened(path)
    for place in range(3):
        page.locator("#row").select_option(index=place)
        number = int(re.search(r"Row (\d+)", page.locator("#why").inner_text())[1])
        why = explain_row(model, X.iloc[[number]], X=X, true_label=y[number])
        assert f"predicted class “{why.label}”" in page.locator("#why .verdict").inner_text()
        leading = why.columns[int(np.abs(why.contributions).argmax())]
        shares = page.locator("#why tbody").first
        assert shares.locator("td").first.inner_text() == visible(leading)
        assert f"{why.difference:.4g}" in page.locator("#why").inner_text()
        assert why.flip.label in page.locator("#why caption").last.inner_text()


def test_it_works_by_keyboard(hostile, opened):
    page = opened(hostile[0])
    first = page.locator("#why .verdict").inner_text()
    page.locator("#row").focus()
    page.keyboard.press("ArrowDown")
    second = page.locator("#why .verdict").inner_text()
    assert second != first
    page.keyboard.press("Tab")  # Previous
    page.keyboard.press("Enter")
    assert page.locator("#why .verdict").inner_text() == first
    page.locator("a[data-row='1']").press("Enter")
    assert page.locator("#why .verdict").inner_text() == second


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_legible_in_light_and_dark_and_fits_a_phone(hostile, opened, scheme):
    page = opened(hostile[0], color_scheme=scheme, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    brightness = []
    for part in ("backgroundColor", "color"):
        colour = page.evaluate(f"getComputedStyle(document.body).{part}")
        brightness.append(sum(map(int, re.findall(r"\d+", colour)[:3])) / 765)
    assert (brightness[0] > 0.9) == (scheme == "light")
    assert abs(brightness[0] - brightness[1]) > 0.7


@pytest.mark.parametrize(("loss", "n_pictures"), [("hinge", 20), ("log", 10)])
def test_pixels_become_pictures(loss, n_pictures, tmp_path, opened):
    """Of the planes that decide rows, or of the classes."""
    X, y = load_digits(return_X_y=True)
    model = MultiHyperplaneClassifier(2, loss=loss, max_iter=10, random_state=0).fit(X[:900], y[:900])
    page = opened(model_report(model, X[900:], y[900:], tmp_path / "digits.html", n_rows=4, image_shape=(8, 8)))
    assert page.locator("#planes canvas").count() == n_pictures
    shown = page.evaluate(
        "Array.from(document.querySelector('#why canvas').getContext('2d').getImageData(0, 0, 8, 8).data)"
    )
    number = int(re.search(r"Row (\d+)", page.locator("#why").inner_text())[1])
    np.testing.assert_allclose(255 - np.array(shown[::4]), 255 * X[900 + number] / X[900 + number].max(), atol=1)


def test_figures_are_right_and_the_file_is_replaced_whole(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = CuttingPlaneSVC(C=1e-3).fit(X[:900], y[:900])
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="y contains the label"):
        model_report(model, X[900:], y[900:] + 1, path)
    assert path.read_text() == "before"
    model_report(model, pd.DataFrame(X[900:]), y[900:], path, n_rows=2)
    assert f"Accuracy: {100 * model.score(X[900:], y[900:]):.1f} % on 897 rows." in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_recall_precision_and_confusion_are_those_of_scikit_learn(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = CuttingPlaneSVC(C=1e-3).fit(X[:900], y[:900])
    text = model_report(model, X[900:], y[900:], tmp_path / "page.html", n_rows=1).read_text(encoding="utf-8")
    by_class, confusion = (pd.DataFrame(rows[1:], columns=rows[0]) for rows in map(cells, text.split("<table>")[1:3]))
    predicted = model.predict(X[900:])
    recall, precision, f1 = (
        score(y[900:], predicted, average=None).round(3)
        for score in (metrics.recall_score, metrics.precision_score, metrics.f1_score)
    )
    np.testing.assert_allclose(by_class["recall, %"].astype(float) / 100, recall, atol=6e-4)
    np.testing.assert_allclose(by_class["precision, %"].astype(float) / 100, precision, atol=6e-4)
    np.testing.assert_allclose(by_class["F1, %"].astype(float) / 100, f1, atol=6e-4)
    counts = confusion.iloc[:, 1:].replace("", "0").astype(int)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(y[900:], predicted))
    assert "Confusion matrix: true class by row, predicted class by column" in text


def cells(table):
    """The text of the cells of a table, row by row, its head first."""
    rows = table.split("</table>")[0].split("</tr>")[:-1]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in rows]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"image_shape": (3, 3)}, "does not match the 64"), ({"n_rows": 0}, "n_rows=0 must be 1 or more")],
)
def test_bad_input_is_one_sentence(tmp_path, options, sentence):
    X, y = load_digits(return_X_y=True)
    model = CuttingPlaneSVC(C=1e-3, tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        model_report(model, X, y, tmp_path / "page.html", **options)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A page about a table whose columns, levels and labels try to become markup."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({HOSTILE[0]: rng.integers(0, 90, 600), HOSTILE[1]: rng.choice([HOSTILE[2], HOSTILE[3]], 600)})
    frame["noise"] = np.where(rng.random(600) < 0.1, np.nan, rng.normal(size=600))
    frame["long"] = rng.choice(["WIDE " * 9 + "WEST", "WIDE " * 9 + "EAST"], 600)
    frame["huge"] = 10**15 + rng.integers(0, 40, 600)
    score = frame[HOSTILE[0]] / 30 + (frame[HOSTILE[1]] == HOSTILE[3]) + 0.5 * rng.normal(size=600)
    y = LABELS[(score > 2.5).astype(int)]
    model = TableClassifier(2, preparation="bins", n_planes=1, random_state=0).fit(frame[::2], y[::2])
    path = tmp_path_factory.mktemp("page") / "table.html"
    return model_report(model, frame[1::2], y[1::2], path, n_rows=8), model, frame[1::2], y[1::2]


def test_a_table_has_its_columns_effects_and_baseline(table):
    path, model, frame, y = table
    text = path.read_text(encoding="utf-8")
    most = 100 * max(np.mean(y == label) for label in LABELS)
    assert f"Accuracy: {100 * model.score(frame, y):.1f} % on 300 rows. Always predicting the most" in text
    assert "Always predicting the most frequent class, " in text
    assert f", gives {most:.1f} %." in text
    assert text.count("<svg") == 6  # a reliability curve, and effects
    assert "Importance of the columns" in text
    assert len(re.findall(r"<script", text)) == 3
    assert "<img" not in text
    heading = re.search("<h1>(.*)</h1>", text)[1]
    assert heading.startswith("Predicting &lt;/script&gt;")


def test_rows_of_a_table_tell_what_explain_row_tells(table, opened):
    path, model, frame, y = table
    page = opened(path)
    assert page.evaluate("window.hit") is None
    for place in range(4):
        page.locator("#row").select_option(index=place)
        card = page.locator("#why").inner_text()
        number = int(re.search(r"Row (\d+)", card)[1])
        why = explain_row(model, frame.iloc[[number]], true_label=y[number])
        assert f"predicted class “{why.label}”" in card
        assert f"Its probability is {why.probability:.3f}" in card
        leading = why.by_contribution()[0]
        assert page.locator("#why tbody td").first.inner_text() == visible(why.columns[leading])
        assert f"{why.contributions[leading]:+.2f}" in card
        assert why.flip.label in page.locator("#why caption").last.inner_text()


@pytest.mark.parametrize("width", [360, 1100])
def test_drawings_of_a_table_fit_their_frames(table, opened, width):
    page = opened(table[0], viewport={"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """Array.from(document.querySelectorAll('svg')).flatMap((drawing) => {
      const frame = drawing.getBoundingClientRect();
      return Array.from(drawing.querySelectorAll('*')).filter((part) => {
        const box = part.getBoundingClientRect();
        return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
      }).map((part) => part.outerHTML);
    })"""
    assert page.evaluate(outside) == []


def test_several_classes_of_a_table_have_a_legend(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = TableClassifier(1, n_planes=2, preparation="standard", random_state=0).fit(X[::2], y[::2])
    text = model_report(model, X[1::2], y[1::2], tmp_path / "page.html", n_rows=3, title="Irises").read_text()
    assert "<h1>Irises</h1>" in text
    assert text.count('class="curve"') == 12 + 1
    assert "predicted probability of the predicted class, in 10 bins" in text
    assert "The 6 planes" in text
    with pytest.raises(TypeError, match="image_shape cannot be set"):
        model_report(model, X, y, tmp_path / "page.html", image_shape=(2, 2))


def test_classes_of_a_committee_become_pictures(tmp_path, opened):
    X, y = load_digits(return_X_y=True)
    model = MultiHyperplaneClassifier(2, n_estimators=2, max_iter=5, random_state=0).fit(X[:900], y[:900])
    page = opened(model_report(model, X[900:], y[900:], tmp_path / "digits.html", n_rows=4, image_shape=(8, 8)))
    assert "Mean weights of the pixels for each class" in page.locator("main").inner_text()
    assert [name.inner_text() for name in page.locator("#planes figcaption").all()] == [str(c) for c in range(10)]
    told = explain_model(model, X[900:])
    c = int(model.predict(X[900:])[0])
    rows = X[900:][model.predict(X[900:]) == c]
    expected = np.mean([model.model_.planes.at(x).coef[c] for x in rows], axis=0)
    np.testing.assert_allclose(told.class_weights()[c], expected, atol=1e-9)
    assert "Importance of the columns:\n" in str(told)
    assert "56 other columns are less important" in str(told)
