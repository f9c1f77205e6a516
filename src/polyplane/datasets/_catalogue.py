"""Catalogue of the data sets of the papers: sources, licences and checksums.

Each data set is identified by the SHA256 of its rows and labels as arrays (`polyplane.datasets._store.digest`), which
does not depend on the file format. If the checksum of a file at its original source is known for certain, it is
verified as well. For LIBSVM's RCV1, the test rows of w8a, the full test rows of poker and the malicious URLs, only the
shape is known; their checksums are stored in the cache when they are first downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from string import ascii_uppercase

import numpy as np

from polyplane.datasets._parsers import Parser, adult, idx, svmlight, table, url_days

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
ESL = "https://hastie.su.domains/ElemStatLearn/datasets/"

CC_BY = "Creative Commons Attribution 4.0"
NOT_STATED = "none stated by the source"

BREAST_CANCER_FEATURES = (
    "Cl.thickness", "Cell.size", "Cell.shape", "Marg.adhesion", "Epith.c.size", "Bare.nuclei", "Bl.cromatin",
    "Normal.nucleoli", "Mitoses",
)  # fmt: skip
COVER_TYPES = (
    "Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow", "Aspen", "Douglas-fir", "Krummholz",
)  # fmt: skip
HEART_FEATURES = (
    "age", "sex", "chest_pain_type", "rest_blood_pr", "serum_chol", "fast_blood_sugar", "rest_elec_card_graph",
    "max_heart_rate", "angina", "oldpeak", "peak_exercise_slope", "major_vessels", "thal",
)  # fmt: skip


@dataclass(frozen=True)
class Dataset:
    """One data set.

    Attributes
    ----------
    title : str
        One-line description.
    files : dict of str to str or None
        URLs of the files at the original source, with their SHA256 if it is known for certain.
    parse : callable
        Converts these files to arrays.
    shape : tuple of int
        Numbers of training rows, test rows (0 if the data set has no test rows) and features.
    licence, citation : str
        Licence and reference.
    content : dict of str to str
        SHA256 of the parts ``train`` and ``test``, if known.
    feature_names, target_names : tuple of str
        Names, if known; those of the classes in the order of the sorted labels.
    head_of_test : int
        Number of the first test rows to which the checksum ``test`` of `content` applies; a file with only these rows
        is accepted as well. 0: all rows.
    """

    title: str
    files: dict[str, str | None]
    parse: Parser | None
    shape: tuple[int, int, int]
    licence: str
    citation: str
    content: dict[str, str] = field(default_factory=dict)
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    head_of_test: int = 0


DATASETS: dict[str, Dataset] = {
    "a9a": Dataset(
        "Adult as 123 binary features: does a person earn more than 50,000 dollars a year?",
        {LIBSVM + "binary/a9a": None, LIBSVM + "binary/a9a.t": None},
        svmlight(123),
        (32_561, 16_281, 123),
        NOT_STATED,
        "J. Platt, Fast training of support vector machines using sequential minimal optimization, 1998.",
        content={
            "train": "fde764b12f5a706b817483abec89471d406439577ac68b89de1629a23eac97b3",
            "test": "d1152bd077441ace8562a01f39f1622dc8decb391391d6ca58901a57d05eb015",
        },
    ),
    "adult": Dataset(
        "Adult, from the census of 1994: does a person earn more than 50,000 dollars a year?",
        {
            UCI + "adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            UCI + "adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
        adult,
        (32_561, 16_281, 14),
        CC_BY,
        "B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996.",
        content={
            "train": "539ece1f1b9142849c8c38d8be972f8d091003c003bed2c355b7d45a04c4f515",
            "test": "f0a2b7cc35d1243b2f2ed4479768ceb2778db8215ec00d92896c3b02df297a12",
        },
    ),
    "breast_cancer_wisconsin": Dataset(
        "Breast Cancer Wisconsin (original): nine properties of cells, from 1 to 10; 16 values are missing.",
        {UCI + "breast-cancer-wisconsin/breast-cancer-wisconsin.data": None},
        table(codes={"?": nan}, numbered=True),
        (699, 0, 9),
        CC_BY,
        "W. Wolberg, Breast Cancer Wisconsin (Original), UCI Machine Learning Repository, 1990.",
        feature_names=BREAST_CANCER_FEATURES,
        target_names=("benign", "malignant"),
        content={"train": "a478b8a8fe70c27102650c2d16af0849a0be304f50201de501f2b1e612735b97"},
    ),
    "covtype": Dataset(
        "Forest cover types of 30 x 30 metre cells: raw integers, in the original order of rows.",
        {
            "https://ndownloader.figshare.com/files/5976039#covtype.data.gz": (
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771"
            )
        },
        table(dtype=np.int16),
        (581_012, 0, 54),
        CC_BY,
        "J. Blackard, Covertype, UCI Machine Learning Repository, 1998.",
        target_names=COVER_TYPES,
        content={"train": "87f5099fd5ba03ccf893b7721899a0990b3baf17aa642b9985634e6a95ecfdd1"},
    ),
    "heart": Dataset(
        "Statlog heart: is heart disease present?",
        {UCI + "statlog/heart/heart.dat": None},
        table(delimiter=None),
        (270, 0, 13),
        CC_BY,
        "Statlog (Heart), UCI Machine Learning Repository.",
        feature_names=HEART_FEATURES,
        target_names=("absence", "presence"),
        content={"train": "6a0a824676a310efeda4adb915785414d6b40f02625a56fecfd423ea44e90a8a"},
    ),
    "ijcnn1": Dataset(
        "The first problem of the IJCNN 2001 challenge, with the features of its winner.",
        {LIBSVM + f"binary/ijcnn1.{part}.bz2": None for part in ("tr", "val", "t")},
        svmlight(22, n_train=2),
        (49_990, 91_701, 22),
        NOT_STATED,
        "D. Prokhorov, IJCNN 2001 neural network competition, 2001.",
        content={
            "train": "70ed7bbf9a8d55b9eadc35885d03ca3ef96a836607a7f80803621033a8ba120a",
            "test": "8b6e9774f30aea801effbb381f299cda9203db742f81c624a6e4463896ec7718",
        },
    ),
    "ilpd": Dataset(
        "Indian liver patients: ten features of a person, of which 4 values are missing; gender is 1 for men.",
        {UCI + "00225/Indian%20Liver%20Patient%20Dataset%20(ILPD).csv": None},
        table(codes={"": nan, "Male": 1.0, "Female": 0.0}),
        (583, 0, 10),
        CC_BY,
        "B. Ramana and N. Venkateswarlu, ILPD, UCI Machine Learning Repository, 2012.",
        feature_names=("Age", "Gender", "TB", "DB", "Alkphos", "Sgpt", "Sgot", "TP", "ALB", "AG"),
        target_names=("patient", "no patient"),
        content={"train": "14337dd197b2b29453f028c5b36f2b813591c9730d86a84b1ea45dc043a79e81"},
    ),
    "ionosphere": Dataset(
        "Radar returns from the ionosphere: good ones show evidence of structure.",
        {UCI + "ionosphere/ionosphere.data": None},
        table(labels={"g": "good", "b": "bad"}),
        (351, 0, 34),
        CC_BY,
        "V. Sigillito et al., Ionosphere, UCI Machine Learning Repository, 1989.",
        content={"train": "25e8a8b274044ed0a5de1258d9bf70a04985cd4f1ebf7b70a7b2a447c4865732"},
    ),
    "letter": Dataset(
        "Letters in 20 fonts: 16 numerical features of each image, scaled to the range from -1 to 1.",
        {LIBSVM + "multiclass/letter.scale": None, LIBSVM + "multiclass/letter.scale.t": None},
        svmlight(16, dense=True),
        (15_000, 5_000, 16),
        CC_BY,
        "D. Slate, Letter Recognition, UCI Machine Learning Repository, 1991.",
        target_names=tuple(ascii_uppercase),
        content={
            "train": "40452e2e67cf30d41965d7dba3006bdde1773f87847d6eabf6c3ae7bf47361f1",
            "test": "3e9f08bbfd405578d814fe20b5efc803257277f05a3a14c10330bc476b0d5a0e",
        },
    ),
    "mnist": Dataset(
        "MNIST: handwritten digits, 28 x 28 pixels from 0 to 255.",
        {
            MNIST + "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            MNIST + "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            MNIST + "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            MNIST + "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        idx,
        (60_000, 10_000, 784),
        "Creative Commons Attribution-ShareAlike 3.0",
        "Y. LeCun, C. Cortes and C. Burges, The MNIST database of handwritten digits, 1998.",
        content={
            "train": "65c05280c2005f7014ed7fc601613ddb144ec3319f73faf1b3971bd6d22ac389",
            "test": "aedd2dbd55d8dcfd06f26b5dab218f3196821e58a4ea814d0ba384ea42e9f58d",
        },
    ),
    "news20": Dataset(
        "20 newsgroups: word counts.",
        {LIBSVM + "multiclass/news20.bz2": None, LIBSVM + "multiclass/news20.t.bz2": None},
        svmlight(62_061, dtype=np.uint16),
        (15_935, 3_993, 62_061),
        NOT_STATED,
        "K. Lang, Newsweeder: learning to filter netnews, ICML 1995.",
        content={
            "train": "a932414d745c4efe53ad596db9140ae088b750dbaf651ab97054cf115dd8d325",
            "test": "703ba94e6b7aa67ae0504d66f794288e644454e5341692b401cdd66fb5b45380",
        },
    ),
    "pima": Dataset(
        "Diabetes among Pima women: eight features of a person.",
        {"https://www.openml.org/data/download/37/dataset_37_diabetes.arff": None},
        table(labels={"tested_negative": "neg", "tested_positive": "pos"}),
        (768, 0, 8),
        "public domain",
        "J. Smith et al., Using the ADAP learning algorithm to forecast the onset of diabetes mellitus, 1988.",
        feature_names=("pregnant", "glucose", "pressure", "triceps", "insulin", "mass", "pedigree", "age"),
        content={"train": "14a5cb5c276126a4f849220e09caddb136d36f619c14e49e07e57c07477e82b5"},
    ),
    "poker": Dataset(
        "Poker hands of five cards: suit and rank of each card.",
        {UCI + f"poker/poker-hand-{part}.data": None for part in ("training-true", "testing")},
        table(dtype=np.uint8),
        (25_010, 1_000_000, 10),
        CC_BY,
        "R. Cattral and F. Oppacher, Poker Hand, UCI Machine Learning Repository, 2002.",
        head_of_test=18_488,
        content={
            "train": "de54984c9714c37e16cee90fe950b11c73bace3f7066fb9814486c2db2fb2ae5",
            "test": "fe2284ceda1c9c2a4e5dc6263e735cc5208cd07c80eccab28f1921a177d15392",
        },
    ),
    "rcv1": Dataset(
        "LIBSVM's binary RCV1: corporate and economic news (1), government and markets (-1); rows have norm 1.",
        {LIBSVM + "binary/rcv1_train.binary.bz2": None, LIBSVM + "binary/rcv1_test.binary.bz2": None},
        svmlight(47_236),
        (20_242, 677_399, 47_236),
        "for research, under the terms of Reuters Corpus Volume 1",
        "D. Lewis et al., RCV1: a new benchmark collection for text categorization research, JMLR 5, 2004.",
    ),
    "rcv1_subsets": Dataset(
        "Topic subsets of RCV1-v2: the classes of `rcv1` with fewer and different rows, not LIBSVM's binary RCV1.",
        {},
        None,
        (12_343, 11_422, 47_236),
        "for research, under the terms of Reuters Corpus Volume 1",
        "D. Lewis et al., RCV1: a new benchmark collection for text categorization research, JMLR 5, 2004.",
        content={
            "train": "dadd5d62f31a4ded371b1f5daba69fb8832b202520e7abeab72494ff2bcef259",
            "test": "0b7aa2dea6a6964dea2c7a369e64bf8201ddb95badf7d362b06e234c469abcd2",
        },
    ),
    "url": Dataset(
        "Malicious (1) and benign (-1) URLs of 121 days; `day` is the day of each row.",
        {UCI + "url/url_svmlight.tar.gz": None},
        url_days(3_231_961),
        (2_396_130, 0, 3_231_961),
        CC_BY,
        "J. Ma et al., Identifying suspicious URLs: an application of large-scale online learning, ICML 2009.",
    ),
    "usps": Dataset(
        "USPS: handwritten digits from envelopes, 16 x 16 pixels from -1 to 1.",
        {ESL + "zip.train.gz": None, ESL + "zip.test.gz": None},
        table(label=0, delimiter=None),
        (7_291, 2_007, 256),
        NOT_STATED,
        "Y. LeCun et al., Handwritten digit recognition with a back-propagation network, NIPS 1989.",
        content={
            "train": "920705d86d1ad0a8d379f03cf1abf2fcdc9d4ccde40b1e7a1b0f262841e1ca24",
            "test": "406ae62e5bc2452ba055493bcb8a8d0a5bc602d8409464a4250003e5f6be9445",
        },
    ),
    "w8a": Dataset(
        "Web pages described by 300 binary keyword features.",
        {LIBSVM + "binary/w8a": None, LIBSVM + "binary/w8a.t": None},
        svmlight(300),
        (49_749, 14_951, 300),
        NOT_STATED,
        "J. Platt, Fast training of support vector machines using sequential minimal optimization, 1998.",
        content={"train": "47bb77feb7ba2b7228b87a75b4bdcba21ccc4ffa4870505c14daab2e942ee3dc"},
    ),
}
