"""Log of a beam search: all candidates of each step, why each was kept or dropped, and the path of a reference.

A callback of beam search (`heedful.search.beam.Watch`) writes the log. The log is complete: the hypotheses can be
rebuilt from it without the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import torch

from heedful.architectures.model import DecodingState, evaluating
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.inspector.capture.sources import Input, Writer, Writing, writing
from heedful.search.beam import Beam, Candidates, beam_search
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.text.tokenizer import EOS


class Fate(StrEnum):
    """Outcome of a candidate in beam search: kept, finished, or the reason why it was dropped."""

    FORCED = "forced"  # part of the given prefix
    KEPT = "kept"  # in the beam of the next step
    CUT = "cut"  # the beam is full of better candidates
    FINISHED = "finished"  # ended, and is one of the n best hypotheses
    BEATEN = "beaten"  # ended, but n finished hypotheses have higher scores
    OUTRANKED = "outranked"  # ended, but its rank in this step is beyond the beam size
    STOPPED = "stopped"  # in the beam when the search stopped
    FORBIDDEN = "forbidden"  # has probability 0


IN_BEAM = (Fate.FORCED, Fate.KEPT, Fate.STOPPED)
ENDED = (Fate.FINISHED, Fate.BEATEN)


@dataclass(frozen=True)
class Node:
    """Candidate in the log of a beam search: a hypothesis of the beam extended by one token."""

    step: int  # number of tokens in the candidate
    parent: int | None  # index in the log of the candidate that this one extends; None for a first token
    token: int
    log_prob: float  # of the last token
    total: float  # log-probability of all tokens
    score: float  # with length penalty, as if the candidate ended here
    rank: int  # among the candidates of the step, from 0
    end: bool  # True if the candidate ends, with <eos> or at the length limit
    fate: Fate


@dataclass(frozen=True)
class BeamLog:
    """Log of a beam search for one sentence: all candidates, ordered by step and rank."""

    config: DecodeConfig
    nodes: list[Node]

    def path(self, number: int | None) -> Iterator[Node]:
        """Yield a candidate of the beam search and all its predecessors, back to the first token."""
        while number is not None:
            yield self.nodes[number]
            number = self.nodes[number].parent

    def hypothesis(self, number: int) -> Hypothesis:
        """Build the hypothesis that ends with a candidate of the beam search."""
        nodes = list(self.path(number))[::-1]
        return Hypothesis.scored([node.token for node in nodes], [node.log_prob for node in nodes], self.config)

    def replay(self) -> list[Hypothesis]:
        """Rebuild the hypotheses of the beam search from its log without the model, best first."""
        finished = [self.hypothesis(number) for number, node in enumerate(self.nodes) if node.fate is Fate.FINISHED]
        # The sort is stable, so equal scores stay in the order in which they finished, as in the search.
        return sorted(finished, key=lambda h: -h.score)

    def threshold(self, step: int) -> float:
        """Return the lowest log-probability among the candidates of a step that stayed in the beam; -inf if none."""
        return min((n.total for n in self.nodes if n.step == step and n.fate in IN_BEAM), default=-torch.inf)


def logged(state: DecodingState, limit: int, config: DecodeConfig, prefix: Sequence[int] = ()) -> BeamLog:
    """Run beam search for one sentence and log every candidate.

    Args:
        state: Decoding state of the model with one row, before the first step.
        limit: Maximum number of output tokens.
        config: Search settings; beam size 1 finds the output of greedy search.
        prefix: Token ids of the required beginning of the output.
    """
    beam = after_prefix(state, prefix, limit, config)
    nodes, total = [], 0.0
    # The prefix is a chain of nodes without alternatives.
    for step, (token, log_prob) in enumerate(zip(prefix, beam.token_log_probs[0, 0].tolist(), strict=True), start=1):
        total += log_prob
        score = total / length_penalty(step, config)
        parent = step - 2 if nodes else None
        nodes.append(Node(step, parent, token, log_prob, total, score, rank=0, end=False, fate=Fate.FORCED))
    lanes: list[int | None] = [len(nodes) - 1 if nodes else None]  # the node of each hypothesis in the beam

    def watch(before: Beam, candidates: Candidates, after: Beam) -> None:
        step = before.tokens.size(2)
        penalty = length_penalty(step, config)
        survivors: list[int | None] = []
        columns = (
            candidates.parents,
            candidates.tokens,
            candidates.token_log_probs,
            candidates.log_probs,
            candidates.end,
        )
        rows = zip(*(column[0].tolist() for column in columns), strict=True)
        for rank, (parent, token, log_prob, total, end) in enumerate(rows):
            if parent >= len(lanes) or before.log_probs[0, parent] == -torch.inf:
                continue  # an empty slot in the beam
            # As in `finish` and `advance`: candidates that end count only among the first `beam` ranks, and the best
            # `beam` of the others continue.
            fate = Fate.FINISHED if rank < config.beam else Fate.OUTRANKED
            if total == -torch.inf:
                fate = Fate.FORBIDDEN
            elif not end and len(survivors) == config.beam:
                fate = Fate.CUT
            elif not end:
                # A beam without sentences ends the search: its last candidates are never extended.
                fate = Fate.KEPT if after.sentences else Fate.STOPPED
                survivors.append(len(nodes))
            nodes.append(Node(step, lanes[parent], token, log_prob, total, total / penalty, rank, end, fate))
        lanes[:] = survivors

    hypotheses = beam_search(state, [limit], config, watch, beam)[0]

    # The search returns the best n of the finished candidates; the others are beaten.
    log = BeamLog(config, nodes)
    best = [(h.tokens, h.complete) for h in hypotheses]
    for number, node in enumerate(nodes):
        if node.fate is Fate.FINISHED:
            finished = log.hypothesis(number)
            if (finished.tokens, finished.complete) not in best:
                nodes[number] = replace(node, fate=Fate.BEATEN)
    return log


def after_prefix(state: DecodingState, prefix: Sequence[int], limit: int, config: DecodeConfig) -> Beam:
    """Return the start of a beam search after a given prefix, of which the decoder has read all but the last token."""
    log_probs = teacher_forced_scores(state, prefix)
    start = Beam.start(state.begin.cpu(), [limit], config)
    # One sentence with one hypothesis: (1, 1, T), in float64 as in the search.
    scores = torch.tensor([[log_probs]], dtype=torch.float64)
    tokens = torch.cat([start.tokens, torch.tensor([[list(prefix)]], dtype=torch.long)], dim=2)
    return replace(start, log_probs=scores.sum(2), token_log_probs=scores, tokens=tokens)


def teacher_forced_scores(state: DecodingState, tokens: Sequence[int]) -> list[float]:
    """Compute the log-probability of each token given the earlier ones; the last token is not fed to the decoder."""
    fed, log_probs = state.begin, []
    for token in tokens:
        log_probs.append(float(state.step(fed).float().log_softmax(-1)[0, token]))
        fed = torch.full_like(fed, token)
    return log_probs


@dataclass(frozen=True)
class ReferencePath:
    """Reference translation followed through a beam search: its score, and the step where the search lost it.

    A search error is a lost reference that the model scores higher than all hypotheses of the search, so that a larger
    beam could have found it. Otherwise the search found the reference, the model itself prefers another output
    (Stahlberg & Byrne 2019), or the reference is too long or does not begin with the given prefix.
    """

    tokens: list[int]  # with <eos>
    log_probs: list[float]  # of each token given the tokens before it
    hypothesis: Hypothesis  # the reference, scored like an output of the search
    lost: int | None  # first step, from 1, without the reference in the beam; None if it was never lost
    search_error: bool


def follow_reference(log: BeamLog, state: DecodingState, tokens: list[int], limit: int) -> ReferencePath:
    """Follow a reference translation through the log of a beam search, and score it with the model.

    Args:
        log: Log of the beam search.
        state: Decoding state of the model with one row, before the first step.
        tokens: Token ids of the reference, with <eos>.
        limit: Maximum number of tokens in the search, including <eos>; a longer reference cannot be found.
    """
    log_probs = teacher_forced_scores(state, tokens)
    reference = Hypothesis.scored(tokens, log_probs, log.config)
    best = max((h.score for h in log.replay()), default=-torch.inf)
    lost = lost_at(log, tokens)
    # No beam can find a reference that does not begin with the prefix, or that is too long.
    prefix = sum(node.fate is Fate.FORCED for node in log.nodes)
    findable = lost is not None and lost > prefix and len(tokens) <= limit
    return ReferencePath(tokens, log_probs, reference, lost, findable and reference.score > best)


def lost_at(log: BeamLog, tokens: list[int]) -> int | None:
    """Return the first step, from 1, at which a beam search lost a sequence of tokens; None if it never did."""
    parent = None
    for step, token in enumerate(tokens, start=1):
        candidates = (
            number
            for number, node in enumerate(log.nodes)
            if node.step == step and node.parent == parent and node.token == token and node.fate in IN_BEAM + ENDED
        )
        parent = next(candidates, None)
        if parent is None:
            return step
    return None


def explain_search(
    subject: Writer, value: Input, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, ReferencePath | None]:
    """Translate, caption or transcribe; return the log of the beam search and the path of a reference through it.

    Args:
        subject: The translator, captioner or transcriber, with model, tokenizers and search settings.
        value: The sentence; or the bytes of an image or audio file, its path, or an array.
        reference: Reference output to follow through the search.
        prefix: Required beginning of the output.
    """
    return search_log(writing(subject, value), reference, prefix)


@torch.inference_mode()
def search_log(
    prepared: Writing, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, ReferencePath | None]:
    """Log the beam search over a prepared source, and the path of a reference, as `explain_search` does."""
    tokenizer, limit = prepared.tokenizer, prepared.limit
    prefix_ids = tokenizer.encode(prefix)
    if len(prefix_ids) >= limit:
        raise InputError(
            f"the required beginning has {len(prefix_ids)} tokens, but an output has at most {limit}; give fewer words"
        )
    with evaluating(prepared.model):
        log = logged(prepared.begin(), limit, prepared.config, prefix_ids)
        if not log.replay():
            raise InputError(f"the model never writes an output that begins with {prefix!r}; give another beginning")
        if reference is None:
            return log, None
        # A new decoding state, because the search has changed the first.
        path = follow_reference(log, prepared.begin(), [*tokenizer.encode(reference), EOS], limit)
    if -torch.inf in path.log_probs:
        token = tokenizer.pieces([path.tokens[path.log_probs.index(-torch.inf)]])[0]
        raise InputError(f"the reference contains {token!r}, which the model never writes there; remove it")
    return log, path
