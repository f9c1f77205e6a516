"""`model_report`: an HTML report about a model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from polyplane._files import replace_file
from polyplane._plain import plain
from polyplane.explain._estimators import refuse_given, table_classifier
from polyplane.explain._markup import assemble
from polyplane.explain._plane_report import plane_page
from polyplane.explain._report_body import default_title, report_body
from polyplane.explain._table_report import table_page


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
    """Write an HTML report about a model as a single file, which works without a network or a server.

    The report shows the accuracy of the model on the rows, the reliability of its probabilities, its planes as rules,
    and its errors. For selected rows, it explains the predicted class and shows the smallest change that leads to
    another class. For a `TableClassifier`, the importance of the columns and the effects of their values replace the
    rules. The model itself is part of the page: the values of a row can be changed, and the prediction, its explanation
    and the smallest change are updated immediately.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted Polyplane classifier, or a pipeline of scalers that ends in one.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        Test rows, which were not used in training.
    y : array-like of shape (n_rows,)
        Labels of the rows.
    path : path
        The file to write. An existing file is replaced when the new one is complete.
    title : str, default=None
        Title of the page. If None, it consists of the names of the classes, and the name of `y` if it is a series.
    n_rows : int, default=40
        Number of rows to explain: the errors with the largest margin or probability, the correct predictions with the
        smallest, and rows typical of the planes.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.
    image_shape : tuple of int, default=None
        Height and width of images, if the features are pixels: the selected rows are shown as images.

    Returns
    -------
    path : Path
        Path of the written file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.explain import model_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model_report(model, X[1::2], y[1::2], pathlib.Path(folder) / "iris.html", n_rows=5)
    ...     "Accuracy: 97.3 % on 75 rows" in page.read_text(encoding="utf-8")
    True
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows} must be 1 or more.")
    table = table_classifier(estimator)
    if table is None:
        content = plane_page(estimator, X, y, n_rows, feature_names, image_shape)
    else:
        given = {"feature_names": feature_names, "image_shape": image_shape}
        refuse_given(given, "it applies to features, not to the columns of a TableClassifier")
        content = table_page(table, X, y, n_rows)
    headline = title or default_title(content.predictions.labels, y)
    data = {**content.data, "live": content.live.data}
    page = assemble(report_body(content, headline), headline, json.dumps(plain(data)), content.live.script)
    with replace_file(path) as file:
        file.write(page.encode())
    return Path(path)
