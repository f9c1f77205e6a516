"""Parsing of decimal numbers to the nearest float, as Python's `float` does, without creating Python objects.

Most numbers are an integer below 2**53 multiplied or divided by a power of ten up to 10**22: both are floats, so one
operation rounds correctly (Clinger 1990). The others are multiplied by a 128-bit power of five, whose upper bits
determine the rounding (Lemire 2021, "Number parsing at a gigabyte per second"). The remaining cases, more than 19
digits and the ends of the range, are marked as hard, and the caller parses them with `float`.
"""

from typing import Any

import numpy as np
from numba import njit

from polyplane.readers._text import N_HARD, N_ROWS, Parsed

#: The outcome of parsing a number.
GOOD, HARD, BAD = 0, 1, 2

#: Character codes.
TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH, PLUS, MINUS, POINT, COLON, UNDERSCORE = (ord(c) for c in '\t\n\r "#+-.:_')
ZERO, UPPER_E, LOWER_E = ord("0"), ord("E"), ord("e")

#: Range of powers of ten for which no result with up to 19 digits is subnormal or infinite.
LEAST_POWER, LARGEST_POWER = -300, 280
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


FIVES = np.array([_power_of_five(q) for q in range(LEAST_POWER, LARGEST_POWER + 1)], dtype=np.uint64)
TWOS = np.array([2.0**k for k in range(-1074, 972)])

_U0, _U1, _U2, _U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_U32, _U63, _LOW = np.uint64(32), np.uint64(63), np.uint64(2**32 - 1)
_TEN, _FULL, _BELOW = np.uint64(10), np.uint64(2**64 - 1), np.uint64(2**9 - 1)
_HIDDEN, _EXACT = np.uint64(2**53), np.uint64(2**53)


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
        step >>= _U1
    return zeros


@njit
def scaled(digits: Any, q: int) -> Any:
    """Return the float nearest to ``digits * 10**q``, and whether it is certain; `digits` is not 0."""
    zeros = _leading_zeros(digits)
    normal = digits << zeros
    five = q - LEAST_POWER
    high, low = _product(normal, FIVES[five, 0])
    if high & _BELOW == _BELOW:  # the lower half of the power may carry into the relevant bits
        carry, _ = _product(normal, FIVES[five, 1])
        low += carry
        if low < carry:
            high += _U1
    if low == _FULL and (q < -27 or q > 55):
        return 0.0, False
    upper = high >> _U63
    shift = upper + np.uint64(9)
    mantissa = high >> shift
    exactly_between = low <= _U1 and -4 <= q <= 23 and mantissa & _U3 == _U1 and mantissa << shift == high
    if exactly_between:  # round to even
        mantissa &= ~_U1
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    # floor(q log2(5)) + q, as the table's powers are scaled to 128 bits
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) - 52
    return np.float64(np.int64(mantissa)) * TWOS[exponent + 1074], True


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
        at += _U1
    digits, first = _U0, at
    c = np.uint64(text[at]) - np.uint64(ZERO)
    while c < _TEN:  # unsigned: characters below "0" become very large
        digits = digits * _TEN + c
        at += _U1
        c = np.uint64(text[at]) - np.uint64(ZERO)
    n_digits, q = np.int64(at - first), np.int64(0)
    if text[at] == POINT:
        at += _U1
        first = at
        c = np.uint64(text[at]) - np.uint64(ZERO)
        while c < _TEN:
            digits = digits * _TEN + c
            at += _U1
            c = np.uint64(text[at]) - np.uint64(ZERO)
        q = -np.int64(at - first)
        n_digits -= q
    if n_digits == 0:
        return 0.0, at, BAD
    if text[at] == LOWER_E or text[at] == UPPER_E:
        power, at = _exponent(text, at + _U1)
        if power == BAD_EXPONENT:
            return 0.0, at, BAD
        q += power
    value, sure = _value(digits, n_digits, q)
    return -value if negative else value, at, GOOD if sure else HARD


#: Larger than any exponent that is parsed here.
BAD_EXPONENT, LARGE_EXPONENT = 1 << 40, 1 << 20


@njit
def _exponent(text: np.ndarray, at: Any) -> Any:
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += _U1
    first, power = at, np.int64(0)
    c = np.uint64(text[at]) - np.uint64(ZERO)
    while c < _TEN:
        power = 10 * power + np.int64(c) if power < LARGE_EXPONENT else power
        at += _U1
        c = np.uint64(text[at]) - np.uint64(ZERO)
    if at == first:
        return BAD_EXPONENT, at
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
    if q < LEAST_POWER or q > LARGEST_POWER:
        return 0.0, False
    return scaled(digits, q)


@njit
def set_aside(out: Parsed, index: int, start: Any, end: Any) -> None:
    """Record a hard number of the current row for the caller; `index` is -1 for a label."""
    n = out.tally[N_HARD]
    out.hard[n, 0], out.hard[n, 1], out.hard[n, 2], out.hard[n, 3] = out.tally[N_ROWS], index, start, end
    out.tally[N_HARD] += 1
