"""`TableEncoder`: what becomes of columns, whatever library they come from."""

import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from time import process_time as time_of

import numpy as np
import pytest

from polyplane import TableEncoder
from polyplane.inputs.encoding import Feature, TableInputs
from polyplane.inputs.frames import as_table, concatenated, loaded

pd = pytest.importorskip("pandas", reason="pandas is a development dependency")


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def people():
    return pd.DataFrame(
        {
            "age": [39.0, None, 38, 53, 28, 37, 49, 52],
            "work": ["State", "Private", "Private", None, "Private", " State ", "Navy", "Private"],
            "married": [True, False, True, True, False, True, False, False],
            "hired": pd.to_datetime(
                ["2020-01-06 08:00", "2021-06-01 00:00", None, "2020-01-07 00:00", *["2022-12-31 00:00"] * 4]
            ),
            "country": ["US"] * 8,
            "id": np.arange(100, 900, 100),
            "mail": [f"p{i}@example.org" for i in range(8)],
        }
    )


@pytest.fixture
def encoder():
    return TableEncoder(min_rows=2).fit(people())


class TestKinds:
    def test_each_column_is_understood(self, encoder):
        assert encoder.kinds_ == {"age": "number", "work": "category", "married": "boolean", "hired": "date"}
        assert names(encoder) == [
            "age",
            "age is missing",
            "work = Private",
            "work = State",
            "work = other",
            "work is missing",
            "married = true",
            "hired (days)",
            "hired (year)",
            "hired (month)",
            "hired (day of week)",
            "hired (hour)",
            "hired is missing",
        ]

    def test_a_typical_row_and_what_was_seen(self, encoder):
        encoding = encoder.encoding_
        typical = dict(zip(names(encoder), encoding.reference.tolist(), strict=True))
        assert typical["age"] == 39
        assert typical["work = Private"] == 1
        assert typical["work = State"] == typical["work = other"] == typical["work is missing"] == 0
        assert typical["hired (year)"] == 2022
        age, work, _, hired = encoding.columns
        assert age.range == (28, 53, 13)
        assert age.is_whole
        assert work.counts == (4, 2, 1)
        assert hired.range.high == (datetime(2022, 12, 31) - datetime(1970, 1, 1)).days
        assert [place.start for place in encoding.places] == [0, 2, 6, 7]

    def test_what_is_dropped_has_a_reason(self, encoder):
        assert encoder.dropped_ == {
            "country": "it is constant: all values are 'US'",
            "id": "it is an id: its integer is different in each of the 8 rows",
            "mail": "it is an id: its text is different in each of the 8 rows",
        }

    def test_the_numbers(self, encoder):
        rows = encoder.transform(people())
        assert rows.shape == (8, 13)
        monday = (datetime(2020, 1, 6, 8) - datetime(1970, 1, 1)) / timedelta(days=1)
        assert rows[0].tolist() == [39, 0, 0, 1, 0, 0, 1, monday, 2020, 1, 1, 8, 0]
        assert rows[1, :2].tolist() == [39, 1]  # the median of the others
        assert rows[3, 2:6].tolist() == [0, 0, 0, 1]
        assert rows[6, 2:6].tolist() == [0, 0, 1, 0]  # a rare level
        assert rows[2, 12] == 1

    def test_features_lead_back_to_columns_and_levels(self, encoder):
        assert encoder.features_[3] == Feature("work", "level", "State")
        assert encoder.features_[4] == Feature("work", "other", None)
        assert [f.is_indicator for f in encoder.features_[:4]] == [False, True, True, True]

    def test_kinds_can_be_given(self):
        frame = pd.DataFrame({"zip": [10115, 10117] * 5, "id": np.arange(10), "n": ["1", "2"] * 5})
        encoder = TableEncoder({"zip": "category", "id": "number", "n": "category"}).fit(frame)
        assert names(encoder) == ["zip = 10115", "zip = 10117", "id", "n = 1", "n = 2"]
        frame["zip"] = frame["zip"].astype(float)  # as pandas has it when there is a gap
        assert encoder.transform(frame)[0, :2].tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("texts", "kind"),
        [
            (["1.5", "2", "-3e2", ".5", "7."], "number"),
            (["1,5", "2,5", "3", "4", "5"], "number"),
            (["1,500", "2,500", "3", "4", "5"], "category"),  # 1500 or 1.5
            (["01067", "10115", "10117", "1", "2"], "category"),  # post codes
            (["1_000", "2", "3", "4", "5"], "category"),
            (["inf", "2", "3", "4", "5"], "category"),
            (["true", "False", "TRUE", "false", "true"], "boolean"),
            (["yes", "no", "yes", "no", "yes"], "category"),
            (["2024-01-31", "2024-02-29 10:15", "2024-02-01T10:15:30Z", "2023-01-01", "2020-01-01"], "date"),
            (["2024-02-30", "2024-02-29", "2024-02-01", "2023-01-01", "2020-01-01"], "category"),
        ],
    )
    def test_texts_that_look_like_something(self, texts, kind):
        encoder = TableEncoder(min_rows=1).fit(pd.DataFrame({"a": texts * 2}))
        assert encoder.kinds_ == {"a": kind}

    def test_a_decimal_comma_is_declared(self):
        frame = pd.DataFrame({"a": ["1,5", "2", "?", "-3,25"]})
        encoder = TableEncoder(decimal=",").fit(frame)
        assert encoder.transform(frame).tolist() == [[1.5, 0], [2, 0], [1.5, 1], [-3.25, 0]]

    def test_integers_that_number_the_rows_are_an_id_and_others_are_not(self):
        rng = np.random.default_rng(0)
        rows = np.sort(rng.permutation(400)[:300])
        frame = pd.DataFrame({"n": rows, "price": rng.permutation(100_000)[:300], "x": rng.normal(size=300)})
        assert list(TableEncoder().fit(frame).dropped_) == ["n"]

    def test_a_constant_with_gaps_is_told_by_its_gaps(self):
        encoder = TableEncoder(min_rows=1).fit(pd.DataFrame({"a": [3.0, None, 3.0]}))
        assert names(encoder) == ["a = 3", "a is missing"]

    def test_a_column_without_values_is_dropped(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": [None, None], "b": [1, 2.5]}))
        assert encoder.dropped_ == {"a": "it has no values"}


class TestLevels:
    def test_rare_and_unknown_levels_are_others(self):
        frame = pd.DataFrame({"a": ["x"] * 6 + ["y"] * 5 + ["z"] * 4})
        encoder = TableEncoder().fit(frame)
        assert names(encoder) == ["a = x", "a = y", "a = other"]
        assert encoder.transform(pd.DataFrame({"a": ["z", "new", "x", None]})).tolist() == [
            [0, 0, 1],
            [0, 0, 1],
            [1, 0, 0],
            [0, 0, 0],
        ]

    def test_without_rare_levels_there_is_no_feature_for_them(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": ["x", "y"] * 5}))
        assert encoder.transform(pd.DataFrame({"a": ["new"]})).tolist() == [[0, 0]]

    def test_of_many_levels_the_frequent_ones_are_kept(self):
        rng = np.random.default_rng(0)
        levels = rng.zipf(1.3, 20_000).clip(max=5000).astype(str)
        encoder = TableEncoder({"a": "category"}, max_levels=20).fit(pd.DataFrame({"a": levels}))
        assert len(names(encoder)) == 21
        values, counts = np.unique(levels, return_counts=True)
        frequent = values[np.argsort(-counts)[:20]]
        assert {feature.level for feature in encoder.features_} - {None} == set(frequent)

    def test_a_column_of_rare_levels_only_is_dropped(self):
        frame = pd.DataFrame({"a": [f"t{i // 2}" for i in range(20)], "b": range(20)})
        assert TableEncoder({"b": "number"}).fit(frame).dropped_ == {
            "a": "none of its 10 levels occurs in at least 5 rows (min_rows)"
        }

    def test_a_warning_names_the_texts_that_keep_a_column_from_being_numeric(self):
        ages = [str(17 + i % 30) for i in range(300)]
        with pytest.warns(UserWarning, match=r"'age': it is a category, although it is numeric except for 'inf'"):
            TableEncoder().fit(pd.DataFrame({"age": [*ages, "inf"], "b": np.arange(301.0) / 7}))
        assert TableEncoder(gaps=("inf",)).fit(pd.DataFrame({"age": [*ages, "inf"]})).kinds_ == {"age": "number"}

    @pytest.mark.filterwarnings("error")
    def test_without_a_warning_a_few_numbers_are_levels(self):
        grades = ["1", "2", "3", "4", "failed"] * 20
        assert TableEncoder().fit(pd.DataFrame({"grade": grades})).kinds_ == {"grade": "category"}
        many = [str(i % 30) for i in range(300)] + ["thirty"]
        assert TableEncoder({"n": "category"}).fit(pd.DataFrame({"n": many})).kinds_ == {"n": "category"}

    def test_a_declared_category_stays_one(self):
        frame = pd.DataFrame({"a": pd.Categorical(["1", "2"] * 5), "b": pd.Categorical([1, 2] * 5)})
        assert TableEncoder().fit(frame).kinds_ == {"a": "category", "b": "category"}

    def test_the_order_of_levels_is_kept(self):
        """From each library that declares it, and from a list of levels where a file cannot."""
        pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
        levels, values = ["low", "medium", "high", "extreme"], ["high", "low", None, "medium"] * 10
        frame = pd.DataFrame({"a": pd.Categorical(values, levels, ordered=True)})
        enum = pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(levels))})
        parts = concatenated([as_table(frame[:13]), as_table(frame[13:])], "TableEncoder")
        expected = TableEncoder().fit(frame).encoding_
        column = expected.columns[0]
        assert (column.levels, column.is_ordered) == (("low", "medium", "high"), True)
        for table in (enum, pa.Table.from_pandas(frame), parts):
            assert TableEncoder().fit(table).encoding_ == expected
        plain = pd.DataFrame({"a": values})
        assert TableEncoder({"a": levels}).fit(plain).encoding_ == expected
        assert TableInputs.from_dict(json.loads(json.dumps(expected.to_dict()))) == expected
        assert not TableEncoder().fit(frame.astype(pd.CategoricalDtype(levels))).encoding_.columns[0].is_ordered
        numbers = TableEncoder({"n": [3, 1, 2]}).fit(pd.DataFrame({"n": [1, 2, 3] * 10}))
        assert numbers.encoding_.columns[0].levels == ("3", "1", "2")
        with pytest.raises(ValueError, match="Column 'a' contains 'high', which is not in the order of its levels"):
            TableEncoder({"a": ["low", "medium"]}).fit(plain)
        with pytest.raises(ValueError, match=r"kinds\['a'\] is 'ordered'; it must be one of .* or a list of levels"):
            TableEncoder({"a": "ordered"}).fit(plain)


def forms(frame):
    """The same table as frames of other libraries, lists, and the text of a file."""
    import io

    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    values = {name: frame[name].tolist() for name in frame}
    text = frame.to_csv(index=False)
    return {
        "pandas": frame,
        "pandas, objects": frame.astype(object),
        "pandas, one by one": [frame.iloc[[i]] for i in range(len(frame))],
        "dict of lists": values,
        "list of dicts": frame.astype(object).to_dict("records"),
        "array": frame.to_numpy(dtype=object),
        "Polars": pl.DataFrame(values),
        "Arrow": pa.table(values),
        "CSV": pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False),
        "CSV of Polars": pd.read_csv(io.StringIO(pl.DataFrame(values).write_csv()), dtype=str, keep_default_na=False),
    }


class TestOneTextOfAValue:
    """A level has one name, whichever library, type or file its value comes from."""

    @pytest.mark.parametrize("form", forms(pd.DataFrame({"a": [1]})))
    @pytest.mark.parametrize("trained", ["pandas", "CSV", "Arrow"])
    @pytest.mark.parametrize(
        "values",
        [
            pytest.param([True, False, True], id="booleans"),
            pytest.param([3, 14, 3], id="integers"),
            pytest.param([2**53, 2**53 + 1, 2**53 + 2], id="large integers"),
            pytest.param([-(2**62) - 1, -(2**62), 2**62 + 1], id="long negative integers"),
            pytest.param([0.5, 1e-7, 0.1], id="fractions"),
            pytest.param([pd.Timestamp("2024-05-31 17:30"), pd.Timestamp("2024-06-01 08:00:01")] * 2, id="times"),
            pytest.param(["x", "true", "x"], id="text"),
        ],
    )
    def test_levels_are_those_of_other_forms(self, values, trained, form):
        frame = pd.DataFrame({"a": values * 2, "b": np.arange(2 * len(values)) % 2})
        inputs = forms(frame)
        if "of Polars" in form and isinstance(values[0], pd.Timestamp | float):
            pytest.skip("Polars writes 2024-05-31T17:30 and 1e-7")
        encoder = TableEncoder({"a": "category"}, min_rows=1).fit(inputs[trained])
        rows = inputs[form] if isinstance(inputs[form], list) and form == "pandas, one by one" else [inputs[form]]
        Z = np.concatenate([encoder.transform(part) for part in rows])
        codes = np.unique(np.array(values * 2, dtype=object).astype(str), return_inverse=True)[1]
        np.testing.assert_array_equal(
            Z[:, :-1].argmax(axis=1)[:, None] == Z[:, :-1].argmax(axis=1), codes[:, None] == codes
        )
        assert (Z[:, :-1].sum(axis=1) == 1).all()

    def test_equal_objects_of_other_types_stay_apart(self):
        mixed = [True, 1, "x", 1.0, False, 0]
        encoder = TableEncoder({"a": "category"}, min_rows=1).fit({"a": mixed})
        assert encoder.features_[0].level == "0"
        assert [f.level for f in encoder.features_] == ["0", "1", "false", "true", "x"]
        alone = [encoder.transform({"a": [value]})[0].argmax() for value in mixed]
        together = encoder.transform({"a": mixed}).argmax(axis=1).tolist()
        backwards = encoder.transform({"a": mixed[::-1]}).argmax(axis=1).tolist()
        assert alone == together == backwards[::-1]

    def test_a_boolean_does_not_depend_on_the_rows_before_it(self):
        encoder = TableEncoder(min_rows=1).fit({"a": [1, 2, 5, 7], "b": [0, 1, 1, 0]})
        for values in ([True, 1], [1, True]):
            with pytest.raises(ValueError, match="Column 'a' contains 'true' in row"):
                encoder.transform({"a": values, "b": [0, 0]})

    def test_large_integers_that_are_equal_as_floats_are_levels(self):
        values = [2**53 + (i % 2) for i in range(20)]
        for X in ({"a": values}, pd.DataFrame({"a": values}), pd.DataFrame({"a": map(str, values)})):
            assert names(TableEncoder().fit(X)) == ["a = 9007199254740992", "a = 9007199254740993"]
        stamps = pd.DataFrame({"a": 1_700_000_000_000_000_000 + 10**12 * np.arange(20) ** 2})
        assert TableEncoder({"a": "number"}).fit(stamps).encoding_.columns[0].range.low == 1.7e18


class TestFrames:
    def test_columns_may_come_in_another_order_and_with_others(self, encoder):
        frame = people()
        mixed = frame.assign(more=1)[[*frame.columns[::-1], "more"]].drop(columns=["country", "id", "mail"])
        np.testing.assert_array_equal(encoder.transform(mixed), encoder.transform(frame))

    def test_a_missing_column_is_named(self, encoder):
        with pytest.raises(ValueError, match=r"no column 'work', which was present during fit. Did you mean 'Work'\?"):
            encoder.transform(people().rename(columns={"work": "Work"}))
        with pytest.raises(ValueError, match="no columns 'age', 'married', which were present during fit"):
            encoder.transform(people().drop(columns=["married", "age"]))

    def test_polars(self, encoder):
        pl = pytest.importorskip("polars", reason="polars is a development dependency")
        frame = pl.from_pandas(people())
        expected = encoder.transform(people())
        np.testing.assert_array_equal(encoder.transform(frame), expected)
        other = TableEncoder(min_rows=2).fit(frame)
        assert other.encoding_ == encoder.encoding_
        declared = frame.with_columns(pl.col("work").str.strip_chars().cast(pl.Categorical))
        np.testing.assert_array_equal(encoder.transform(declared), expected)
        with pytest.raises(TypeError, match=r"call its collect\(\) method first"):
            encoder.transform(frame.lazy())

    def test_arrow(self, encoder):
        pa = pytest.importorskip("pyarrow", reason="pyarrow is an optional dependency")
        table = pa.Table.from_pandas(people())
        expected = encoder.transform(people())
        np.testing.assert_array_equal(encoder.transform(table), expected)
        np.testing.assert_array_equal(encoder.transform(pa.concat_tables([table, table]))[8:], expected)
        np.testing.assert_array_equal(encoder.transform(table.to_batches()[0]), expected)
        assert TableEncoder(min_rows=2).fit(table).encoding_ == encoder.encoding_
        position = table.schema.get_field_index("work")
        for indices in (pa.int32(), pa.uint32()):
            declared = table.column("work").dictionary_encode().cast(pa.dictionary(indices, pa.string()))
            np.testing.assert_array_equal(encoder.transform(table.set_column(position, "work", declared)), expected)

    def test_pandas_extension_types(self):
        frame = pd.DataFrame({"a": [1, 2, None], "b": [True, None, False], "c": ["x", None, "y"]})
        wanted = TableEncoder(min_rows=1).fit(frame)
        typed = frame.astype({"a": "Int64", "b": "boolean", "c": "string"})
        encoder = TableEncoder(min_rows=1).fit(typed)
        assert encoder.kinds_ == {"a": "number", "b": "boolean", "c": "category"}
        np.testing.assert_array_equal(encoder.transform(typed), wanted.transform(frame))

    def test_arrays_are_known_by_position(self):
        X = np.array([[1.0, 2.0, np.nan], [2.0, 2.0, 3.0], [4.0, 2.0, 5.0]])
        encoder = TableEncoder().fit(X)
        assert names(encoder) == ["x0", "x2", "x2 is missing"]
        assert encoder.transform(X.tolist()).tolist() == [[1, 3, 1], [2, 3, 0], [4, 5, 0]]
        with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 3 features as input"):
            encoder.transform(X[:, :2])

    def test_a_frame_may_be_given_as_an_array(self, encoder):
        np.testing.assert_array_equal(encoder.transform(people().to_numpy(dtype=object)), encoder.transform(people()))

    def test_objects_of_python(self):
        zone = timezone(timedelta(hours=5))
        frame = pd.DataFrame(
            {
                "money": pd.Series([Decimal("1.5"), Decimal(2), None], dtype=object),
                "day": pd.Series([date(2024, 1, 31), date(2024, 2, 1), None], dtype=object),
                "stamp": pd.Series([datetime(2024, 1, 1, 3, tzinfo=zone)] * 2 + [None], dtype=object),
                "clock": pd.Series([time(12, 30), time(0), time(1)], dtype=object),
                "span": pd.to_timedelta([1, 2, 4], unit="h"),
                "flag": pd.Series([True, None, False], dtype=object),
            }
        )
        encoder = TableEncoder(min_rows=1).fit(frame)
        kinds = {"money": "number", "day": "date", "stamp": "category"}
        assert encoder.kinds_ == kinds | {"clock": "number", "span": "number", "flag": "boolean"}
        row = dict(zip(names(encoder), encoder.transform(frame)[0], strict=True))
        assert (row["money"], row["clock"], row["span"], row["day (month)"]) == (1.5, 45_000, 3600, 1)
        assert row["stamp = 2024-01-01 03:00:00"] == 1

    def test_float32(self):
        X = np.array([[1.0, 2.0], [2.0, 3.0]])
        assert TableEncoder(dtype=np.float32).fit(X).transform(X).dtype == np.float32
        with pytest.raises(ValueError, match="Column 'x1' contains numbers too large for float32"):
            TableEncoder(dtype=np.float32).fit_transform(X * [1, 1e50])

    def test_many_columns_by_position_take_no_quadratic_time(self):
        X = np.random.default_rng(0).normal(size=(3, 20_000))
        encoder = TableEncoder().fit(X)
        start = time_of()
        encoder.transform(X[:1])
        assert time_of() - start < 1.5  # 6 s when each column is looked for among all names


class TestErrors:
    @pytest.mark.parametrize(
        ("column", "value", "sentence"),
        [
            ("age", "old", "Column 'age' contains 'old' in row 2, which is not a number."),
            ("age", "1,5", "in row 2, which is not a number."),
            ("age", np.inf, "Column 'age' contains inf in row 2: numbers must be finite"),
            ("age", [1], "Column 'age' contains a list in row 2: the argument must be a table of"),
            ("hired", "soon", "Column 'hired' contains 'soon' in row 2, which is not a date like 2024-05-31"),
            ("married", "maybe", "Column 'married' contains 'maybe' in row 2, which is not a boolean"),
        ],
    )
    def test_a_wrong_value_is_named(self, encoder, column, value, sentence):
        frame = people().astype({column: object})
        frame.at[2, column] = value
        with pytest.raises((ValueError, TypeError), match=sentence):
            encoder.transform(frame)

    def test_a_column_of_another_type_is_named(self, encoder):
        dates = people()["hired"]
        with pytest.raises(ValueError, match="Column 'age' contains dates, but numbers are expected"):
            encoder.transform(people().assign(age=dates))
        with pytest.raises(ValueError, match="Column 'hired' contains numbers, but dates are expected"):
            encoder.transform(people().assign(hired=1.0))
        with pytest.raises(ValueError, match="Column 'married' contains dates, but booleans are expected"):
            encoder.transform(people().assign(married=dates))
        with pytest.raises(ValueError, match="Column 'married' contains 2 in row 0, which is not a boolean"):
            encoder.transform(people().assign(married=2))

    def test_parameters(self):
        frame = people()
        with pytest.raises(ValueError, match=r"kinds\['age'\] is 'string'; it must be one of number, category"):
            TableEncoder({"age": "string"}).fit(frame)
        with pytest.raises(ValueError, match="kinds contains 'Age', which is not a column of the table"):
            TableEncoder({"Age": "number"}).fit(frame)
        with pytest.raises(ValueError, match=r"dtype must be numpy.float32 or numpy.float64"):
            TableEncoder(dtype=int).fit(frame)
        with pytest.raises(ValueError, match="'a' occurs twice"):
            TableEncoder().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
        with pytest.raises(ValueError, match=r"All columns were dropped .*'a' because it is constant"):
            TableEncoder().fit(pd.DataFrame({"a": [1, 1], "b": [2, 2]}))

    def test_sparse(self):
        from scipy import sparse

        with pytest.raises(TypeError, match=r"X is 'x\.csv', not a table: read the file first"):
            TableEncoder().fit("x.csv")
        with pytest.raises(TypeError, match="Sparse input is not supported"):
            TableEncoder().fit(sparse.eye(3).tocsr())


class TestPlainData:
    def test_a_round_trip_by_json(self, encoder):
        again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        assert again.encoding_ == encoder.encoding_
        np.testing.assert_array_equal(again.transform(people()), encoder.transform(people()))
        assert again.feature_names_in_.tolist() == people().columns.tolist()

    @pytest.mark.parametrize(
        ("place", "value", "sentence"),
        [
            (("columns", 0, "neutral"), "0", "Column 'age' has an invalid 'neutral': it must be a finite number"),
            (("columns", 0, "neutral"), float("nan"), "finite number"),
            pytest.param(("columns", 0, "neutral"), 10**400, "finite number", id="huge"),
            (("columns", 0, "neutral"), True, "finite number"),
            (("columns", 0, "decimal"), ";", "Column 'age' has an invalid 'decimal': it must be one of"),
            (("columns", 0, "kind"), "code", "Column 'age' has an invalid 'kind': it must be one of boolean,"),
            (("columns", 0, "extra"), 1, "Column 'age' has an unknown entry, 'extra'"),
            (("columns", 0, "has_gaps"), 1, "Column 'age' has an invalid 'has_gaps': it must be true or false"),
            (("columns", 0, "name"), "work", "without duplicates"),
            (("columns", 0, "name"), "other", "list each of its names"),
            (("columns", 1, "levels"), ["a", "a"], "a list of distinct strings"),
            (("columns", 1, "levels"), "ab", "a list of distinct strings"),
            (("columns", 3, "parts"), ["minute"], "a subset of year, month"),
            (("columns", 3, "neutral"), 1e300, "in the range of dates"),
            (("columns", 3, "format"), "%d", "a date format"),
            (("columns", 3, "format"), "%Y" + " " * 200, "a date format"),
            (("columns", 0, "unit"), "k" * 101, "a short string"),
            (("columns", 0, "thousands"), "x", "one of"),
            (("n_missing",), {"age": -1}, "a dict of non-negative integers"),
            (("columns", 0, "range"), [2, 1, 1], "a list of low, high and a positive spread"),
            (("columns", 1, "counts"), [1], "a list of one count per level"),
            (("columns",), {}, "The encoding has an invalid 'columns': it must be a list"),
            (("dropped",), {"id": 1}, "The encoding has an invalid 'dropped': it must be a dict of strings"),
            (("names",), None, "The encoding has an invalid 'names'"),
        ],
    )
    def test_what_is_wrong_is_refused_with_a_sentence(self, encoder, place, value, sentence):
        plain = encoder.to_dict()
        inner = plain
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        with pytest.raises(ValueError, match=sentence):
            TableEncoder.from_dict(plain)

    def test_what_is_missing_is_named(self, encoder):
        plain = encoder.to_dict()
        del plain["columns"][1]["levels"]
        with pytest.raises(ValueError, match="Column 'work' has no 'levels'"):
            TableEncoder.from_dict(plain)
        with pytest.raises(ValueError, match="The encoding must be a dict, not a list"):
            TableEncoder.from_dict([])


def test_adult_is_read_as_people_would(local_table):
    frame = local_table("adult.train.csv.xz")
    encoder = TableEncoder().fit(frame.drop(columns="income"))
    kinds = list(encoder.kinds_.values())
    assert (kinds.count("number"), kinds.count("category"), encoder.dropped_) == (6, 8, {})
    assert "workclass is missing" in names(encoder)  # they are question marks
    assert "native_country = other" in names(encoder)
    Z = encoder.transform(frame)
    assert Z.shape == (32561, 108)
    np.testing.assert_array_equal(encoder.transform(frame[5:6]), Z[5:6])


class TestTablesOfNumbers:
    def test_one_step_gives_what_columns_give(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.integers(0, 9, 50), "c": rng.normal(size=50)})
        frame.loc[::7, "c"] = np.nan
        encoder = TableEncoder().fit(frame)
        other = frame[["c", "b", "a"]].assign(more="x")  # a column of text: no table of numbers
        np.testing.assert_array_equal(encoder.transform(frame), encoder.transform(other))
        assert encoder.transform(frame)[:, -1].sum() == 8
        with_gap = frame.assign(a=np.nan)
        assert (encoder.transform(with_gap)[:, 0] == encoder.encoding_.reference[0]).all()

    def test_extreme_numbers_are_refused_all_the_same(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 5.0, 7.0]})
        encoder = TableEncoder().fit(frame)
        with pytest.raises(ValueError, match="Column 'b' contains inf in row 1"):
            encoder.transform(frame.assign(b=[1.0, np.inf, 2.0]))


class TestFewRows:
    """They are encoded from Python objects, where these are numbers or known levels."""

    ODD = (
        "State", " State ", "Private", "else", "?", "", None, np.nan, True, "true", 3, 3.0, "3", "3.5", -0.0, 2**53 + 1,
        "x", np.float32(0.1), np.str_("State"), Decimal("3"), date(2024, 5, 31), "2024-05-31", 1e69, float("-inf"),
        10**400,
    )  # fmt: skip

    @pytest.fixture
    def encoder(self):
        rng = np.random.default_rng(0)
        frame = {
            "number": np.where(np.arange(90) % 9 == 0, np.nan, rng.normal(size=90)),
            "level": [*["State", "Private", "3", "true", str(2**53 + 1)] * 17, *["rare"] * 5],
            "flag": rng.random(90) < 0.5,
            "day": np.datetime64("2024-01-01") + rng.integers(0, 500, 90),
        }
        return TableEncoder(min_rows=6).fit(pd.DataFrame(frame))

    @staticmethod
    def encoded(encoder, rows):
        try:
            return encoder.transform(rows)
        except (TypeError, ValueError) as error:
            return type(error)

    @pytest.mark.parametrize("column", ["number", "level", "flag", "day"])
    def test_features_are_those_of_many_rows(self, encoder, column):
        usual = {"number": 1.5, "level": "State", "flag": True, "day": date(2024, 2, 29)}
        for value in self.ODD:
            row = usual | {column: value}
            many = self.encoded(encoder, {name: [each] * 20 for name, each in row.items()})
            for few in (
                [row],
                {name: [each] * 2 for name, each in row.items()},
                np.array([[*row.values()]], dtype=object),
            ):
                found = self.encoded(encoder, few)
                if isinstance(many, type):
                    assert found == many, value
                else:
                    np.testing.assert_array_equal(found, many[: len(found)], str(value))

    def test_values_of_several_types_in_a_column(self, encoder):
        rng = np.random.default_rng(1)
        for _ in range(30):
            chosen = [self.ODD[i] for i in rng.choice(19, 3)]
            rows = [{"number": 2, "level": value, "flag": None, "day": None} for value in chosen]
            np.testing.assert_array_equal(encoder.transform(rows), encoder.transform(rows * 6)[:3], str(chosen))

    def test_a_loaded_table_keeps_the_values_that_were_loaded(self, encoder):
        rows = {"number": [1.5], "level": ["State"], "flag": [True], "day": [None]}
        table, expected = loaded(as_table(rows)), encoder.transform(rows)
        rows["number"][0] = 9.0
        np.testing.assert_array_equal(encoder.encoding_.encode(table, "X"), expected)

    @pytest.mark.parametrize("unit", ["ns", "s"])
    def test_durations_are_seconds(self, unit):
        seconds = np.arange(60).reshape(30, 2) * 7 % 59
        rows = seconds.astype("m8[s]").astype(f"m8[{unit}]")
        encoder = TableEncoder(kinds={"x0": "number", "x1": "number"}).fit(rows)
        np.testing.assert_array_equal(encoder.transform(rows[:2]), seconds[:2])
        np.testing.assert_array_equal(encoder.transform({"x0": rows[:2, 0], "x1": rows[:2, 1]}), seconds[:2])
