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
from heedful.inspector.capture.sources import Given, Writer, Writing, writing
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
    """Candidate in the log of a beam search: a hypothesis of the beam extended by one token.

    Attributes:
        step: number of tokens in the candidate.
        parent: index in the log of the candidate that this one extends; None for a first token.
        token: id of the last token.
        log_prob: log-probability of the last token.
        total: log-probability of all tokens of the candidate.
        score: score with length penalty, as if the candidate ended here.
        rank: rank among the candidates of the step, from 0.
        end: True if the candidate ends, with <eos> or at the length limit.
        fate: outcome of the candidate.
    """

    step: int
    parent: int | None
    token: int
    log_prob: float
    total: float
    score: float
    rank: int
    end: bool
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
        found = [self.hypothesis(number) for number, node in enumerate(self.nodes) if node.fate is Fate.FINISHED]
        return sorted(found, key=lambda h: -h.score)

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
    lanes: list[int | None] = [len(nodes) - 1 if nodes else None]

    def watch(before: Live, candidates: Candidates, after: Live) -> None:
        step = before.tokens.size(2)
        penalty = PENALTIES[config.penalty](step, config.alpha)
        going: list[int | None] = []
        columns = (candidates.parents, candidates.tokens, candidates.scores, candidates.totals, candidates.end)
        for rank, (parent, token, log_prob, total, end) in enumerate(
            zip(*(c[0].tolist() for c in columns), strict=True)
        ):
            if parent >= len(lanes) or before.totals[0, parent] == -torch.inf:
                continue  # an empty slot of the beam
            fate = Fate.FINISHED if rank < config.beam else Fate.OUTRANKED
            if total == -torch.inf:
                fate = Fate.FORBIDDEN
            elif not end and len(going) == config.beam:
                fate = Fate.CUT
            elif not end:
                fate = Fate.KEPT if after.sentences else Fate.STOPPED
                going.append(len(nodes))
            nodes.append(Node(step, lanes[parent], token, log_prob, total, total / penalty, rank, end, fate))
        lanes[:] = going

    found = beam_search(state, [limit], config, watch, live)[0]
    log = BeamLog(config, nodes)
    best = [(h.tokens, h.complete) for h in found]
    for number, node in enumerate(nodes):
        if node.fate is Fate.FINISHED:
            ended = log.hypothesis(number)
            if (ended.tokens, ended.complete) not in best:
                nodes[number] = replace(node, fate=Fate.BEATEN)
    return log


def after_prefix(state: DecodingState, prefix: Sequence[int], limit: int, config: DecodeConfig) -> Live:
    """Start state of a beam search after a given prefix, of which the decoder has read all but the last token."""
    log_probs = forced(state, prefix)
    nothing = Live.begin(state.begin.cpu(), [limit], config)
    scores = torch.tensor([[log_probs]], dtype=torch.float64)
    tokens = torch.cat([nothing.tokens, torch.tensor([[list(prefix)]], dtype=torch.long)], dim=2)
    return replace(nothing, totals=scores.sum(2), scores=scores, tokens=tokens)


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
        nodes.append(Node(step, step - 2 if nodes else None, token, log_prob, total, score, 0, False, Fate.FORCED))
    return nodes


@dataclass(frozen=True)
class Ghost:
    """Reference translation followed through a beam search: its score, and the step where the search lost it.

    Attributes:
        tokens: token ids of the reference, with <eos>.
        log_probs: log-probability of each token given the tokens before it.
        hypothesis: the reference, scored like an output of the search.
        lost: first step, from 1, without the reference in the beam; None: the search kept the reference to its end.
        search_error: True if the search lost the reference although the model scores it higher than all hypotheses
            found, so that a larger beam could have found the reference. False: the search found the reference, the
            model itself prefers another output (Stahlberg & Byrne 2019), or the reference lacks the given prefix.
    """

    tokens: list[int]
    log_probs: list[float]
    hypothesis: Hypothesis
    lost: int | None
    search_error: bool


def ghost(log: BeamLog, state: DecodingState, tokens: list[int], limit: int) -> Ghost:
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
    given = sum(node.fate is Fate.FORCED for node in log.nodes)
    lost = lost_at(log, tokens)
    findable = lost is not None and lost > given and len(tokens) <= limit
    return Ghost(tokens, log_probs, reference, lost, findable and reference.score > best)


def lost_at(log: BeamLog, tokens: list[int]) -> int | None:
    """First step of a beam search at which no hypothesis begins with these tokens; None if all tokens were kept."""
    place = None
    for step, token in enumerate(tokens, start=1):
        here = (
            number
            for number, node in enumerate(log.nodes)
            if node.step == step and node.parent == place and node.token == token and node.fate in GOING + ENDED
        )
        place = next(here, None)
        if place is None:
            return step
    return None


def explain_search(
    subject: Writer, given: Given, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, Ghost | None]:
    """Translate or caption, and return the log of the beam search and the path of a reference through the search.

    Args:
        subject: the translator, captioner or transcriber, with model, tokenizers and search settings.
        given: the sentence; or the bytes of the file of a picture or sound, its path, or an array.
        reference: reference output to follow through the search.
        prefix: text that the output has to begin with.

    Raises:
        InputError: the sentence is too long, the file cannot be read, or the prefix leaves no room for a token.
    """
    return search_log(writing(subject, given), reference, prefix)


@torch.inference_mode()
def search_log(asked: Writing, reference: str | None = None, prefix: str = "") -> tuple[BeamLog, Ghost | None]:
    """Log the beam search about a source that is prepared, and the path of a reference; as `explain_search`.

    Raises:
        InputError: the prefix leaves no room for a token, or the model never writes it, or the reference.
    """
    begun = asked.tokenizer.encode(prefix)
    if len(begun) >= asked.limit:
        raise InputError(
            f"the beginning has {len(begun)} tokens, and the whole may have {asked.limit}; give fewer words"
        )
    with evaluating(asked.model):
        log = logged(asked.begin(), asked.limit, asked.config, begun)
        if not log.replay():
            raise InputError(f"the model never writes what begins with {prefix!r}; give another beginning")
        if reference is None:
            return log, None
        followed = ghost(log, asked.begin(), [*asked.tokenizer.encode(reference), EOS], asked.limit)
    if -torch.inf in followed.log_probs:
        token = asked.tokenizer.pieces([followed.tokens[followed.log_probs.index(-torch.inf)]])[0]
        raise InputError(f"the reference has {token!r}, which the model never writes there; leave it out")
    return log, followed
