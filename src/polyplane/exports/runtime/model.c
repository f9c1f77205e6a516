/* The program of exported models. The lines after a comment "@ if" are used if the model has one of the named tables or
   traits, those after "@ else" if not, until "@ end". Words in capitals (PREFIX, REAL, TABLES and others) are replaced. */

/*
 * A LEARNER as C99, written by polyplane VERSION.
 *
 * PREFIX_predict takes a row and returns the index of the predicted class in PREFIX_labels, or -1 for an invalid value (an
 * infinite number, a text that is not a date). It writes the scores and, if the model has them, the probabilities of
 * the classes to arrays of NAME_CLASSES numbers, unless these are NULL. It is thread-safe.
 *
 *     EXAMPLE
 *     int winner = PREFIX_predict(CALL);
 *
 * Other files define NAME_DECLARATIONS and include this file, as a header. Compile with -O3 for speed, but
 * without -ffast-math, which ignores NAN; link with -lm.
 *
 * Columns: COLUMNS.
 * Memory: N_BYTES bytes of constant tables (DTYPE), N_TEXT of texts
 * with pointers of 32 bits, about N_STACK bytes of stack. Nothing is allocated.
 */
#ifndef NAME_DECLARED
#define NAME_DECLARED

#define NAME_CLASSES N_CLASSES
#define NAME_PLANES N_PLANES
/* @ if array */
#define NAME_FEATURES N_FEATURES
/* @ else */

STRUCT
/* @ end */
/* @ if units */
#define NAME_RANK N_RANK
/* @ end */

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
/* @ if float32 */

/* The type of sums. If double is slow, as on a microcontroller with single precision only, define NAME_SUM as float:
   scores then lose about one digit. */
#ifndef NAME_SUM
#define NAME_SUM double
#endif
/* @ end */

TABLES
/* @ if offsets */

/* Adds value times the weights of a feature to the scores of the planes that use it. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + PREFIX_offsets[feature];
    const ELEMENT *end = PREFIX_weights + PREFIX_offsets[feature + 1];
    planes += PREFIX_starts[feature];
    while (weight < end)
        *planes++ += value * *weight++;
}
/* @ else */

/* Adds value times the weights of a feature to the scores of the planes. */
static void PREFIX_add(SUM *planes, int feature, SUM value)
{
    const ELEMENT *weight = PREFIX_weights + (size_t)feature * NAME_PLANES;
    int k;
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] += value * weight[k];
}
/* @ end */
/* @ if struct */
/* @ if centres */

/* Adds the features of x with the indices `first` to `last`, exclusive: functions of (x - centre) * factor. */
enum { NAME_VALUE, NAME_SQUARE, NAME_SMOOTH, NAME_SMOOTH_SQUARE };
static void PREFIX_features(SUM *planes, double x, int op, int first, int last, double low, double high)
{
    int j;
    for (j = first; j < last; j++) {
        double u = (x - PREFIX_centres[j]) * PREFIX_factors[j];
        if (op == NAME_SQUARE)
            u = u * u;
        else if (op == NAME_SMOOTH)
            u = u / sqrt(1.0 + u * u / 9.0);
        else if (op == NAME_SMOOTH_SQUARE)
            u = u * u / (1.0 + u * u / 9.0);
        PREFIX_add(planes, j, (SUM)(u < low ? low : u > high ? high : u));
    }
}
/* @ end */
/* @ end */
/* @ if category date */

/* Returns the number of bytes of the UTF-8 whitespace character at the start of a text of n bytes, or 0. */
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

/* Returns the canonical text of a value, and its length: without leading and trailing whitespace, `true` and `false` in
   lower case; NULL if the value is missing. */
static const char *PREFIX_trim(const char *text, size_t *length)
{
    static const char *const words[2] = {"true", "false"};
    size_t n, k, w;
    if (text == NULL)
        return NULL;
    n = strlen(text);
    while ((k = PREFIX_blank(text, n)) > 0) {
        text += k;
        n -= k;
    }
    k = 1;
    while (k <= 3) {
        if (n >= k && PREFIX_blank(text + n - k, k) == k) {
            n -= k;
            k = 1;
        } else {
            k++;
        }
    }
    for (w = 0; w < 2; w++)
        if (n == strlen(words[w])) {
            for (k = 0; k < n && (text[k] == words[w][k] || text[k] == words[w][k] - 32); k++)
                ;
            if (k == n)
                text = words[w];
        }
    *length = n;
/* @ if missing_texts */
    {
        size_t i;
        for (i = 0; i < N_MISSING_TEXTS; i++)
            if (strlen(PREFIX_missing_texts[i]) == n && memcmp(PREFIX_missing_texts[i], text, n) == 0)
                return NULL;
    }
/* @ end */
    return text;
}
/* @ end */
/* @ if category */

/* Adds the feature of a category: first + i for level i, `other` for an unknown level and those from `own` on, `missing`
   for a missing value. A negative index means that there is no such feature. Returns the index of the level, or -1. */
static int PREFIX_category(SUM *planes, const char *text, const char *const *levels, int n, int own,
    int first, int other, int missing)
{
    size_t length;
    int i;
    text = PREFIX_trim(text, &length);
    if (text == NULL) {
        if (missing >= 0)
            PREFIX_add(planes, missing, 1);
        return -1;
    }
    for (i = 0; i < n; i++)
        if (strlen(levels[i]) == length && memcmp(levels[i], text, length) == 0)
            break;
    if (i < own)
        PREFIX_add(planes, first + i, 1);
    else if (other >= 0)
        PREFIX_add(planes, other, 1);
    return i < n ? i : -1;
}
/* @ end */
/* @ if date */

/* Returns the value of n digits, or -1 if a character is not a digit. */
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

/* Writes the days since 1970, year, month, day of week and hour of a date like 2024-05-31 or 2024-05-31 17:30:00.
   Returns 0, 1 if the date is missing, or -1 if it is invalid. Time zones are ignored: times are local times. */
static int PREFIX_date(const char *text, double *parts)
{
    static const int before[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    const char *s, *end;
    size_t length;
    int year, month, day, hour = 0, minute = 0, second = 0, leap, n = 0;
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
                for (s++; s < end && n < 9 && (digit = PREFIX_digits(s, 1)) >= 0; s++, n++, unit /= 10.0)
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
    y = year + 399L; /* the previous year, shifted by one 400-year cycle of the calendar to be positive */
    days = 365L * y + y / 4 - y / 100 + y / 400 - 865259L;
    days += before[month - 1] + (month > 2 && leap) + day - 1;
    parts[0] = (double)days + (hour * 3600L + minute * 60L + second + fraction) / 86400.0;
    parts[1] = year;
    parts[2] = month;
    parts[3] = (double)(((days + 3) % 7 + 7) % 7 + 1);
    parts[4] = hour;
    return 0;
}
/* @ end */
/* @ if logsumexp */

/* The score of a class is the mean over the members of the log-sum-exp of the scores of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++)
        classes[c] = 0.0;
    for (m = 0; m < N_MEMBERS; m++) {
        const EDGE *edge = PREFIX_edges + m * NAME_CLASSES;
        for (c = 0; c < NAME_CLASSES; c++) {
            SUM most = planes[edge[c]];
            REAL sum = 0;
            for (k = edge[c] + 1; k < edge[c + 1]; k++)
                if (planes[k] > most)
                    most = planes[k];
            for (k = edge[c]; k < edge[c + 1]; k++)
                sum += EXP((REAL)(planes[k] - most));
/* @ if member_weights */
            classes[c] += PREFIX_member_weights[m] * (log(sum) + most);
/* @ else */
            classes[c] += (log(sum) + most);
/* @ end */
        }
    }
    for (c = 0; c < NAME_CLASSES; c++)
        classes[c] /= N_MEMBERS;
}
/* @ else */

/* The score of a class is the mean over the members of the largest score of its planes. */
static void PREFIX_classes(const SUM *planes, double *classes)
{
    int c, m, k;
    for (c = 0; c < NAME_CLASSES; c++) {
        classes[c] = 0.0;
        for (m = 0; m < N_MEMBERS; m++) {
            const EDGE *edge = PREFIX_edges + m * NAME_CLASSES + c;
            SUM best = planes[edge[0]];
            for (k = edge[0] + 1; k < edge[1]; k++)
                if (planes[k] > best)
                    best = planes[k];
/* @ if member_weights */
            classes[c] += PREFIX_member_weights[m] * best;
/* @ else */
            classes[c] += best;
/* @ end */
        }
        classes[c] /= N_MEMBERS;
    }
}
/* @ end */
/* @ if projection */

/* Adds value times the projection of a feature to the projected values. */
static void PREFIX_project(SUM *values, int feature, SUM value)
{
    const signed char *weight = PREFIX_projection + (size_t)feature * NAME_RANK;
    int k;
    for (k = 0; k < NAME_RANK; k++)
        values[k] += value * weight[k];
}
/* @ end */

SIGNATURE
{
    SUM planes[NAME_PLANES];
/* @ if projection */
    SUM projected[NAME_RANK];
/* @ end */
    double classes[NAME_CLASSES];
    int k, c, winner = 0;
/* @ if array */
    int j, f = 0;
/* @ else */
/* @ if number boolean evidence */
    double x;
/* @ end */
/* @ if evidence */
    int level;
/* @ end */
/* @ end */
/* @ if date */
    double parts[5]; /* days since 1970, year, month, day of week, hour */
    int missing;
/* @ end */

/* @ if scales */
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = 0;
/* @ else */
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = (SUM)PREFIX_intercepts[k];
/* @ end */
/* @ if projection */
    for (k = 0; k < NAME_RANK; k++)
        projected[k] = 0;

/* @ end */
/* @ if array */
    for (j = 0; j < NAME_FEATURES; j++) {
        double u = x[j];
/* @ if neutrals */
        if (isinf(u))
/* @ else */
        if (!isfinite(u))
/* @ end */
            return -1;
/* @ if kept */
        if (!(PREFIX_kept[j / 8] >> (j % 8) & 1))
            continue;
/* @ end */
/* @ if neutrals */
        if (isnan(u))
            u = PREFIX_neutrals[f];
/* @ end */
/* @ if centres */
        u -= PREFIX_centres[f];
/* @ end */
/* @ if factors */
        u *= PREFIX_factors[f];
/* @ end */
/* @ if lows */
        u = u < PREFIX_lows[f] ? PREFIX_lows[f] : u > PREFIX_highs[f] ? PREFIX_highs[f] : u;
/* @ end */
/* @ if projection */
        PREFIX_project(projected, f, (float)u);
/* @ else */
/* @ if units */
        PREFIX_add(planes, f, (float)u * PREFIX_units[f]);
/* @ else */
        PREFIX_add(planes, f, (SUM)u);
/* @ end */
/* @ end */
        f++;
    }
/* @ else */
ROWS
/* @ end */
/* @ if projection */
    for (k = 0; k < NAME_RANK; k++)
        PREFIX_add(planes, k, projected[k] * PREFIX_units[k]);
/* @ end */
/* @ if scales */
    for (k = 0; k < NAME_PLANES; k++)
        planes[k] = planes[k] * PREFIX_scales[k] + PREFIX_intercepts[k];
/* @ end */

    PREFIX_classes(planes, classes);
    for (c = 1; c < NAME_CLASSES; c++)
        if (classes[c] > classes[winner])
            winner = c;
    if (scores != NULL)
        for (c = 0; c < NAME_CLASSES; c++)
            scores[c] = (REAL)classes[c];
/* @ if probabilities */
    if (probabilities != NULL) {
        REAL sum = 0;
        for (c = 0; c < NAME_CLASSES; c++) {
            probabilities[c] = EXP((REAL)((classes[c] - classes[winner]) / TEMPERATURE));
            sum += probabilities[c];
        }
        for (c = 0; c < NAME_CLASSES; c++)
            probabilities[c] /= sum;
    }
/* @ end */
    return winner;
}

#endif /* NAME_DECLARATIONS */
