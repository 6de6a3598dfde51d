"""Saved models resume with the same bits; damaged, foreign and newer files are refused by name."""

import json
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pairs import KERNELS, both_models, both_rules, half_cubed, learn_in_chunks, normal

import oneclass
from oneclass import KernelBoundary, KernelReconstruction, Watcher
from oneclass.errors import KernelError, OneClassError, StateError
from oneclass.kernels import RBF, FunctionKernel, Laplacian, Linear, Polynomial, RationalQuadratic
from oneclass.loading import model_from_bytes
from oneclass.state import MAGIC, VERSION, Envelope, write_file

FRESH = 2 * normal(30, seed=9)


def assert_same_bits(one, other):
    """Bytes, scores, offset and p-values are equal to the last bit."""
    assert one.to_bytes() == other.to_bytes()
    np.testing.assert_array_equal(one.score_samples(FRESH), other.score_samples(FRESH))
    np.testing.assert_array_equal(one.p_values(FRESH), other.p_values(FRESH))
    assert one.offset_ == other.offset_


@both_models
@both_rules
@pytest.mark.parametrize("window", [None, 45])
@pytest.mark.parametrize("chunk", [1, 6])
def test_a_saved_model_goes_on_with_the_same_bits(model, rule, window, chunk, tmp_path):
    """Saved and loaded after every chunk, along either path, a model stays bit for bit the one that was never saved."""
    rows = normal(110)
    kept = model(threshold=rule, window=window).fit(rows[:45])
    resumed = model(threshold=rule, window=window).fit(rows[:45])
    for start in range(45, 109, chunk):
        resumed = model.from_bytes(resumed.to_bytes())
        for each in (kept, resumed):
            each.partial_fit(rows[start : start + chunk])
    assert_same_bits(kept, resumed)
    resumed.save(tmp_path / "model")
    loaded = oneclass.load(tmp_path / "model")
    assert_same_bits(kept, loaded)
    assert type(loaded) is model
    assert loaded.get_params() == kept.get_params()


@both_models
@pytest.mark.parametrize("kernel", [*KERNELS[:-1], "rbf", "laplacian", "rational_quadratic", "polynomial", "linear"], ids=repr)
def test_every_kernel_is_saved(model, kernel):
    """A kernel by name, a kernel object, a sum and a product come back as they were."""
    fitted = model(kernel, window=30).fit(normal(40))
    restored = model.from_bytes(fitted.to_bytes())
    assert restored.kernel == kernel
    assert_same_bits(fitted.partial_fit(FRESH[:7]), restored.partial_fit(FRESH[:7]))


@pytest.mark.parametrize("number", [np.int64, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("kind", [RBF, Laplacian, RationalQuadratic, Polynomial])
def test_a_kernel_may_be_made_of_numpys_numbers(kind, number):
    """A width or a degree out of an array is a number like any other: the kernel is learnt with and saved as with Python's."""
    fitted = KernelBoundary(kind(number(2)), C=0.1).fit(normal(40))
    plain = KernelBoundary(kind(2), C=0.1).fit(normal(40))
    np.testing.assert_array_equal(fitted.score_samples(FRESH), plain.score_samples(FRESH))
    assert_same_bits(KernelBoundary.from_bytes(fitted.to_bytes()), fitted)


@both_models
def test_a_kernel_function_is_handed_in_again(model, tmp_path):
    """A function is code and not saved: `load` needs it again, says so, and then goes on with the same bits."""
    fitted = model(half_cubed, C=2.0, window=30).fit(normal(40))
    fitted.save(tmp_path / "model")
    with pytest.raises(KernelError, match="kernel=function"):
        oneclass.load(tmp_path / "model")
    restored = oneclass.load(tmp_path / "model", kernel=half_cubed)
    assert restored.kernel is half_cubed
    assert_same_bits(fitted.partial_fit(FRESH[:7]), restored.partial_fit(FRESH[:7]))


def test_a_function_inside_a_sum_is_handed_in_again():
    """A function kernel that is part of a combination is asked for as well."""
    fitted = KernelBoundary(FunctionKernel(half_cubed) + RBF(1.0), C=2.0).fit(normal(40))
    with pytest.raises(KernelError, match="kernel=function"):
        KernelBoundary.from_bytes(fitted.to_bytes())
    assert_same_bits(KernelBoundary.from_bytes(fitted.to_bytes(), kernel=half_cubed), fitted)


@both_models
def test_an_unfitted_model_is_saved_as_its_parameters(model):
    """What has learnt nothing comes back with its parameters, having learnt nothing."""
    asked = model(Polynomial(2), C=np.float64(3.0), alarm_rate=0.1, threshold="training", window=np.int64(70))
    restored = model.from_bytes(asked.to_bytes())
    assert restored.get_params() == asked.get_params()
    assert not restored.is_fitted


@both_models
def test_a_model_that_forgot_everything_is_saved_as_that(model):
    """A model whose rows were all forgotten comes back knowing its features and nothing else, and learns on in the same way."""
    emptied = model(window=40).fit(normal(40)).forget(range(40))
    restored = model.from_bytes(emptied.to_bytes())
    assert not restored.is_fitted
    assert restored.n_features_in_ == 3
    assert_same_bits(emptied.partial_fit(FRESH), restored.partial_fit(FRESH))


@both_models
def test_the_same_state_gives_the_same_bytes(model):
    """Two models that learnt the same rows in the same way are the same bytes, and scoring does not change them."""
    one, other = (learn_in_chunks(model(window=50), normal(80), [50, 1, 1, 20]) for _ in range(2))
    other.p_values(FRESH)
    assert one.to_bytes() == other.to_bytes()


@both_models
@pytest.mark.parametrize("rule", ["training", "leave-one-out"])
def test_a_damaged_file_is_refused(model, rule):
    """Any one byte changed, anywhere, and any bytes cut off or added, raise StateError."""
    data = model(threshold=rule, window=40).fit(normal(40)).partial_fit(normal(1, seed=1)).to_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(14), *rng.choice(len(data), 190, replace=False), len(data) - 1]:
        damaged = bytearray(data)
        damaged[place] ^= int(rng.integers(1, 256))
        with pytest.raises(StateError):
            model.from_bytes(bytes(damaged))
    for cut in (0, 3, 8, 14, 17, len(data) // 2, len(data) - 1):
        with pytest.raises(StateError):
            model.from_bytes(data[:cut])
    with pytest.raises(StateError):
        model.from_bytes(data + b"\0")


def with_version(data, version):
    """The same bytes as a version, with a checksum that fits."""
    body = data[: len(MAGIC)] + struct.pack("<H", version) + data[len(MAGIC) + 2 : -4]
    return body + struct.pack("<I", zlib.crc32(body))


def test_a_newer_file_asks_for_an_upgrade():
    """A state of a later version is refused with the advice to upgrade; the present version is read."""
    data = KernelBoundary().fit(normal(40)).to_bytes()
    assert with_version(data, VERSION) == data
    with pytest.raises(StateError, match=f"version {VERSION + 1}.*[Uu]pgrade"):
        KernelBoundary.from_bytes(with_version(data, VERSION + 1))


@pytest.mark.parametrize("foreign", [b"", b"PK\x03\x04 not ours, though long enough for a head", b"oneclass"])
def test_a_foreign_file_is_refused_by_its_path(foreign, tmp_path):
    """A file that is not ours is refused, and the message names the file."""
    path = tmp_path / "model.bin"
    path.write_bytes(foreign)
    with pytest.raises(StateError, match=r"model\.bin.*no saved state"):
        oneclass.load(path)


def test_the_kind_of_a_model_must_fit():
    """The bytes of one model are not those of the other, nor a watcher's, and the message names both."""
    data = KernelBoundary().fit(normal(40)).to_bytes()
    with pytest.raises(StateError, match="KernelBoundary, not of a KernelReconstruction"):
        KernelReconstruction.from_bytes(data)
    with pytest.raises(StateError, match="KernelBoundary, not of a Watcher"):
        Watcher.from_bytes(data)


def test_a_watcher_is_no_model(tmp_path):
    """`load` reads models; the file of a watcher is refused by its kind."""
    write_file(tmp_path / "watcher", Watcher(KernelBoundary()).to_bytes())
    with pytest.raises(StateError, match="Watcher"):
        oneclass.load(tmp_path / "watcher")


def test_a_file_that_is_not_there_is_said_by_python(tmp_path):
    """A missing file is a FileNotFoundError, as everywhere."""
    with pytest.raises(FileNotFoundError):
        oneclass.load(tmp_path / "none")


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path):
    """A save that fails leaves the old file, and no other file beside it."""
    path = tmp_path / "model"
    fitted = KernelBoundary().fit(normal(40))
    fitted.save(path)
    with pytest.raises(TypeError):
        write_file(path, "text, not bytes")
    assert path.read_bytes() == fitted.to_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    with pytest.raises(FileNotFoundError):
        fitted.save(tmp_path / "no folder" / "model")


def test_the_format_is_the_one_written_down():
    """Mark, version, length, JSON header, little-endian float64 arrays, nested parts, CRC-32: readable without the library."""
    array = np.array([[1.5, -2.0], [np.pi, 1e300]])
    data = Envelope("Thing", {"a": 0.1}, {"x": array}, {"inner": b"abc"}).to_bytes()
    assert data[:8] == b"oneclass"
    version, length = struct.unpack_from("<HI", data, 8)
    header = json.loads(data[14 : 14 + length])
    assert version == 1
    assert header == {"kind": "Thing", "values": {"a": 0.1}, "arrays": {"x": [2, 2]}, "parts": {"inner": 3}}
    assert data[14 + length :] == array.astype("<f8").tobytes() + b"abc" + struct.pack("<I", zlib.crc32(data[:-4]))
    read = Envelope.from_bytes(data)
    np.testing.assert_array_equal(read.arrays["x"], array)
    assert read.parts == {"inner": b"abc"}


def test_kernels_are_equal_by_value():
    """Two kernels of the same formula and numbers are equal, so that parameters of models compare."""
    assert RBF(1.0) + Linear() == RBF(1.0) + Linear()
    assert hash(RBF(1.0) * Laplacian(2.0)) == hash(RBF(1.0) * Laplacian(2.0))
    assert RBF(1.0) + Linear() != RBF(1.0) * Linear()
    assert RBF(1.0) + Linear() != RBF(2.0) + Linear()


@both_models
@pytest.mark.parametrize(
    "later",
    [{"window": 60}, {"alarm_rate": 0.3, "threshold": "training"}, {"C": 9.0, "width": 0.1}, {"kernel": "linear"}, {"C": 0}],
)
def test_what_is_in_force_is_saved_with_what_was_set_since(model, later):
    """Parameters set after `fit` wait for the next one: a saved model goes on with those in force, and keeps the others."""
    fitted = model(width=1.5, C=2.0, window=45).fit(normal(45)).set_params(**later)
    restored = model.from_bytes(fitted.to_bytes())
    assert restored.get_params() == fitted.get_params()
    assert_same_bits(fitted.partial_fit(FRESH[:7]), restored.partial_fit(FRESH[:7]))
    assert len(restored.window_) == 45


def test_a_kernel_of_two_functions_is_handed_in_whole():
    """One function cannot stand for two, nor another kernel for the one that was saved; the whole kernel comes back as it was."""
    whole = FunctionKernel(half_cubed) + RBF(1.0) * FunctionKernel(lambda X, Y: np.exp(-np.abs(X[:, None] - Y[None]).sum(axis=2)))
    fitted = KernelBoundary(whole, C=2.0).fit(normal(40))
    with pytest.raises(KernelError, match="2 functions"):
        KernelBoundary.from_bytes(fitted.to_bytes(), kernel=half_cubed)
    with pytest.raises(KernelError, match=r"RBF\(width=1.0\) is not the kernel"):
        KernelBoundary.from_bytes(fitted.to_bytes(), kernel=RBF(1.0))
    restored = KernelBoundary.from_bytes(fitted.to_bytes(), kernel=whole)
    assert restored.kernel is whole
    assert_same_bits(restored, fitted)


@both_models
def test_another_function_is_noticed(model):
    """A function under which the saved weights solve nothing is not the one that was learnt with."""
    fitted = model(half_cubed, C=2.0, window=30).fit(normal(40))
    with pytest.raises(KernelError, match="the weights do not fit"):
        model.from_bytes(fitted.to_bytes(), kernel=lambda X, Y: 1.1 * half_cubed(X, Y))


class Widened(RBF):
    """A kernel of the user's own."""


def test_a_kernel_of_ones_own_is_handed_in_again():
    """A class that is not the library's is code, too: it is asked for with what it was made of, and fits if it is the same."""
    fitted = KernelBoundary(Widened(1.5), C=2.0).fit(normal(40))
    with pytest.raises(KernelError, match=r"'kind': 'Widened', 'width': 1.5"):
        KernelBoundary.from_bytes(fitted.to_bytes())
    assert_same_bits(KernelBoundary.from_bytes(fitted.to_bytes(), kernel=Widened(1.5)), fitted)


def test_what_cannot_be_written_is_refused_when_it_is_saved():
    """A parameter that is no plain value is named by `to_bytes`, not found out by whoever loads it."""
    with pytest.raises(StateError, match=r"KernelBoundary cannot be saved.*<object"):
        KernelBoundary(width=object()).to_bytes()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_of_any_kind_are_read(kind):
    """Stores hand back bytes in wrappers of their own."""
    fitted = KernelBoundary().fit(normal(40))
    assert_same_bits(KernelBoundary.from_bytes(kind(fitted.to_bytes())), fitted)


def test_what_is_no_state_is_a_state_error_whatever_it_holds():
    """A right checksum over a wrong content is a StateError all the same: no text, missing values, weights of another window."""
    envelope = Envelope.from_bytes(KernelBoundary().fit(normal(40)).to_bytes())
    without = Envelope("KernelBoundary", {"parameters": {}}).to_bytes()
    misfit = Envelope("KernelBoundary", envelope.values, dict(envelope.arrays) | {"beta": np.zeros(3)}).to_bytes()
    body = struct.pack("<8sHI", MAGIC, VERSION, 4) + b"\xff\xfe{}"
    for data in (without, misfit, body + struct.pack("<I", zlib.crc32(body)), "text"):
        with pytest.raises(StateError, match=r"not made as it should|does not fit together"):
            KernelBoundary.from_bytes(data)


def spoilt(envelope, where, value):
    """The envelope with one thing in it replaced."""
    kind, *path = where
    values, arrays = json.loads(json.dumps(envelope.values)), dict(envelope.arrays)
    inner = arrays if kind == "arrays" else values
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return Envelope(envelope.kind, values, arrays, envelope.parts).to_bytes()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("values", "learnt", "head"), -1),
        (("values", "learnt", "head"), 40),
        (("values", "learnt", "head"), 1.5),
        (("values", "learnt", "learnt"), "many"),
        (("values", "learnt", "rest"), -3),
        (("values", "learnt", "few"), None),
        (("values", "learnt", "threshold"), "low"),
        (("values", "learnt", "threshold"), float("nan")),
        (("values", "learnt", "parameters", "C"), 0),
        (("values", "learnt", "parameters", "C"), -1.0),
        (("values", "learnt", "parameters", "C"), 10**400),
        (("values", "learnt", "parameters", "scale"), [1.0]),
        (("values", "learnt", "parameters", "scale"), [0.0, 1.0, 1.0]),
        (("values", "learnt", "parameters", "kernel"), {"kind": "RBF", "width": 10**400}),
        (("values", "learnt", "parameters", "kernel"), {"kind": "RBF", "height": 1.0}),
        (("values", "learnt", "request", "window"), 39),
        (("values", "learnt", "request", "alarm_rate"), 2.0),
        (("values", "learnt", "request", "C"), "small"),
        (("values", "n_features"), 4),
        (("values", "feature_names"), ["a", "b"]),
        (("values", "parameters", "depth"), 3),
        (("arrays", "rows"), np.zeros((0, 3))),
        (("arrays", "rows"), np.full((40, 3), np.nan)),
        (("arrays", "rows"), np.zeros(40)),
        (("arrays", "beta"), np.full(40, np.inf)),
        (("arrays", "left_out"), np.arange(39.0)),
        (("arrays", "left_out"), -np.arange(40.0)),
        (("arrays", "inverse"), np.zeros(7)),
    ],
)
def test_made_up_content_is_refused(where, value):
    """With a right checksum, too, what does not belong together is refused on loading, by one of our own errors."""
    fitted = learn_in_chunks(KernelBoundary(window=40).fit(normal(40)), normal(4, seed=1), [1] * 4)
    envelope = Envelope.from_bytes(fitted.to_bytes())
    assert "inverse" in envelope.arrays
    with pytest.raises(OneClassError):
        KernelBoundary.from_bytes(spoilt(envelope, where, value))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("values", "_seen"), -1),
        (("values", "_in_chunk"), "two"),
        (("values", "chunk"), 0),
        (("arrays", "waiting.signs"), np.zeros(1)),
    ],
)
def test_a_made_up_watcher_is_refused(where, value):
    """What is saved round the model is looked at, too."""
    watcher = Watcher(KernelBoundary(window=40))
    watcher.watch(normal(50))
    with pytest.raises(OneClassError):
        Watcher.from_bytes(spoilt(Envelope.from_bytes(watcher.to_bytes()), where, value))


def test_a_class_of_ones_own_is_read_by_itself():
    """A class derived from a model may have parameters of its own, saves itself, and is read by its own `from_bytes`."""

    class Mine(KernelBoundary):
        def __init__(self, *, place="", width=1.0, C=1.0, alarm_rate=0.1, kernel="rbf", threshold="training", window=None):
            super().__init__(kernel, width=width, C=C, alarm_rate=alarm_rate, threshold=threshold, window=window)
            self.place = place

    fitted = Mine(place="here").fit(normal(40))
    restored = Mine.from_bytes(fitted.to_bytes())
    assert restored.place == "here"
    assert_same_bits(restored, fitted)
    with pytest.raises(StateError, match=r"saved state of a Mine.*from_bytes of their own"):
        model_from_bytes(fitted.to_bytes())


def test_files_keep_their_permissions_and_links(tmp_path):
    """Saving over a file keeps who may read it; over a link, it writes the file the link leads to."""
    fitted, file, link = KernelBoundary().fit(normal(40)), tmp_path / "model", tmp_path / "link"
    fitted.save(file)
    file.chmod(0o600)
    link.symlink_to(file)
    fitted.partial_fit(normal(3)).save(link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert_same_bits(oneclass.load(file), fitted)


def test_threads_may_save_to_one_path(tmp_path):
    """Whoever comes last wins, nobody fails, and nothing is left behind."""
    fitted = KernelBoundary().fit(normal(40))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fitted.save(tmp_path / "model"), range(60)))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert_same_bits(oneclass.load(tmp_path / "model"), fitted)
