"""Public data sets: complete ones are right to the last byte, and everything else is an error that can be resumed."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from heedful.data.catalogue import data_set, public_sets
from heedful.errors import InputError, RunError
from heedful.progress import silent
from heedful.tools import data_sets
from heedful.tools.data_sets import connected, fetch, keyed_hash

ENGLISH, GERMAN = b"a cat\na dog\n" * 50_000, b"eine Katze\nein Hund\n" * 50_000


class Server(ThreadingHTTPServer):
    """A server of files by path. It can lose connections after some bytes, and ignore the Range of requests."""

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests = files, []
        self.bytes_per_connection, self.ignores_range, self.says_length = None, False, True

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        requested = self.headers.get("Range")
        server.requests.append((self.path, requested))
        content = server.files.get(self.path.removeprefix("/"))
        if content is None:
            self.send_error(404)
            return
        begin = int(requested[6:-1]) if requested and not server.ignores_range else 0
        if begin >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if server.says_length:
            self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        limit = server.bytes_per_connection
        self.wfile.write(content[begin:] if limit is None else content[begin : begin + limit])

    def log_message(self, format, *args):
        pass


@contextmanager
def serving(files):
    server = Server(files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def described(address, **parts):
    return data_set("small", {"content": "words", "licence": "free", "citation": "us", "address": address, **parts})


def files(**contents):
    """Return the table of files that have these contents, by the names of their addresses."""
    return {
        f"{name}.txt.gz": {"from": f"{name}.txt", "size": 1, "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
    }


def load(small, out, mirror=None):
    return fetch(small, out, mirror, silent("downloading"))


def packed(kind, contents):
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for name, content in contents.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def server():
    with serving({"en.txt": ENGLISH, "de.txt": GERMAN}) as server:
        yield server


@pytest.fixture
def small(server):
    return described(server.address, files=files(en=ENGLISH, de=GERMAN))


def test_files_get_their_content_and_a_note_on_their_source(small, server, tmp_path):
    assert load(small, tmp_path)
    assert gzip.decompress((tmp_path / "small/en.txt.gz").read_bytes()) == ENGLISH
    assert gzip.decompress((tmp_path / "small/de.txt.gz").read_bytes()) == GERMAN
    assert f"* source: {server.address}" in (tmp_path / "small/SOURCE.md").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_a_complete_data_set_is_not_downloaded_again(small, server, tmp_path):
    load(small, tmp_path)
    before = len(server.requests)
    assert not load(small, tmp_path)
    assert len(server.requests) == before


def test_two_downloads_have_the_same_bytes(small, tmp_path):
    load(small, tmp_path / "a")
    load(small, tmp_path / "b")
    for name in small.files:
        content = (tmp_path / "a/small" / name).read_bytes()
        assert content == (tmp_path / "b/small" / name).read_bytes()
        assert content[4:8] == bytes(4)  # gzip's field for the time


@pytest.mark.parametrize("ignores_range", [False, True])
def test_a_lost_connection_is_resumed_by_the_next_call(ignores_range, small, server, tmp_path):
    server.bytes_per_connection = len(ENGLISH) // 5
    with pytest.raises(RunError, match=r"en\.txt: the connection was lost .* resume"):
        load(small, tmp_path)
    assert not (tmp_path / "small").exists()
    received = next((tmp_path / ".download-small").iterdir()).stat().st_size
    assert received == 3 * server.bytes_per_connection  # of three attempts, each of which continues the one before
    server.bytes_per_connection, server.ignores_range, server.requests = None, ignores_range, []
    assert load(small, tmp_path)
    assert server.requests[0] == ("/en.txt", f"bytes={received}-")
    assert gzip.decompress((tmp_path / "small/en.txt.gz").read_bytes()) == ENGLISH
    assert not (tmp_path / ".download-small").exists()


def test_a_server_need_not_say_how_long_a_file_is(small, server, tmp_path):
    server.says_length = False
    assert load(small, tmp_path)
    assert gzip.decompress((tmp_path / "small/en.txt.gz").read_bytes()) == ENGLISH


def test_an_interruption_after_the_last_byte_needs_no_byte_more(small, server, tmp_path):
    folder = tmp_path / ".download-small"
    folder.mkdir()
    (folder / "0-en.txt").write_bytes(ENGLISH)
    load(small, tmp_path)
    assert gzip.decompress((tmp_path / "small/en.txt.gz").read_bytes()) == ENGLISH


def test_other_content_is_rejected_and_removed(small, server, tmp_path):
    server.files["de.txt"] = GERMAN + b"!"
    with pytest.raises(RunError, match=r"de\.txt\.gz has a different content"):
        load(small, tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.files["de.txt"] = GERMAN
    assert load(small, tmp_path)


def test_a_missing_file_is_named_with_its_address(small, server, tmp_path):
    del server.files["de.txt"]
    with pytest.raises(RunError, match=r"/de\.txt: the server answered 404 .* --mirror"):
        load(small, tmp_path)
    assert not (tmp_path / "small").exists()


def test_a_server_that_cannot_be_reached_is_named(tmp_path):
    with serving({}) as server:
        address = server.address
    with pytest.raises(RunError, match=r"the server cannot be reached .* check the network"):
        load(described(address, files=files(en=ENGLISH)), tmp_path)


def test_a_folder_with_something_else_is_left_alone(small, tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small/mine.txt").write_text("precious")
    with pytest.raises(InputError, match=r"exists, but en\.txt\.gz is missing; rename the folder"):
        load(small, tmp_path)
    assert (tmp_path / "small/mine.txt").read_text() == "precious"


def test_a_full_disk_is_an_error_with_a_remedy(small, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(data_sets, "store", full)
    with pytest.raises(RunError, match=r"No space left on device.*make room"):
        load(small, tmp_path)
    assert not (tmp_path / "small").exists()
    monkeypatch.undo()
    assert load(small, tmp_path)


@pytest.mark.parametrize(("kind", "name"), [("tar", "set.tar.gz"), ("zip", "set.zip")])
def test_files_are_taken_out_of_an_archive(kind, name, tmp_path):
    content = packed(kind, {"top/en.txt": ENGLISH, "top/unused.txt": b"x"})
    table = {"en.txt.gz": {"from": f"{name}#top/en.txt", "size": 1, "sha256": hashlib.sha256(ENGLISH).hexdigest()}}
    with serving({name: content}) as server:
        load(described(server.address, files=table), tmp_path)
    assert gzip.decompress((tmp_path / "small/en.txt.gz").read_bytes()) == ENGLISH
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == ["SOURCE.md", "en.txt.gz"]


def test_a_compressed_file_in_an_archive_is_decompressed(tmp_path):
    content = packed("tar", {"giga.en.gz": gzip.compress(ENGLISH)})
    table = {"giga.en": {"from": "giga.tar#giga.en.gz", "size": 1, "lines": 100_000}}
    with serving({"giga.tar": content}) as server:
        load(described(server.address, files=table), tmp_path)
    assert (tmp_path / "small/giga.en").read_bytes() == ENGLISH


@pytest.mark.parametrize("ending", ["sgm", "xml"])
def test_the_sentences_of_a_test_set_are_lines(ending, tmp_path):
    sgml = "<doc>\n<seg id='1'>Tom &amp; Jerry </seg>\n<seg id='2'>\nGrüße\n</seg></doc>"
    content = packed("tar", {f"test/a.{ending}": sgml.encode()})
    table = {"a.txt": {"from": f"test.tgz#test/a.{ending}", "size": 1, "lines": 2}}
    with serving({"test.tgz": content}) as server:
        load(described(server.address, files=table), tmp_path)
        assert (tmp_path / "small/a.txt").read_text(encoding="utf-8") == "Tom & Jerry\nGrüße\n"
        table["a.txt"]["lines"] = 3
        with pytest.raises(RunError, match=r"a\.txt has 2 lines instead of 3"):
            load(described(server.address, files=table), tmp_path / "b")


def tree_of(contents):
    lines = sorted(f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in contents.items())
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return {"folders": {"images": "set-1.0/images"}, "files": len(contents), "size": 1, "sha256": digest}


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_whole_folders_are_unpacked(kind, tmp_path):
    contents = {"images/a/1.jpg": b"one", "images/b/2.jpg": b"two"}
    archive = packed(kind, {f"set-1.0/{name}": content for name, content in contents.items()} | {"set-1.0/x": b"x"})
    with serving({f"set.{kind}": archive}) as server:
        load(described(f"{server.address}set.{kind}", tree=tree_of(contents)), tmp_path)
        for name, content in contents.items():
            assert (tmp_path / "small" / name).read_bytes() == content
        (tmp_path / "small/images/a/1.jpg").write_bytes(b"1")
        with pytest.raises(InputError, match="its files have different contents"):
            load(described(f"{server.address}set.{kind}", tree=tree_of(contents)), tmp_path)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_cannot_write_outside_the_folder(kind, tmp_path):
    archive = packed(kind, {"set-1.0/images/../../../../stolen": b"x"})
    with (
        serving({f"set.{kind}": archive}) as server,
        pytest.raises(RunError, match="would be outside its folder"),
    ):
        load(described(f"{server.address}set.{kind}", tree=tree_of({"images/a": b""})), tmp_path / "out")
    assert not list(tmp_path.rglob("stolen"))


def test_a_damaged_archive_is_an_error(tmp_path):
    archive = packed("tar", {"set-1.0/images/a": ENGLISH})[:200]
    with serving({"set.tar.gz": archive}) as server, pytest.raises(RunError, match="other content"):
        load(described(f"{server.address}set.tar.gz", tree=tree_of({"images/a": ENGLISH})), tmp_path)


PAIRS = {"table": "deu.txt", "languages": ["en", "de"], "valid": 20, "test": 30, "size": 1}


def pairs_in(folder):
    """Return the sentences of each part, by language."""
    return {
        part: [
            gzip.decompress((folder / f"{part}.{language}.gz").read_bytes()).decode().splitlines()
            for language in ("en", "de")
        ]
        for part in ("train", "valid", "test")
    }


def split_of(rows, tmp_path):
    table = "".join("\t".join((*row, "attribution")) + "\n" for row in rows)
    with serving({"deu-eng.zip": packed("zip", {"_about.txt": b"", "deu.txt": table.encode()})}) as server:
        load(described(f"{server.address}deu-eng.zip", pairs=PAIRS), tmp_path)
    return pairs_in(tmp_path / "small")


def test_no_sentence_is_in_more_than_one_part(tmp_path):
    rows = [(f"en {n // 2}", f"de {n // 3}") for n in range(300)] + [("lone 1", "einzeln 1")] * 2
    rows += [(f"only {n}", f"nur {n}") for n in range(200)]
    parts = split_of(rows, tmp_path)
    for side in (0, 1):
        sentences = [set(parts[part][side]) for part in parts]
        assert len(set().union(*sentences)) == sum(map(len, sentences))
    assert {part: len(sides[0]) for part, sides in parts.items()} == {"train": 351, "valid": 20, "test": 30}
    assert {pair for sides in parts.values() for pair in zip(*sides, strict=True)} == set(rows)


def test_the_split_depends_only_on_the_pairs(tmp_path):
    rows = [(f"only {n}", f"nur {n}") for n in range(200)]
    first, second = split_of(rows, tmp_path / "a"), split_of(rows[::-1], tmp_path / "b")
    assert set(first["test"][0]) == set(second["test"][0])
    by_hash = sorted(rows, key=keyed_hash)
    assert set(first["test"][0]) == {english for english, _ in by_hash[:30]}
    assert set(first["valid"][0]) == {english for english, _ in by_hash[30:50]}


def test_a_pair_joins_the_groups_of_both_its_sentences():
    assert list(connected([("a", "x"), ("b", "y"), ("c", "z"), ("b", "x")])) == [[0, 1, 3], [2]]


def test_the_split_never_changes():
    assert keyed_hash(("Go.", "Geh.")).hex() == "b798b1621a0f4a908adb06da45870177"


def test_a_mirror_has_the_files_of_a_data_folder(small, server, tmp_path):
    load(small, tmp_path)
    copy = {f"small/{path.name}": path.read_bytes() for path in (tmp_path / "small").iterdir()}
    with serving(copy) as mirror:
        load(described("https://example.invalid/", files=files(en=ENGLISH, de=GERMAN)), tmp_path / "b", mirror.address)
    assert gzip.decompress((tmp_path / "b/small/de.txt.gz").read_bytes()) == GERMAN


def test_every_public_data_set_is_complete():
    for name, each in public_sets().items():
        assert all((each.content, each.licence, each.citation, each.size)), name
        assert each.address.startswith("https://"), name
        assert sum(map(bool, (each.files, each.tree, each.pairs))) == 1, name
        if name != "iwslt14":  # nobody here has seen its files
            assert all(len(file.sha256 or "") == 64 or file.lines for file in each.files.values()), name
