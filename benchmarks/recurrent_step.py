"""Training speed of a recurrent encoder-decoder beside JoeyNMT's: python benchmarks/recurrent_step.py [--help]

Two layers of GRU, a bidirectional encoder, Luong's attention with and without input feeding, all embeddings shared, on
the batches of train_step.py, with label smoothing 0.1 and Adam. JoeyNMT computes one target token after another in
both cases, and counts right tokens on the way; it should be in build/peers, where peers/environments.sh puts it. The
rest is as in train_step.py.
"""

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import torch
from race import Race, Size, Step, System, plain_step, run
from torch import Tensor
from train_step import CELLS, VOCAB, batches

from heedful.architectures.recurrent.model import RecurrentEncoderDecoder
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.config.schema import OptimizerConfig, Recipe, TrainConfig
from heedful.tasks.parts.sequence_to_sequence import PairBatch, loss
from heedful.training.training_step import TrainingStep

PEERS = Path("build/peers/joeynmt")
SPECIAL = {"unk": 0, "pad": 1, "bos": 2, "eos": 3}  # JoeyNMT's, in its order


def heedful(config: RecurrentConfig, device: torch.device, precision: Literal["float32", "bfloat16"]) -> Step:
    optimizer = OptimizerConfig(lr=1e-4, schedule="constant", warmup=0)
    recipe = Recipe(optimizer=optimizer, train=TrainConfig(precision=precision))
    model = RecurrentEncoderDecoder(config, VOCAB, VOCAB).to(device)
    learner = TrainingStep(model, lambda model, batch: [loss(model, batch, 0.1)], recipe)
    return lambda batch: learner.update([batch], 1)


def joeynmt(config: RecurrentConfig, device: torch.device) -> Step:
    sys.path.append(str(PEERS))
    peer = {name: import_module(f"joeynmt.{name}") for name in ("model", "vocabulary")}
    names = {f"{name}_token": f"<{name}>" for name in SPECIAL} | {f"{name}_id": id for name, id in SPECIAL.items()}
    special = SimpleNamespace(**names, sep_token=None, sep_id=None, lang_tags=[])
    vocabulary = peer["vocabulary"].Vocabulary([str(id) for id in range(4, VOCAB)], special)
    half: dict[str, Any] = {"type": "recurrent", "rnn_type": config.cell, "num_layers": config.layers}
    half |= {"embeddings": {"embedding_dim": config.d_model, "scale": False}, "dropout": config.dropout}
    encoder = half | {"hidden_size": config.d_model // 2, "bidirectional": True}
    decoder = half | {"hidden_size": config.d_model, "hidden_dropout": config.dropout, "attention": "luong"}
    decoder |= {"input_feeding": config.input_feeding, "init_hidden": "bridge"}
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = (
        peer["model"].build_model({"encoder": encoder, "decoder": decoder, **tied}, vocabulary, vocabulary).to(device)
    )
    model.loss_function = ("crossentropy", 0.1)

    def mean_loss(batch: PairBatch) -> Tensor:
        lengths, order = batch.source_padding_mask.sum(1).sort(descending=True)  # as its data loader has them
        source, target_in, target_out = (
            ids[order].masked_fill(ids[order] == 0, SPECIAL["pad"])
            for ids in (batch.source, batch.target_in, batch.target_out)
        )
        masks = {"src_mask": source != SPECIAL["pad"], "trg_mask": target_out != SPECIAL["pad"]}
        ids = {"src": source, "src_length": lengths, "trg_input": target_in, "trg": target_out}
        total = model(return_type="loss", **ids, **{name: mask[:, None] for name, mask in masks.items()})[0]
        return total / batch.target_tokens

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    return plain_step(model, mean_loss, optimizer, autocast=False)


def flops(config: RecurrentConfig, batch: PairBatch) -> float:
    """Count the FLOPs of the matrix products of a step: 6 for each weight per token, and 12 for each dimension of each
    key that a target token sees."""
    square, gates = config.d_model**2, {"gru": 3, "lstm": 4}[config.cell]
    source = config.layers * gates * 3 * square // 2 + square  # in both directions with half of the units; keys
    target = config.layers * gates * 2 * square + 2 * square + config.d_model * VOCAB
    target += gates * square if config.input_feeding else 0
    read, written = (mask.sum(1).double() for mask in (batch.source_padding_mask, batch.target_padding_mask))
    tokens = 6 * (source * batch.source_tokens + target * batch.target_tokens)
    return tokens + 12 * config.d_model * float(written @ read)


SYSTEMS = {
    "heedful bfloat16": System(partial(heedful, precision="bfloat16"), "bfloat16", keeps_freed=True),
    "heedful float32": System(partial(heedful, precision="float32"), "float32", keeps_freed=True),
    "JoeyNMT": System(joeynmt, "float32"),
    "JoeyNMT, tuned": System(joeynmt, "float32", keeps_freed=True, shimmed=True),
}
GRU = RecurrentConfig(cell="gru", layers=2, d_model=176, dropout=0.3, tie="all")
FED = RecurrentConfig(cell="gru", layers=2, d_model=176, dropout=0.3, tie="all", input_feeding=True)
SIZES = {
    "no input feeding": Size(GRU, batches, CELLS, warm_up=4, steps=8),
    "input feeding": Size(FED, batches, CELLS, warm_up=4, steps=8),
}

if __name__ == "__main__":
    run(Race(__file__, SYSTEMS, SIZES, flops), __doc__)
