"""A small BERT for experiments that look inside, trained on sentences of `heedful scenes`, whose roles are known."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from models import train, warm_up
from torch import Tensor

from heedful.architectures.heads import TokenClassifier
from heedful.architectures.transformer.masked_models import MaskedLanguageModel
from heedful.config.schema import ModelConfig
from heedful.corpora.scenes import Sentence, split
from heedful.inspector.capture.recorder import Edit, recording

LAYERS, HEADS, WIDTH = 6, 4, 64
CONFIG = ModelConfig(
    family="encoder",
    encoder_layers=LAYERS,
    heads=HEADS,
    d_model=WIDTH,
    d_ff=4 * WIDTH,
    positions="rotary",
    norm="pre",
    dropout=0.0,
)
PAD, MASK = 0, 1
ROWS, LEARNING_RATE, WARMUP = 64, 1e-3, 100
MASKED = 0.15  # share of the words, as in BERT


class Corpus(NamedTuple):
    """Sentences for training, other sentences for measurements, and the ids of their words."""

    training: Sequence[Sentence]
    measured: Sequence[Sentence]
    ids: Mapping[str, int]

    def batch(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the ids of sentences, padded, (B, T)."""
        rows = [torch.tensor([self.ids[word.lower()] for word in sentence.words]) for sentence in sentences]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def corpus(training: int, measured: int) -> Corpus:
    """Generate distinct sentences; a word's id does not depend on its case."""
    parts = split("en-de", training, measured, 0, seed=1)
    sentences = {part: [pair.source for pair in pairs] for part, pairs in parts.items()}
    words = {word.lower() for part in sentences.values() for sentence in part for word in sentence.words}
    ids = {word: id for id, word in enumerate(sorted(words), start=2)}
    return Corpus(sentences["train"], sentences["valid"], ids)


def build(data: Corpus, seed: int, config: ModelConfig = CONFIG) -> MaskedLanguageModel:
    """Build a model with random weights."""
    torch.manual_seed(seed)
    return MaskedLanguageModel(config, len(data.ids) + 2, pairs=False).eval()


def masked_loss(model: MaskedLanguageModel | TokenClassifier, data: Corpus) -> Tensor:
    """Mask words of randomly drawn sentences; return the loss of their prediction."""
    numbers = torch.randint(len(data.training), (ROWS,)).tolist()
    tokens = data.batch([data.training[number] for number in numbers])
    real = tokens != PAD
    masked = real & (torch.rand(tokens.shape) < MASKED)
    logits = model(tokens.masked_fill(masked, MASK), real)
    return F.cross_entropy(logits[masked], tokens[masked])


def trained(data: Corpus, seed: int, updates: int) -> MaskedLanguageModel:
    """Train a model to predict masked words."""
    model = build(data, seed)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    warm_up(optimizer, WARMUP)
    train(optimizer, lambda: masked_loss(model, data), updates)
    return model


def states_and_attention(
    model: MaskedLanguageModel, tokens: Tensor, edits: Mapping[str, Edit] | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the states before the first block and after each block, (B, T, D), and the attention, (B, H, T, T).

    `edits` replace tensors of the forward pass, as in `recording`.
    """
    layers = range(len(model.backbone.stack.blocks))
    states, attention = [f"enc.{n}.ffn.resid" for n in layers], [f"enc.{n}.self.attn" for n in layers]
    with torch.no_grad(), recording(model, ("src.in", *states, *attention), edits) as tensors:
        model(tokens, tokens != PAD)
    return [tensors[name] for name in ("src.in", *states)], [tensors[name] for name in attention]
