"""The encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

B batch, R rows of a search, S source tokens, T target tokens, D model, V target vocabulary.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.models.initialization import initialise
from heedful.nn.embedding import Embedding
from heedful.nn.masks import Lanes, Sight
from heedful.nn.positions import POSITIONS
from heedful.nn.stack import Decoder, LayerCache, Memory, Stack
from heedful.text.tokenizer import BOS, EOS


class EncoderDecoder(nn.Module):
    """Reads a source, writes a target."""

    def __init__(self, config: ModelConfig, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        positions = POSITIONS[config.positions]
        self.source_eos = config.source_eos
        self.source_embedding = Embedding(source_vocab, config)
        self.target_embedding = Embedding(target_vocab, config)
        self.encoder = Stack(config, config.encoder_layers, positions(config, causal=False))
        self.decoder = Decoder(config, positions(config, causal=True))
        self.output = nn.Linear(config.d_model, target_vocab, bias=config.output_bias)
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        if config.tie == "all":
            self.source_embedding = self.target_embedding

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_keep: Bool[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        target_keep: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T V"]:
        """Logits of the token after each target position."""
        return self.output(self.hidden(source, source_keep, target, target_keep))

    def hidden(
        self,
        source: Int[Tensor, "B S"],
        source_keep: Bool[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        target_keep: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """The decoder's last states, for a loss that fuses the output projection."""
        return self.decoder(self.target_embedding(target), target_keep, self.encode(source, source_keep))

    def encode(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"]) -> Memory:
        """Read the source once, for any number of decoding steps."""
        if not self.source_eos:
            keep = keep & (source != EOS)
        sight = Sight(keep, source.size(1), causal=False)
        return Memory(self.encoder(self.source_embedding(source), sight), keep)

    @torch.no_grad()
    def start(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"]) -> "State":
        """Begin to decode: one row a source sentence."""
        return State(self, self.encode(source, keep))


class State:
    """A search in progress: what the model remembers of each row. It has no gradients."""

    def __init__(self, model: EncoderDecoder, memory: Memory) -> None:
        self.model = model
        self.begin = torch.full((len(memory.keep),), BOS, device=memory.keep.device)
        self.memory = memory
        self.lanes = Lanes(len(memory.keep), memory.keep.device)
        self.caches = [LayerCache() for _ in model.decoder.blocks]

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token a row; return the logits of the next."""
        x = self.model.target_embedding(tokens.unflatten(0, (-1, self.lanes.width)))
        x = self.model.decoder.step(x, self.lanes, self.memory, self.caches)
        return self.model.output(x.flatten(0, 1))

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat rows; what was read moves only if a sentence leaves or half of it is seen no more."""
        before = len(self.memory.keep)
        sentences = self.lanes.select(rows)
        if not torch.equal(sentences, torch.arange(before, device=sentences.device)):
            self.memory = self.memory.select(sentences)
            for cache in self.caches:
                cache.select(sentences)
        columns = self.lanes.prune()
        if columns is not None:
            for cache in self.caches:
                cache.own.keep(columns)
