"""Checkpoints of a tiny model, and a run that saved three of them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from faulty_storage import FaultyStorage

from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import Best, Checkpoint, Checkpoints
from heedful.config.schema import ModelConfig, Recipe, TokenizerConfig
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

MODEL = ModelConfig(d_model=6, d_ff=7, heads=2, encoder_layers=1, decoder_layers=1, attention_bias=False)
RECIPE = Recipe(name="small", model=MODEL, tokenizer=TokenizerConfig(kind="character"))
BEST = Best(2, "loss", 0.7)


@cache
def tokenizers() -> TokenizerPair:
    joint = train_tokenizer(["eine kleine Nachtmusik", "a little serenade"], RECIPE.tokenizer)
    return TokenizerPair(joint, joint)


@cache
def checkpoint_of(step: int) -> Checkpoint:
    """The checkpoint of a step; its values depend on the step alone."""
    vocabularies = tokenizers()
    model = EncoderDecoder(RECIPE.model, len(vocabularies.source), len(vocabularies.target))
    generator = torch.Generator().manual_seed(step)
    values = {name: torch.randn(value.shape, generator=generator) for name, value in weights(model).items()}
    moments = {f"exp_avg.{name}": value / 3 for name, value in list(values.items())[:3]}
    return Checkpoint(
        step=step,
        recipe=replace(RECIPE, name=f"step {step}"),
        tokenizers=vocabularies,
        weights=values,
        optimizer={**moments, "step": torch.tensor(step), "scale": torch.tensor(0.1 * step).double()},
        state={"epoch": step // 2, "loss": 0.1 * step, "best": None, "digests": {"data": ["ü", f"{step:x}"]}},
    )


def save_run(folder: Path) -> None:
    """A run with steps 2, 3 and 5, of which 2 is the best: one more save deletes 3."""
    folder.mkdir()
    checkpoints = Checkpoints(folder, keep_last=2, storage=FaultyStorage())
    for step in (2, 3, 5):
        checkpoints.save(checkpoint_of(step))
        if step == 2:
            checkpoints.mark_best(BEST.step, BEST.metric, BEST.value)
