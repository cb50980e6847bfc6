"""A small translator with its training step, and ids of uneven rows, for the tests of updates."""

import numpy as np
import torch

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig, OptimizerConfig, Recipe, TrainConfig
from heedful.distributed.reducer import SINGLE_PROCESS
from heedful.nn.lora import add_updates
from heedful.tasks.parts.sequence_to_sequence import loss
from heedful.training.training_step import TrainingStep
from heedful.training.warm_start import freeze

CPU = torch.device("cpu")


def learner(
    precision="float32",
    dropout=0.0,
    encoder_layers=2,
    norm="post",
    reducer=SINGLE_PROCESS,
    frozen=(),
    compile=False,
    activation_checkpointing=False,
    lora=None,
    model=(),
    balance=0.003,
    **optimizer,
):
    torch.manual_seed(0)
    sizes = {"d_model": 24, "heads": 4, "d_ff": 37, "encoder_layers": encoder_layers, "decoder_layers": 1}
    config = ModelConfig(**sizes, dropout=dropout, norm=norm, **dict(model))
    recipe = Recipe(
        model=config,
        optimizer=OptimizerConfig(**{"lr": 0.01, "schedule": "constant", "warmup": 0, **optimizer}),
        train=TrainConfig(
            precision=precision,
            compile=compile,
            activation_checkpointing=activation_checkpointing,
            freeze=frozen,
            expert_balance=balance,
        ),
    )
    network = EncoderDecoder(config, 23, 23)
    freeze(network, recipe)
    if lora is not None:
        add_updates(network, lora)

    def objective(model, batch):
        return [loss(model, batch, recipe.train.label_smoothing)]

    return TrainingStep(network, objective, recipe, reducer)


def rows(*lengths):
    """Ids of given lengths, padded, each ending in <eos>."""
    rng = np.random.default_rng(sum(lengths))
    ids = np.zeros((len(lengths), max(lengths)), dtype=np.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[: length - 1] = rng.integers(4, 23, length - 1)
        row[length - 1] = 3
    return ids
