"""The fixed parts of a program in C: `PREFIX`, `REAL` and the like stand for what differs between models."""

from polyplane.io.exports._program import CLIP, LARGEST

#: Headers, and the prototypes of what others may use.
HEAD = """\
#include <math.h>
#include <string.h>

#define NAME_CLASSES N_CLASSES
#define NAME_PLANES N_PLANES
"""

#: The type that programs of float32 add in.
SUM = """
/* The type of sums. Where double is slow, as on a microcontroller with single precision only, compile with
   -DNAME_SUM=float: scores then lose about one digit. */
#ifndef NAME_SUM
#define NAME_SUM double
#endif
"""

ADD_UNIFORM = """
/* Adds a feature of some value to the scores of the planes. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + (size_t)feature * NAME_PLANES;
    int k;
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] += value * weight[k];
}
"""

ADD_RANGES = """
/* Adds a feature of some value to the scores of the planes that it counts for. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + PREFIX_offsets[feature];
    const ELEMENT *end = PREFIX_weights + PREFIX_offsets[feature + 1];
    planes += PREFIX_starts[feature];
    while (weight < end)
        *planes++ += value * *weight++;
}
"""

#: Features of a number, by their kind; each takes those from `first` to `last`, exclusively.
TERMS = {
    kind: f"""
static void PREFIX_{name}(SUM *planes, double x, int first, int last)
{{
    int j;
    for (j = first; j < last; j++) {{
        double u = (x - PREFIX_centres[j]) * PREFIX_factors[j];
        PREFIX_add(planes, j, (SUM)({value}));
    }}
}}
"""
    for kind, name, value in (
        ("scaled", "scaled", f"u < -{LARGEST:g} ? -{LARGEST:g} : u > {LARGEST:g} ? {LARGEST:g} : u"),
        ("clipped", "clipped", f"u / sqrt(1.0 + u * u / {CLIP**2})"),
        ("clipped square", "clipped_square", f"u * u / (1.0 + u * u / {CLIP**2})"),
        ("square", "square", "u * u < PREFIX_limits[j] ? u * u : PREFIX_limits[j]"),
        ("bin", "bin", "u < 0.0 ? 0.0 : u > 1.0 ? 1.0 : u"),
    )
}

TEXT = """
/* How many bytes the blank at the start of a text of n bytes takes, in UTF-8; 0 where there is none. */
static size_t PREFIX_blank(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (n >= 1 && (s[0] == 32 || (s[0] >= 9 && s[0] <= 13) || (s[0] >= 28 && s[0] <= 31)))
        return 1;
    if (n >= 2 && s[0] == 0xC2 && (s[1] == 0x85 || s[1] == 0xA0))
        return 2;
    if (n >= 3 && ((s[0] == 0xE1 && s[1] == 0x9A && s[2] == 0x80) || (s[0] == 0xE3 && s[1] == 0x80 && s[2] == 0x80)
                   || (s[0] == 0xE2 && s[1] == 0x81 && s[2] == 0x9F)
                   || (s[0] == 0xE2 && s[1] == 0x80 && (s[2] <= 0x8A || s[2] == 0xA8 || s[2] == 0xA9 || s[2] == 0xAF))))
        return 3;
    return 0;
}

/* The text without blanks at its ends, and its length; NULL where it is missing. */
static const char *PREFIX_trim(const char *text, size_t *length)
{
    size_t n, k, i;
    if (text == NULL)
        return NULL;
    n = strlen(text);
    while ((k = PREFIX_blank(text, n)) > 0) {
        text += k;
        n -= k;
    }
    for (k = 1; k <= 3; k++)
        while (n >= k && PREFIX_blank(text + n - k, k) == k) {
            n -= k;
            k = 1;
        }
    *length = n;
    for (i = 0; i < N_GAPS; i++)
        if (strlen(PREFIX_gaps[i]) == n && memcmp(PREFIX_gaps[i], text, n) == 0)
            return NULL;
    return text;
}
"""

CATEGORY = """
/* Adds the level of a text, of which the first is the feature `first`; or a gap, or an unknown level, if they count. */
static void PREFIX_category(SUM *planes, const char *text, const char *const *levels, int n, int first, int other,
                            int missing)
{
    size_t length;
    int i;
    text = PREFIX_trim(text, &length);
    if (text == NULL) {
        if (missing >= 0)
            PREFIX_add(planes, missing, 1);
        return;
    }
    for (i = 0; i < n; i++)
        if (strlen(levels[i]) == length && memcmp(levels[i], text, length) == 0) {
            PREFIX_add(planes, first + i, 1);
            return;
        }
    if (other >= 0)
        PREFIX_add(planes, other, 1);
}
"""

DATE = """
/* The number that n digits are; -1 where there are none. */
static int PREFIX_digits(const char *text, int n)
{
    int value = 0;
    for (; n > 0; n--, text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = 10 * value + (*text - '0');
    }
    return value;
}

/* Reads days since 1970, year, month, day of the week and hour of a date like 2024-05-31 or 2024-05-31 17:30:00.
   Returns 0, or 1 where it is missing, or -1 where it is no date. Time zones are ignored: times are as on the wall. */
static int PREFIX_date(const char *text, double *parts)
{
    static const int before[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    const char *s, *end;
    size_t length;
    int year, month, day, hour = 0, minute = 0, second = 0, leap;
    long days, y, digit;
    double unit = 0.1, fraction = 0.0;
    s = PREFIX_trim(text, &length);
    if (s == NULL)
        return 1;
    end = s + length;
    if (length < 10 || (year = PREFIX_digits(s, 4)) < 0 || s[4] != '-' || (month = PREFIX_digits(s + 5, 2)) < 1
        || s[7] != '-' || (day = PREFIX_digits(s + 8, 2)) < 1 || month > 12)
        return -1;
    leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > before[month] - before[month - 1] + (month == 2 && leap))
        return -1;
    s += 10;
    if (end - s >= 6 && (*s == 'T' || *s == ' ') && s[3] == ':') {
        hour = PREFIX_digits(s + 1, 2);
        minute = PREFIX_digits(s + 4, 2);
        s += 6;
        if (end - s >= 3 && *s == ':') {
            second = PREFIX_digits(s + 1, 2);
            s += 3;
            if (end - s >= 2 && (*s == '.' || *s == ',') && PREFIX_digits(s + 1, 1) >= 0)
                for (s++; s < end && (digit = PREFIX_digits(s, 1)) >= 0; s++, unit /= 10.0)
                    if (unit > 5e-7)
                        fraction += (double)digit * unit;
        }
        if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
            return -1;
    }
    if (s < end) {
        if (*s == ' ')
            s++;
        if (*s == 'Z')
            s++;
        else if ((*s == '+' || *s == '-') && PREFIX_digits(s + 1, 2) >= 0) {
            s += 3;
            if (*s == ':')
                s++;
            if (PREFIX_digits(s, 2) < 0)
                return -1;
            s += 2;
        }
    }
    if (s != end)
        return -1;
    y = year + 399L; /* a year that is positive, and in the same place of the 400 years of the calendar */
    days = 365L * y + y / 4 - y / 100 + y / 400 - 865259L;
    days += before[month - 1] + (month > 2 && leap) + day - 1;
    parts[0] = (double)days + (hour * 3600L + minute * 60L + second + fraction) / 86400.0;
    parts[1] = year;
    parts[2] = month;
    parts[3] = (double)(((days + 3) % 7 + 7) % 7 + 1);
    parts[4] = hour;
    return 0;
}
"""

#: The scores of the classes from those of their planes.
HARD = """
/* The score of a class is the mean over the machines of the largest score of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++) {
        classes[c] = 0.0;
        for (m = 0; m < N_MACHINES; m++) {
            const EDGE *edge = PREFIX_edges + m * (NAME_CLASSES + 1) + c;
            SUM best = planes[edge[0]];
            for (k = edge[0] + 1; k < edge[1]; k++)
                if (planes[k] > best)
                    best = planes[k];
            classes[c] += best;
        }
        classes[c] /= N_MACHINES;
    }
}
"""

SOFT = """
/* The score of a class is the mean over the machines of the log-sum-exp of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++)
        classes[c] = 0.0;
    for (m = 0; m < N_MACHINES; m++) {
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
        classes[c] /= N_MACHINES;
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
        for (c = 0; c < NAME_CLASSES; c++)
            sum += probabilities[c] = EXP((REAL)((classes[c] - classes[winner]) / TEMPERATURE));
        for (c = 0; c < NAME_CLASSES; c++)
            probabilities[c] /= sum;
    }
"""
