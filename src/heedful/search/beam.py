"""Greedy and beam search: from a model's logits to its best outputs.

A hypothesis is a partial output for a sentence. Beam search keeps several live hypotheses for each sentence. A step
extends each of them with its best next tokens, which gives candidates; those that end are finished, and the best of the
others are the live hypotheses of the next step. Live hypotheses have the same length and compete by log P; finished
ones differ in length and compete by their score, log P / length penalty (`Hypothesis.scored`).

Shapes: B sentences still being searched, W hypotheses of each in the beam, R = B x W rows in the model, V vocabulary, K
next tokens of each row, C = W x K candidates of each sentence, T tokens so far.
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
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.search.sampling import min_tokens, no_repeat_ngram
from heedful.search.top_k import most_probable, next_log_probs
from heedful.text.tokenizer import EOS

# Greedy search removes finished sentences from its batch if at most this share of the rows is unfinished. Otherwise,
# computing the finished rows as well costs less than copying the others.
MAX_COPIED_ROWS = 7 / 8

# Memory of a beam search in bytes: for each hypothesis and vocabulary token, and for each pair of hypotheses.
BYTES_PER_TOKEN, BYTES_PER_PAIR = 48, 150


def search(state: DecodingState, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the best outputs for a batch of sentences, by greedy search if the beam size is 1, otherwise by beam search.

    The result for a sentence never depends on the other sentences. An output that reaches its limit without <eos> ends
    there, and competes with its score without <eos>.

    Args:
        state: The decoding state of the model, one row for each sentence, before any token is fed.
        limits: The maximum number of tokens of each output, including <eos>.
        config: The beam size and the length penalty; `n_best` <= `beam` and `alpha` >= 0.

    Returns:
        For each sentence, at most `config.n_best` distinct hypotheses, best first.
    """
    strategy = greedy_search if config.beam == 1 else beam_search
    return strategy(state, limits, config)


def greedy_search(state: DecodingState, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Decode a batch of sentences by taking the most probable token at every step, until <eos> or the limit."""
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    sentences = list(range(len(limits)))  # the sentence in each row of the batch
    active = sentences  # the rows whose sentence has not ended
    inputs = state.begin  # (R,) the tokens that are fed to the model
    while active:
        outputs = [tokens[sentence] for sentence in sentences]
        allowed = within_rules(next_log_probs(state.step(inputs)), config, outputs)
        log_probs, best = (x[:, 0] for x in most_probable(allowed, 1))
        for row, token, log_prob in zip(active, best[active].tolist(), log_probs[active].tolist(), strict=True):
            tokens[sentences[row]].append(token)
            scores[sentences[row]].append(log_prob)
        live = [(row, tokens[sentences[row]], limits[sentences[row]]) for row in active]
        active = [row for row, output, limit in live if output[-1] != EOS and len(output) < limit]
        if 0 < len(active) <= MAX_COPIED_ROWS * len(sentences):
            state.select(torch.tensor(active, device=inputs.device))
            best, sentences, active = best[active], [sentences[row] for row in active], list(range(len(active)))
        # Rows that have ended but are still in the batch are fed like the others; their outputs are ignored.
        inputs = best.to(inputs.device)
    return [[Hypothesis.scored(*output, config)] for output in zip(tokens, scores, strict=True)]


@dataclass(frozen=True)
class Beam:
    """Live hypotheses of a beam search, best first; a log-probability of -inf marks an empty slot in the beam."""

    sentences: list[int]  # B indices into the input
    limits: Int[Tensor, " B"]  # the maximum number of tokens of an output
    num_finished: Int[Tensor, " B"]  # hypotheses of the sentence that have ended so far
    max_penalties: Float[Tensor, " B"]  # length penalty of an output at the limit, the largest one
    log_probs: Float[Tensor, "B W"]  # log P of all tokens of a hypothesis
    token_log_probs: Float[Tensor, "B W T"]  # log P of each token
    tokens: Int[Tensor, "B W T+1"]  # the token that is fed first, then the tokens of a hypothesis

    @classmethod
    def start(cls, begin: Int[Tensor, " B"], limits: Sequence[int], config: DecodeConfig) -> "Beam":
        """Return the beam before the first step: one empty hypothesis for each sentence."""
        return cls(
            sentences=list(range(len(limits))),
            limits=torch.tensor(list(limits), dtype=torch.long),
            num_finished=torch.zeros(len(limits), dtype=torch.long),
            max_penalties=torch.tensor([length_penalty(limit, config) for limit in limits], dtype=torch.float64),
            log_probs=torch.zeros(len(limits), 1, dtype=torch.float64),
            token_log_probs=torch.zeros(len(limits), 1, 0, dtype=torch.float64),
            tokens=begin[:, None, None],
        )


@dataclass(frozen=True)
class Candidates:
    """Candidates of one step of beam search: each live hypothesis with each of its best next tokens, best first."""

    parents: Int[Tensor, "B C"]  # the index in the beam of the hypothesis that a candidate extends
    tokens: Int[Tensor, "B C"]  # the next token
    token_log_probs: Float[Tensor, "B C"]  # log P of the next token
    log_probs: Float[Tensor, "B C"]  # log P of all tokens
    end: Bool[Tensor, "B C"]  # True for <eos>, or if the sentence is at its limit


Watch = Callable[[Beam, Candidates, Beam], object]  # the beam before a step, its candidates, the beam after it


def beam_search(
    state: DecodingState,
    limits: Sequence[int],
    config: DecodeConfig,
    watch: Watch | None = None,
    beam: Beam | None = None,
) -> list[list[Hypothesis]]:
    """Decode a batch of sentences by beam search with `config.beam` live hypotheses each; see `search`.

    At each step, the candidates of a sentence are ranked by log-probability; ties are broken by the parent's rank, then
    by the lower token id. Of the first `beam` candidates, those that end (with <eos> or at the limit) are finished. The
    best `beam` candidates that do not end are continued.

    A sentence leaves the batch when `n_best` of its hypotheses are finished and its best live hypothesis could not beat
    the worst of these even if it reached the limit without any further loss of log P: continuing would not change the
    result. It leaves earlier once `config.patience` x `beam` hypotheses, and at least `n_best`, are finished, unless
    `config.patience` is 0.

    `watch` is called after every step. `beam` contains the hypotheses to start from, by default an empty one for each
    sentence; the last token of each is fed to the model first.
    """
    beam = beam or Beam.start(state.begin.cpu(), limits, config)
    device = state.begin.device
    finished: list[list[Hypothesis]] = [[] for _ in beam.sentences]  # the n best of each sentence, best first
    while beam.sentences:
        log_probs = next_log_probs(state.step(beam.tokens[:, :, -1].flatten().to(device)))  # (R,) -> (R, V)
        log_probs = within_rules(log_probs, config, beam.tokens[:, :, 1:].flatten(0, 1))
        # At most one next token of a hypothesis is <eos>, so at least `beam` of its `beam` + 1 best ones continue it.
        candidates = rank(beam, *most_probable(log_probs, config.beam + 1))  # (R, V) -> (R, K) -> (B, C)
        num_finished = finish(finished, beam, candidates, config)
        before, (beam, rows) = beam, advance(beam, candidates, finished, num_finished, config)
        if watch:
            watch(before, candidates, beam)
        if beam.sentences:
            state.select(rows.to(device))  # the model continues from the rows of the parents
    return finished


def within_rules(
    log_probs: Float[Tensor, "R V"], config: DecodeConfig, outputs: "Sequence[list[int]] | Int[Tensor, 'R T']"
) -> Float[Tensor, "R V"]:
    """Exclude the tokens that `min_tokens` and `no_repeat_ngram` exclude, as in text generation.

    The other tokens keep their log-probabilities. `outputs` has the tokens of each row.
    """
    if not (config.min_tokens or config.no_repeat_ngram):
        return log_probs
    rows = outputs.tolist() if isinstance(outputs, Tensor) else outputs
    if config.min_tokens:
        log_probs = min_tokens(log_probs, config.min_tokens, rows)
    if config.no_repeat_ngram:
        log_probs = no_repeat_ngram(log_probs, config.no_repeat_ngram, rows)
    return log_probs


def rank(beam: Beam, token_log_probs: Float[Tensor, "R K"], tokens: Int[Tensor, "R K"]) -> Candidates:
    """Add the log-probabilities of next tokens to their hypotheses' own, and sort the sums within each sentence."""
    sentences, k = len(beam.sentences), tokens.size(1)
    log_probs = (beam.log_probs.reshape(-1, 1) + token_log_probs).reshape(sentences, -1)  # (R, K) -> (B, C)
    log_probs, order = log_probs.sort(dim=1, descending=True, stable=True)  # ties keep the order of parents and tokens
    tokens, token_log_probs = (x.reshape(sentences, -1).gather(1, order) for x in (tokens, token_log_probs))
    end = (tokens == EOS) | (beam.tokens.size(2) >= beam.limits)[:, None]
    # Before the sort, candidate c of a sentence extends hypothesis c // K.
    return Candidates(order // k, tokens, token_log_probs, log_probs, end)


def finish(
    finished: list[list[Hypothesis]], beam: Beam, candidates: Candidates, config: DecodeConfig
) -> Int[Tensor, " B"]:
    """Score the candidates that end within the beam, keep the `n_best` in `finished`, and count all that have ended."""
    # N candidates end: number i is in column `columns[i]` of row `rows[i]`. A log P of -inf marks an empty slot or an
    # excluded token, neither of which gives an output.
    ends = candidates.end[:, : config.beam] & (candidates.log_probs[:, : config.beam] > -torch.inf)
    rows, columns = ends.nonzero(as_tuple=True)
    parents = candidates.parents[rows, columns]
    tokens = torch.cat([beam.tokens[rows, parents, 1:], candidates.tokens[rows, columns, None]], dim=1)
    token_log_probs = torch.cat(
        [beam.token_log_probs[rows, parents], candidates.token_log_probs[rows, columns, None]], dim=1
    )
    for row, output, scores in zip(rows.tolist(), tokens.tolist(), token_log_probs.tolist(), strict=True):
        best = finished[beam.sentences[row]]
        insort(best, Hypothesis.scored(output, scores, config), key=lambda h: -h.score)  # with the length penalty
        del best[config.n_best :]
    return beam.num_finished + ends.sum(1)


def advance(
    beam: Beam,
    candidates: Candidates,
    finished: list[list[Hypothesis]],
    num_finished: Int[Tensor, " B"],
    config: DecodeConfig,
) -> tuple[Beam, Int[Tensor, " R"]]:
    """Return the beam of the next step and, for each of its hypotheses, the row of the model that it continues."""
    # The first `beam` candidates that do not end, in order: a stable sort moves False before True. If there are fewer,
    # candidates that end fill the beam as empty slots.
    columns = candidates.end.int().argsort(dim=1, stable=True)[:, : config.beam]
    log_probs = candidates.log_probs.masked_fill(candidates.end, -torch.inf).gather(1, columns)

    # A sentence continues while its best hypothesis could still beat the worst of the n best. Log-probabilities are
    # negative, so the length penalty at the limit, which is the largest, gives the best possible score.
    n_best = [finished[sentence] for sentence in beam.sentences]
    worst = [best[-1].score if len(best) == config.n_best else -torch.inf for best in n_best]
    can_win = log_probs[:, 0] / beam.max_penalties > torch.tensor(worst, dtype=torch.float64)
    is_patient = num_finished < (max(config.patience * config.beam, config.n_best) if config.patience else torch.inf)
    active = (is_patient & can_win).nonzero()[:, 0]  # indices into B

    # The model has a row for each hypothesis; the rows of a sentence are adjacent.
    columns = columns[active]
    rows = active[:, None] * beam.log_probs.size(1) + candidates.parents[active].gather(1, columns)
    tokens = candidates.tokens[active].gather(1, columns)
    token_log_probs = candidates.token_log_probs[active].gather(1, columns)
    following = Beam(
        [beam.sentences[index] for index in active.tolist()],
        beam.limits[active],
        num_finished[active],
        beam.max_penalties[active],
        log_probs[active],
        torch.cat([beam.token_log_probs.flatten(0, 1)[rows], token_log_probs[:, :, None]], dim=2),
        torch.cat([beam.tokens.flatten(0, 1)[rows], tokens[:, :, None]], dim=2),
    )
    return following, rows.flatten()


def check_beam(beam: int, vocabulary: int, device: torch.device) -> None:
    """Check that a beam is at most as large as the vocabulary, and that a search with it fits into memory."""
    if beam > vocabulary:
        raise InputError(f"a beam size of {beam:,} is more than the {vocabulary:,} tokens of the vocabulary; lower it")
    needed = needed_memory(beam, vocabulary)
    free = (torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()) / 1e9
    if needed > free:
        raise InputError(
            f"a beam size of {beam:,} needs about {needed:,.1f} GB of memory per sentence, but only {free:,.1f} GB are "
            "free; lower it"
        )


def needed_memory(beam: int, vocabulary: int) -> float:
    """Estimate the memory of a beam search in GB per sentence, from measurements with beams of 100 to 2,000."""
    return beam * (BYTES_PER_TOKEN * vocabulary + BYTES_PER_PAIR * beam) / 1e9
