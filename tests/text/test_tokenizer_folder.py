import hashlib
import json
from copy import deepcopy

import pytest

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

LINES = ["the cat sat on the mat", "die Katze saß auf der Matte"] * 3
KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")
BPE = train_tokenizer(LINES, TokenizerConfig(vocab_size=283, lowercase=True, normalization="nfkc"))
WORD = train_tokenizer(LINES, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))


@pytest.fixture
def folder(tmp_path):
    """A saved tokenizer."""
    BPE.save(tmp_path / "bpe")
    return tmp_path / "bpe"


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_tokenizer_is_the_saved_one(kind, tmp_path):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind=kind, vocab_size=283, lowercase=True))
    tokenizer.save(tmp_path / "a/b")
    loaded = Tokenizer.load(tmp_path / "a/b")
    assert loaded.config == tokenizer.config
    assert loaded.digest == tokenizer.digest
    assert loaded.encode("The Katze ☃") == tokenizer.encode("The Katze ☃")
    loaded.save(tmp_path / "again")
    for name in ("tokenizer.json", "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "a/b" / name).read_bytes()


def test_the_digest_is_that_of_the_files(folder):
    content = (folder / "tokenizer.json").read_bytes() + (folder / "config.json").read_bytes()
    assert BPE.digest == hashlib.sha256(content).hexdigest() != WORD.digest


def test_a_tokenizer_can_be_copied_as_it_is_for_a_worker_process():
    assert deepcopy(BPE).encode("the cat") == BPE.encode("the cat")


def damage(folder, name, change):
    file = folder / name
    file.write_bytes(change(file.read_bytes()))


def with_value(key, value):
    return lambda content: json.dumps(json.loads(content) | {key: value}).encode()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("tokenizer.json", lambda content: content[:-7], "different checksum.* copy the tokenizer again"),
        ("tokenizer.json", lambda content: content.replace(b"c", b"k", 1), "different checksum"),
        ("tokenizer.json", lambda content: b"\xff" + content, "not UTF-8"),
        ("config.json", lambda content: content[:-7], "damaged, or not written by heedful.*heedful tokenizer train"),
        ("config.json", lambda _: b"", "damaged, or not written by heedful"),
        ("config.json", lambda _: b'{"architectures": ["MarianMTModel"]}', "not written by heedful"),
        ("config.json", with_value("tokenizer", {"kind": "bip"}), "damaged, or not written by heedful"),
        ("config.json", with_value("format", 2), "has format 2, but this version of heedful reads format 1; update"),
    ],
)
def test_a_damaged_or_foreign_file_is_named_with_the_remedy(folder, name, change, message):
    damage(folder, name, change)
    with pytest.raises(InputError, match=message) as caught:
        Tokenizer.load(folder)
    assert str(folder / name) in str(caught.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{name}: the file does not exist"):
        Tokenizer.load(folder)
    (folder / name).mkdir()
    with pytest.raises(InputError, match=f"{name}: cannot be read"):
        Tokenizer.load(folder)


def test_a_file_that_the_library_cannot_read_is_named(folder):
    content = (folder / "tokenizer.json").read_bytes().replace(b'"version":"1.0"', b'"version":"99.0"')
    assert b"99.0" in content
    (folder / "tokenizer.json").write_bytes(content)
    damage(folder, "config.json", with_value("sha256", hashlib.sha256(content).hexdigest()))
    with pytest.raises(InputError, match=r"tokenizer.json: the installed tokenizers .* cannot read it"):
        Tokenizer.load(folder)


def test_only_a_tokenizer_is_written_over(folder):
    WORD.save(folder)
    assert Tokenizer.load(folder).digest == WORD.digest
    (folder / "config.json").write_text('{"architectures": ["MarianMTModel"]}')
    with pytest.raises(
        InputError, match="is not empty and does not contain an intact tokenizer; choose another folder"
    ):
        BPE.save(folder)
    assert (folder / "config.json").read_text() == '{"architectures": ["MarianMTModel"]}'
    with pytest.raises(InputError, match="is a file; give a folder"):
        BPE.save(folder / "config.json")


def test_a_folder_that_cannot_be_made_is_a_failure(folder):
    with pytest.raises(RunError, match="cannot be written"):
        BPE.save(folder / "config.json" / "deeper")


def test_a_joint_pair_stays_joint(tmp_path):
    TokenizerPair(BPE, BPE).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["joint"]
    pair = TokenizerPair.load(tmp_path)
    assert pair.joint
    assert pair.source.digest == BPE.digest


def test_a_pair_of_two_stays_two(tmp_path):
    TokenizerPair(BPE, WORD).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
    pair = TokenizerPair.load(tmp_path)
    assert not pair.joint
    assert (pair.source.digest, pair.target.digest) == (BPE.digest, WORD.digest)


def test_one_tokenizer_serves_both_sides(folder):
    assert TokenizerPair.load(folder).joint


def test_pairs_of_different_layout_do_not_mix(tmp_path):
    TokenizerPair(BPE, BPE).save(tmp_path)
    with pytest.raises(InputError, match="joint belongs to another pair"):
        TokenizerPair(BPE, WORD).save(tmp_path)


@pytest.mark.parametrize("place", ["tokenizer", "model/tokenizer"])
def test_a_model_or_a_run_in_place_of_its_tokenizer_is_refused_with_the_folder_to_give(tmp_path, place):
    TokenizerPair(BPE, BPE).save(tmp_path / place)
    with pytest.raises(InputError) as refusal:
        TokenizerPair.load(tmp_path)
    assert str(refusal.value) == f"{tmp_path}: contains no tokenizer; give {tmp_path / place}"


def test_a_folder_without_tokenizers_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no tokenizer; train one with `heedful tokenizer train"):
        TokenizerPair.load(tmp_path)
    TokenizerPair(BPE, WORD).save(tmp_path)
    (tmp_path / "target/tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"target/tokenizer.json: the file does not exist"):
        TokenizerPair.load(tmp_path)


def test_a_folder_with_tokenizers_of_two_pairs_is_refused(tmp_path):
    TokenizerPair(BPE, WORD).save(tmp_path)
    BPE.save(tmp_path / "joint")
    with pytest.raises(InputError, match=r"contains tokenizers of different pairs \(.*joint.*source.*\); remove"):
        TokenizerPair.load(tmp_path)
