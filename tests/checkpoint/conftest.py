"""One small model with its tokenizers, and a run that saved some steps of it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from heedful.checkpoint import Checkpoint, Checkpoints
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig
from heedful.models import EncoderDecoder, weights
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    model = ModelConfig(d_model=6, d_ff=7, heads=2, encoder_layers=1, decoder_layers=1, attention_bias=False)
    return Recipe(name="small", model=model, tokenizer=TokenizerConfig(kind="character"))


@pytest.fixture(scope="session")
def tokenizers(recipe: Recipe) -> TokenizerPair:
    joint = train_tokenizer(["eine kleine Nachtmusik", "a little serenade"], recipe.tokenizer)
    return TokenizerPair(joint, joint)


@pytest.fixture(scope="session")
def checkpoint_of(recipe: Recipe, tokenizers: TokenizerPair) -> Callable[[int], Checkpoint]:
    """The checkpoint of a step; its values depend on the step alone."""
    model = EncoderDecoder(recipe.model, len(tokenizers.source), len(tokenizers.target))

    @cache
    def make(step: int) -> Checkpoint:
        generator = torch.Generator().manual_seed(step)
        values = {name: torch.randn(value.shape, generator=generator) for name, value in weights(model).items()}
        moments = {f"exp_avg.{name}": value / 3 for name, value in list(values.items())[:3]}
        return Checkpoint(
            step=step,
            recipe=replace(recipe, name=f"step {step}"),
            tokenizers=tokenizers,
            weights=values,
            optimizer={**moments, "step": torch.tensor(step), "scale": torch.tensor(0.1 * step).double()},
            state={"epoch": step // 2, "loss": 0.1 * step, "best": None, "digests": {"data": ["ü", f"{step:x}"]}},
        )

    return make


@pytest.fixture
def run(first_run: Path, tmp_path: Path) -> Path:
    """A copy of `first_run` to play with."""
    return shutil.copytree(first_run, tmp_path / "run")


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory, checkpoint_of: Callable[[int], Checkpoint]) -> Path:
    """A run with steps 2, 3 and 5, of which 2 is the best: one more save deletes 3."""
    folder = tmp_path_factory.mktemp("first") / "run"
    folder.mkdir()
    checkpoints = Checkpoints(folder, keep_last=2)
    for step in (2, 3, 5):
        checkpoints.save(checkpoint_of(step))
        if step == 2:
            checkpoints.mark_best(2, "loss", 0.7)
    return folder
