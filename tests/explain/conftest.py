"""Tables that all explanations are tested on, and pages in a browser."""

import numpy as np
import pandas as pd
import pytest

from polyplane import TableClassifier


@pytest.fixture(scope="session")
def people():
    """A table of all types of columns, with missing values, and labels that follow from it."""
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "height": rng.normal(1.7, 0.1, n).round(2),
            "job": rng.choice(["clerk", "smith", "nurse", "cook"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "city": rng.choice(["Oslo", "Rome"], n),
            "member": pd.Series(rng.choice([True, False], n, p=[0.7, 0.3]), dtype=object),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "noise": rng.normal(size=n),
        }
    )
    score = 0.08 * (frame["age"] - 50) + 1.5 * (frame["job"] == "nurse") - 1.0 * (frame["member"] == True)  # noqa: E712
    score += 0.002 * (frame["since"] - pd.Timestamp("2022-01-01")).dt.days
    y = np.where(score + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    frame.loc[rng.random(n) < 0.1, ["job", "since"]] = None
    frame.loc[rng.random(n) < 0.1, "member"] = None
    return frame, y


@pytest.fixture(scope="session")
def additive(people):
    """Members of one plane per class."""
    return TableClassifier(2, n_planes=1, preparation="bins", max_iter=20, random_state=0).fit(*people)


@pytest.fixture(scope="session")
def crossed():
    """Members of several planes per class, over columns that act only together."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"size": rng.normal(size=500), "colour": rng.choice(["red", "blue"], 500)})
    frame["weight"] = rng.normal(size=500)
    y = np.where((frame["size"] > 0) == (frame["colour"] == "red"), "ripe", "raw")
    y[rng.random(500) < 0.05] = "raw"
    return TableClassifier(2, n_planes=3, preparation="standard", random_state=0).fit(frame, y), frame, y


@pytest.fixture
def opened(browser):
    """Opens a page; complains of anything that the page says on the console, or asks of the network."""
    complaints, contexts = [], []

    def open_page(path, **options):
        contexts.append(browser.new_context(offline=True, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
