"""Log of a beam search: all candidates of each step, why each was kept or dropped, and the path of a reference.

The log is made from the callback of beam search (`heedful.search.beam.Watch`). It is complete: the hypotheses can be
found again from the log without the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import torch

from heedful.architectures.model import DecodingState, evaluating
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.inspector.capture.sources import Input, Writer, Writing, writing
from heedful.search.beam import Candidates, Live, beam_search
from heedful.search.hypothesis import PENALTIES, Hypothesis, hypothesis
from heedful.text.tokenizer import EOS


class Fate(StrEnum):
    """Outcome of a candidate in beam search: kept, finished, or the reason why it was dropped."""

    FORCED = "forced"  # part of the given prefix, not searched for
    KEPT = "kept"  # in the beam of the next step
    CUT = "cut"  # the beam is full of better candidates
    FINISHED = "finished"  # ended, and is one of the n best hypotheses
    BEATEN = "beaten"  # ended, but n finished hypotheses have higher scores
    OUTRANKED = "outranked"  # ended, but its rank in this step is beyond the beam size
    STOPPED = "stopped"  # in the beam when the search stopped
    FORBIDDEN = "forbidden"  # has probability 0


GOING = (Fate.FORCED, Fate.KEPT, Fate.STOPPED)
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
        return hypothesis([node.token for node in nodes], [node.log_prob for node in nodes], self.config)

    def replay(self) -> list[Hypothesis]:
        """Hypotheses that the beam search found, rebuilt from its log without the model, best first."""
        finished = [self.hypothesis(number) for number, node in enumerate(self.nodes) if node.fate is Fate.FINISHED]
        return sorted(finished, key=lambda h: -h.score)

    def threshold(self, step: int) -> float:
        """Lowest log-probability among the candidates of a step that stayed in the beam; -inf if none did."""
        return min((n.total for n in self.nodes if n.step == step and n.fate in GOING), default=-torch.inf)


def logged(state: DecodingState, limit: int, config: DecodeConfig, prefix: Sequence[int] = ()) -> BeamLog:
    """Run beam search for one sentence and log every candidate.

    Args:
        state: decoding state of the model with one row, before the first step.
        limit: maximum number of output tokens.
        config: settings of the search; beam size 1 finds the output of greedy search.
        prefix: token ids that the output has to begin with.
    """
    live = after_prefix(state, prefix, limit, config)
    nodes = forced_nodes(prefix, live.scores[0, 0].tolist(), config)
    lanes: list[int | None] = [len(nodes) - 1 if nodes else None]  # the node of each hypothesis in the beam

    def watch(before: Live, candidates: Candidates, after: Live) -> None:
        step = before.tokens.size(2)
        penalty = PENALTIES[config.penalty](step, config.alpha)
        survivors: list[int | None] = []
        columns = (candidates.parents, candidates.tokens, candidates.scores, candidates.totals, candidates.end)
        rows = zip(*(column[0].tolist() for column in columns), strict=True)
        for rank, (parent, token, log_prob, total, end) in enumerate(rows):
            if parent >= len(lanes) or before.totals[0, parent] == -torch.inf:
                continue  # an empty slot of the beam
            fate = Fate.FINISHED if rank < config.beam else Fate.OUTRANKED
            if total == -torch.inf:
                fate = Fate.FORBIDDEN
            elif not end and len(survivors) == config.beam:
                fate = Fate.CUT
            elif not end:
                fate = Fate.KEPT if after.sentences else Fate.STOPPED
                survivors.append(len(nodes))
            nodes.append(Node(step, lanes[parent], token, log_prob, total, total / penalty, rank, end, fate))
        lanes[:] = survivors

    hypotheses = beam_search(state, [limit], config, watch, live)[0]

    # Only the search knows which n of the finished candidates are the best.
    log = BeamLog(config, nodes)
    best = [(h.tokens, h.complete) for h in hypotheses]
    for number, node in enumerate(nodes):
        if node.fate is Fate.FINISHED:
            ended = log.hypothesis(number)
            if (ended.tokens, ended.complete) not in best:
                nodes[number] = replace(node, fate=Fate.BEATEN)
    return log


def after_prefix(state: DecodingState, prefix: Sequence[int], limit: int, config: DecodeConfig) -> Live:
    """Start state of a beam search after a given prefix, of which the decoder has read all but the last token."""
    log_probs = forced(state, prefix)
    start = Live.begin(state.begin.cpu(), [limit], config)
    scores = torch.tensor([[log_probs]], dtype=torch.float64)
    tokens = torch.cat([start.tokens, torch.tensor([[list(prefix)]], dtype=torch.long)], dim=2)
    return replace(start, totals=scores.sum(2), scores=scores, tokens=tokens)


def forced(state: DecodingState, tokens: Sequence[int]) -> list[float]:
    """Log-probability of each given token after the tokens before it; the last token is not fed to the decoder."""
    fed, log_probs = state.begin, []
    for token in tokens:
        log_probs.append(float(state.step(fed).float().log_softmax(-1)[0, token]))
        fed = torch.full_like(fed, token)
    return log_probs


def forced_nodes(prefix: Sequence[int], log_probs: Sequence[float], config: DecodeConfig) -> list[Node]:
    """Log entries for a given prefix of a beam search: one candidate per step."""
    nodes, total = [], 0.0
    for step, (token, log_prob) in enumerate(zip(prefix, log_probs, strict=True), start=1):
        total += log_prob
        score = total / PENALTIES[config.penalty](step, config.alpha)
        parent = step - 2 if nodes else None
        nodes.append(Node(step, parent, token, log_prob, total, score, rank=0, end=False, fate=Fate.FORCED))
    return nodes


@dataclass(frozen=True)
class ReferencePath:
    """Reference translation followed through a beam search: its score, and the step where the search lost it.

    A search error is a lost reference that the model scores higher than all hypotheses that the search found, so that
    a larger beam could have found it. Otherwise the search found the reference, the model itself prefers another output
    (Stahlberg & Byrne 2019), or the reference lacks the given prefix.
    """

    tokens: list[int]  # with <eos>
    log_probs: list[float]  # of each token given the tokens before it
    hypothesis: Hypothesis  # the reference, scored like an output of the search
    lost: int | None  # first step, from 1, without the reference in the beam; None: it was never lost
    search_error: bool


def follow_reference(log: BeamLog, state: DecodingState, tokens: list[int], limit: int) -> ReferencePath:
    """Follow a reference translation through the log of a beam search, and score it with the model.

    Args:
        log: log of the beam search.
        state: decoding state of the model with one row, before the first step.
        tokens: token ids of the reference, with <eos>.
        limit: the most tokens that the search writes, <eos> counted; no beam finds a longer reference.
    """
    log_probs = forced(state, tokens)
    reference = hypothesis(tokens, log_probs, log.config)
    best = max((h.score for h in log.replay()), default=-torch.inf)
    lost = lost_at(log, tokens)
    # A reference that lacks the prefix, or is too long, is out of reach of any beam.
    prefix = sum(node.fate is Fate.FORCED for node in log.nodes)
    findable = lost is not None and lost > prefix and len(tokens) <= limit
    return ReferencePath(tokens, log_probs, reference, lost, findable and reference.score > best)


def lost_at(log: BeamLog, tokens: list[int]) -> int | None:
    """First step of a beam search at which no hypothesis begins with these tokens; None if all tokens were kept."""
    place = None
    for step, token in enumerate(tokens, start=1):
        candidates = (
            number
            for number, node in enumerate(log.nodes)
            if node.step == step and node.parent == place and node.token == token and node.fate in GOING + ENDED
        )
        place = next(candidates, None)
        if place is None:
            return step
    return None


def explain_search(
    subject: Writer, value: Input, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, ReferencePath | None]:
    """Translate or caption, and return the log of the beam search and the path of a reference through the search.

    Args:
        subject: the translator, captioner or transcriber, with model, tokenizers and search settings.
        value: the sentence; or the bytes of the file of an image or audio, its path, or an array.
        reference: reference output to follow through the search.
        prefix: text that the output has to begin with.

    Raises:
        InputError: the sentence is too long, the file cannot be read, or the prefix leaves no room for a token.
    """
    return search_log(writing(subject, value), reference, prefix)


@torch.inference_mode()
def search_log(
    prepared: Writing, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, ReferencePath | None]:
    """Log the beam search over a prepared source, and the path of a reference; as `explain_search`."""
    tokenizer, limit = prepared.tokenizer, prepared.limit
    prefix_ids = tokenizer.encode(prefix)
    if len(prefix_ids) >= limit:
        raise InputError(
            f"the beginning has {len(prefix_ids)} tokens, and the whole may have {limit}; give fewer words"
        )
    with evaluating(prepared.model):
        log = logged(prepared.begin(), limit, prepared.config, prefix_ids)
        if not log.replay():
            raise InputError(f"the model never writes what begins with {prefix!r}; give another beginning")
        if reference is None:
            return log, None
        path = follow_reference(log, prepared.begin(), [*tokenizer.encode(reference), EOS], limit)
    if -torch.inf in path.log_probs:
        token = tokenizer.pieces([path.tokens[path.log_probs.index(-torch.inf)]])[0]
        raise InputError(f"the reference has {token!r}, which the model never writes there; leave it out")
    return log, path
