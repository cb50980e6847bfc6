import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from faulty_storage import FaultyStorage
from same import same_tensors

from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import (
    Checkpoint,
    DamagedError,
    LoadedModel,
    average,
    find_model,
    load_model,
    write_model,
)
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.safetensors_format import ROWS, part_name, tensor_file
from heedful.checkpoint.save import model_files
from heedful.config.load import recipe_to_dict
from heedful.config.schema import CorpusConfig, DataConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.storage.atomic import write_folder
from heedful.storage.complete_folder import json_bytes, manifest_bytes
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

Maker = Callable[[int], Checkpoint]


@pytest.fixture
def model_folder(tmp_path: Path, checkpoint_of: Maker) -> Path:
    made = checkpoint_of(7)
    write_model(tmp_path / "model", made.recipe, made.tokenizers, made.weights, storage=FaultyStorage())
    return tmp_path / "model"


@pytest.fixture
def box(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A box with one model, en-de, and something that is none."""
    box = tmp_path / "box"
    shutil.copytree(model_folder, box / "en-de")
    (box / "notes").mkdir()
    monkeypatch.setattr("heedful.checkpoint.find.BUNDLED", box)
    monkeypatch.chdir(tmp_path)
    return box


def holds(loaded: LoadedModel, checkpoint: Checkpoint) -> bool:
    return (
        loaded.recipe == checkpoint.recipe
        and same_tensors(weights(loaded.model), checkpoint.weights)
        and loaded.tokenizers.source.encode("eine") == checkpoint.tokenizers.source.encode("eine")
    )


def test_a_model_works_wherever_it_is_copied(model_folder: Path, tmp_path: Path, checkpoint_of: Maker) -> None:
    moved = shutil.move(model_folder, tmp_path / "moved")
    loaded = load_model(str(moved))
    assert holds(loaded, checkpoint_of(7))
    assert loaded.path == tmp_path / "moved"
    assert not loaded.model.training


def test_a_checkpoint_is_a_model_too(run: Path, checkpoint_of: Maker) -> None:
    assert holds(load_model(run / "checkpoints/step-00000003"), checkpoint_of(3))


def test_of_a_run_the_final_model_comes_first_then_the_best_then_the_latest(
    run: Path, model_folder: Path, checkpoint_of: Maker
) -> None:
    shutil.copytree(model_folder, run / "model")
    assert holds(load_model(run), checkpoint_of(7))
    shutil.rmtree(run / "model")
    assert holds(load_model(run), checkpoint_of(2))
    shutil.rmtree(run / "checkpoints/step-00000002")
    assert holds(load_model(run), checkpoint_of(5))


def test_of_a_run_without_a_final_model_it_is_told_which_checkpoint_is_used(
    run: Path, model_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_model(run)
    (run / "checkpoints" / "best.json").unlink()
    load_model(run)
    load_model(run / "checkpoints" / "step-00000003")
    shutil.copytree(model_folder, run / "model")
    load_model(run)
    assert caplog.messages == [
        f"{run} has no final model yet; using its best checkpoint, from update 2",
        f"{run} has no final model yet; using its latest checkpoint, from update 5",
    ]


def test_a_run_trained_further_after_its_final_model_is_reported(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    last = load_model(run / "checkpoints" / "step-00000005")
    for end in (5, 3):
        write_model(run / "model", last.recipe, last.tokenizers, weights(last.model), update=end)
        load_model(run)
    newest = run / "checkpoints" / "step-00000005"
    assert caplog.messages == [
        f"{run} was trained further after its final model; using that model, from update 3; "
        f"for a later state, give {newest}"
    ]


def test_a_warning_reaches_standard_error(run: Path) -> None:
    program = f"from heedful.checkpoint import load_model; load_model({str(run)!r})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stderr == f"{run} has no final model yet; using its best checkpoint, from update 2\n"
    assert done.stdout == ""


def test_using_a_model_changes_no_file(run: Path) -> None:
    (run / "checkpoints/step-00000002/model.safetensors").write_text("{}")
    before = sorted(run.rglob("*"))
    with pytest.raises(DamagedError, match=r"model\.safetensors has 2 bytes"):
        load_model(run)
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize("name", ["optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"\x01", lambda data: data[:5]], ids=["a byte", "the end"])
def test_what_only_training_needs_may_be_damaged(
    name: str, change: Callable[[bytes], bytes], run: Path, checkpoint_of: Maker
) -> None:
    folder = run / "checkpoints/step-00000002"
    (folder / name).write_bytes(change((folder / name).read_bytes()))
    assert holds(load_model(folder), checkpoint_of(2))
    assert same_tensors(average([folder]), checkpoint_of(2).weights)


@pytest.mark.parametrize(
    "name", ["recipe.json", "model.safetensors", "tokenizer/joint/tokenizer.json", "tokenizer/joint/config.json"]
)
def test_what_a_model_is_made_of_may_not(name: str, run: Path) -> None:
    path = run / "checkpoints/step-00000002" / name
    data = path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    with pytest.raises(DamagedError, match=f"{path.name} does not match its checksum"):
        load_model(run)


def test_a_bundled_model_has_a_name(box: Path, checkpoint_of: Maker) -> None:
    assert load_model("en-de").path == box / "en-de"
    assert holds(load_model("en-de"), checkpoint_of(7))


def test_a_folder_comes_before_a_bundled_model(box: Path, run: Path, checkpoint_of: Maker) -> None:
    run.rename("en-de")
    assert holds(load_model("en-de"), checkpoint_of(2))


@pytest.mark.parametrize("name", ["en-dd", "run/en-de", "../box/notes"])
def test_an_unknown_name_is_told_what_there_is(name: str, box: Path) -> None:
    with pytest.raises(InputError, match=r'(did you mean "en-de"|bundled models: en-de|is not a heedful model)'):
        load_model(name)


def test_a_near_name_is_suggested(box: Path) -> None:
    with pytest.raises(InputError, match=r'did you mean "en-de"\?'):
        load_model("en_de")


def test_no_bundled_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.checkpoint.find.BUNDLED", tmp_path / "none")
    with pytest.raises(InputError, match="no models are bundled"):
        load_model("unknown")


def test_a_missing_run_is_told_with_those_beside_it(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match=r"mine/run\": no such folder, and .*mine contains no run or model yet"):
        find_model(tmp_path / "mine/run")
    shutil.copytree(model_folder, tmp_path / "mine/trial")
    with pytest.raises(InputError, match=r"no such folder; .*mine contains .*mine/trial$"):
        find_model(tmp_path / "mine/run")


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "last.ckpt", "model.pkl"])
def test_pickles_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(InputError, match="which can run code; give a model folder"):
        load_model(tmp_path / name)


def test_a_file_of_a_model_is_not_the_model(model_folder: Path) -> None:
    with pytest.raises(InputError, match="give the model folder that contains it"):
        load_model(model_folder / "model.safetensors")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"is not a heedful model: it has no manifest\.json"):
        find_model(tmp_path)


def test_a_folder_of_models_names_them(model_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(model_folder, tmp_path / "all/a")
    with pytest.raises(InputError, match=r"is not a heedful model, but contains one; give \S+/all/a$"):
        find_model(tmp_path / "all")
    shutil.copytree(model_folder, tmp_path / "all/b")
    with pytest.raises(InputError, match=r"but contains several; give \S+/all/a or \S+/all/b$"):
        find_model(tmp_path / "all")
    data = tmp_path / "all/data/train-0"
    data.mkdir(parents=True)
    (data / "manifest.json").write_bytes(manifest_bytes({}, {"kind": "data"}))
    (tmp_path / "all/heedful.lock").touch()
    shutil.copytree(model_folder, tmp_path / "all/model")
    for folder in (data, data.parent):
        with pytest.raises(InputError, match=r" is a part of the run \S+/all that is not a model; give \S+/all$"):
            find_model(folder)


def test_weights_that_do_not_fit_are_listed(tmp_path: Path, checkpoint_of: Maker) -> None:
    made = checkpoint_of(3)
    missing, wrong, *_ = made.weights
    changed = {name: value for name, value in made.weights.items() if name != missing}
    changed.update({"alien": torch.zeros(1), wrong: torch.zeros(2, 3)})
    write_model(tmp_path / "model", made.recipe, made.tokenizers, changed, storage=FaultyStorage())
    with pytest.raises(InputError) as caught:
        load_model(tmp_path / "model")
    for part in (f"missing {missing}", "unexpected alien", f"{wrong} is (2, 3)", str(tmp_path / "model")):
        assert part in str(caught.value)


def test_tokenizers_of_another_model_are_refused(tmp_path: Path, checkpoint_of: Maker) -> None:
    made = checkpoint_of(3)
    files = model_files(made.recipe, made.tokenizers, made.weights)
    recipe = {"recipe": recipe_to_dict(made.recipe), "source_vocab": 97, "target_vocab": 101}
    write_folder(tmp_path / "model", {**files, "recipe.json": [json_bytes(recipe)]}, {}, FaultyStorage())
    with pytest.raises(InputError, match="trained with vocabularies of 97 and 101 tokens"):
        load_model(tmp_path / "model")


def test_a_recipe_that_says_nothing_is_damaged(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", {"recipe.json": [b"{}"]}, {}, FaultyStorage())
    with pytest.raises(DamagedError, match=r"recipe\.json does not match its checksum"):
        load_model(tmp_path / "model")


@pytest.fixture
def separate(tmp_path: Path, checkpoint_of: Maker) -> LoadedModel:
    """A model with a tokenizer for each language, which say different things of the same text."""
    made = checkpoint_of(3)
    config = TokenizerConfig(kind="character", joint=False, byte_fallback=False)
    pair = TokenizerPair(*(train_tokenizer([text], config) for text in ("one two", "vier")))
    recipe = replace(made.recipe, model=replace(made.recipe.model, tie="none"), tokenizer=config)
    model = EncoderDecoder(recipe.model, len(pair.source), len(pair.target))
    write_model(tmp_path / "model", recipe, pair, weights(model), storage=FaultyStorage())
    return load_model(tmp_path / "model")


@pytest.mark.parametrize("left_over", ["joint", "."])
def test_a_tokenizer_that_the_manifest_does_not_list_is_not_read(left_over: str, separate: LoadedModel) -> None:
    separate.tokenizers.source.save(separate.path / "tokenizer/new")
    for file in (separate.path / "tokenizer/new").iterdir():
        (separate.path / "tokenizer" / left_over).mkdir(exist_ok=True)
        file.rename(separate.path / "tokenizer" / left_over / file.name)
    tokenizers = load_model(separate.path).tokenizers
    assert not tokenizers.joint
    assert [t.digest for t in (tokenizers.source, tokenizers.target)] == [
        t.digest for t in (separate.tokenizers.source, separate.tokenizers.target)
    ]


def test_a_model_is_tested_with_the_tokenizers_that_it_was_loaded_with(separate: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("one\ntwo\n")
    (tmp_path / "target").write_text("vier\nvier\n")
    corpus = CorpusConfig(source="source", target="target")
    before = separate.test(DataConfig(root=str(tmp_path), test=corpus), str)
    separate.tokenizers.source.save(separate.path / "tokenizer/joint")
    assert separate.test(DataConfig(root=str(tmp_path), test=corpus), str) == before


def test_a_tokenizer_of_which_the_manifest_lists_a_part_is_damaged(tmp_path: Path, checkpoint_of: Maker) -> None:
    made = checkpoint_of(3)
    files = model_files(made.recipe, made.tokenizers, made.weights)
    unlisted = files.pop("tokenizer/joint/config.json")
    write_folder(tmp_path / "model", files, {}, FaultyStorage())
    (tmp_path / "model/tokenizer/joint/config.json").write_bytes(b"".join(unlisted))
    with pytest.raises(DamagedError, match=r"config\.json is not listed in the manifest"):
        load_model(tmp_path / "model")


def test_a_folder_of_the_same_name_hides_the_bundled_model_only_if_it_is_a_model(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-de").mkdir()  # as `heedful init` makes it
    assert find_model("en-de").parent.name == "box"
    assert caplog.messages == ["the folder en-de does not contain a model; using the bundled model of that name"]
    shutil.copytree(model_folder, tmp_path / "en-de" / "run")
    assert find_model("en-de").parent.name == "box"
    assert caplog.messages[1].endswith("; to use your own, give en-de/run")
    shutil.copytree(model_folder, tmp_path / "en-de" / "model")
    assert find_model("en-de") == Path("en-de/model")


@pytest.mark.parametrize(
    ("names", "toolkit"),
    [
        (["config.json", "model.bin", "vocabulary.txt"], "CTranslate2"),
        (["config.json", "model.safetensors", "tokenizer.json"], "Hugging Face"),
        (["config.json", "pytorch_model.bin"], "Hugging Face"),
        (["config.json", "model-00001-of-00002.safetensors"], "Hugging Face"),
    ],
)
def test_a_model_of_another_toolkit_is_an_error_that_names_convert(names, toolkit, tmp_path):
    for name in names:
        (tmp_path / name).write_text("{}")
    words = rf"in {toolkit} format, not a heedful model; convert it first: heedful convert {tmp_path} --out NAME"
    with pytest.raises(InputError, match=words):
        load_model(tmp_path)


def write_in_parts(folder: Path, checkpoint: Checkpoint, rows: str = "") -> None:
    """The checkpoint as two processes write it: the first has all but the last row of each weight."""
    parts: list[dict[str, torch.Tensor]] = [{}, {}]
    places: list[dict[str, list[int]]] = [{}, {}]
    for name, value in checkpoint.weights.items():
        for part, (begin, end) in enumerate(((0, len(value) - 1), (len(value) - 1, len(value)))):
            if begin < end:
                parts[part][name], places[part][name] = value[begin:end], [begin, len(value)]
    files = model_files(checkpoint.recipe, checkpoint.tokenizers, checkpoint.weights)
    del files[WEIGHTS]
    for rank in (0, 1):
        metadata = {ROWS: rows or json.dumps(places[rank])} if rows != "missing" else {}
        files[part_name(WEIGHTS, rank, 2)] = tensor_file(parts[rank], metadata)
    write_folder(folder, files, {"kind": "model"}, FaultyStorage())


def test_a_checkpoint_that_several_processes_have_written_is_loaded_as_a_whole(tmp_path, checkpoint_of):
    made = checkpoint_of(7)
    write_in_parts(tmp_path / "model", made)
    assert holds(load_model(tmp_path / "model"), made)


@pytest.mark.parametrize("rows", ["missing", "[1", "[1]", '{"a": 1}'])
def test_a_part_that_does_not_say_which_rows_it_has_is_damaged(tmp_path, checkpoint_of, rows):
    write_in_parts(tmp_path / "model", checkpoint_of(7), rows)
    with pytest.raises(DamagedError, match=r"model-00001-of-00002\.safetensors does not say which rows"):
        load_model(tmp_path / "model")
