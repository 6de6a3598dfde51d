"""What is in no folder is fetched from a server (here one on this machine) and kept only if it is what it should be."""

import gzip
import hashlib
import os
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oneclass import streams
from oneclass.errors import StreamError
from oneclass.streams import fetching, formats
from oneclass.streams.datasets import DATASETS

DATA = os.environ.get("ONECLASS_DATA")
BODY = b"".join(b"%d,0.5,%d\n" % (number, 1 + number % 2) for number in range(500))
RECORDS = b"x1,x2,label\n" + BODY


class Shelf(BaseHTTPRequestHandler):
    """Answers each path as the test wants it."""

    answers: dict = {}  # noqa: RUF012  # shared by all requests of one server, and replaced for each test
    asked: list = []  # noqa: RUF012

    def do_GET(self):
        type(self).asked.append(self.path)
        status, body, missing = self.answers.get(self.path, (404, b"", 0))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing on the terminal."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server on this machine in place of the public source; it answers what `serve` is given for the data set Small."""
    shelf = type("OneShelf", (Shelf,), {"answers": {}, "asked": []})
    monkeypatch.delenv("ONECLASS_DATA", raising=False)
    monkeypatch.setenv("ONECLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), shelf) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(fetching, "HOST", f"http://127.0.0.1:{http.server_address[1]}")
        yield shelf
        http.shutdown()
        thread.join()


def catalogued(monkeypatch, **changes):
    """Put the data set Small into the catalogue: 500 rows of which every second is a target."""
    small = replace(DATASETS["1CDT"], name="Small", count=500, targets=250, sha256=hashlib.sha256(RECORDS).hexdigest(), note="")
    small = replace(small, **changes)
    monkeypatch.setitem(DATASETS, "Small", small)
    return f"/{small.source.repository}/{small.source.commit}/{small.source.path}"


def left_in(cache):
    """The names of all files and folders in the cache."""
    return sorted(path.name for path in Path(cache).rglob("*"))


@pytest.mark.parametrize("body", [BODY, BODY.removesuffix(b"\n"), BODY.replace(b"\n", b"\r\n")])
def test_a_good_file_is_fetched_once(server, monkeypatch, tmp_path, body):
    """It is fetched, converted, checked, cached and read; the second time no server is asked. Line ends do not matter."""
    server.answers[catalogued(monkeypatch)] = (200, body, 0)
    for _ in range(2):
        stream = streams.load("Small", verify=True)
        assert stream.rows.shape == (500, 2)
        assert stream.is_target.sum() == 250
    assert len(server.asked) == 1
    assert left_in(tmp_path / "cache") == ["Small.csv.gz"]
    assert gzip.decompress((tmp_path / "cache" / "Small.csv.gz").read_bytes()) == RECORDS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, BODY[:3000], 2000), r"failed: .*(IncompleteRead|broken)"),
        ((200, BODY[:3000], 0), r"is something else \(sha256 "),
        ((200, BODY.replace(b"0.5", b"0.6"), 0), r"is something else \(sha256 "),
        ((200, b"<html>moved</html>", 0), "is something else"),
        ((200, "Gänse".encode("latin-1"), 0), "is something else"),
        ((500, b"", 0), "failed: 500"),
        ((404, b"", 0), "failed: 404"),
    ],
    ids=["partial", "short", "wrong hash", "a page", "no text", "server error", "not found"],
)
def test_what_went_wrong_is_said_and_leaves_nothing(server, monkeypatch, tmp_path, answer, said):
    """One message says the data set, the folder to put its file in, the source and what happened; the cache stays empty."""
    path = catalogued(monkeypatch)
    server.answers[path] = answer
    with pytest.raises(StreamError, match=said) as raised:
        _ = streams.load("Small").rows
    for part in ("Small.csv.gz or Small.csv into", str(tmp_path / "cache"), "500 records", path):
        assert part in str(raised.value)
    assert left_in(tmp_path / "cache") == []


def test_a_later_attempt_succeeds(server, monkeypatch):
    """A failure is not remembered, not by the same stream either."""
    path, stream = catalogued(monkeypatch), streams.load("Small")
    with pytest.raises(StreamError, match="404"):
        _ = stream.rows
    server.answers[path] = (200, BODY, 0)
    assert len(stream.rows) == 500


def test_a_dead_server_is_one_clear_message(server, monkeypatch, tmp_path):
    """Where nobody listens, the message names the file and the folder of ONECLASS_DATA to put it in."""
    catalogued(monkeypatch)
    monkeypatch.setenv("ONECLASS_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(fetching, "HOST", "http://127.0.0.1:9")
    with pytest.raises(
        StreamError, match=r"Put Small.csv.gz or Small.csv into .*mine: .*Fetching http://127.0.0.1:9/.* failed"
    ) as raised:
        _ = streams.load("Small").rows
    assert "mine (no such folder)" in str(raised.value)
    assert left_in(tmp_path / "cache") == []


def test_a_blob_is_checked_where_no_other_hash_is_known(server, monkeypatch, tmp_path):
    """The git id of the source's bytes decides, whatever becomes of them."""
    for blob, is_right in ((fetching.blob_id(BODY), True), ("0" * 40, False)):
        source = replace(DATASETS["UG-2C-3D"].source, blob=blob)
        server.answers[catalogued(monkeypatch, sha256=None, source=source)] = (200, BODY, 0)
        (tmp_path / "cache" / "Small.csv.gz").unlink(missing_ok=True)
        if is_right:
            assert len(streams.load("Small").rows) == 500
        else:
            with pytest.raises(StreamError, match=r"is something else \(git blob 0000"):
                _ = streams.load("Small").rows
            assert left_in(tmp_path / "cache") == []


def test_blob_ids_are_those_of_git():
    """The empty file and a line of text have the ids that every repository has for them."""
    assert fetching.blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert fetching.blob_id(b"hello world\n") == "3b18e512dba79e4c8300dd08aeb37f8e728b8dad"


@pytest.mark.parametrize("cache", ["", "named"])
def test_without_pooch_the_extra_is_named(server, monkeypatch, tmp_path, cache):
    """Nothing is asked of the network; the message names the extra, the file and where to put it."""
    catalogued(monkeypatch)
    monkeypatch.setenv("ONECLASS_CACHE", cache and str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(StreamError, match=r"Put Small.csv.gz or Small.csv into .*pip install 'oneclass\[paper\]'"):
        _ = streams.load("Small").rows
    assert server.asked == []


def test_the_cache_is_the_users_own(monkeypatch):
    """Without ONECLASS_CACHE it is where this system keeps such files."""
    monkeypatch.delenv("ONECLASS_CACHE", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: Path("/where") / project)
    assert fetching._cache() == Path("/where/oneclass")


def test_a_source_that_is_not_text_is_left_to_the_user(server, tmp_path):
    """For the four sets in MATLAB files the message names file, folder and source; the network is not asked."""
    by_hand = [name for name, each in DATASETS.items() if each.source.reader is None]
    assert by_hand == ["Breast-Cancer", "Diabetes", "Liver", "SPECTF"]
    for name in by_hand:
        with pytest.raises(
            StreamError, match=rf"Put {name}.csv.gz or {name}.csv into .*cache.* records made from github.com/.*\.mat"
        ):
            _ = streams.load(name).rows
    assert server.asked == []


# Formats: the first lines of each source and what becomes of them.


@pytest.mark.parametrize(
    ("reader", "raw", "records"),
    [
        (formats.plain_text, "5.2603,0.40807,2\n\n0.51512,-0.7065,1", ["5.2603,0.40807,2", "0.51512,-0.7065,1"]),
        (
            formats.electricity,
            (
                "@relation x\n@attribute class {UP,DOWN}\n\n@data\n0,2,0,0.056443,0.439155,0.003467,0.422915,0.414912,UP\n"
                "0.000044,3,1,0.059235,0.442874,0.003467,0.422915,0.414912,DOWN\n"
            ),
            [
                "0.0,2.0,0.0,0.056443,0.439155,0.003467,0.422915,0.414912,1",
                "4.4e-05,3.0,1.0,0.059235,0.442874,0.003467,0.422915,0.414912,0",
            ],
        ),
        (
            formats.ecoli,
            (
                "Sequence Name,mcg,gvh,lip,chg,aac,alm1,alm2,class\nAAT_ECOLI,0.49,0.29,0.48,0.50,0.56,0.24,0.35,cp\n"
                "AGP_ECOLI,0.74,0.49,0.48,0.50,0.42,0.54,0.36,pp\n"
            ),
            ["0.49,0.29,0.48,0.5,0.56,0.24,0.35,1", "0.74,0.49,0.48,0.5,0.42,0.54,0.36,8"],
        ),
        (formats.sonar, "0.0200,1.0000,R\n0.0040,0.0115,M\n", ["0.02,1.0,0", "0.004,0.0115,1"]),
        (
            formats.abalone,
            "M,0.455,0.53,15\nF,0.35,1.4500,7\nM,0.455,0.53,15\nI,0.71,0.555,12\n",
            ["1.0,0.0,0.0,0.455,0.53,15", "0.0,1.0,0.0,0.35,1.45,7", "0.0,0.0,1.0,0.71,0.555,12"],
        ),
    ],
)
def test_sources_become_records(tmp_path, reader, raw, records):
    """Numbers are written as Python writes them, classes as integers."""
    (tmp_path / "raw").write_text(raw)
    assert list(reader(tmp_path / "raw")) == records


@pytest.mark.parametrize("header", ["", "s1,r1,class\n"])
def test_a_zipped_source_is_read(tmp_path, header):
    """The lines of numbers in poker.csv, with a header or without."""
    with zipfile.ZipFile(tmp_path / "raw", "w") as archive:
        archive.writestr("poker.csv", f"{header}1,10,4\r\n2,13,0\r\n")
    assert list(formats.poker(tmp_path / "raw")) == ["1,10,4", "2,13,0"]


@pytest.mark.parametrize("name", ["1CDT", "5CVT", "Keystroke"])
def test_the_sources_text_becomes_the_data_set(server, name):
    """The archive's text, which is the file without its header, passes the check by hash and is read."""
    if not DATA:
        pytest.skip("ONECLASS_DATA is not set: it names the folders of the data sets")
    source = DATASETS[name].source
    path = next(path for folder in DATA.split(os.pathsep) for path in Path(folder).glob(f"{name}.csv.gz"))
    server.answers[f"/{source.repository}/{source.commit}/{source.path}"] = (
        200,
        gzip.decompress(path.read_bytes()).partition(b"\n")[2],
        0,
    )
    assert streams.load(name).is_target.sum() == DATASETS[name].targets
    assert len(server.asked) == 1
