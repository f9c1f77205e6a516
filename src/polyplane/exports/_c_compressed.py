"""Export of a `CompressedClassifier` to C99, with its one-byte tables."""

from __future__ import annotations

import re

import numpy as np

from polyplane._version import __version__
from polyplane.compression.classifier import CompressedClassifier
from polyplane.exports._c_tables import POINTER, Tables, index_type, label_literals
from polyplane.exports._names import feature_names
from polyplane.exports._text import c_comment, check_c_identifier

_ABOUT = """\
/*
 * A CompressedClassifier as C99, written by polyplane VERSION.
 *
 * PREFIX_predict takes a row of features and returns the index of the predicted class in PREFIX_labels, or -1 if a
 * value is not finite. It writes the scores of the classes to an array of NAME_CLASSES numbers, unless this is NULL. It
 * is thread-safe.
 *
 *     float row[NAME_FEATURES] = {...};
 *     int winner = PREFIX_predict(row, NULL);
 *
 * Features: SHOWN.
 * Memory: N_BYTES bytes of constant tables (int8), N_TEXT of texts with pointers of BITS bits, about N_STACK bytes of
 * stack. Nothing is allocated.
 */
"""

_HEAD = """\
#include <math.h>
#include <stddef.h>

#define NAME_FEATURES N_FEATURES
#define NAME_CLASSES N_CLASSES
#define NAME_PLANES N_PLANES
#define NAME_RANK N_RANK

extern LABELS PREFIX_labels[NAME_CLASSES];
int PREFIX_predict(const float *x, float *scores);

"""

_PREDICT = """
int PREFIX_predict(const float *x, float *scores)
{
    float z[NAME_RANK];
    float largest = 0.0f;
    int c, j, k, r, winner = 0, used = 0;
PROJECT    for (c = 0, k = 0; c < NAME_CLASSES; c++) {
        float best = 0.0f;
        int first = k;
        for (; k < PREFIX_edges[c + 1]; k++) {
            const signed char *weight = PREFIX_weights + (size_t)k * NAME_RANK;
            float score = PREFIX_intercepts[k];
            for (r = 0; r < NAME_RANK; r++)
                score += z[r] * weight[r];
            if (k == first || score > best)
                best = score;
        }
        if (scores != NULL)
            scores[c] = best;
        if (c == 0 || best > largest) {
            largest = best;
            winner = c;
        }
    }
    return winner;
}
"""

_PROJECT = """\
    for (r = 0; r < NAME_RANK; r++)
        z[r] = 0.0f;
    for (j = 0; j < NAME_FEATURES; j++) {
        float value = x[j];
        if (!isfinite(value))
            return -1;
SKIP\
SCALE\
        for (r = 0; r < NAME_RANK; r++)
            z[r] += value * PREFIX_projection[(size_t)used * NAME_RANK + r];
        used++;
    }
    for (r = 0; r < NAME_RANK; r++)
        z[r] *= PREFIX_units[r];
"""

_SELECT = """\
    for (j = 0; j < NAME_FEATURES; j++) {
        float value = x[j];
        if (!isfinite(value))
            return -1;
SKIP\
SCALE\
        z[used] = value * PREFIX_units[used];
        used++;
    }
"""

_SKIP = """\
        if (!(PREFIX_kept[j / 8] >> (j % 8) & 1))
            continue;
"""

_SCALE = """\
        value = (value - PREFIX_centres[used]) * PREFIX_factors[used];
"""


def write_compressed_c(model: CompressedClassifier, name: str) -> str:
    """Return the text of a C file; all identifiers start with `name`."""
    check_c_identifier(name)
    tables = Tables()
    labels = _add_tables(tables, model)
    small = model.tables_
    names = feature_names(model, small.n_features)
    body = _PREDICT.replace("PROJECT", _SELECT if small.projection is None else _PROJECT)
    body = body.replace("SKIP", _SKIP if len(small.kept) < small.n_features else "")
    body = body.replace("SCALE", "" if small.factors is None else _SCALE)
    more = f", and {len(names) - 20} more" if len(names) > 20 else ""
    words = {
        "VERSION": __version__,
        "N_BYTES": tables.n_bytes,
        "N_TEXT": tables.n_text,
        "N_STACK": 4 * small.rank + 48,
        "BITS": 8 * POINTER,
        "N_FEATURES": small.n_features,
        "N_CLASSES": len(model.classes_),
        "N_PLANES": len(small.weights),
        "N_RANK": small.rank,
        "LABELS": label_literals(model.classes_)[0].rstrip(),
    }
    about = re.sub("|".join(words), lambda found: str(words[found[0]]), _ABOUT + _HEAD)
    text = about + tables.text + labels + body
    text = text.replace("PREFIX_", f"{name}_").replace("NAME_", f"{name.upper()}_")
    return text.replace("SHOWN", ", ".join(c_comment(feature) for feature in names[:20]) + more, 1)


def _add_tables(tables: Tables, model: CompressedClassifier) -> str:
    """Add all tables; return the text of the array of labels."""
    small = model.tables_
    if len(small.kept) < small.n_features:
        bits = np.zeros(small.n_features, dtype=bool)
        bits[small.kept] = True
        tables.add("kept", "unsigned char", np.packbits(bits, bitorder="little"))
    if small.centres is not None and small.factors is not None:
        tables.add("centres", "float", small.centres)
        tables.add("factors", "float", small.factors)
    if small.projection is not None:
        tables.add("projection", "signed char", small.projection.T.ravel())
    tables.add("units", "float", small.units)
    tables.add("weights", "signed char", small.weights.ravel())
    tables.add("intercepts", "float", small.intercept)
    tables.add("edges", index_type(len(small.weights)), small.indptr)
    return tables.labels(model.classes_)
