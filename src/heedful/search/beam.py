"""Beam search: decodes a batch of sentences with as many live hypotheses for each as the beam size says.

B sentences still searched, W live hypotheses of each, K next tokens of each, C = W x K candidates, T tokens so far.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures.model import DecodingState
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.machine.memory import free_memory
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import PENALTIES, Hypothesis, hypothesis
from heedful.search.top_k import best_tokens
from heedful.text.tokenizer import EOS

PER_TOKEN, PER_PAIR = 48, 150  # bytes for each hypothesis and token of the vocabulary, and for each two hypotheses


def search(state: DecodingState, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the best outputs for a batch of sentences: by greedy search with a beam size of 1, else by beam search.

    The result for a sentence never depends on the other sentences. An output that reaches its limit without <eos> is
    cut there and competes with the score it has.

    Args:
        state: the decoding state of the model, one row for each sentence, with nothing fed yet.
        limits: the most tokens of each output, <eos> counted.
        config: the beam size, and the length penalty; `n_best` <= `beam` and `alpha` >= 0.

    Returns:
        For each sentence at most `config.n_best` different hypotheses, best first.
    """
    strategy = greedy_search if config.beam == 1 else beam_search
    return strategy(state, limits, config)


def beam_search(
    state: DecodingState,
    limits: Sequence[int],
    config: DecodeConfig,
    watch: "Watch | None" = None,
    live: "Live | None" = None,
) -> list[list[Hypothesis]]:
    """Decode a batch of sentences by beam search with `config.beam` live hypotheses each; see `search`.

    At each step the candidates of a sentence are ranked by log-probability, equal ones by the rank of their parent,
    then by lower token id. Candidates among the first `beam` that end, with <eos> or at the limit, are finished; the
    best `beam` candidates that do not end continue. A sentence leaves the batch when `n_best` of its hypotheses are
    finished and its best live hypothesis would not beat the worst of them even if it reached the limit at no further
    cost: searching on to the limit would return the same. It leaves earlier once `config.patience` x `beam` hypotheses,
    and at least `n_best`, are finished, unless `config.patience` is 0. `watch` is called after every step. `live` holds
    the hypotheses to continue from; the last token of each is fed to the model first.
    """
    live = live or Live.begin(state.begin.cpu(), limits, config)
    device = state.begin.device
    finished: list[list[Hypothesis]] = [[] for _ in live.sentences]
    while live.sentences:
        logits = state.step(live.tokens[:, :, -1].flatten().to(device))
        # One of the tokens after a hypothesis can be <eos>; of beam + 1 at least beam continue it.
        candidates = rank(live, *best_tokens(logits, config.beam + 1))
        ended = collect(finished, live, candidates, config)
        before, (live, rows) = live, advance(live, candidates, finished, ended, config)
        if watch:
            watch(before, candidates, live)
        if live.sentences:
            state.select(rows.to(device))
    return finished


@dataclass(frozen=True)
class Live:
    """Live hypotheses of a beam search, best first; a total of -inf marks a place in the beam that holds none."""

    sentences: list[int]  # B indices into the input
    limits: Int[Tensor, " B"]  # the longest output
    ended: Int[Tensor, " B"]  # finished hypotheses of the sentence
    penalties: Float[Tensor, " B"]  # length penalty of the longest output, the largest possible
    totals: Float[Tensor, "B W"]  # log P of the tokens
    scores: Float[Tensor, "B W T"]  # log P of each token
    tokens: Int[Tensor, "B W T+1"]  # the tokens, after the token that is fed first

    @classmethod
    def begin(cls, begin: Int[Tensor, " B"], limits: Sequence[int], config: DecodeConfig) -> "Live":
        """Initial state of a beam search: one empty hypothesis for each sentence."""
        penalties = [PENALTIES[config.penalty](limit, config.alpha) for limit in limits]
        return cls(
            sentences=list(range(len(limits))),
            limits=torch.tensor(list(limits), dtype=torch.long),
            ended=torch.zeros(len(limits), dtype=torch.long),
            penalties=torch.tensor(penalties, dtype=torch.float64),
            totals=torch.zeros(len(limits), 1, dtype=torch.float64),
            scores=torch.zeros(len(limits), 1, 0, dtype=torch.float64),
            tokens=begin[:, None, None],
        )


@dataclass(frozen=True)
class Candidates:
    """Candidates of one step of beam search: each live hypothesis with each of its best next tokens, best first."""

    parents: Int[Tensor, "B C"]
    tokens: Int[Tensor, "B C"]
    scores: Float[Tensor, "B C"]
    totals: Float[Tensor, "B C"]
    end: Bool[Tensor, "B C"]  # with <eos>, or because the sentence is at its limit


Watch = Callable[[Live, Candidates, Live], object]  # live before a step, candidates, live after it


def rank(live: Live, scores: Float[Tensor, "R K"], tokens: Int[Tensor, "R K"]) -> Candidates:
    """Add log-probabilities of candidate tokens to those of their hypotheses; sort by the sum in each sentence."""
    sentences, choices = len(live.sentences), scores.size(1)
    totals = (live.totals.reshape(-1, 1) + scores).reshape(sentences, -1)
    totals, order = totals.sort(dim=1, descending=True, stable=True)  # equal ones keep the order of parents and tokens
    tokens, scores = (x.reshape(sentences, -1).gather(1, order) for x in (tokens, scores))
    end = (tokens == EOS) | (live.tokens.size(2) >= live.limits)[:, None]
    return Candidates(order // choices, tokens, scores, totals, end)


def collect(
    finished: list[list[Hypothesis]], live: Live, candidates: Candidates, config: DecodeConfig
) -> Int[Tensor, " B"]:
    """Add the hypotheses that end within the beam to `finished`, keep the `n_best`, and count all that have ended."""
    ended = candidates.end[:, : config.beam] & (candidates.totals[:, : config.beam] > -torch.inf)
    rows, places = ended.nonzero(as_tuple=True)
    parents = candidates.parents[rows, places]
    tokens = torch.cat([live.tokens[rows, parents, 1:], candidates.tokens[rows, places, None]], dim=1)
    scores = torch.cat([live.scores[rows, parents], candidates.scores[rows, places, None]], dim=1)
    for row, output, token_scores in zip(rows.tolist(), tokens.tolist(), scores.tolist(), strict=True):
        best = finished[live.sentences[row]]
        insort(best, hypothesis(output, token_scores, config), key=lambda h: -h.score)
        del best[config.n_best :]
    return live.ended + ended.sum(1)


def advance(
    live: Live,
    candidates: Candidates,
    finished: list[list[Hypothesis]],
    ended: Int[Tensor, " B"],
    config: DecodeConfig,
) -> tuple[Live, Int[Tensor, " R"]]:
    """Select the hypotheses that a beam search continues; return these and the row that each of them continues."""
    places = candidates.end.int().argsort(dim=1, stable=True)[:, : config.beam]  # candidates that do not end, in order
    totals = candidates.totals.masked_fill(candidates.end, -torch.inf).gather(1, places)

    # A sentence continues while its best hypothesis could still beat the worst of the n best. A log-probability is
    # negative, so its quotient by the largest penalty, that at the limit, is the best score that it can reach.
    best = [finished[sentence] for sentence in live.sentences]
    worst = torch.tensor([b[-1].score if len(b) == config.n_best else -torch.inf for b in best], dtype=torch.float64)
    patient = ended < (max(config.patience * config.beam, config.n_best) if config.patience else torch.inf)
    going = (patient & (totals[:, 0] / live.penalties > worst)).nonzero()[:, 0]

    # The model has a row for each hypothesis, those of a sentence next to one another.
    places = places[going]
    rows = going[:, None] * live.totals.size(1) + candidates.parents[going].gather(1, places)
    tokens = candidates.tokens[going].gather(1, places)
    scores = candidates.scores[going].gather(1, places)
    following = Live(
        [live.sentences[i] for i in going.tolist()],
        live.limits[going],
        ended[going],
        live.penalties[going],
        totals[going],
        torch.cat([live.scores.flatten(0, 1)[rows], scores[:, :, None]], dim=2),
        torch.cat([live.tokens.flatten(0, 1)[rows], tokens[:, :, None]], dim=2),
    )
    return following, rows.flatten()


def check_beam(beam: int, vocabulary: int, device: torch.device) -> None:
    """Check that a beam size is at most the vocabulary size and that its beam search fits into memory."""
    if beam > vocabulary:
        raise InputError(f"a beam size of {beam:,} is more than the {vocabulary:,} tokens of the vocabulary; lower it")
    needed = needed_memory(beam, vocabulary)
    free = (torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()) / 1e9
    if needed > free:
        raise InputError(
            f"a beam size of {beam:,} needs about {needed:,.1f} GB of memory for each sentence, and {free:,.1f} GB are "
            "free; lower it"
        )


def needed_memory(beam: int, vocabulary: int) -> float:
    """Estimate the GB of memory that a beam search takes for each sentence, as measured with beams of 100 to 2,000."""
    return beam * (PER_TOKEN * vocabulary + PER_PAIR * beam) / 1e9
