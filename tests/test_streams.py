"""Data sets are read as they are, in any chunks, or it is said what is wrong with them; generators keep what they promise."""

import gzip
import os
import tracemalloc
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

import oneclass
from oneclass import streams
from oneclass.errors import InvalidParameterError, StreamError
from oneclass.streams import fetching
from oneclass.streams.datasets import DATASETS
from oneclass.streams.drift import Course
from oneclass.streams.records import LINES
from oneclass.streams.stream import Chunk, Stream

# Tables II and IV: features, targets, others. Breast Cancer's two counts are the other way round there, by mistake.
PAPER = {
    "1CDT": (2, 8000, 8000),
    "1CHT": (2, 8000, 8000),
    "4CE1CF": (2, 34650, 138600),
    "4CR": (2, 36100, 108300),
    "GEARS-2C-2D": (2, 100000, 100000),
    "4CRE-V1": (2, 31250, 93750),
    "4CRE-V2": (2, 45750, 137250),
    "5CVT": (2, 8000, 16000),
    "2CDT": (2, 8000, 8000),
    "2CHT": (2, 8000, 8000),
    "1CSurr": (2, 20200, 35083),
    "UG-2C-2D": (2, 50000, 50000),
    "UG-2C-3D": (3, 100000, 100000),
    "UG-2C-5D": (5, 100000, 100000),
    "MG-2C-2D": (2, 100000, 100000),
    "FG-2C-2D": (2, 150000, 50000),
    "Electricity": (8, 19237, 26075),
    "Poker-hand": (10, 415526, 413675),
    "Keystroke": (10, 400, 1200),
    "Abalone": (10, 2770, 1407),
    "Breast-Cancer": (9, 458, 241),
    "Diabetes": (8, 500, 268),
    "Ecoli": (7, 52, 284),
    "Liver": (6, 145, 200),
    "Sonar": (60, 111, 97),
    "SPECTF": (44, 95, 254),
}
GENERATORS = {
    name: getattr(streams, name)
    for name in (
        "translation",
        "rotation",
        "expansion",
        "surrounding",
        "unimodal",
        "multimodal",
        "gears",
        "regimes",
        "bursts",
        "ring",
        "crescents",
    )
}
DRIFTING = [name for name in GENERATORS if name not in {"regimes", "ring", "crescents"}]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of data sets, an empty cache, and no server."""
    monkeypatch.setenv("ONECLASS_DATA", str(tmp_path))
    monkeypatch.setenv("ONECLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def iris_like(name="Small", rows=7, targets=3):
    """A small entry of a catalogue: two features, labels 1 (targets) and 2."""
    return replace(DATASETS["1CDT"], name=name, count=rows, targets=targets, sha256=None)


@pytest.fixture
def small(monkeypatch, folder):
    """Writes the text of a small data set that the catalogue knows, plain or gzipped, and loads it."""
    dataset = iris_like()
    monkeypatch.setitem(DATASETS, "Small", dataset)

    def written(text, ending=".csv"):
        content = text.encode() if isinstance(text, str) else text
        (folder / f"Small{ending}").write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
        return streams.load("Small")

    return written


GOOD = "a,b,label\n1,2,1\n3,4,2\n5,6,1\n7,8,2\n9,10,2\n11,12,1\n13,14,2\n"


# Loading


@pytest.mark.parametrize("name", PAPER)
def test_the_catalogue_has_the_numbers_of_the_paper(name):
    """All 26 data sets are there, with the paper's features and counts, before a file is opened; the description says so."""
    features, targets, others = PAPER[name]
    stream = streams.load(name)
    assert (stream.features, len(stream), stream.name) == (features, targets + others, name)
    assert f"{targets:,} targets" in stream.description
    assert list(PAPER) == streams.names()


@pytest.mark.parametrize("name", [name for name in PAPER if name not in {"UG-2C-3D", "UG-2C-5D"}])
def test_the_files_are_those_of_the_paper(name):
    """Each file has the bytes that were first read, and the paper's rows, features and targets."""
    if not os.environ.get("ONECLASS_DATA"):
        pytest.skip("ONECLASS_DATA is not set: it names the folders of the data sets")
    features, targets, others = PAPER[name]
    rows = found = 0
    for chunk in streams.load(name, verify=True).chunks(10_000):
        assert chunk.rows.dtype == np.float64
        assert chunk.rows.shape[1] == features
        rows, found = rows + len(chunk.rows), found + int(chunk.is_target.sum())
    assert (rows, found) == (targets + others, targets)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_is_read_as_it_stands(small, ending):
    """Rows are float64 in the file's order, is_target is a boolean for each, whether the file is gzipped or not."""
    stream = small(GOOD, ending)
    assert stream.rows.tolist() == [[i, i + 1.0] for i in range(1, 14, 2)]
    assert stream.is_target.tolist() == [True, False, True, False, False, True, False]
    assert (stream.rows.dtype, stream.is_target.dtype) == (np.float64, np.bool_)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_chunks_are_the_rows(small, size):
    """Chunks of any size hold the rows in order, all of that size but the last; also after all rows have been read."""
    stream = small(GOOD)
    for _ in range(2):
        chunks = list(stream.chunks(size))
        assert [len(chunk.rows) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
        assert 0 < len(chunks[-1].rows) <= size
        assert np.array_equal(np.concatenate([chunk.rows for chunk in chunks]), stream.rows)
        assert np.array_equal(np.concatenate([chunk.is_target for chunk in chunks]), stream.is_target)


@pytest.mark.parametrize(
    "text", ["\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\n\n"), GOOD.rstrip(), GOOD.replace(",", ", ")]
)
def test_what_editors_do_to_a_file_is_no_matter(small, text):
    """A byte order mark, other line ends, empty lines, a last line without end and blanks change no row."""
    assert small(text).rows[:, 0].tolist() == list(range(1, 14, 2))


def test_nothing_is_read_before_rows_are_asked_for(folder):
    """A data set without a file loads; its rows and its first chunk are what fails."""
    stream = streams.load("UG-2C-3D")
    chunks = stream.chunks(50)
    with pytest.raises(StreamError, match="UG-2C-3D is not at hand"):
        next(chunks)
    with pytest.raises(StreamError, match="UG-2C-3D is not at hand"):
        _ = stream.rows


def test_rows_cannot_be_written_to(small):
    """What is kept for the next caller is protected from this one."""
    stream = small(GOOD)
    with pytest.raises(ValueError, match="read-only"):
        stream.rows[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        stream.is_target[0] = False


def test_reading_in_chunks_needs_no_more_memory_for_more_rows(folder, monkeypatch):
    """A file of ten times the rows is read with the same memory, gzipped too."""
    peaks = []
    for blocks in (2, 20):
        name, count = f"Big{blocks}", blocks * LINES
        monkeypatch.setitem(DATASETS, name, iris_like(name, count, count))
        with gzip.open(folder / f"{name}.csv.gz", "wt", compresslevel=1) as file:
            file.write("x1,x2,label\n")
            file.writelines(f"{i}.25,{i}.5,1\n" for i in range(count))
        tracemalloc.start()
        assert sum(len(chunk.rows) for chunk in streams.load(name).chunks(50)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 1_500_000  # the rows alone would be 1.9 MB


def test_folders_are_searched_in_their_order(small, folder, monkeypatch):
    """The first folder of ONECLASS_DATA that has the file wins; then the cache; a folder that is not there is passed over."""
    for place, first in ((folder / "one", 100), (folder / "two", 200), (folder / "cache", 300)):
        place.mkdir()
        (place / "Small.csv").write_text(GOOD.replace("1,2,1", f"{first},2,1", 1))
    monkeypatch.setenv("ONECLASS_DATA", os.pathsep.join(map(str, (folder / "none", folder / "two", folder / "one"))))
    assert streams.load("Small").rows[0, 0] == 200
    monkeypatch.delenv("ONECLASS_DATA")
    assert streams.load("Small").rows[0, 0] == 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs one header line that names 2 features"),
        ("1,2,1\n3,4,2\n", "begins with '1,2,1'"),
        ("a,b,c,label\n1,2,3,1\n", "begins with 'a,b,c,label'"),
        (GOOD.replace("9,10", "nine,10"), r"Small.csv, line 6, column 1: 'nine' is no finite number"),
        (GOOD.replace("9,10", "9,nan"), r"line 6, column 2: 'nan' is no finite number"),
        (GOOD.replace("9,10", "9,1_0"), r"lines 2 to 8 cannot be read as numbers"),
        (GOOD.replace("9,10,2", "9,10"), r"line 6: 2 cells where 3 are needed"),
        (GOOD.replace("1,", "1;").replace(",", ";"), "begins with"),
        (GOOD + "15,16,2\n", r"8 or more rows, 3 of them targets; Small has 7 rows and 3 targets"),
        (GOOD.removesuffix("13,14,2\n"), r"6 rows, 3 of them targets; Small has 7 rows"),
        (GOOD.replace("9,10,2", "9,10,1"), r"7 rows, 4 of them targets"),
        (GOOD.replace("1,2,1", "1²,2,1", 1), "line 2, column 1: '1²' is no finite number"),
        (GOOD.encode() + b"\xe4", "cannot be read to its end"),
    ],
)
def test_a_file_that_is_not_the_data_set_is_refused(small, text, said):
    """Columns, cells, rows and targets are checked; the message says the file, the line, and what is needed."""
    with pytest.raises(StreamError, match=said):
        _ = small(text).rows


def test_a_gzipped_file_cut_short_is_refused(small, folder):
    """Half of a gzipped file is damaged, not short."""
    small(GOOD * 100, ".csv.gz")
    path = folder / "Small.csv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StreamError, match=r"Small.csv.gz cannot be read to its end"):
        _ = streams.load("Small").rows


def test_verify_asks_for_the_bytes_of_the_original(folder):
    """Other bytes with the right shape are read, but not with verify=True; blank lines and 1.0 for 1 make no difference to rows."""
    text = "x1,x2,label\n" + "1.0,2,1\n" * 8000 + "\n" + "3,4,2\n" * 8000
    (folder / "1CDT.csv").write_text(text)
    assert streams.load("1CDT").rows.shape == (16_000, 2)
    with pytest.raises(StreamError, match=r"1CDT.csv does not have the bytes of 1CDT .*sha256 c137fb70"):
        _ = streams.load("1CDT", verify=True).rows


def test_a_set_known_by_its_blob_is_verified_without_its_header(folder, monkeypatch):
    """The text behind the header has the blob's id, with the last line end or without."""
    body = GOOD.partition("\n")[2].encode()
    for original in (body, body[:-1]):
        source = replace(DATASETS["UG-2C-3D"].source, blob=fetching.blob_id(original))
        monkeypatch.setitem(DATASETS, "Small", replace(iris_like(), source=source))
        (folder / "Small.csv").write_text(GOOD)
        assert len(streams.load("Small", verify=True).rows) == 7
    (folder / "Small.csv").write_text(GOOD.replace("9", "8"))
    with pytest.raises(StreamError, match="git blob"):
        _ = streams.load("Small", verify=True).rows


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CDT", "did you mean .*1CDT"),
        ("UG2C3D", "UG-2C-3D"),
        ("electric", "Electricity"),
        ("qqqq", "names.. lists all 26"),
        (7, "no data set 7"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, said):
    """The message names what the caller may have meant."""
    with pytest.raises(StreamError, match=said):
        streams.load(name)


@pytest.mark.parametrize(("spelled", "name"), [("ug_2c_2d", "UG-2C-2D"), ("Breast Cancer", "Breast-Cancer"), ("Spectf", "SPECTF")])
def test_spelling_does_not_matter(spelled, name):
    """Capitals, blanks and underscores are taken as in the paper."""
    assert streams.load(spelled).name == name


def test_rows_in_memory_are_a_stream():
    """Rows and truths of one's own become a stream; a copy is taken; what does not fit is refused."""
    rows = np.arange(6.0).reshape(3, 2)
    stream = streams.Stream.of(rows, [True, False, True])
    rows[:] = 0.0
    assert stream.rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    for truths in ([1, 0, 1], [True, False]):
        with pytest.raises(StreamError, match="give a matrix and one True or False"):
            streams.Stream.of(rows, truths)
    with pytest.raises(InvalidParameterError, match="size=0"):
        stream.chunks(0)


# Generators


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("size", [1, 7, 999, 1000, 5000])
def test_generated_rows_do_not_depend_on_the_chunks(name, size):
    """Chunks of any size hold the same bits as `rows`, at every reading, and another seed gives others."""
    draw = GENERATORS[name]
    stream = draw(2100, seed=5, contamination=0.3)
    chunks = list(draw(2100, seed=5, contamination=0.3).chunks(size))
    assert np.array_equal(np.concatenate([chunk.rows for chunk in chunks]), stream.rows)
    assert np.array_equal(np.concatenate([chunk.is_target for chunk in chunks]), stream.is_target)
    assert not np.array_equal(draw(2100, seed=6).rows, stream.rows)


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("features", [2, 3, 40])
def test_generators_have_any_size_dimension_and_contamination(name, features):
    """Rows, features and the share of others are those asked for, from none to all."""
    for contamination in (0.0, 0.25, 1.0):
        stream = GENERATORS[name](4001, features=features, contamination=contamination)
        assert stream.rows.shape == (len(stream), stream.features) == (4001, features)
        assert np.isfinite(stream.rows).all()
        assert abs(np.mean(~stream.is_target) - contamination) < (0.12 if name == "bursts" else 0.03)
        assert f"contamination {contamination:g}" in stream.description


@pytest.mark.parametrize("name", ["translation", "unimodal", "multimodal", "regimes", "bursts", "ring"])
def test_what_needs_no_plane_does_with_one_feature(name):
    """Streams of a single feature are drawn."""
    assert GENERATORS[name](10, features=1).rows.shape == (10, 1)


def centres(name, drift):
    """The mean of the targets in each eighth of a stream, and six deviations of such a mean.

    Of gears, whose mean stays, the mean of the directions of their arms.
    """
    stream = GENERATORS[name](8000, drift=drift, contamination=0.0, seed=2)
    rows = stream.rows
    if name == "gears":
        angle = 5 * np.arctan2(rows[:, 1], rows[:, 0])
        rows = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.array([part.mean(axis=0) for part in np.array_split(rows, 8)]), 6.0 * rows.std(axis=0).max() / np.sqrt(1000)


@pytest.mark.parametrize("name", DRIFTING)
def test_drifts_are_what_they_are_called(name):
    """None stays, abrupt jumps once, recurring comes back, gradual goes from one to the other, incremental moves at every step."""
    drifts = ("none", "abrupt", "recurring", "gradual", "incremental")
    (still, _), (jump, noise), (back, _), (mixed, _), (steady, _) = (centres(name, each) for each in drifts)

    def apart(one, other):
        return np.linalg.norm(one - other, axis=-1).max()

    old, new = jump[0], jump[-1]
    assert apart(still, still[0]) < noise
    assert apart(old, new) > 3 * noise
    assert apart(jump[:4], old) < noise
    assert apart(jump[4:], new) < noise
    assert apart(back, np.array([old, old, new, new] * 2)) < noise
    assert apart(mixed[:2], old) < noise
    assert apart(mixed[6:], new) < noise
    assert apart(mixed[3:5].mean(axis=0), (old + new) / 2) < noise
    assert min(apart(one, other) for one, other in pairwise(steady)) > 0.25 * noise


def test_regimes_jump_as_often_as_asked():
    """With two changes the targets have three places, a third of the stream each, and the outliers are far from each."""
    stream = streams.regimes(6000, features=3, changes=2, seed=4)
    for third in range(3):
        part = slice(2000 * third, 2000 * (third + 1))
        rows, is_target = stream.rows[part], stream.is_target[part]
        centre, spread = rows[is_target].mean(axis=0), np.cov(rows[is_target].T)
        offsets = rows - centre
        far = np.sqrt(np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(spread), offsets))
        assert np.quantile(far[is_target], 0.99) < 4.0 < np.quantile(far[~is_target], 0.01)


def test_bursts_are_stretches():
    """The others come in stretches of the length asked for, each in one place."""
    stream = streams.bursts(20_000, length=40, seed=1)
    stretches = stream.is_target.reshape(-1, 40)
    assert np.all(stretches == stretches[:, :1])
    burst = stream.rows.reshape(-1, 40, 2)[~stretches[:, 0]]
    assert len(burst) > 20
    assert burst.std(axis=1).max() < 0.6


def test_the_ring_is_a_ring():
    """Targets lie about 5 from the middle, in any dimension; others inside and outside, none on it."""
    stream = streams.ring(2000, features=4, contamination=0.5)
    radius = np.linalg.norm(stream.rows, axis=1)
    assert abs(radius[stream.is_target].mean() - 5.0) < 0.05
    others = radius[~stream.is_target]
    assert np.all((others < 3.0) | (others > 7.0))
    assert 0.4 < np.mean(others < 3.0) < 0.6


@pytest.mark.parametrize(("name", "features"), [("UG-2C-3D", 3), ("UG-2C-5D", 5)])
def test_a_stand_in_says_what_it_is(name, features):
    """It has the shape of the original, and never its name."""
    stream = streams.stand_in(name)
    assert (len(stream), stream.features) == (200_000, features)
    assert stream.name != name
    assert "never as evidence" in stream.description
    assert 0.4 < next(stream.chunks(1000)).is_target.mean() < 0.6
    with pytest.raises(StreamError, match="no stand-in for '1CDT'"):
        streams.stand_in("1CDT")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rows": 0}, "rows=0"),
        ({"features": 2.5}, "features=2.5"),
        ({"features": 1}, "rotation needs a plane"),
        ({"drift": "sudden"}, "drift='sudden': choose one of"),
        ({"contamination": 1.5}, "contamination=1.5"),
        ({"contamination": float("nan")}, "contamination=nan"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_parameters_of_generators_are_checked(wrong, said):
    """A wrong parameter is refused at the call, not at the first row."""
    with pytest.raises(InvalidParameterError, match=said):
        streams.rotation(**wrong)


def test_a_long_generated_stream_needs_the_memory_of_a_block():
    """Of a thousand million rows the first hundred thousand are drawn, chunk by chunk, in under 1 MB."""
    tracemalloc.start()
    drawn = sum(len(chunk.rows) for chunk in islice(streams.gears(10**9).chunks(50), 2000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert drawn == 100_000
    assert peak < 1_000_000


def test_a_watcher_follows_a_generated_stream():
    """What drifts is followed: a window keeps accepting a class that a fixed model loses."""
    stream = streams.translation(3000, contamination=0.0, seed=1)
    window = oneclass.Watcher(oneclass.KernelBoundary(window=150), chunk=50)
    fixed = oneclass.KernelBoundary().fit(stream.rows[:150])
    assert np.mean(window.watch(stream.rows).alarm) < 0.15
    assert np.mean(fixed.predict(stream.rows[1500:]) == -1) > 0.9


def test_what_one_caller_does_to_a_chunk_no_other_sees():
    """Chunks cannot be written to, whether the whole stream has been read before or not."""
    for stream in (Stream.of(np.zeros((5, 1)), [True] * 5), streams.ring(rows=5)):
        for chunk in (*stream.chunks(2), *stream.chunks(9)):
            with pytest.raises(ValueError, match="read-only"):
                chunk.rows[:] = 9.0
            with pytest.raises(ValueError, match="read-only"):
                chunk.is_target[:] = False


@pytest.mark.parametrize("blocks", [[3], [3, 3], []])
def test_blocks_that_are_not_the_stream_are_refused(blocks):
    """A stream whose blocks hold fewer or more rows than was said is no stream, at once or in chunks."""
    stream = Stream("mine", "", 5, 1, lambda: [Chunk(np.ones((count, 1)), np.ones(count, dtype=bool)) for count in blocks])
    with pytest.raises(StreamError, match=r"mine: after .* are not those of 5 rows of 1 features"):
        _ = stream.rows
    with pytest.raises(StreamError, match="are not those of 5 rows"):
        list(stream.chunks(2))
    wide = Stream("mine", "", 5, 1, lambda: [Chunk(np.ones((5, 2)), np.ones(5, dtype=bool))])
    with pytest.raises(StreamError, match="of 1 features"):
        _ = wide.rows


@pytest.mark.parametrize("rows", [[[np.nan]], [[1j]], [["text"]]])
def test_rows_of_ones_own_are_finite_numbers(rows):
    """What is in memory is looked at, too."""
    with pytest.raises(StreamError, match="finite numbers"):
        Stream.of(rows, [True])


def test_another_parameter_gives_another_description():
    """The description tells two streams apart that differ in any parameter: it can name what was made of them."""
    plain = {"rows": 50, "contamination": 0.1}
    changed = [{}, {"distance": 5.0}, {"gap": 1.0}, {"seed": 1}, {"features": 3}, {"drift": "none"}, {"contamination": 0.1000001}]
    assert len({streams.translation(**{**plain, **each}).description for each in changed}) == len(changed)
    assert streams.gears(turns=1.3).description != streams.gears().description


@pytest.mark.parametrize(
    "shape", [{"distance": np.nan}, {"gap": np.inf}, {"gap": "x"}, {"contamination": "0.1"}, {"contamination": 1.5}]
)
def test_a_shape_that_is_no_number_is_refused_at_the_call(shape):
    """What would give rows of NaN, or fail at the first row, is refused when the stream is asked for."""
    with pytest.raises(InvalidParameterError):
        streams.translation(**shape)


@pytest.mark.parametrize(("rows", "changes"), [(100, 49), (49, 48), (50, 49), (60, 2)])
def test_regimes_are_of_equal_length(rows, changes):
    """Where the stream can be cut into equal parts, it is: no rounding makes one of them a row longer."""
    course = Course(rows, 1, "abrupt", 0.0, 0, changes)
    place = np.concatenate([place for _, _, place in course._steps()])
    assert set(np.unique(place, return_counts=True)[1]) == {rows // (changes + 1)}


@pytest.mark.parametrize("damage", ["cut", "no gzip"])
def test_a_damaged_file_is_a_stream_error_with_verify_too(damage, tmp_path, monkeypatch):
    """A file that cannot be read to its end is named, whether its bytes are compared or only read."""
    content = gzip.compress(b"x1,x2,label\n" + b"1,2,1\n" * 16_000)
    (tmp_path / "1CDT.csv.gz").write_bytes(content[:-20] if damage == "cut" else b"x1,x2,label\n")
    monkeypatch.setenv("ONECLASS_DATA", str(tmp_path))
    for verify in (False, True):
        with pytest.raises(StreamError, match=r"1CDT\.csv\.gz"):
            _ = streams.load("1CDT", verify=verify).rows
