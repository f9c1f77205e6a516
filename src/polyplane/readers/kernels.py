"""The compiled parsers of decimal numbers, svmlight rows and delimited rows.

Decimal numbers become the nearest float, as by Python's `float`, without creating Python objects. Most numbers are an
integer below 2**53 multiplied or divided by a power of ten up to 10**22: both are floats, so one operation rounds
correctly (Clinger 1990). Of the others, the digits and the power of ten are sums of two floats each, and so is their
product, whose error is below 2**-100 of it: this determines the rounding of all but a few numbers. These, and numbers
of more than 19 digits, are left to `float`.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from polyplane.kernels.jit import kernel, njit
from polyplane.readers.rows import LABEL, SKIPPED
from polyplane.readers.text import LINE, N_ROWS, N_VALUES, POSITION, Parsed

#: Character codes.
TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH, PLUS, MINUS, POINT, COLON = (ord(c) for c in '\t\n\r "#+-.:')
ZERO, UPPER_E, LOWER_E = ord("0"), ord("E"), ord("e")

#: Number of digits that an unsigned integer of 64 bits can hold.
MAX_DIGITS = 19
#: Range of powers of ten for which no part of a product with so many digits is subnormal or infinite.
MIN_POWER, MAX_POWER = -270, 280
#: Powers of ten as sums of two floats: the nearest float, and the nearest float to the rest.
POWERS = np.array(
    [(power, float(Fraction(10) ** q - Fraction(power))) for q in range(-270, 281) for power in [float(f"1e{q}")]]
)
EXACT_POWERS = np.array([10.0**q for q in range(23)])
#: Relative error of a product, with a reserve.
ERROR = 1e-30
#: Splits a float into two halves of 26 bits (Dekker 1971).
SPLITTER = 2.0**27 + 1

_U0, _ONE, _U32, _LOW = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
_TEN, _EXACT = np.uint64(10), np.uint64(2**53)


@njit
def _halves(a: float) -> Any:
    high = SPLITTER * a
    high -= high - a
    return high, a - high


@njit
def scaled(digits: Any, power: float, rest: float) -> float:
    """Return the float nearest to ``digits * (power + rest)``; infinity if the error of the product is too large."""
    upper, lower = np.float64(digits >> _U32) * 2.0**32, np.float64(digits & _LOW)
    a = upper + lower
    product = a * power
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(power)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    error += a * rest + (lower - (a - upper)) * power
    value = product + error
    error -= value - product
    is_certain = value + (error - ERROR * value) == value == value + (error + ERROR * value)
    return value if is_certain else np.inf


@njit
def _digits(text: np.ndarray, at: Any, value: Any) -> Any:
    """Append the digits at `at` to an integer; return it, and the end of the digits."""
    digit = np.uint64(text[at]) - np.uint64(ZERO)
    while digit < _TEN:  # unsigned: characters below "0" become very large
        value = value * _TEN + digit
        at += _ONE
        digit = np.uint64(text[at]) - np.uint64(ZERO)
    return value, at


@njit
def _n_leading_zeros(text: np.ndarray, at: Any) -> int:
    n = 0
    while text[at] == ZERO or text[at] == POINT:
        n += text[at] == ZERO
        at += _ONE
    return n


@njit
def number(text: np.ndarray, at: Any) -> Any:
    """Parse the decimal number at `at`, which must be followed by a character that is not part of a number.

    Returns
    -------
    value : float
        The number; infinity if it is left to `float`; NaN if there is no number.
    end : int
        The first position after it.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += _ONE
    start = first = at
    digits, at = _digits(text, at, _U0)
    n_digits, q = np.int64(at - first), np.int64(0)
    if text[at] == POINT:
        at += _ONE
        first = at
        digits, at = _digits(text, at, digits)
        q = -np.int64(at - first)
        n_digits -= q
    if n_digits > MAX_DIGITS:
        n_digits -= _n_leading_zeros(text, start)
    if n_digits == 0:
        return np.nan, at
    if text[at] == LOWER_E or text[at] == UPPER_E:
        power, at = _exponent(text, at + _ONE)
        if power == BAD_EXPONENT:
            return np.nan, at
        q += power
    value = _value(digits, n_digits, q)
    return -value if negative else value, at


#: An exponent that is missing, and one for longer exponents, whose numbers are left to `float`.
BAD_EXPONENT, LARGE_EXPONENT, MAX_EXPONENT_DIGITS = 1 << 40, 1 << 20, 9


@njit
def _exponent(text: np.ndarray, at: Any) -> Any:
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += _ONE
    first = at
    digits, at = _digits(text, at, _U0)
    if at == first:
        return BAD_EXPONENT, at
    power = np.int64(digits) if at - first <= np.uint64(MAX_EXPONENT_DIGITS) else np.int64(LARGE_EXPONENT)
    return -power if negative else power, at


@njit
def _value(digits: Any, n_digits: int, q: int) -> float:
    """Return the value of digits times a power of ten; infinity if it is left to `float`."""
    if n_digits > MAX_DIGITS:
        return np.inf
    if digits < _EXACT and -23 < q < 23:
        whole = np.float64(np.int64(digits))
        return whole * EXACT_POWERS[q] if q >= 0 else whole / EXACT_POWERS[-q]
    if digits == _U0:
        return 0.0
    if q == 0:
        return np.float64(digits)
    if q < MIN_POWER or q > MAX_POWER:
        return np.inf
    return scaled(digits, POWERS[q - MIN_POWER, 0], POWERS[q - MIN_POWER, 1])


@njit
def _is_blank(c: Any) -> Any:
    return c in (SPACE, TAB, RETURN)


@njit
def _ends_token(c: Any) -> Any:
    return c in (SPACE, NEWLINE, TAB, RETURN, HASH)


@njit
def _is_qid(text: np.ndarray, at: Any) -> Any:
    """Whether a query follows; the last newline stops the comparison before the end of the text."""
    return (
        text[at] == ord("q")
        and text[at + _ONE] == ord("i")
        and text[at + np.uint64(2)] == ord("d")
        and text[at + np.uint64(3)] == COLON
    )


@njit
def _label(text: np.ndarray, start: Any, stop: Any, row: int, out: Parsed) -> Any:
    """Keep the label with this span; return whether it is in the common form."""
    value, end = number(text, start)
    value = value if end == stop else np.nan
    out.labels[row], out.spans[row, 0], out.spans[row, 1] = value, start, stop
    return not np.isinf(value)


@njit
def _features(text: np.ndarray, at: Any, p: Any, limit: int, out: Parsed) -> Any:
    """Parse the features at `at` into positions from `p`.

    Return their end, the next position, and whether they are in the common form.
    """
    while True:
        while _is_blank(text[at]):
            at += _ONE
        if text[at] == NEWLINE or text[at] == HASH:
            return at, p, True
        start = at
        index, at = _digits(text, at, _U0)
        if at == start or text[at] != COLON:
            if not _is_qid(text, start):
                return at, p, False
            while not _ends_token(text[at]):
                at += _ONE
            continue
        if np.int64(index) > limit or at - start > np.uint64(18):
            return at, p, False
        value, at = number(text, at + _ONE)
        if not np.isfinite(value) or not _ends_token(text[at]):
            return at, p, False
        out.indices[p], out.values[p] = index, value
        p += 1


@kernel
def parse_svmlight(text: np.ndarray, limit: int, out: Parsed) -> None:
    """Parse lines, from the position in the tally up to the first one that is not in the common form.

    Parameters
    ----------
    text : ndarray of uint8
        Complete lines, the last one ended by a newline.
    limit : int
        The largest index allowed.
    out : Parsed
        The output arrays, large enough: a value needs four characters, a row two.
    """
    at, line = np.uint64(out.tally[POSITION]), out.tally[LINE]
    row, p = out.tally[N_ROWS], out.tally[N_VALUES]
    while at < np.uint64(len(text)):
        while _is_blank(text[at]):
            at += _ONE
        if text[at] != NEWLINE and text[at] != HASH:
            start = at
            while not _ends_token(text[at]) and text[at] != COLON:
                at += _ONE
            if text[at] == COLON:  # the first feature already, or a qid: the row has no label
                at = start
            is_label = _label(text, start, at, row, out)
            at, p, is_common = _features(text, at, p, limit, out)
            if not (is_label and is_common):
                return
            out.lines[row] = line
            row += 1
            out.indptr[row] = p
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
        out.tally[LINE], out.tally[POSITION], out.tally[N_ROWS], out.tally[N_VALUES] = line, at, row, p


@njit
def _ends_line(text: np.ndarray, at: Any) -> Any:
    return text[at] == NEWLINE or (text[at] == RETURN and text[at + _ONE] == NEWLINE)


@njit
def _past_cell(text: np.ndarray, at: Any, delimiter: int) -> Any:
    """Return the span of the cell at `at` without its quotes, and the first position after it.

    If its quotes are not closed on the same line, the span ends before it starts.
    """
    while text[at] == SPACE:
        at += _ONE
    if text[at] != QUOTE:
        start = at
        while text[at] != delimiter and not _ends_line(text, at):
            at += _ONE
        stop = at
        while stop > start and text[stop - _ONE] == SPACE:
            stop -= _ONE
        return start, stop, at
    at += _ONE
    start = at
    while text[at] != QUOTE or text[at + _ONE] == QUOTE:
        if text[at] == NEWLINE:
            return at + _ONE, at, at
        at += _ONE + np.uint64(text[at] == QUOTE)
    stop = at
    at += _ONE
    while text[at] == SPACE:
        at += _ONE
    return start, stop, at


@njit
def _other_cell(text: np.ndarray, at: Any, delimiter: int, use: int, out: Parsed) -> Any:
    """Parse a cell that is not just a number; return its end, and whether it is in the common form."""
    row = out.tally[N_ROWS]
    start, stop, at = _past_cell(text, at, delimiter)
    if start > stop or (text[at] != delimiter and not _ends_line(text, at)):
        return at, False
    if use == LABEL:
        return at, _label(text, start, stop, row, out)
    if use == SKIPPED:
        return at, True
    out.values[row, use], end = number(text, start)
    return at, end == stop and np.isfinite(out.values[row, use])


@njit
def _row(text: np.ndarray, at: Any, delimiter: int, uses: np.ndarray, out: Parsed) -> Any:
    """Parse the row at `at`; return its end, and whether it is in the common form."""
    row, last = out.tally[N_ROWS], len(uses) - 1
    for column in range(len(uses)):
        use, is_plain = uses[column], False
        if use >= 0:  # mostly a number without quotes or spaces
            value, end = number(text, at)
            is_plain = np.isfinite(value) and (text[end] == delimiter or _ends_line(text, end))
        if is_plain:
            out.values[row, use] = value
            at = end
        else:
            at, is_common = _other_cell(text, at, delimiter, use, out)
            if not is_common:
                return at, False
        if column < last:
            if text[at] != delimiter:
                return at, False
            at += _ONE
    return at, _ends_line(text, at)


@kernel
def parse_delimited(text: np.ndarray, delimiter: int, uses: np.ndarray, out: Parsed) -> None:
    """Parse lines, from the position in the tally up to the first one that is not in the common form.

    Parameters
    ----------
    text : ndarray of uint8
        Complete lines, the last one ended by a newline.
    delimiter : int
        The delimiter.
    uses : ndarray of int64
        The use of each column: the index of a feature, `LABEL` or `SKIPPED`.
    out : Parsed
        The output arrays, large enough: a cell needs one character, a feature two.
    """
    at, line = np.uint64(out.tally[POSITION]), out.tally[LINE]
    while at < np.uint64(len(text)):
        if not _ends_line(text, at):
            out.lines[out.tally[N_ROWS]] = line
            at, is_common = _row(text, at, delimiter, uses, out)
            if not is_common:
                return
            out.tally[N_ROWS] += 1
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
        out.tally[LINE], out.tally[POSITION] = line, at
