"""Loaders: where they look, what they fetch, and what they refuse."""

import bz2
import gzip
import hashlib
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy import sparse

from polyplane import datasets
from polyplane.datasets import load_dataset
from polyplane.datasets.loaders import cache_folder, digest, write_arrays
from polyplane.datasets.sources import DATASETS, Dataset, file_name

TEXT = "1,2.5,?,7\n3,4,0,8\n"
ARRAYS = {"X_train": np.array([[1, 2.5, np.nan], [3, 4, 0]], np.float32), "y_train": np.array([7, 8], np.int8)}


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder; of ``short.data`` it sends only the first half."""

    def log_message(self, *args):
        pass

    def copyfile(self, source, outputfile):
        content = source.read()
        outputfile.write(content[: len(content) // 2] if "short" in self.path else content)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The website of a small set: a folder, and its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "small.data").write_text(TEXT)
    (folder / "short.data").write_text(TEXT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as home:
        thread = threading.Thread(target=home.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{home.server_port}/"
        home.shutdown()
        thread.join()


@pytest.fixture
def small(server, tmp_path, monkeypatch):
    """Makes the set `small` known, with changes to its entry; returns the empty cache."""
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)

    def know(file="small.data", checksum=None, **changes):
        sha256 = {} if checksum is None else {"sha256": checksum}
        dataset = Dataset(
            "Two rows.",
            "none",
            "Nobody, 2000.",
            (2, 0, 3),
            [{"url": server[1] + file} | sha256],
            {"format": "table", "codes": {"?": np.nan}},
            content={"train": digest(ARRAYS, "train")},
            feature_names=("a", "b", "c"),
        )
        monkeypatch.setitem(DATASETS, "small", replace(dataset, **changes))
        return tmp_path / "cache"

    return know


def load(cache, **parameters):
    return load_dataset("small", data_home=cache, **parameters)


def listing(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*")} if folder.exists() else {}


def test_a_set_is_fetched_once_and_kept(small, server):
    cache = small(checksum=hashlib.sha256(TEXT.encode()).hexdigest())
    fetched = load(cache)
    np.testing.assert_array_equal(fetched.data, ARRAYS["X_train"])
    np.testing.assert_array_equal(fetched.target, [7, 8])
    assert fetched.feature_names.tolist() == ["a", "b", "c"]
    assert "Licence: none" in fetched.DESCR
    assert "2 rows, 3 features" in fetched.DESCR
    assert server[1] in fetched.DESCR
    assert list(listing(cache)) == ["small.npz"]
    (server[0] / "small.data").unlink()
    X, y = load(cache, return_X_y=True)
    np.testing.assert_array_equal(X, fetched.data)
    np.testing.assert_array_equal(y, fetched.target)


def test_the_named_folder_comes_before_the_cache(small, tmp_path, monkeypatch):
    cache = small(content={})
    load(cache)
    write_arrays(tmp_path / "small.npz", ARRAYS | {"y_train": np.array([1, 2], np.int8)})
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    assert load(cache).target.tolist() == [1, 2]


def test_a_file_put_into_the_folder_needs_no_network(small, server):
    cache = small()
    cache.mkdir()
    (server[0] / "small.data").rename(cache / "small.data")
    assert load(cache, download_if_missing=False).data.shape == (2, 3)
    assert set(listing(cache)) == {"small.data", "small.npz"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checksum": "0" * 64}, "is truncated or altered: its checksum is [0-9a-f]{64}, not 0000"),
        ({"content": {"train": "0" * 64}}, "the checksum of its train rows is wrong"),
        ({"shape": (3, 0, 3)}, r"its train rows are \(2, 3\), not \(3, 3\)"),
        ({"content": {"test": "0" * 64}}, "it has no test rows"),
        ({"parser": {"format": "table"}}, "is truncated or altered: could not convert"),
    ],
)
def test_a_download_that_is_not_the_set_is_refused(small, change, message):
    cache = small(**change)
    cache.mkdir()
    (cache / "other.npz").write_bytes(b"mine")
    with pytest.raises(ValueError, match=message):
        load(cache)
    assert listing(cache) == {"other.npz": b"mine"}


def test_a_terminal_sees_the_progress_of_a_download(small, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    load(small())
    assert "100%" in capsys.readouterr().err


def test_a_download_that_breaks_off_is_refused(small):
    cache = small("short.data", content={})
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        load(cache)
    assert listing(cache) == {}


@pytest.mark.parametrize("where", ["cache", "folder"])
def test_damaged_files_are_refused_and_left(small, tmp_path, monkeypatch, where):
    cache = small()
    load(cache)
    path = cache / "small.npz"
    whole = path.read_bytes()
    write_arrays(path, ARRAYS | {"y_train": np.array([8, 8], np.int8)})
    for content in (whole[: len(whole) // 2], b"", path.read_bytes()):
        path.write_bytes(content)
        if where == "folder":
            monkeypatch.setenv("POLYPLANE_DATA", str(cache))
        with pytest.raises(ValueError, match=r"small\.npz is (truncated or altered|damaged or does not have)"):
            load(cache if where == "cache" else tmp_path / "empty")
        assert listing(cache) == {"small.npz": content}
    assert not (tmp_path / "empty").exists()


def test_no_changed_byte_goes_unnoticed(small):
    """Whichever byte of a kept file is changed: it is refused, or what it says is still the set."""
    cache = small()
    whole = load(cache)
    path = cache / "small.npz"
    content = path.read_bytes()
    refused = 0
    for n in range(0, len(content), 3):
        path.write_bytes(content[:n] + bytes([content[n] ^ 0x55]) + content[n + 1 :])
        try:
            loaded = load(cache)
        except ValueError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.data, whole.data)
            np.testing.assert_array_equal(loaded.target, whole.target)
    assert refused > len(content) / 6


def test_content_that_nobody_knows_is_remembered(small):
    """The rows of a set without a known checksum may not change once they are stored."""
    cache = small(content={})
    load(cache)
    with np.load(cache / "small.npz") as stored:
        arrays = dict(stored)
    np.savez(cache / "small.npz", **arrays | {"y_train": np.array([8, 8], np.int8)})
    with pytest.raises(ValueError, match="the checksum of its train rows"):
        load(cache)


def test_an_absent_set_gets_one_sentence_with_the_address_and_the_folder(small, server, monkeypatch):
    cache = small()
    with pytest.raises(FileNotFoundError) as absent:
        load(cache, download_if_missing=False)
    remedy = f"put small.npz, or the files from {server[1]}small.data, into {cache}."
    assert str(absent.value) == f"The data set 'small' was not found: {remedy}"
    monkeypatch.setitem(DATASETS, "small", replace(DATASETS["small"], files=[{"url": "http://127.0.0.1:9/small.data"}]))
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(ConnectionError\): put small.npz, or"):
        load(cache)
    small("absent.data")
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(HTTPError\)"):
        load(cache)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=r'needs pip install "polyplane\[data\]"'):
        load(cache)
    assert listing(cache) == {}
    with pytest.raises(FileNotFoundError, match=r"/files/5976039 \(as covtype\.data\.gz\), into"):
        datasets.load_covtype(data_home=cache, download_if_missing=False)
    with pytest.raises(FileNotFoundError, match=r"not available for download: put rcv1_subsets\.npz into"):
        datasets.load_rcv1_subsets(data_home=cache)


def test_the_cache_is_the_platform_s(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")

    assert cache_folder() == pooch.os_cache("polyplane")
    assert cache_folder(tmp_path) == tmp_path


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in ("rcv1", "url")])
def test_the_papers_sets_are_what_they_should_be(local_data, name):
    bunch = local_data(name)
    loader = getattr(datasets, f"load_{name}")
    assert loader.__name__ == f"load_{name}"
    assert f"``{name}.npz``" in loader.__doc__
    assert bunch.data.shape == (DATASETS[name].shape[0], DATASETS[name].shape[2])
    assert len(bunch.target) == len(np.asarray(bunch.target)) == bunch.data.shape[0]
    assert DATASETS[name].licence in bunch.DESCR
    if "target_names" in bunch:
        assert len(bunch.target_names) == len(np.unique(bunch.target))
    if "feature_names" in bunch:
        assert len(bunch.feature_names) == bunch.data.shape[1]


def written(name, bunch, folder):
    """The files of a set's original source, written from its rows."""
    X, y = bunch.data, bunch.target
    cells = [[f"{value:.9g}" for value in row] for row in X.tolist()]
    if name == "heart":
        return [" ".join([*row, str(label)]) for row, label in zip(cells, y, strict=True)]
    if name == "ionosphere":
        return [",".join([*row, label[0]]) for row, label in zip(cells, y, strict=True)]
    if name == "pima":
        body = [
            ",".join([*row, {"pos": "tested_positive"}.get(label, "tested_negative")])
            for row, label in zip(cells, y, strict=True)
        ]
        return ["% remarks", "@relation diabetes", "@data", *body]
    if name == "ilpd":
        for row in cells:
            row[1] = "Male" if row[1] == "1" else "Female"
        return [",".join([*row, str(label)]).replace("nan", "") for row, label in zip(cells, y, strict=True)]
    rows = zip(bunch.id, cells, y, strict=True)
    return [",".join([str(number), *row, str(label)]).replace("nan", "?") for number, row, label in rows]


@pytest.mark.parametrize("name", ["heart", "ionosphere", "pima", "ilpd", "breast_cancer_wisconsin"])
def test_the_text_of_the_original_source_gives_the_same_rows(local_data, name, tmp_path, monkeypatch):
    """Through the checksum: text like that of the original source, put into the cache, is accepted as the set."""
    lines = written(name, local_data(name), tmp_path)
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    (tmp_path / file_name(DATASETS[name].urls[0])).write_text("\n".join(lines) + "\n\n")
    stored = load_dataset(name, data_home=tmp_path, download_if_missing=False)
    assert stored.data.dtype == np.float32
    assert (tmp_path / f"{name}.npz").is_file()


def test_sparse_and_packed_sets(tmp_path, monkeypatch):
    """Training rows of two files, test rows of a third, as ijcnn1 has them."""
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    dataset = DATASETS["ijcnn1"]
    monkeypatch.setitem(DATASETS, "ijcnn1", replace(dataset, shape=(3, 1, 22), content={}))
    for part, text in {"tr": "+1 1:0.5 22:1\n-1 3:2\n", "val": "-1 2:1\n", "t": "1 4:-1\n"}.items():
        (tmp_path / f"ijcnn1.{part}.bz2").write_bytes(bz2.compress(text.encode()))
    bunch = load_dataset("ijcnn1", data_home=tmp_path, download_if_missing=False)
    assert sparse.issparse(bunch.data)
    assert bunch.data.dtype == np.float32
    assert bunch.target.tolist() == [1, -1, -1]
    assert bunch.data.toarray()[[0, 0, 1, 2], [0, 21, 2, 1]].tolist() == [0.5, 1, 2, 1]
    assert bunch.data_test.toarray()[0, 3] == -1
    again = load_dataset("ijcnn1", data_home=tmp_path)
    np.testing.assert_array_equal(again.data.toarray(), bunch.data.toarray())


def test_mnist_is_read_from_its_four_files(tmp_path, monkeypatch):
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    images = np.arange(3 * 784, dtype=np.int64).reshape(3, 28, 28).astype(np.uint8)
    labels = np.array([4, 0, 9], np.uint8)
    for name, values in (
        ("train-images-idx3", images),
        ("train-labels-idx1", labels),
        ("t10k-images-idx3", images[:1]),
        ("t10k-labels-idx1", labels[:1]),
    ):
        head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
        (tmp_path / f"{name}-ubyte.gz").write_bytes(gzip.compress(head + values.tobytes()))
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz, from https://.*, is truncated or altered"):
        datasets.load_mnist(data_home=tmp_path)
    files = [{"url": url} for url in DATASETS["mnist"].urls]
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], files=files, shape=(3, 1, 784), content={}))
    bunch = datasets.load_mnist(data_home=tmp_path)
    np.testing.assert_array_equal(bunch.data, images.reshape(3, -1))
    np.testing.assert_array_equal(bunch.target_test, [4])


def test_adult_has_numbers_for_words(tmp_path, monkeypatch):
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    row = "39, {}, 77516, Bachelors, 13, Never-married, Adm-clerical, Husband, White, Male, 2174, 0, 40, Cuba, {}\n"
    (tmp_path / "adult.data").write_text(row.format("State-gov", "<=50K") + row.format("?", ">50K") + "\n")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + row.format("Private", ">50K."))
    files = [{"url": url} for url in DATASETS["adult"].urls]
    monkeypatch.setitem(DATASETS, "adult", replace(DATASETS["adult"], files=files, shape=(2, 1, 14), content={}))
    bunch = datasets.load_adult(data_home=tmp_path)
    assert bunch.levels_workclass.tolist() == ["?", "Private", "State-gov"]
    assert bunch.data[:, 1].tolist() == [2, 0]
    assert bunch.data_test[0, :3].tolist() == [39, 1, 77516]
    assert [*bunch.target, *bunch.target_test] == ["<=50K", ">50K", ">50K"]


def test_urls_come_day_by_day(tmp_path, monkeypatch):
    import tarfile

    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    with tarfile.open(tmp_path / "url_svmlight.tar.gz", "w:gz") as archive:
        for name, text in {"FeatureTypes": "1\n", "Day10.svm": "+1 5:1\n", "Day2.svm": "-1 1:0.5\n+1 2:1\n"}.items():
            (tmp_path / name).write_text(text)
            archive.add(tmp_path / name, f"url_svmlight/{name}")
    monkeypatch.setitem(DATASETS, "url", replace(DATASETS["url"], shape=(3, 0, 3_231_961)))
    bunch = datasets.load_url(data_home=tmp_path)
    assert bunch.day.tolist() == [2, 2, 10]
    assert bunch.target.tolist() == [-1, 1, 1]
    assert bunch.data.shape == (3, 3_231_961)
    assert bunch.data[2, 4] == 1


def test_of_poker_the_head_of_the_test_rows_will_do(tmp_path, monkeypatch):
    """The checksum is that of the first rows; the full file, with the same first rows, is the set, too."""
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    X, y = np.arange(30, dtype=np.uint8).reshape(6, 5), np.arange(6, dtype=np.int8)
    head = {"X_train": X, "y_train": y, "X_test": X[:2], "y_test": y[:2]}
    content = {part: digest(head, part) for part in ("train", "test")}
    dataset = replace(DATASETS["poker"], shape=(6, 6, 5), head_of_test=2, content=content)
    monkeypatch.setitem(DATASETS, "poker", dataset)
    for n_test in (2, 6):
        write_arrays(tmp_path / "poker.npz", head | {"X_test": X[:n_test], "y_test": y[:n_test]})
        assert len(datasets.load_poker().target_test) == n_test
    write_arrays(tmp_path / "poker.npz", head | {"X_test": X[:3], "y_test": y[:3]})
    with pytest.raises(ValueError, match=r"its test rows are \(3, 5\)"):
        datasets.load_poker()
