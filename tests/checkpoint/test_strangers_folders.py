"""Model folders from strangers, whose checksums fit: refused in one message before anything large is built."""

import shutil
from pathlib import Path

import pytest
import torch
from strangers import changes, folders

from heedful.checkpoint import load_model
from heedful.errors import InputError
from heedful.storage.complete_folder import DamagedError

ATTACKS = folders.attacks()
REFUSED = {  # attack -> words of the message
    "recipe.json 1000 layers, resealed": "more than .* has tensors",
    "recipe.json wide, resealed": "model.heads must be at most",
    "recipe.json recipe.model.d_model = 2^63, resealed": "d_model",
    "recipe.json recipe.model.d_model = 10^12, resealed": "the weights do not fit|the sizes in its recipe are invalid",
    "recipe.json 10^9 positions, resealed": "model.max_positions must be at most",
    "recipe.json 10^9 slopes, resealed": "model.heads must be at most",
    "recipe.json endless search, resealed": "decode.beam must be at most",
    "recipe.json recipe.decode.alpha = 1e308, resealed": "decode.alpha must be less than 2\\^63",
    "recipe.json recipe.train.seed = 10^400, resealed": "train.seed must be less than 2\\^63",
    "recipe.json recipe = code, resealed": "does not match its checksum",
    "recipe.json recipe.task = code, resealed": "os has no class system",
    "recipe.json task span_qa, resealed": "needs model.family =",
    "recipe.json is nested, resealed": "does not match its checksum",
    "model.safetensors a missing tensor, resealed": "not a readable safetensors file",
    "model.safetensors a name of code, resealed": "the weights do not fit the recipe",
    "model.safetensors overlapping tensors, resealed": "not a readable safetensors file",
    "tokenizer/joint/tokenizer.json catastrophic splitter, resealed": "has a pre_tokenizer that does not match",
    "foreign tokenizer/joint/tokenizer.json catastrophic splitter, resealed": "has the unknown regular",
    "foreign tokenizer/joint/tokenizer.json normaliser of exponential growth, resealed": "has the unknown regular",
    "tokenizer/joint/tokenizer.json is sparse, and resealed": "more than the limit of 67,108,864",
    "foreign tokenizer/joint/tokenizer.json normaliser of growth by text, resealed": "lengthens texts too much",
    "foreign tokenizer/joint/tokenizer.json prepended megabytes, resealed": "lengthens texts too much",
    "foreign tokenizer/joint/tokenizer.json unknown normaliser, resealed": "has a step of the unknown type 'System'",
    "foreign tokenizer/joint/tokenizer.json damaged charsmap, resealed": "damaged, or not a tokenizer",
    "foreign tokenizer/joint/tokenizer.json padding to 10^9, resealed": "has padding",
    "foreign tokenizer/joint/tokenizer.json an id of 2^32 - 1, resealed": "does not number its tokens",
    "tokenizer/joint/tokenizer.json special tokens elsewhere, resealed": "does not (number|begin)",
    "manifest names an absolute path": "does not match its checksum",
    "manifest names a folder above in between": "does not match its checksum",
    "manifest names NUL": "does not match its checksum",
    "manifest names a surrogate": "does not match its checksum",
    "manifest bytes = text": "does not match its checksum",
    "manifest.json is 20 sparse GB": "20,000,000,000 bytes",
    "manifest.json is a pipe": "is not a heedful model",
    "manifest.json is a link to /dev/zero": "is not a heedful model",
    "recipe.json is a pipe": "is not a file",
    "recipe.json is sparse, and resealed": "more than the limit of 4,194,304",
    "model.safetensors is sparse, and resealed": "not a readable safetensors file",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audio model folder."""
    folder = tmp_path_factory.mktemp("sound") / "model"
    folders.write_translator(folder)
    return folder


@pytest.fixture
def stranger(sound: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(sound, tmp_path / "model"))


def test_there_are_thousands_of_attacks():
    assert len(ATTACKS) > 2000
    assert ATTACKS.keys() >= REFUSED.keys()


@pytest.mark.parametrize("attack", REFUSED)
def test_what_a_folder_asks_for_is_not_believed(attack: str, stranger: Path) -> None:
    ATTACKS[attack](stranger)
    with pytest.raises(InputError, match=REFUSED[attack]):
        load_model(stranger)


def test_a_folder_that_nobody_changed_is_loaded(stranger: Path) -> None:
    folders.reseal(stranger)
    assert load_model(stranger).recipe.name == "heedful"


def test_nothing_is_built_before_the_shapes_are_compared(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.tasks.text_to_text import Translation

    build, devices = Translation.build, []

    def build_and_note(recipe, tokenizers):
        devices.append(torch.get_default_device().type)
        return build(recipe, tokenizers)

    monkeypatch.setattr(Translation, "build", build_and_note)
    changes.reheaded(stranger / changes.WEIGHTS, changes.HEADERS["a name of code"])
    folders.reseal(stranger)
    with pytest.raises(InputError, match="the weights do not fit"):
        load_model(stranger)
    assert devices == ["meta"]


def test_a_damaged_header_is_told_as_damage(stranger: Path) -> None:
    data = bytearray((stranger / changes.WEIGHTS).read_bytes())
    place = data.index(b'"shape":') + len('"shape": [')
    data[place] ^= 1
    (stranger / changes.WEIGHTS).write_bytes(data)
    with pytest.raises(DamagedError):
        load_model(stranger)


def test_thousands_of_unknown_keys_are_told_in_a_moment(stranger: Path) -> None:
    ATTACKS["recipe.json 10^5 keys, resealed"](stranger)
    with pytest.raises(InputError, match="100000 problems in the recipe") as refused:
        load_model(stranger)
    assert len(refused.value.line()) < 5000


def test_control_characters_of_a_stranger_do_not_reach_the_terminal() -> None:
    told = InputError("model: \x1b[2Jthe weight \udc80 is\n  no 权重").line()
    assert told == "heedful: model: \\x1b[2Jthe weight \\udc80 is\n  no 权重\n"
    assert len(InputError("a" * 10**6).line()) < 5000
