"""A translator that is no Transformer: one GRU reads the source, another begins where it ends; nothing attends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import subjects
from heedful.checkpoint import LoadedModel
from heedful.config.schema import ArchitectureConfig, DecodeConfig, Recipe
from heedful.models import SourceToTarget
from heedful.text.tokenizer import BOS
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(ArchitectureConfig):
    """Keys of [model]."""

    layers: int = 1


class Recurrent(SourceToTarget):
    """An encoder and a decoder, a GRU each."""

    Config = RecurrentConfig

    def __init__(self, config, source_vocab, target_vocab):
        super().__init__()
        self.source = nn.Embedding(source_vocab, config.d_model)
        self.target = nn.Embedding(target_vocab, config.d_model)
        self.encoder = nn.GRU(config.d_model, config.d_model, config.layers, batch_first=True)
        self.decoder = nn.GRU(config.d_model, config.d_model, config.layers, batch_first=True)
        self.output = nn.Linear(config.d_model, target_vocab)

    def hidden(self, source, source_padding_mask, target, target_padding_mask):
        return self.decoder(self.target(target), self.encode(source, source_padding_mask))[0]

    def encode(self, source, padding_mask):
        """The state after each sentence's last token, whatever padding follows."""
        lengths = padding_mask.sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        return self.encoder(packed)[1]

    def start(self, source, padding_mask):
        return RecurrentState(self, self.encode(source, padding_mask))

    def embedding_of(self, line) -> Any:
        return self.source if line == "src" else self.target


class RecurrentState:
    """What a search holds of each row between two tokens."""

    def __init__(self, model, state):
        self.model, self.state = model, state
        self.begin = torch.full((state.size(1),), BOS)

    @torch.no_grad()
    def step(self, tokens):
        out, self.state = self.model.decoder(self.model.target(tokens[:, None]), self.state)
        return self.model.output(out[:, 0])

    def select(self, rows):
        self.state = self.state[:, rows]


def loaded_recurrent():
    """The model as it comes from a folder."""
    torch.manual_seed(1)
    pair, config = TokenizerPair(subjects.TOKENIZER, subjects.TOKENIZER), RecurrentConfig(d_model=13)
    model = Recurrent(config, len(pair.source), len(pair.target)).eval()
    return LoadedModel(Recipe(model=config, decode=DecodeConfig(beam=3, max_extra=5)), model, pair, Path("here"))
