"""One page about a model: its accuracy, its planes as rules, its errors, and the reasons for chosen rows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from polyplane._files import replace_file
from polyplane._plain import plain
from polyplane.inspection._estimators import refuse_given, table_classifier
from polyplane.inspection._markup import assemble
from polyplane.inspection._plane_report import plane_page
from polyplane.inspection._report_body import default_title, report_body
from polyplane.inspection._table_report import table_page


def model_report(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    n_rows: int = 40,
    feature_names: Any = None,
    image_shape: tuple[int, int] | None = None,
) -> Path:
    """Write a page about a model, which needs nothing but itself: no network, no server.

    It describes the model and its accuracy on the rows, how reliable its probabilities are, its planes as rules and its
    errors, and for chosen rows shows why their class is predicted and what would change that. The page about a
    `TableClassifier` has the importance of the columns and the effects of their values in place of rules. The model
    itself is part of the page: the values of a row can be changed, and the prediction, the reasons and the nearest
    change that leads to another class follow at once.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted classifier of this library, or a pipeline of scalers that ends in one.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        Rows that the model was not trained on.
    y : array-like of shape (n_rows,)
        Their labels.
    path : path
        Where to write the page; a file that is there is replaced when the new one is complete.
    title : str, default=None
        The headline; None: one that names the classes, and `y` where it is a series with a name.
    n_rows : int, default=40
        How many rows to explain: the surest errors, the least sure of the rest, and rows typical of the planes.
    feature_names : sequence of str, default=None
        Names of the features; None: those seen in `fit`.
    image_shape : tuple of int, default=None
        Rows and columns, where features are pixels: chosen rows are shown as pictures.

    Returns
    -------
    path : Path
        Where the page is.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.inspection import model_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> machine = MultiHyperplaneClassifier(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model_report(machine, X[1::2], y[1::2], pathlib.Path(folder) / "iris.html", n_rows=5)
    ...     "Accuracy: 97.3 % on 75 rows" in page.read_text(encoding="utf-8")
    True
    """
    if n_rows < 1:
        raise ValueError(f"n_rows must be 1 or more, not {n_rows}.")
    table = table_classifier(estimator)
    if table is None:
        content = plane_page(estimator, X, y, n_rows, feature_names, image_shape)
    else:
        given = {"feature_names": feature_names, "image_shape": image_shape}
        refuse_given(given, "a table has columns with names of their own")
        content = table_page(table, X, y, n_rows)
    headline = title or default_title(content.predictions.labels, y)
    data = {**content.data, "live": content.live.data}
    page = assemble(report_body(content, headline), headline, json.dumps(plain(data)), content.live.script)
    with replace_file(path) as file:
        file.write(page.encode())
    return Path(path)
