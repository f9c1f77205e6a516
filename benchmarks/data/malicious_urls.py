"""`make_url_stream`: a drifting, very sparse stream in the shape of the malicious-URL data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from polyplane.datasets._checks import check_counts, check_shares

#: Features of a row: some that nearly all rows have; slots filled by the host; slots filled by the path; names of the
#: host, new on the day it appears; words of the URL that are new on the very day.
N_COMMON, N_HOST, N_PATH, N_NAMES, N_NEW = 6, 56, 76, 10, 4
#: Where the shared slots end and the new features begin, as a share of all features.
SHARED = 0.25
#: Share of a day's new features that are names of hosts; the others are words of URLs.
NAMES = 0.4
#: On the first day everything is new: so many times the new features of another day.
FIRST_DAY = 10
#: Groups of values with a meaning in common; the first half of them never changes its meaning.
N_GROUPS = 256
#: Campaigns that begin in a day, hosts of a campaign, hosts known from the beginning, other hosts that begin in a day.
N_CAMPAIGNS, N_CAMPAIGN_HOSTS, N_OLD_HOSTS, N_NEW_HOSTS = 24, 40, 20_000, 1_500
#: How often a value that speaks for the other class is drawn again; in the rows of a campaign that hides in other
#: people's hosts, the share of which comes next, only the path tells; then the share of wrong labels.
AVOIDANCE, COMPROMISED, MISLABELLED = 0.75, 0.06, 0.008
#: 2^64 over the golden ratio, and the lower 16 bits of a word.
GOLDEN, MASK = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFF)
#: Rows made at a time: their hashes stay in the cache of the processor.
CHUNK = 2048


def make_url_stream(
    n_days: int = 120,
    rows_per_day: int = 20_000,
    n_features: int = 3_200_000,
    *,
    malicious: float = 1 / 3,
    random_state: Any = 0,
) -> UrlStream:
    """A stream of malicious and other URLs, day by day, in the shape of the data of Ma et al.

    Rows have about 115 binary features out of millions, with heavy-tailed frequencies: properties of the host, words of
    the path, names. Malicious URLs come in campaigns of hosts with much in common, which appear, live for some days,
    and vanish; each day brings features that no earlier day had; and what some features stand for changes with time.
    So a model that does not go on learning decays. Some URLs of campaigns hide in other people's hosts, and some
    labels are wrong.

    Parameters
    ----------
    n_days : int, default=120
        Number of days.
    rows_per_day : int, default=20_000
        Number of rows of a day.
    n_features : int, default=3_200_000
        Number of features of all days together; at least 100 for a day, and 1,000 on top.
    malicious : float, default=1/3
        Share of malicious URLs.
    random_state : int, RandomState instance or None, default=0
        Seed. Day d of a seed is always the same.

    Returns
    -------
    stream : sequence of (X, y)
        ``stream[d]`` makes day d: X of shape (rows_per_day, n_features), CSR, float32, and y with 1 for malicious and
        -1 for other URLs. Iterating goes through the days; only one is in memory.

    References
    ----------
    .. [1] J. Ma, L. Saul, S. Savage and G. Voelker, "Identifying suspicious URLs: an application of large-scale online
       learning", ICML 2009.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from benchmarks.data.malicious_urls import make_url_stream
    >>> stream = make_url_stream(n_days=20, rows_per_day=500, n_features=50_000)
    >>> X, y = stream[7]
    >>> X.shape, X.nnz, int((y == 1).sum())
    ((500, 50000), 57799, 149)
    >>> machine = SGDClassifier(random_state=0)
    >>> for X, y in stream:
    ...     machine = machine.partial_fit(X, y, classes=[-1, 1])
    """
    check_counts(n_days=n_days, rows_per_day=rows_per_day, n_features=n_features)
    check_shares(malicious=malicious)
    if n_features >= 2**31:
        raise ValueError(f"n_features={n_features} is more than 32-bit numbers can count.")
    if n_features < 1000 + 100 * n_days:
        raise ValueError(f"n_features={n_features} is too few for {n_days} days; give {1000 + 100 * n_days} or more.")
    seed = int(check_random_state(random_state).randint(2**32, dtype=np.uint32))
    return UrlStream(n_days, rows_per_day, n_features, malicious, seed)


class UrlStream:
    """What `make_url_stream` returns: days by their number.

    Parameters
    ----------
    n_days, rows_per_day, n_features, malicious
        As in `make_url_stream`.
    seed : int
        Seed of all hashes.
    """

    def __init__(self, n_days: int, rows_per_day: int, n_features: int, malicious: float, seed: int) -> None:
        self.n_days = n_days
        self.rows_per_day = rows_per_day
        self.n_features = n_features
        self.malicious = malicious
        self._seed = np.array([seed], dtype=np.uint64)  # an array: NumPy warns of the overflow of lone numbers
        n_slots = N_HOST + N_PATH
        self._vocabulary = (int(SHARED * n_features) - N_COMMON) // n_slots
        first_new = N_COMMON + n_slots * self._vocabulary
        per_day = (n_features - first_new) // (n_days + FIRST_DAY - 1)
        self._sizes = np.where(np.arange(n_days) == 0, FIRST_DAY, 1) * per_day
        self._starts = first_new + np.cumsum(self._sizes) - self._sizes
        self._ranks = _heavy_tail(self._vocabulary)
        self._bad = self._meanings()

    def __len__(self) -> int:
        return self.n_days

    def __repr__(self) -> str:
        return f"UrlStream(n_days={self.n_days}, rows_per_day={self.rows_per_day}, n_features={self.n_features})"

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        return (self[day] for day in range(self.n_days))

    def __getitem__(self, day: int) -> tuple[Any, np.ndarray]:
        if not -self.n_days <= day < self.n_days:
            raise IndexError(f"There is no day {day} in a stream of {self.n_days}.")
        starts = range(0, self.rows_per_day, CHUNK)
        chunks = [self._rows(day % self.n_days, first, min(first + CHUNK, self.rows_per_day)) for first in starts]
        indices = np.concatenate([indices for indices, _, _ in chunks])
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([lengths for _, lengths, _ in chunks]))])
        y = np.concatenate([y for _, _, y in chunks])
        X = sparse.csr_matrix(
            (np.ones(len(indices), np.float32), indices, indptr.astype(np.int32)),
            shape=(self.rows_per_day, self.n_features),
        )
        return X, y

    def _rows(self, day: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, their number in each row, and labels of some rows of a day."""
        row = _mix(_mix(self._seed + np.uint64(day)) + np.arange(first, last, dtype=np.uint64))[:, None]
        is_bad = _share(row, 1) < self.malicious
        hidden = is_bad & (_share(row, 2) < COMPROMISED)
        born, host, campaign = self._hosts(row, is_bad & ~hidden, day)
        begun, _, path = self._hosts(_mix(row + np.uint64(9)), is_bad, day)
        path = np.where(is_bad & ~hidden, campaign, np.where(is_bad, path, host))
        begun = np.where(hidden, begun, born)
        blocks = [
            self._common(row),
            self._host_slots(host, campaign, is_bad & ~hidden, born),
            self._path_slots(row, path, is_bad, begun, day),
            self._names(host, campaign, born),
            self._new_words(row, day),
        ]
        present = np.concatenate([present for _, present in blocks], axis=1)
        features = np.concatenate([features for features, _ in blocks], axis=1)
        wrong = _share(row, 3) < MISLABELLED
        y = np.where(is_bad ^ wrong, 1, -1).astype(np.int8)[:, 0]
        return features[present], present.sum(axis=1), y

    def _hosts(self, row: np.ndarray, is_bad: np.ndarray, day: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each row the day its host appeared, the host, and its campaign; a harmless host is its own campaign."""
        age = (4.0 / (0.06 + _share(row, 4)) - 3.7).astype(np.int64)  # up to 62 days, half of them below 4
        old = ~is_bad & (_share(row, 5) < 0.6)
        born = np.where(old, 0, np.maximum(day - age, 0))
        number = (_share(row, 6) ** 2 * N_CAMPAIGNS).astype(np.uint64)
        campaign = _mix(_mix(self._seed ^ born.astype(np.uint64)) + number)
        over = day - born > 5 + (campaign % np.uint64(50)).astype(np.int64)  # it lived for 5 to 54 days
        born = np.where(is_bad & over, day, born)
        campaign = _mix(_mix(self._seed ^ born.astype(np.uint64)) + number)
        bad_host = _mix(campaign + (_share(row, 7) ** 2 * N_CAMPAIGN_HOSTS).astype(np.uint64))
        popularity = (_share(row, 8) ** 3 * np.where(old, N_OLD_HOSTS, N_NEW_HOSTS)).astype(np.uint64)
        good_host = _mix(_mix(~self._seed ^ (born * 2 + old).astype(np.uint64)) + popularity)
        return born, np.where(is_bad, bad_host, good_host), np.where(is_bad, campaign, good_host)

    def _common(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        columns = np.arange(N_COMMON)
        present = _share(row + columns.astype(np.uint64), 9) < 1 - 0.1 * columns
        return np.broadcast_to(columns.astype(np.int32), present.shape), present

    def _host_slots(
        self, host: np.ndarray, campaign: np.ndarray, is_bad: np.ndarray, born: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Properties of hosts, every second one shared by the hosts of a campaign; one in ten is not known."""
        slots = np.arange(N_HOST)
        features, chance = self._values(np.where(slots % 2, host, campaign), slots, is_bad, born)
        return features, chance < 0.9

    def _path_slots(
        self, row: np.ndarray, path: np.ndarray, is_bad: np.ndarray, begun: np.ndarray, day: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Words of the path, every second one the same all over the campaign; paths are of different length."""
        slots = np.arange(N_PATH)
        features, _ = self._values(
            np.where(slots % 2, row, path), N_HOST + slots, is_bad, np.where(slots % 2, day, begun)
        )
        return features, slots < 16 + (N_PATH - 16) * _share(row, 10)

    def _values(
        self, key: np.ndarray, slots: np.ndarray, is_bad: np.ndarray, day: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A value for each slot, seldom one that on that day spoke for the other class; and a number from 0 to 1."""
        words = _mix(key + (slots + 16).astype(np.uint64) * GOLDEN)
        value = self._ranks[words & MASK]
        group = (value * 10_007 + slots * 613) % N_GROUPS
        doubted = (self._bad[day, group] != is_bad) & ((words >> np.uint64(32)) & MASK < AVOIDANCE * 2**16)
        value = np.where(doubted, self._ranks[words >> np.uint64(16) & MASK], value)
        return N_COMMON + slots.astype(np.int32) * self._vocabulary + value, (words >> np.uint64(48)) / 2**16

    def _names(self, host: np.ndarray, campaign: np.ndarray, born: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Names that appeared together with the host, every second one with its campaign."""
        slots = np.arange(N_NAMES)
        width = (NAMES * self._sizes[born] / N_NAMES).astype(np.int64)
        return _new_features(np.where(slots % 2, host, campaign), slots, 500, self._starts[born], width)

    def _new_words(self, row: np.ndarray, day: int) -> tuple[np.ndarray, np.ndarray]:
        """Words of the URL that no earlier day had."""
        width = int((1 - NAMES) * self._sizes[day] / N_NEW)
        first = self._starts[day] + self._sizes[day] - N_NEW * width
        return _new_features(row, np.arange(N_NEW), 600, first, width)

    def _meanings(self) -> np.ndarray:
        """Which groups of values speak for malice, day by day: half of them always do, or never; others change."""
        groups = np.arange(N_GROUPS)
        words = _mix(self._seed + (groups + 700).astype(np.uint64) * GOLDEN)
        period = 15 + (words % np.uint64(46)).astype(np.int64)
        phase = (words >> np.uint64(32)).astype(np.int64) % period
        epoch = (np.arange(self.n_days)[:, None] + phase) // period * (groups >= N_GROUPS // 2)
        return _mix(words + epoch.astype(np.uint64)) % np.uint64(2) == 1


def _mix(words: Any) -> Any:
    """A bijection of 64-bit words that looks random."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _share(words: np.ndarray, position: int) -> np.ndarray:
    """Numbers from 0 to 1."""
    step = np.array([position], dtype=np.uint64) * GOLDEN
    return (_mix(words + step) >> np.uint64(40)) / 2**24


def _new_features(
    key: np.ndarray, slots: np.ndarray, offset: int, first: Any, width: Any
) -> tuple[np.ndarray, np.ndarray]:
    """One of `width` features for each slot, all of which are present."""
    words = _mix(key + (slots + offset).astype(np.uint64) * GOLDEN)
    features = first + slots * width + (words >> np.uint64(32)).astype(np.int64) % width
    return features.astype(np.int32), np.ones(features.shape, dtype=bool)


def _heavy_tail(n_values: int) -> np.ndarray:
    """Values to pick from at random so that the frequency of the n-th is about 1 / n."""
    return (n_values ** (np.arange(2**16) / 2**16)).astype(np.int32) - 1
