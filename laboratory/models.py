"""The models that the laboratory compares: causal backbones of every architecture, equally wide, and their training."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.heads import TextClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.config.schema import ModelConfig, TextModelConfig

RECURRENT = RecurrentConfig(family="decoder", layers=2, dropout=0.0)
CONVOLUTIONAL = ConvolutionalConfig(family="decoder", dropout=0.0, max_positions=4096)
TRANSFORMER = ModelConfig(
    family="decoder", decoder_layers=2, heads=4, dropout=0.0, norm="pre", positions="rotary", pooler="none"
)
MODELS: dict[str, Callable[[int], TextModelConfig]] = {  # by width
    "RNN": lambda width: replace(RECURRENT, cell="elman", d_model=width),
    "LSTM": lambda width: replace(RECURRENT, cell="lstm", d_model=width),
    "GRU": lambda width: replace(RECURRENT, cell="gru", d_model=width),
    "CNN, 2 layers": lambda width: replace(CONVOLUTIONAL, decoder_layers=2, d_model=width),
    "CNN, 8 layers": lambda width: replace(CONVOLUTIONAL, decoder_layers=8, d_model=width),
    "Transformer": lambda width: replace(TRANSFORMER, d_model=width, d_ff=4 * width),
}
COLOURS = dict(zip(MODELS, ("#b5651d", "#5a8fc8", "#3a7d44", "#c9a227", "#a05195", "#222222"), strict=True))
BROWN, BLUE = "#b5651d", "#5a8fc8"  # of two groups


def classifier(name: str, width: int, vocabulary: int, classes: int) -> TextClassifier:
    """Build a classifier that reads a text from left to right and classifies it by the state of the last token."""
    return TextClassifier(MODELS[name](width), vocabulary, classes)


def warm_up(optimizer: torch.optim.Optimizer, updates: int) -> None:
    """Let the learning rate increase linearly for so many updates."""
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: min(1.0, (update + 1) / updates))
    optimizer.register_step_post_hook(lambda *_: schedule.step())


def train(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor], updates: int) -> None:
    """Make so many updates; `loss` draws a batch and returns its loss."""
    for _ in range(updates):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
