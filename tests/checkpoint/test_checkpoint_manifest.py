import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_storage import FaultyStorage
from hypothesis import given, settings
from hypothesis import strategies as st
from same import same

from heedful.checkpoint import Checkpoint, Checkpoints, DamagedError
from heedful.storage.atomic import write_folder
from heedful.storage.complete_folder import seal, unseal, verify_folder, verify_sizes

PAGE = 4096
ROUNDS = 37  # of each mutation

Maker = Callable[[int], Checkpoint]
Mutation = Callable[[bytes, bytes, random.Random], bytes]


def flip_a_bit(data: bytes, other: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]


def zero_a_page(data: bytes, other: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(0, len(data), PAGE)
    page = data[begin : begin + PAGE]
    return data[:begin] + bytes(len(page)) + data[begin + PAGE :]


def cut_off(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def append(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data + draw.randbytes(7)


def exchange_two_blocks(data: bytes, other: bytes, draw: random.Random) -> bytes:
    half = len(data) // 2
    return data[half:] + data[:half]


def take_the_file_of_another_step(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return other


def edit_a_number(data: bytes, other: bytes, draw: random.Random) -> bytes:
    digit = draw.choice([*re.finditer(rb"\d", data)])
    return data[: digit.start()] + str((int(digit[0]) + 3) % 10).encode() + data[digit.end() :]


MUTATIONS = [
    flip_a_bit,
    zero_a_page,
    cut_off,
    append,
    exchange_two_blocks,
    take_the_file_of_another_step,
    edit_a_number,
]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_changed_file_is_noticed(mutation: Mutation, run: Path, checkpoint_of: Maker) -> None:
    checkpoints = Checkpoints(run, 2, FaultyStorage())
    folder, other = checkpoints.path(5), checkpoints.path(3)
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    draw = random.Random(mutation.__name__)
    mutated = 0
    while mutated < ROUNDS:
        name = draw.choice(names)
        data = (folder / name).read_bytes()
        changed = mutation(data, (other / name).read_bytes(), draw)
        if changed == data:
            continue
        mutated += 1
        (folder / name).write_bytes(changed)
        latest = checkpoints.load_latest()
        assert same(latest.checkpoint, checkpoint_of(3))
        assert [rejected.path.name for rejected in latest.rejected] == ["step-00000005.bad"]
        assert latest.rejected[0].reason.startswith(name.name) or mutation is take_the_file_of_another_step
        latest.rejected[0].path.rename(folder)
        (folder / name).write_bytes(data)
    assert same(checkpoints.load_latest().checkpoint, checkpoint_of(5))


def test_every_missing_file_is_noticed(run: Path) -> None:
    folder = run / "checkpoints/step-00000005"
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(DamagedError, match=f"{path.name} is missing"):
            verify_folder(folder)
        path.mkdir()
        with pytest.raises(DamagedError, match=path.name):
            verify_folder(folder)
        path.rmdir()
        path.write_bytes(data)
    assert verify_folder(folder).facts == {"kind": "checkpoint", "step": 5}


def test_a_manifest_names_no_device_and_a_link_to_one_is_no_file(run: Path) -> None:
    path = run / "checkpoints/step-00000005/manifest.json"
    document = unseal(path.read_bytes())
    for name, refusal in (("/dev/null", "does not match its checksum"), ("null", "is not a file")):
        document["files"] = {name: {"bytes": 0, "crc32": "00000000"}}
        path.write_bytes(seal(document))
        path.with_name("null").unlink(missing_ok=True)
        path.with_name("null").symlink_to("/dev/null")
        with pytest.raises(DamagedError, match=refusal):
            verify_folder(path.parent)


@pytest.mark.parametrize("manifest", [{}, {"format": 1}, {"format": 1, "files": []}, {"format": 1, "files": {"a": {}}}])
def test_a_manifest_that_says_nothing_is_damaged(manifest: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(seal(manifest))
    with pytest.raises(DamagedError, match=r"manifest\.json"):
        verify_folder(tmp_path)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'"crc32"', b"\xff\xfe", b'{"crc32": NaN}', b"[" * 100_000])
def test_what_is_not_sealed_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(DamagedError, match=r"manifest\.json does not match its checksum"):
        verify_folder(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@settings(max_examples=50)
@given(st.dictionaries(st.text().filter(lambda key: key != "crc32"), JSON), st.data())
def test_sealed_values_come_back_and_no_byte_can_change(document: dict[str, object], data: st.DataObject) -> None:
    sealed = seal(document)
    assert json.dumps(unseal(sealed)) == json.dumps(document)
    place = data.draw(st.integers(0, len(sealed) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    with pytest.raises((ValueError, RecursionError)):
        unseal(sealed[:place] + bytes([sealed[place] ^ bit]) + sealed[place + 1 :])


def test_sizes_alone_find_what_was_cut_off(tmp_path: Path) -> None:
    files = {"a/b": [b"five", memoryview(b"!")], "empty": []}
    write_folder(tmp_path / "folder", files, {"kind": "test"}, FaultyStorage())
    manifest = verify_sizes(tmp_path / "folder")
    assert {name: entry.bytes for name, entry in manifest.files.items()} == {"a/b": 5, "empty": 0}
    assert manifest.verify("a/b").read_bytes() == b"five!"
    (tmp_path / "folder/a/b").write_bytes(b"four")
    with pytest.raises(DamagedError, match="has 4 bytes instead of 5"):
        verify_sizes(tmp_path / "folder")


def test_only_listed_files_are_handed_out(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", {"a": [b"1"]}, {}, FaultyStorage())
    (tmp_path / "folder/b").write_bytes(b"2")
    with pytest.raises(DamagedError, match="b is not listed"):
        verify_folder(tmp_path / "folder").verify("b")
