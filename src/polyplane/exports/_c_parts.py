"""The constant parts of a C program; `PREFIX`, `REAL` and other words in capitals are replaced for each model."""

from polyplane.exports._program import CLIP, LARGEST

#: The declarations; other files include this file with NAME_DECLARATIONS defined.
DECLARATIONS = """\
#ifndef NAME_DECLARED
#define NAME_DECLARED

#define NAME_CLASSES N_CLASSES
#define NAME_PLANES N_PLANES
GIVEN
#ifdef __cplusplus
extern "C" {
#endif
extern LABELS;
SIGNATURE;
#ifdef __cplusplus
}
#endif

#endif

#ifndef NAME_DECLARATIONS
#include <math.h>
#include <string.h>
"""
END_OF_FILE = """
#endif /* NAME_DECLARATIONS */
"""

#: The type of sums in float32 programs.
SUM = """
/* The type of sums. If double is slow, as on a microcontroller with single precision only, define NAME_SUM as float:
   scores then lose about one digit. */
#ifndef NAME_SUM
#define NAME_SUM double
#endif
"""

ADD_UNIFORM = """
/* Adds value times the weights of a feature to the scores of the planes. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + (size_t)feature * NAME_PLANES;
    int k;
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] += value * weight[k];
}
"""

ADD_RANGES = """
/* Adds value times the weights of a feature to the scores of the planes that use it. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + PREFIX_offsets[feature];
    const ELEMENT *end = PREFIX_weights + PREFIX_offsets[feature + 1];
    planes += PREFIX_starts[feature];
    while (weight < end)
        *planes++ += value * *weight++;
}
"""

#: Functions that add the features of a number, by kind: features `first` to `last`, exclusive.
TERMS = {
    kind: f"""
/* Adds the features of x: {about}. */
static void PREFIX_{name}(SUM *planes, double x, int first, int last)
{{
    int j;
    for (j = first; j < last; j++) {{
        double u = (x - PREFIX_centres[j]) * PREFIX_factors[j];
        PREFIX_add(planes, j, (SUM)({value}));
    }}
}}
"""
    for kind, name, about, value in (
        (
            *("scaled", "scaled", "(x - centre) * factor"),
            f"u < -{LARGEST:g} ? -{LARGEST:g} : u > {LARGEST:g} ? {LARGEST:g} : u",
        ),
        ("clipped", "clipped", "(x - centre) * factor, with a smooth limit", f"u / sqrt(1.0 + u * u / {CLIP**2})"),
        (
            *("clipped square", "clipped_square", "the square of that with a smooth limit"),
            f"u * u / (1.0 + u * u / {CLIP**2})",
        ),
        (
            *("square", "square", "the square of (x - centre) * factor"),
            "u * u < PREFIX_limits[j] ? u * u : PREFIX_limits[j]",
        ),
        ("bin", "bin", "the fraction of each bin that is below x, from 0 to 1", "u < 0.0 ? 0.0 : u > 1.0 ? 1.0 : u"),
    )
}

#: The class scores, computed from the plane scores.
HARD = """
/* The score of a class is the mean over the members of the largest score of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++) {
        classes[c] = 0.0;
        for (m = 0; m < N_MEMBERS; m++) {
            const EDGE *edge = PREFIX_edges + m * (NAME_CLASSES + 1) + c;
            SUM best = planes[edge[0]];
            for (k = edge[0] + 1; k < edge[1]; k++)
                if (planes[k] > best)
                    best = planes[k];
            classes[c] += best;
        }
        classes[c] /= N_MEMBERS;
    }
}
"""

SOFT = """
/* The score of a class is the mean over the members of the log-sum-exp of the scores of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++)
        classes[c] = 0.0;
    for (m = 0; m < N_MEMBERS; m++) {
        const EDGE *edge = PREFIX_edges + m * (NAME_CLASSES + 1);
        SUM most = planes[edge[0]];
        for (k = edge[0] + 1; k < edge[NAME_CLASSES]; k++)
            if (planes[k] > most)
                most = planes[k];
        for (c = 0; c < NAME_CLASSES; c++) {
            REAL sum = 0;
            for (k = edge[c]; k < edge[c + 1]; k++)
                sum += EXP((REAL)(planes[k] - most));
            classes[c] += log(sum > LEASTR ? sum : LEASTR) + most;
        }
    }
    for (c = 0; c < NAME_CLASSES; c++)
        classes[c] /= N_MEMBERS;
}
"""

BEGIN_INT8 = """\
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = 0;
"""
BEGIN = """\
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = (SUM)PREFIX_intercepts[k];
"""
END_INT8 = """\
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = planes[k] * PREFIX_scales[k] + PREFIX_intercepts[k];
"""
END = """\

    PREFIX_classes(planes, classes);
    for (c = 1; c < NAME_CLASSES; c++)
        if (classes[c] > classes[winner])
            winner = c;
    if (scores != NULL)
        for (c = 0; c < NAME_CLASSES; c++)
            scores[c] = (REAL)classes[c];
"""
PROBABILITIES = """\
    if (probabilities != NULL) {
        REAL sum = 0;
        for (c = 0; c < NAME_CLASSES; c++) {
            probabilities[c] = EXP((REAL)((classes[c] - classes[winner]) / TEMPERATURE));
            sum += probabilities[c];
        }
        for (c = 0; c < NAME_CLASSES; c++)
            probabilities[c] /= sum;
    }
"""
