"""Search for outputs that satisfy constraints: a beam search whose beam is divided by progress (Post & Vilar 2018).

A hypothesis with more tokens of the required terms has a lower log-probability, and would leave an ordinary beam before
its terms are complete. Here, the hypotheses of a sentence compete only with those that have made the same progress:
the beam is shared equally by the different degrees of progress. The next tokens of missing terms are candidates at
every step, however improbable they are.

Shapes: B sentences still being searched, W rows of each in the model, R = B x W, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.architectures.model import DecodingState, SourceToTarget, evaluating
from heedful.config.schema import DecodeConfig
from heedful.machine.process import map_on_cores
from heedful.search.constraints import Guide, Place, ngram_ends, text_of
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.search.source_to_target import padded_rows
from heedful.search.top_k import most_probable, next_log_probs
from heedful.text.pipeline import EOS
from heedful.text.sequences import batches

MIN_BEAM = 4  # also for greedy search, which would often be left without a good way to write a term
SPARE_TOKENS = 8  # looked at in addition to those that the beam needs, because some may lead to forbidden text


@dataclass(frozen=True)
class Partial:
    """A live hypothesis: its tokens with log-probabilities, the bytes that they write, and its row in the model."""

    tokens: list[int]
    token_scores: list[float]
    log_prob: float
    output: bytes
    place: Place
    row: int


@dataclass(frozen=True)
class Candidate:
    """A live hypothesis with a next token."""

    parent: Partial
    token: int
    token_score: float
    log_prob: float
    output: bytes
    place: Place
    ends: bool


@dataclass
class SentenceSearch:
    """Search for one sentence: its live hypotheses, best first, and its `n_best` finished ones."""

    guide: Guide
    limit: int
    config: DecodeConfig
    row: int  # in the model before the first step
    live: list[Partial] = field(default_factory=list)
    finished: list[Hypothesis] = field(default_factory=list)
    num_finished: int = 0

    def __post_init__(self) -> None:
        self.beam = max(self.config.beam, MIN_BEAM) + len(self.guide.terms)
        self.live = [Partial([], [], 0.0, b"", self.guide.place(b"", ""), self.row)]

    def exclude(self, partial: Partial, log_probs: Float[Tensor, " V"]) -> None:
        """Exclude, in place, the next tokens of a hypothesis that its constraints or the settings exclude."""
        if partial.place.allowed is not None:
            allowed = torch.zeros_like(log_probs, dtype=torch.bool)
            allowed[partial.place.allowed] = True
            log_probs[~allowed] = -torch.inf
        if partial.place.must_continue:
            log_probs[torch.tensor(self.guide.index.continuing, device=log_probs.device).logical_not()] = -torch.inf
        if not partial.place.complete or len(partial.tokens) < self.config.min_tokens:
            log_probs[EOS] = -torch.inf
        if size := self.config.no_repeat_ngram:
            log_probs[ngram_ends(partial.tokens, size)] = -torch.inf

    def candidates(
        self, partial: Partial, values: list[float], tokens: list[int], log_probs: Float[Tensor, " V"]
    ) -> Iterator[Candidate]:
        """Yield the best continuations of a hypothesis that its constraints allow, and the next tokens of its terms.

        `values` and `tokens` are the most probable tokens; `log_probs` has those of all tokens.
        """
        count, seen = 0, set()
        forced = [*partial.place.forced, *([EOS] if partial.place.complete else [])]
        extra = [token for token in dict.fromkeys(forced) if token not in tokens]
        values, tokens = [*values, *log_probs[extra].tolist()], [*tokens, *extra]
        for value, token in zip(values, tokens, strict=True):
            if value == -torch.inf or (count > self.beam and token not in forced):
                continue
            seen.add(token)
            if candidate := self.candidate(partial, token, value):
                count += 1
                yield candidate
        # Rarely, most of the probable tokens lead to forbidden text. Then all tokens are considered.
        if count <= self.beam and len(tokens) < len(log_probs):
            rest, order = (x.tolist() for x in log_probs.double().sort(descending=True, stable=True))
            for value, token in zip(rest, order, strict=True):
                if value == -torch.inf or count > self.beam:
                    return
                if token not in seen and (candidate := self.candidate(partial, token, value)):
                    count += 1
                    yield candidate

    def candidate(self, partial: Partial, token: int, score: float) -> Candidate | None:
        """Return a hypothesis with a next token; None if it contains something forbidden or ends incomplete."""
        log_prob = partial.log_prob + score
        if token == EOS:
            return Candidate(partial, token, score, log_prob, partial.output, partial.place, True)
        output = partial.output + self.guide.index.spelling[token]
        text = text_of(output)
        if not self.guide.allows(text):
            return None
        place = self.guide.place(output, text)
        ends = len(partial.tokens) + 1 >= self.limit
        return Candidate(partial, token, score, log_prob, output, place, ends) if place.complete or not ends else None

    def advance(self, candidates: list[Candidate]) -> None:
        """Finish the candidates that end, and choose the live hypotheses of the next step."""
        candidates = sorted(candidates, key=lambda each: -each.log_prob)  # stable: ties keep the order of parents
        self.finish(candidates)
        following = [each for each in candidates if not each.ends]
        survivors = shared(following, self.beam)
        # One hypothesis always has room for all that is missing: its next forced tokens keep it so.
        if not any(map(self.has_room, survivors)) and (safe := next(filter(self.has_room, following), None)):
            survivors[-1] = safe
        survivors.sort(key=lambda each: -each.log_prob)
        self.live = [
            Partial(
                [*each.parent.tokens, each.token],
                [*each.parent.token_scores, each.token_score],
                each.log_prob,
                each.output,
                each.place,
                each.parent.row,
            )
            for each in survivors
        ]
        if self.is_done():
            self.live = []

    def finish(self, candidates: list[Candidate]) -> None:
        """Keep the best outputs among candidates that end.

        As in other searches, an output has to be among the best candidates, here those with complete constraints.
        """
        complete = [each for each in candidates if each.parent.place.complete or each.ends]
        for rank, each in enumerate(complete):
            if not each.ends or (rank >= self.beam and self.finished):
                continue
            tokens, scores = [*each.parent.tokens, each.token], [*each.parent.token_scores, each.token_score]
            hypothesis = Hypothesis.scored(tokens, scores, self.config)
            # Also the end of a text, or an incomplete character there, may turn it into one that is not allowed.
            if self.guide.are_met(hypothesis.tokens):
                self.num_finished += rank < self.beam
                self.finished.append(hypothesis)
        self.finished = sorted(self.finished, key=lambda each: -each.score)[: self.config.n_best]

    def has_room(self, candidate: Candidate) -> bool:
        """Return True if what is missing, and <eos>, fit into the limit."""
        length = len(candidate.parent.tokens) + 1
        return not candidate.place.must_continue and length + self.guide.needed(candidate.output) + 1 <= self.limit

    def is_done(self) -> bool:
        """Return True if no live hypothesis could change the result, or if enough hypotheses are finished."""
        config = self.config
        if not self.live or len(self.finished) < config.n_best:
            return not self.live
        best = max(each.log_prob for each in self.live) / length_penalty(self.limit, config)
        enough = max(config.patience * self.beam, config.n_best)
        return best <= self.finished[-1].score or (config.patience > 0 and self.num_finished >= enough)


def shared(candidates: Sequence[Candidate], size: int) -> list[Candidate]:
    """Choose `size` candidates, in turn the best of those with each degree of progress, most progress first.

    Candidates that end with a forbidden word, which few tokens can still make a longer one, compete only with each
    other: they are often the most probable ones, and would leave no room for other words.
    """
    banks: defaultdict[tuple[bool, int], list[Candidate]] = defaultdict(list)
    for each in candidates:
        banks[each.place.must_continue, -each.place.progress].append(each)
    turns = (((turn, *bank), each) for bank, members in banks.items() for turn, each in enumerate(members[:size]))
    return [each for _, each in sorted(turns, key=itemgetter(0))[:size]]


def constrained_search(
    state: DecodingState, limits: Sequence[int], config: DecodeConfig, guides: Sequence[Guide]
) -> list[list[Hypothesis]]:
    """Find the `n_best` outputs of each sentence that satisfy its constraints, best first; none if none is found.

    The result for a sentence never depends on the other sentences. Scores are those of the model, as in other searches.
    The beam has at least `MIN_BEAM` hypotheses, and one more for each term.

    Args:
        state: The decoding state of the model, one row for each sentence, before any token is fed.
        limits: The maximum number of tokens of each output, including <eos>.
        config: The search settings.
        guides: The constraints of each sentence.
    """
    device = state.begin.device
    pairs = zip(guides, limits, strict=True)
    searches = [SentenceSearch(guide, limit, config, number) for number, (guide, limit) in enumerate(pairs)]
    active, inputs = searches, state.begin
    while active:
        log_probs = next_log_probs(state.step(inputs))  # (R, V)
        rows = [(each, partial) for each in active for partial in each.live]
        for each, partial in rows:
            each.exclude(partial, log_probs[partial.row])
        count = max(each.beam for each in active) + 1 + SPARE_TOKENS
        values, tokens = (x.tolist() for x in most_probable(log_probs, count))
        for each in active:
            size = each.beam + 1 + SPARE_TOKENS  # whatever the other sentences need
            each.advance(
                [
                    candidate
                    for partial in each.live
                    for candidate in each.candidates(
                        partial, values[partial.row][:size], tokens[partial.row][:size], log_probs[partial.row]
                    )
                ]
            )
        active = [each for each in active if each.live]
        if not active:
            break
        # The model has the same number of rows for each sentence: those with fewer hypotheses repeat their last one.
        width = max(len(each.live) for each in active)
        lanes = [[*each.live, *[each.live[-1]] * (width - len(each.live))] for each in active]
        state.select(torch.tensor([partial.row for each in lanes for partial in each], device=device))
        inputs = torch.tensor([partial.tokens[-1] for each in lanes for partial in each], device=device)
        for number, each in enumerate(active):
            each.live = [replace(partial, row=number * width + lane) for lane, partial in enumerate(each.live)]
    return [each.finished for each in searches]


def search_constrained_rows(
    model: SourceToTarget,
    rows: Sequence[list[int]],
    limits: Sequence[int],
    config: DecodeConfig,
    guides: Sequence[Guide],
) -> list[list[Hypothesis]]:
    """Find the `n_best` outputs for each row of token ids without <eos> that satisfy its constraints, best first.

    A row has no outputs if it is empty, or if none is found that satisfies its constraints. Any shortlist is ignored.
    """
    device = next(model.parameters()).device
    outputs: list[list[Hypothesis]] = [[] for _ in rows]
    groups = list(batches(rows, config.batch_tokens // max(config.beam, MIN_BEAM)))

    # Inference mode applies to one thread: each thread of `map_on_cores` enters it.
    @torch.inference_mode()
    def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
        source, padding_mask = padded_rows([[*rows[i], EOS] for i in batch], device)
        state: DecodingState = model.start(source, padding_mask)
        return constrained_search(state, [limits[i] for i in batch], config, [guides[i] for i in batch])

    with evaluating(model):
        for batch, hypotheses in zip(groups, map_on_cores(search_batch, groups, device), strict=True):
            for index, best in zip(batch, hypotheses, strict=True):
                outputs[index] = best
    return outputs
