"""Export of models to other languages: C, JavaScript and SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.exports._json import to_json
from polyplane.exports._pipeline import ScaledLearner, unwrap_pipeline

__all__ = ["to_c", "to_javascript", "to_json", "to_sql"]

if TYPE_CHECKING:
    from polyplane.exports._program import Program


def to_c(model: Any, dtype: str | None = None, *, name: str = "model") -> str:
    """Export a fitted model as C99: a single file with static tables and no memory allocation.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers, as `polyplane.save` takes it, that ends in one.
    dtype : {"float32", "float64", "int8"} or None, default=None
        Data type of the weights. None: that of the planes. With "int8", a weight takes one byte, with one scale factor
        per plane.
    name : str, default="model"
        Prefix of all names.

    Returns
    -------
    text : str
        The code. Its first comment gives a usage example and the memory requirements.

    See Also
    --------
    polyplane.export : Write the file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> text = to_c(PegasosSVC(random_state=0).fit(X, y), "int8", name="iris")
    >>> [line for line in text.splitlines() if line.startswith("int iris_predict")]
    ['int iris_predict(const float *x, float *scores);', 'int iris_predict(const float *x, float *scores)']
    """
    from polyplane.compression.classifier import CompressedClassifier
    from polyplane.exports._c import write_c
    from polyplane.exports._c_compressed import write_compressed_c

    if isinstance(single(model), CompressedClassifier) and dtype in (None, "int8"):
        check_is_fitted(single(model))
        return write_compressed_c(single(model), name)
    return write_c(program_of(model, dtype, ("float32", "float64", "int8")), name)


def to_javascript(model: Any, dtype: str | None = None, *, name: str | None = None) -> str:
    """Export a fitted model as JavaScript: an ES module without dependencies.

    The module exports ``predict(row)``, which takes an object with the column names as keys and returns ``{label,
    scores, probabilities}``; the labels as ``classes``; and a description of the columns as ``columns``. It can be
    embedded in a page: no string in it can end a script.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers, as `polyplane.save` takes it, that ends in one.
    dtype : {"float32", "float64"} or None, default=None
        Data type of the weights. None: that of the planes. Sums are computed in float64.
    name : str or None, default=None
        If given, the code is a script that defines an object of this name, instead of a module. The object holds what
        the module exports, and the steps of a prediction: ``addColumn`` adds the value of a column to the scores of the
        planes, which start as ``intercept``, and ``classScores`` computes the scores of the classes from them.

    Returns
    -------
    text : str
        The module, or the script.

    See Also
    --------
    polyplane.export : Write the module to a file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_javascript
    >>> X, y = load_iris(return_X_y=True)
    >>> text = to_javascript(PegasosSVC(random_state=0).fit(X, y))
    >>> text.splitlines()[-1]
    'export {classes, columns, predict};'
    """
    from polyplane.exports._javascript import write_javascript

    return write_javascript(program_of(model, dtype, ("float32", "float64")), name)


def to_sql(
    model: Any,
    dtype: str | None = None,
    *,
    dialect: str = "duckdb",
    table: str = "rows",
    key: str | Sequence[str] = (),
) -> str:
    """Export a fitted model as SQL: a SELECT that computes the label, scores and probabilities of each row.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers, as `polyplane.save` takes it, that ends in one.
    dtype : {"float32", "float64"} or None, default=None
        Data type of the weights. None: that of the planes. Sums are computed in float64.
    dialect : {"sqlite", "duckdb", "postgresql"}, default="duckdb"
        The database. SQLite must be 3.35 or newer, with its mathematical functions, and PostgreSQL 12 or newer.
    table : str, default="rows"
        The table to read the rows from.
    key : str or sequence of str, default=()
        Columns of the table to keep in the result, to identify its rows.

    Returns
    -------
    text : str
        The query. Its result has the columns `key`, "label", and for each class "score_LABEL" and, if the model has
        probabilities, "probability_LABEL". (Labels that are too long for column names, or differ in case only, are
        replaced by class numbers.)

    See Also
    --------
    polyplane.export : Write the query to a file.

    Examples
    --------
    >>> import sqlite3
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_sql
    >>> model = PegasosSVC(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE rows AS SELECT 7 AS id, 1.5 AS x0")
    >>> database.execute(to_sql(model, dialect="sqlite", key="id")).fetchone()[:2]
    (7, 'yes')
    """
    from polyplane.exports._sql import write_sql

    keys = (key,) if isinstance(key, str) else tuple(key)
    return write_sql(program_of(model, dtype, ("float32", "float64")), dialect, table, keys)


def program_of(model: Any, dtype: str | None, allowed: tuple[str, ...]) -> Program:
    """Return the model as a `Program`, which all exports write; `dtype` must be None or one of `allowed`."""
    from polyplane.exports._program import learner_program, pipeline_program
    from polyplane.exports._table_program import table_program
    from polyplane.tables.classifier import TableClassifier

    if dtype is not None and dtype not in allowed:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(allowed)}.")
    model = unwrap_pipeline(single(model))
    if isinstance(model, TableClassifier):
        check_is_fitted(model)
        program = table_program(model)
    elif isinstance(model, ScaledLearner):
        program = pipeline_program(model)
    elif isinstance(model, PlanePrediction):
        program = learner_program(model)
    else:
        raise TypeError(f"Expected a fitted estimator of Polyplane, not a {type(model).__name__}.")
    return program if dtype is None else replace(program, dtype=dtype)


def single(model: Any) -> Any:
    """Return the model itself, or the best estimator of a search."""
    return getattr(model, "best_estimator_", model)
