"""Data sets: those of the papers, real and made."""

from polyplane.datasets._boards import make_checkerboard, make_weights
from polyplane.datasets._digits import InfiniteDigits
from polyplane.datasets._digits_device import DeviceDigits
from polyplane.datasets._loaders import (
    load_a9a,
    load_adult,
    load_breast_cancer_wisconsin,
    load_covtype,
    load_dataset,
    load_heart,
    load_ijcnn1,
    load_ilpd,
    load_ionosphere,
    load_letter,
    load_mnist,
    load_news20,
    load_pima,
    load_poker,
    load_rcv1,
    load_rcv1_subsets,
    load_url,
    load_usps,
    load_w8a,
)
from polyplane.datasets._polyhedra import make_polyceptron_1, make_polyceptron_2, make_polyhedron
from polyplane.datasets._url import make_url_stream

__all__ = [
    "DeviceDigits",
    "InfiniteDigits",
    "load_a9a",
    "load_adult",
    "load_breast_cancer_wisconsin",
    "load_covtype",
    "load_dataset",
    "load_heart",
    "load_ijcnn1",
    "load_ilpd",
    "load_ionosphere",
    "load_letter",
    "load_mnist",
    "load_news20",
    "load_pima",
    "load_poker",
    "load_rcv1",
    "load_rcv1_subsets",
    "load_url",
    "load_usps",
    "load_w8a",
    "make_checkerboard",
    "make_polyceptron_1",
    "make_polyceptron_2",
    "make_polyhedron",
    "make_url_stream",
    "make_weights",
]
