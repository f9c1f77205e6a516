"""The compiled parsers of decimal numbers, svmlight rows and delimited rows.

Decimal numbers become the nearest float, as by Python's `float`, without creating Python objects. Most numbers are an
integer below 2**53 multiplied or divided by a power of ten up to 10**22: both are floats, so one operation rounds
correctly (Clinger 1990). The others are multiplied by a 128-bit power of five, whose upper bits determine the rounding
(Lemire 2021, "Number parsing at a gigabyte per second"). The remaining cases, more than 19 digits and the ends of the
range, are marked as hard, and the caller parses them with `float`.
"""

from typing import Any

import numpy as np

from polyplane.kernels.jit import kernel, njit
from polyplane.readers.rows import LABEL, SKIPPED
from polyplane.readers.text import (
    BAD_INDEX,
    BAD_QUOTE,
    BAD_VALUE,
    COLUMN,
    DONE,
    EMPTY,
    FEW_COLUMNS,
    LARGE_INDEX,
    LINE,
    MANY_COLUMNS,
    N_HARD,
    N_ROWS,
    POSITION,
    Parsed,
)

#: The outcome of parsing a number.
GOOD, HARD, BAD = 0, 1, 2

#: Character codes.
TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH, PLUS, MINUS, POINT, COLON = (ord(c) for c in '\t\n\r "#+-.:')
ZERO, UPPER_E, LOWER_E = ord("0"), ord("E"), ord("e")

#: Range of powers of ten for which no result with up to 19 digits is subnormal or infinite.
MIN_POWER, MAX_POWER = -300, 280
EXACT_POWERS = np.array([10.0**q for q in range(23)])


def _power_of_five(q: int) -> tuple[int, int]:
    """Return the 128 leading bits of 5**q, in two halves: rounded down, or up if q is negative."""
    if q >= 0:
        power = 5**q
        length = power.bit_length()
        bits = power << (128 - length) if length <= 128 else power >> (length - 128)
    else:
        power = 5**-q
        bits = (1 << (power.bit_length() + 127)) // power + 1
    return bits >> 64, bits & (2**64 - 1)


FIVES = np.array([_power_of_five(q) for q in range(MIN_POWER, MAX_POWER + 1)], dtype=np.uint64)
TWOS = np.array([2.0**k for k in range(-1074, 972)])

_U0, _ONE, _U2, _U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_U32, _U63, _LOW = np.uint64(32), np.uint64(63), np.uint64(2**32 - 1)
_TEN, _FULL, _BELOW = np.uint64(10), np.uint64(2**64 - 1), np.uint64(2**9 - 1)
_EXACT = np.uint64(2**53)


@njit
def _product(a: Any, b: Any) -> Any:
    """Return the two halves of the 128-bit product."""
    a_high, a_low, b_high, b_low = a >> _U32, a & _LOW, b >> _U32, b & _LOW
    low, cross, other, high = a_low * b_low, a_high * b_low, a_low * b_high, a_high * b_high
    middle = (low >> _U32) + (cross & _LOW) + (other & _LOW)
    return high + (cross >> _U32) + (other >> _U32) + (middle >> _U32), (middle << _U32) | (low & _LOW)


@njit
def _leading_zeros(digits: Any) -> Any:
    zeros, step = np.uint64(0), _U32
    while step > _U0:
        if digits >> (np.uint64(64) - step) == _U0:
            digits <<= step
            zeros += step
        step >>= _ONE
    return zeros


@njit
def scaled(digits: Any, q: int) -> Any:
    """Return the float nearest to ``digits * 10**q``, and whether it is certain; `digits` is not 0."""
    zeros = _leading_zeros(digits)
    normal = digits << zeros
    five = q - MIN_POWER
    high, low = _product(normal, FIVES[five, 0])
    if high & _BELOW == _BELOW:  # the lower half of the power may carry into the relevant bits
        carry, _ = _product(normal, FIVES[five, 1])
        low += carry
        if low < carry:
            high += _ONE
    if low == _FULL and (q < -27 or q > 55):
        return 0.0, False
    upper = high >> _U63
    shift = upper + np.uint64(9)
    mantissa = high >> shift
    exactly_between = low <= _ONE and -4 <= q <= 23 and mantissa & _U3 == _ONE and mantissa << shift == high
    if exactly_between:  # round to even
        mantissa &= ~_ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    # floor(q log2(5)) + q, as the table's powers are scaled to 128 bits
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) - 52
    return np.float64(np.int64(mantissa)) * TWOS[exponent + 1074], True


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
def number(text: np.ndarray, at: Any) -> Any:
    """Parse the decimal number at `at`, which must be followed by a character that is not part of a number.

    Returns
    -------
    value : float
        The number, if the outcome is `GOOD`.
    end : int
        The first position after it.
    outcome : int
        `GOOD`, `HARD` (a number, to be parsed by `float`) or `BAD`.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += _ONE
    first = at
    digits, at = _digits(text, at, _U0)
    n_digits, q = np.int64(at - first), np.int64(0)
    if text[at] == POINT:
        at += _ONE
        first = at
        digits, at = _digits(text, at, digits)
        q = -np.int64(at - first)
        n_digits -= q
    if n_digits == 0:
        return 0.0, at, BAD
    if text[at] == LOWER_E or text[at] == UPPER_E:
        power, at = _exponent(text, at + _ONE)
        if power == BAD_EXPONENT:
            return 0.0, at, BAD
        q += power
    value, sure = _value(digits, n_digits, q)
    return -value if negative else value, at, GOOD if sure else HARD


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
def _value(digits: Any, n_digits: int, q: int) -> Any:
    """Return the value of digits times a power of ten, and whether it is certain."""
    if n_digits > 19:
        return 0.0, False
    if digits < _EXACT and -23 < q < 23:
        whole = np.float64(np.int64(digits))
        return (whole * EXACT_POWERS[q], True) if q >= 0 else (whole / EXACT_POWERS[-q], True)
    if digits == _U0:
        return 0.0, True
    if q < MIN_POWER or q > MAX_POWER:
        return 0.0, False
    return scaled(digits, q)


@njit
def set_aside(out: Parsed, position: int, start: Any, end: Any) -> None:
    """Record a hard number of the current row for the caller; `position` is that among the values, -1 for a label."""
    n = out.tally[N_HARD]
    out.hard[n, 0], out.hard[n, 1], out.hard[n, 2], out.hard[n, 3] = out.tally[N_ROWS], position, start, end
    out.tally[N_HARD] += 1


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
def _label(text: np.ndarray, at: Any, row: int, out: Parsed) -> Any:
    """Parse the label at `at`; return its end."""
    start = at
    while not _ends_token(text[at]) and text[at] != COLON:
        at += _ONE
    if text[at] == COLON:  # the first feature already, or a qid: the row has no label
        at = start
    value, end, outcome = number(text, start)
    out.labels[row] = value if outcome == GOOD and end == at else np.nan
    out.spans[row, 0], out.spans[row, 1] = start, at
    if outcome == HARD and end == at:
        set_aside(out, -1, start, at)
    return at


@njit
def _features(text: np.ndarray, at: Any, p: Any, limit: int, out: Parsed) -> Any:
    """Parse the features at `at` into positions from `p`; return their end, the next position, and the status."""
    while True:
        while _is_blank(text[at]):
            at += _ONE
        if text[at] == NEWLINE or text[at] == HASH:
            break
        start = at
        j, at = _digits(text, at, _U0)
        if at == start or text[at] != COLON:
            if not _is_qid(text, start):
                return start, p, BAD_INDEX
            while not _ends_token(text[at]):
                at += _ONE
            continue
        index = np.int64(j)
        if index > limit or at - start > np.uint64(18):
            return start, p, LARGE_INDEX
        start = at + _ONE
        value, at, outcome = number(text, start)
        if outcome == BAD or not _ends_token(text[at]):
            return start, p, BAD_VALUE
        if outcome == HARD:
            set_aside(out, p, start, at)
        out.indices[p], out.values[p] = index, value
        p += 1
    return at, p, DONE


@kernel
def parse_svmlight(text: np.ndarray, size: int, first_line: int, limit: int, out: Parsed) -> int:
    """Parse complete lines, the last one ended by a newline, into `out`.

    Parameters
    ----------
    text : ndarray of uint8
        The lines.
    size : int
        The number of characters.
    first_line : int
        The number of the first line.
    limit : int
        The largest index allowed.
    out : Parsed
        The output arrays, large enough: a value needs four characters, a row two.

    Returns
    -------
    status : int
        `DONE`, or the reason why parsing stopped at the position in the tally.
    """
    at, stop, line = np.uint64(0), np.uint64(size), first_line
    row, p, status = 0, 0, DONE
    out.indptr[0] = 0
    out.tally[:] = 0
    while at < stop:
        while _is_blank(text[at]):
            at += _ONE
        if text[at] != NEWLINE and text[at] != HASH:
            out.lines[row] = line
            at = _label(text, at, row, out)
            at, p, status = _features(text, at, p, limit, out)
            if status != DONE:
                break
            row += 1
            out.indptr[row], out.tally[N_ROWS] = p, row
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
    out.tally[LINE], out.tally[POSITION] = line, at
    return status


@njit
def _ends_line(text: np.ndarray, at: Any) -> Any:
    return text[at] == NEWLINE or (text[at] == RETURN and text[at + _ONE] == NEWLINE)


@njit
def _past_cell(text: np.ndarray, at: Any, delimiter: int) -> Any:
    """Return the span of the cell at `at` without its quotes, its end, and whether its quotes are closed."""
    if text[at] != QUOTE:
        start = at
        while text[at] != delimiter and not _ends_line(text, at):
            at += _ONE
        stop = at
        while stop > start and text[stop - _ONE] == SPACE:
            stop -= _ONE
        return start, stop, at, True
    at += _ONE
    start = at
    while text[at] != QUOTE or text[at + _ONE] == QUOTE:
        if text[at] == NEWLINE:
            return start, at, at, False
        at += _ONE + np.uint64(text[at] == QUOTE)
    return start, at, at + _ONE, True


@njit
def _cell(text: np.ndarray, at: Any, delimiter: int, use: int, out: Parsed) -> Any:
    """Parse the cell at `at`, of any content, according to the use of its column; return its end, and the status."""
    while text[at] == SPACE:
        at += _ONE
    start, stop, end, closed = _past_cell(text, at, delimiter)
    while text[end] == SPACE:
        end += _ONE
    if not closed or (text[end] != delimiter and not _ends_line(text, end)):
        return start, BAD_QUOTE
    if use == SKIPPED:
        return end, DONE
    if start == stop and use != LABEL:
        return start, EMPTY
    row = out.tally[N_ROWS]
    value, past, outcome = number(text, start)
    if past != stop:
        outcome = BAD
    if use == LABEL:
        out.labels[row] = value if outcome == GOOD else np.nan
        out.spans[row, 0], out.spans[row, 1] = start, stop
    elif outcome == BAD:
        return start, BAD_VALUE
    else:
        out.values[row, use] = value
    if outcome == HARD:
        set_aside(out, row * out.values.shape[1] + use if use >= 0 else -1, start, stop)
    return end, DONE


@njit
def _row(text: np.ndarray, at: Any, delimiter: int, uses: np.ndarray, out: Parsed) -> Any:
    """Parse the row at `at`; return its end, and the status."""
    row, last = out.tally[N_ROWS], len(uses) - 1
    for column in range(len(uses)):
        use, plain = uses[column], False
        if use >= 0:  # the common case: a number without quotes or spaces
            value, end, outcome = number(text, at)
            plain = outcome == GOOD and (text[end] == delimiter or _ends_line(text, end))
        if plain:
            out.values[row, use] = value
            at = end
        else:
            out.tally[COLUMN] = column
            at, status = _cell(text, at, delimiter, use, out)
            if status != DONE:
                return at, status
        if column < last:
            if text[at] != delimiter:
                return at, FEW_COLUMNS
            at += _ONE
    return at, DONE if _ends_line(text, at) else MANY_COLUMNS


@kernel
def parse_delimited(text: np.ndarray, size: int, first_line: int, delimiter: int, uses: np.ndarray, out: Parsed) -> int:
    """Parse complete lines, the last one ended by a newline, into `out`.

    Parameters
    ----------
    text : ndarray of uint8
        The lines.
    size : int
        The number of characters.
    first_line : int
        The number of the first line.
    delimiter : int
        The delimiter.
    uses : ndarray of int64
        The use of each column: the index of a feature, `LABEL` or `SKIPPED`.
    out : Parsed
        The output arrays, large enough: a cell needs one character, a feature two.

    Returns
    -------
    status : int
        `DONE`, or the reason why parsing stopped at the position in the tally.
    """
    at, stop, line, status = np.uint64(0), np.uint64(size), first_line, DONE
    out.tally[:] = 0
    while at < stop:
        if not _ends_line(text, at):
            out.lines[out.tally[N_ROWS]] = line
            at, status = _row(text, at, delimiter, uses, out)
            if status != DONE:
                break
            out.tally[N_ROWS] += 1
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
    out.tally[LINE], out.tally[POSITION] = line, at
    return status
