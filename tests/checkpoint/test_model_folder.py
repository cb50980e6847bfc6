import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from faulty_storage import FaultyStorage
from same import same_tensors

from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import Checkpoint, Checkpoints, DamagedError, average, load_model, write_model
from heedful.errors import InputError, RunError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

Maker = Callable[[int], Checkpoint]


def write(folder: Path, checkpoint: Checkpoint, **changes: object) -> Path:
    changed = replace(checkpoint, **changes)
    write_model(folder, changed.recipe, changed.tokenizers, changed.weights, storage=FaultyStorage())
    return folder


class TestWriting:
    def test_it_holds_what_is_needed_and_no_more(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        folder = write(tmp_path / "above" / "model", checkpoint_of(3))
        assert {path.name for path in folder.iterdir()} == {
            "manifest.json",
            "recipe.json",
            "model.safetensors",
            "tokenizer",
        }
        description = json.loads((folder / "recipe.json").read_text())
        assert description["recipe"]["model"]["d_model"] == 6
        assert description["source_vocab"] == len(checkpoint_of(3).tokenizers.source)
        assert description["target_vocab"] == len(checkpoint_of(3).tokenizers.target)

    def test_half_the_bits_are_half_the_bytes(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        made = checkpoint_of(3)
        write_model(tmp_path / "half", made.recipe, made.tokenizers, made.weights, "bfloat16", FaultyStorage())
        loaded = weights(load_model(tmp_path / "half").model)
        assert same_tensors(loaded, {name: value.bfloat16().float() for name, value in made.weights.items()})
        whole = write(tmp_path / "whole", made)
        sizes = [(folder / "model.safetensors").stat().st_size for folder in (tmp_path / "half", whole)]
        assert sizes[1] - sizes[0] == pytest.approx(2 * sum(value.numel() for value in made.weights.values()), abs=99)

    def test_two_vocabularies_stay_two(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        made = checkpoint_of(3)
        config = replace(made.recipe.tokenizer, joint=False)
        pair = TokenizerPair(train_tokenizer(["drei"], config), train_tokenizer(["seventeen"], config))
        model = EncoderDecoder(made.recipe.model, len(pair.source), len(pair.target))
        write(tmp_path / "model", made, tokenizers=pair, weights=weights(model))
        loaded = load_model(tmp_path / "model")
        assert same_tensors(weights(loaded.model), weights(model))
        assert loaded.tokenizers.target.encode("teens") == pair.target.encode("teens")
        assert len(loaded.tokenizers.source) != len(loaded.tokenizers.target)

    @pytest.mark.parametrize("name", ["notes.txt", "state.json"])
    def test_only_a_model_is_replaced(self, name: str, tmp_path: Path, checkpoint_of: Maker) -> None:
        folder = write(tmp_path / "model", checkpoint_of(2))
        write(folder, checkpoint_of(3))
        assert load_model(folder).recipe.name == "step 3"
        (folder / name).write_text("dear to me")
        with pytest.raises(InputError, match="something other than a heedful model"):
            write(folder, checkpoint_of(5))
        assert (folder / name).read_text() == "dear to me"

    def test_an_empty_folder_is_used_and_a_file_is_not(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        (tmp_path / "empty").mkdir()
        assert load_model(write(tmp_path / "empty", checkpoint_of(3))).recipe.name == "step 3"
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="file: is a file; choose a folder"):
            write(tmp_path / "file", checkpoint_of(3))

    def test_a_disk_that_refuses_is_a_run_error(self, tmp_path: Path, checkpoint_of: Maker) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(RunError, match="cannot write the model"):
            write(tmp_path / "file" / "model", checkpoint_of(3))


class TestAverage:
    def test_it_is_the_mean(self, run: Path, checkpoint_of: Maker) -> None:
        checkpoints = Checkpoints(run, 2)
        mean = average([checkpoints.path(step) for step in (2, 3, 5)])
        for name, value in mean.items():
            exact = sum(checkpoint_of(step).weights[name].double() for step in (2, 3, 5)) / 3
            assert torch.equal(value, torch.as_tensor(exact).float())

    def test_the_mean_of_one_is_itself(self, run: Path, checkpoint_of: Maker) -> None:
        assert same_tensors(average([run / "checkpoints/step-00000003"]), checkpoint_of(3).weights)

    def test_different_models_have_no_mean(self, run: Path, tmp_path: Path, checkpoint_of: Maker) -> None:
        name, *_ = checkpoint_of(3).weights
        for change in ({"other": torch.zeros(2)}, {name: torch.zeros(2)}):
            other = write(tmp_path / "other", checkpoint_of(3), weights={**checkpoint_of(3).weights, **change})
            with pytest.raises(InputError, match="different models"):
                average([run / "checkpoints/step-00000003", other])

    def test_nothing_has_no_mean(self) -> None:
        with pytest.raises(InputError, match="nothing to average"):
            average([])

    def test_damage_is_noticed(self, run: Path) -> None:
        path = run / "checkpoints/step-00000003/model.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        with pytest.raises(DamagedError):
            average([path.parent])
