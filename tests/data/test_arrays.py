"""The guarantees of every folder of arrays; those of a `PairStore` are in test_pair_store.py."""

import json
import random
from pathlib import Path

import pytest

import heedful.storage.complete_folder as manifest_module
from heedful.data.passages import SentenceStore
from heedful.data.stores import PairStore
from heedful.data.stream import TokenStream
from heedful.errors import InputError, RunError
from heedful.storage.disk import Storage

KINDS = {
    TokenStream: ([([7, 5], 11), ([], 0), ([13, 17, 19], 23)], ("ids.bin", "offsets.npy")),
    SentenceStore: ([[[7, 5], [11]], [[13, 17, 19]]], ("ids.bin", "sentences.npy", "documents.npy")),
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def flip(path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    rng = random.Random(seed)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


DAMAGES = {
    "cut": lambda path, _: path.write_bytes(path.read_bytes()[:-1]),
    "emptied": lambda path, _: path.write_bytes(b""),
    "lost": lambda path, _: path.unlink(),
    "longer": lambda path, _: path.write_bytes(path.read_bytes() + b"\0"),
    "zeroed": lambda path, _: path.write_bytes(bytes(path.stat().st_size)),
    "another's": lambda path, other: path.write_bytes((other / path.name).read_bytes()),
    **{f"flipped {i}": lambda path, _, seed=i: flip(path, seed) for i in range(7)},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in (*KINDS[kind][1], "manifest.json")]
)
def test_damaged_data_is_never_opened(folder, kind, name, damage):
    documents = KINDS[kind][0]
    kind.write(folder, documents, vocab_size=29)
    other = folder.with_name("other")
    kind.write(other, [*documents, *documents], vocab_size=29)
    damage(folder / name, other)
    with pytest.raises(InputError, match=r"data: no valid prepared data .*prepare it again"):
        kind.open(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_manifest_is_refused(folder, kind):
    kind.write(folder, KINDS[kind][0], vocab_size=29)
    path = folder / "manifest.json"
    for key, value in {"dtype": "<u4", "format": 2, "tokens": 2, "files": {}}.items():
        original = path.read_text()
        path.write_text(json.dumps(json.loads(original) | {key: value}))
        with pytest.raises(InputError, match="no valid prepared data"):
            kind.open(folder)
        path.write_text(original)
    kind.open(folder)


def test_data_of_another_kind_is_refused(tmp_path):
    for kind, (documents, _) in KINDS.items():
        kind.write(tmp_path / kind.__name__, documents, vocab_size=29)
    PairStore.write(tmp_path / "PairStore", [([7], [5])], vocab_size=29)
    kinds = (*KINDS, PairStore)
    for written, opened in [(written, opened) for written in kinds for opened in kinds if written != opened]:
        with pytest.raises(InputError, match=r"it contains .*ids\.bin.*: data of a different kind"):
            opened.open(tmp_path / written.__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_another_format_is_refused(folder, kind, monkeypatch):
    monkeypatch.setattr(manifest_module, "FORMAT", 7)
    kind.write(folder, KINDS[kind][0], vocab_size=29)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has format 7, but this version of heedful reads 1"):
        kind.open(folder)


@pytest.mark.parametrize(("vocab_size", "bytes_per_id"), [(65_536, 2), (65_537, 4)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(folder, vocab_size, bytes_per_id):
    SentenceStore.write(folder, [[[vocab_size - 1, 7, 5]]], vocab_size)
    assert SentenceStore.open(folder).ids.tolist() == [vocab_size - 1, 7, 5]
    assert (folder / "ids.bin").stat().st_size == 3 * bytes_per_id


@pytest.mark.parametrize("bad", [29, 65_539, -1])
def test_an_id_outside_the_vocabulary_is_not_written(folder, bad):
    with pytest.raises(ValueError, match="vocabulary of 29"):
        TokenStream.write(folder, [([5, 7], 3), ([bad], 1)], vocab_size=29)
    with pytest.raises(ValueError, match="vocabulary of 29"):
        SentenceStore.write(folder, [[[5, 7], [bad]]], vocab_size=29)
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_fails_leaves_nothing(folder, kind, monkeypatch):
    def documents():
        yield KINDS[kind][0][0]
        raise InputError("line 2 is bad")

    def full(_, path):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="line 2"):
        kind.write(folder, documents(), vocab_size=29)
    with pytest.raises(ValueError, match="at least one"):
        kind.write(folder, [], vocab_size=29)
    monkeypatch.setattr(Storage, "create", full)
    with pytest.raises(RunError, match="No space left on device"):
        kind.write(folder, KINDS[kind][0], vocab_size=29)
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_there_is_never_overwritten(folder, kind):
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(RunError, match="cannot be written"):
        kind.write(folder, KINDS[kind][0], vocab_size=29)
    assert [path.name for path in folder.parent.rglob("*")] == ["data", "thesis.txt"]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_content_has_an_equal_manifest(tmp_path, kind):
    documents = KINDS[kind][0]
    manifests = []
    for number, content in enumerate((documents, iter(documents), documents[::-1])):
        kind.write(tmp_path / str(number), content, vocab_size=29)
        manifests.append((tmp_path / str(number) / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1] != manifests[2]
