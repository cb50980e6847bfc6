"""Search and scoring with encoder-decoders for many rows of token ids, in batches of similar length."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.model import DecodingState, SourceToTarget, check_no_nan, evaluating
from heedful.config.schema import DecodeConfig
from heedful.machine.process import map_on_cores
from heedful.search.beam import search
from heedful.search.hypothesis import Hypothesis
from heedful.text.pipeline import BOS, EOS
from heedful.text.sequences import batches, pad
from heedful.text.shortlist import Shortlist

MAX_LOGITS = 2**24  # maximum number of logits in memory at a time, for long texts and large vocabularies


def search_rows(
    model: SourceToTarget,
    rows: Sequence[list[int]],
    limits: Sequence[int],
    config: DecodeConfig,
    done: Callable[[int], object] = lambda _: None,
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    """Find the `n_best` outputs for each row of token ids without <eos>, best first; an empty row has none.

    Args:
        model: The encoder-decoder.
        rows: The source tokens.
        limits: The maximum number of tokens in each output, <eos> included.
        config: The search settings.
        done: Called first with the number of empty rows, then after each batch with the number of its rows.
        shortlist: Restricts each output to the candidates for its source, unless `config.shortlist` is 0. Scores are
            over all tokens in any case.
    """
    device = next(model.parameters()).device
    outputs: list[list[Hypothesis]] = [[] for _ in rows]
    # Each sentence becomes `beam` rows in the model.
    groups = list(batches(rows, config.batch_tokens // config.beam))
    # Empty rows are in no batch, so they are reported here.
    done(sum(not row for row in rows))

    # Inference mode applies to one thread: each thread of `map_on_cores` enters it.
    @torch.inference_mode()
    def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
        source, padding_mask = padded_rows([[*rows[i], EOS] for i in batch], device)
        state: DecodingState = model.start(source, padding_mask)
        if shortlist and config.shortlist:
            state = ShortlistedState(state, shortlist, [rows[i] for i in batch])
        return search(state, [limits[i] for i in batch], config)

    with evaluating(model):
        for batch, hypotheses in zip(groups, map_on_cores(search_batch, groups, device), strict=True):
            for index, best in zip(batch, hypotheses, strict=True):
                outputs[index] = best
            done(len(batch))
    if shortlist and config.shortlist:
        # The search normalises probabilities over the candidates only, which makes its scores too high.
        return rescored(model, rows, outputs, config)
    return outputs


class ShortlistedState:
    """Decoding state that allows each sentence only its candidates: the logits of other tokens are minus infinity."""

    def __init__(self, state: DecodingState, shortlist: Shortlist, rows: Sequence[list[int]]) -> None:
        self.state = state
        self.begin = state.begin
        self.shortlist = shortlist
        self.sentences = rows
        self.allowed: Bool[Tensor, "R V"] | None = None  # created at the first step, from the logits' shape

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        logits = self.state.step(tokens)
        if self.allowed is None:
            self.allowed = torch.zeros_like(logits, dtype=torch.bool)
            for allowed, row in zip(self.allowed, self.sentences, strict=True):
                allowed[torch.from_numpy(self.shortlist.candidates(row).astype("int64"))] = True
        return logits.masked_fill(~self.allowed, -torch.inf)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.state.select(rows)
        if self.allowed is not None:
            self.allowed = self.allowed[rows]


def rescored(
    model: SourceToTarget, rows: Sequence[list[int]], outputs: list[list[Hypothesis]], config: DecodeConfig
) -> list[list[Hypothesis]]:
    """Score hypotheses again, over the whole vocabulary; they stay in the order of the search."""
    flat = [(row, hypothesis) for row, hypotheses in zip(rows, outputs, strict=True) for hypothesis in hypotheses]
    # An output that was cut at its limit has a score for each token, but none for <eos>.
    targets = [[*hypothesis.tokens, EOS][: len(hypothesis.token_scores)] for _, hypothesis in flat]
    scores = score_rows(model, [[*row, EOS] for row, _ in flat], targets, config.batch_tokens)
    each = iter(map(Hypothesis.scored, targets, scores, [config] * len(flat)))
    return [[next(each) for _ in hypotheses] for hypotheses in outputs]


@torch.inference_mode()
def score_rows(
    model: SourceToTarget, sources: Sequence[list[int]], targets: Sequence[list[int]], batch_tokens: int
) -> list[list[float]]:
    """Compute log P of each target token given its source and the tokens before it; sources end with <eos>."""
    device = next(model.parameters()).device
    scores: list[list[float]] = [[]] * len(sources)
    # The limit of a batch applies to both sides, so pairs are grouped by their longer side.
    longer = [max(pair, key=len) for pair in zip(sources, targets, strict=True)]
    with evaluating(model):
        for batch in batches(longer, batch_tokens):
            source, source_mask = padded_rows([sources[i] for i in batch], device)
            target, target_mask = padded_rows([[BOS, *targets[i]] for i in batch], device)
            # Inputs are <bos> y1 ... y(T-1), which predict y1 ... yT.
            # As in training, an input is masked if the token that it predicts is padding.
            hidden = model.hidden(source, source_mask, target[:, :-1], target_mask[:, 1:])
            for index, states, row in zip(batch, hidden, target, strict=True):
                size = len(targets[index])
                scores[index] = log_probs_of(states[:size], row[1 : size + 1], model.output)
    return scores


def log_probs_of(
    hidden: Float[Tensor, "N D"], targets: Int[Tensor, " N"], output: Callable[[Tensor], Tensor] | nn.Linear
) -> list[float]:
    """Compute log P of each target from the hidden state that predicts it, in float32, a few rows at a time."""
    rows = max(1, MAX_LOGITS // output(hidden[:1]).size(-1))
    blocks = zip(hidden.split(rows), targets.split(rows), strict=True)
    scores = [output(states).float().log_softmax(-1).gather(-1, tokens[:, None])[:, 0] for states, tokens in blocks]
    log_probs = torch.cat(scores)
    check_no_nan(log_probs)
    return log_probs.tolist()


def padded_rows(
    rows: Sequence[list[int]], device: torch.device, side: Literal["left", "right"] = "right"
) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    """Pad rows of token ids to the same length; return ids and padding mask, both (B L)."""
    ids, padding_mask = (torch.from_numpy(x).to(device) for x in pad(rows, side=side))
    return ids, padding_mask
