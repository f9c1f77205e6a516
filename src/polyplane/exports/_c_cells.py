"""The constant parts of a C program that read strings: categories and dates."""

TEXT = """
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

/* Returns the text without leading and trailing whitespace, and its length; NULL if the value is missing. */
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
    k = 1;
    while (k <= 3) {
        if (n >= k && PREFIX_blank(text + n - k, k) == k) {
            n -= k;
            k = 1;
        } else {
            k++;
        }
    }
    *length = n;
    for (i = 0; i < N_MISSING_TEXTS; i++)
        if (strlen(PREFIX_missing_texts[i]) == n && memcmp(PREFIX_missing_texts[i], text, n) == 0)
            return NULL;
    return text;
}
"""

CATEGORY = """
/* Adds the feature of a category: first + i for level i, `other` for an unknown level, `missing` for a missing value.
   A negative index means that there is no such feature. */
static void PREFIX_category(SUM *planes, const char *text, const char *const *levels, int n,
    int first, int other, int missing)
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
"""
