"""Why a search found what it found: every candidate of every step, and what became of it.

What beam search tells its watcher (`heedful.decode.beam.Watch`) is enough to say why each candidate died, and to find
the same hypotheses again without the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import torch

from heedful.config.schema import DecodeConfig
from heedful.decode import beam
from heedful.decode.hypothesis import PENALTIES, Hypothesis, hypothesis
from heedful.decode.translator import Translator, evaluating
from heedful.errors import InputError
from heedful.models.decoding_state import DecodingState
from heedful.text.tokenizer import EOS


class Fate(StrEnum):
    """What became of a candidate."""

    FORCED = "forced"  # it was given, not searched for
    KEPT = "kept"  # it went on
    CUT = "cut"  # as many as the beam is wide went on, and were better
    FINISHED = "finished"  # it ended, and is one of the n best
    BEATEN = "beaten"  # it ended, but n others that ended score higher
    OUTRANKED = "outranked"  # it ended, but as many candidates as the beam is wide were better at this step
    STOPPED = "stopped"  # it would have gone on if the search had
    FORBIDDEN = "forbidden"  # it may never be said


GOING = (Fate.FORCED, Fate.KEPT, Fate.STOPPED)
ENDED = (Fate.FINISHED, Fate.BEATEN)


@dataclass(frozen=True)
class Node:
    """A candidate: a hypothesis that was alive, and one more token.

    Attributes:
        step: how many tokens it has.
        parent: the place in the log of what it continues; None: nothing was said before.
        token: what it says.
        log_prob: of the token.
        total: log-probability of all its tokens.
        score: what it has, or would have if it ended here.
        rank: its place among the candidates of its step, from 0.
        end: whether it ends, with <eos> or at the limit.
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
    """A search for one sentence, a candidate an entry, by step and rank."""

    config: DecodeConfig
    nodes: list[Node]

    def path(self, number: int | None) -> Iterator[Node]:
        """A candidate and what it continues, the first token last."""
        while number is not None:
            yield self.nodes[number]
            number = self.nodes[number].parent

    def hypothesis(self, number: int) -> Hypothesis:
        """What ends with a candidate."""
        nodes = list(self.path(number))[::-1]
        return hypothesis([node.token for node in nodes], [node.log_prob for node in nodes], self.config)

    def replay(self) -> list[Hypothesis]:
        """What the search found, best first."""
        found = [self.hypothesis(number) for number, node in enumerate(self.nodes) if node.fate is Fate.FINISHED]
        return sorted(found, key=lambda h: -h.score)

    def threshold(self, step: int) -> float:
        """The log-probability of the worst candidate of a step that could go on; minus infinity if none could."""
        return min((n.total for n in self.nodes if n.step == step and n.fate in GOING), default=-torch.inf)


def logged(state: DecodingState, limit: int, config: DecodeConfig, prefix: Sequence[int] = ()) -> BeamLog:
    """Search for one sentence, and note every candidate.

    Args:
        state: the model with one row, nothing fed yet.
        limit: the most tokens of the output.
        config: of the search; a beam of 1 finds what greedy search does.
        prefix: how the output has to begin.
    """
    live = after_prefix(state, prefix, limit, config)
    nodes = forced_nodes(prefix, live.scores[0, 0].tolist(), config)
    lanes: list[int | None] = [len(nodes) - 1 if nodes else None]

    def watch(before: beam.Live, candidates: beam.Candidates, after: beam.Live) -> None:
        step = before.tokens.size(2)
        penalty = PENALTIES[config.penalty](step, config.alpha)
        going: list[int | None] = []
        columns = (candidates.parents, candidates.tokens, candidates.scores, candidates.totals, candidates.end)
        for rank, (parent, token, log_prob, total, end) in enumerate(
            zip(*(c[0].tolist() for c in columns), strict=True)
        ):
            if parent >= len(lanes) or before.totals[0, parent] == -torch.inf:
                continue  # the beam was not full
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

    found = beam.search(state, [limit], config, watch, live)[0]
    log = BeamLog(config, nodes)
    best = [(h.tokens, h.complete) for h in found]
    for number, node in enumerate(nodes):
        if node.fate is Fate.FINISHED:
            ended = log.hypothesis(number)
            if (ended.tokens, ended.complete) not in best:
                nodes[number] = replace(node, fate=Fate.BEATEN)
    return log


def after_prefix(state: DecodingState, prefix: Sequence[int], limit: int, config: DecodeConfig) -> beam.Live:
    """What a search for one sentence goes on from when its beginning is given."""
    log_probs = forced(state, prefix)
    nothing = beam.Live.begin(state.begin.cpu(), [limit], config)
    scores = torch.tensor([[log_probs]], dtype=torch.float64)
    tokens = torch.cat([nothing.tokens, torch.tensor([[list(prefix)]], dtype=torch.long)], dim=2)
    return replace(nothing, totals=scores.sum(2), scores=scores, tokens=tokens)


def forced(state: DecodingState, tokens: Sequence[int]) -> list[float]:
    """The log-probability of each token given those before it; all but the last are fed."""
    fed, log_probs = state.begin, []
    for token in tokens:
        log_probs.append(float(state.step(fed).float().log_softmax(-1)[0, token]))
        fed = torch.full_like(fed, token)
    return log_probs


def forced_nodes(prefix: Sequence[int], log_probs: Sequence[float], config: DecodeConfig) -> list[Node]:
    """The beginning of a log: one candidate a step."""
    nodes, total = [], 0.0
    for step, (token, log_prob) in enumerate(zip(prefix, log_probs, strict=True), start=1):
        total += log_prob
        score = total / PENALTIES[config.penalty](step, config.alpha)
        nodes.append(Node(step, step - 2 if nodes else None, token, log_prob, total, score, 0, False, Fate.FORCED))
    return nodes


@dataclass(frozen=True)
class Ghost:
    """A reference followed through a search that did not look for it.

    Attributes:
        tokens: with <eos>.
        log_probs: of each token given those before it.
        hypothesis: the reference as an output of the search.
        lost: the step at which no candidate was the reference any more, from 1; None: the search found it.
        search_error: the search lost the reference although the model scores it higher than what was found, so that a
            wider search could have found it; otherwise it is the model that prefers something else (Stahlberg & Byrne
            2019), or the beginning that was given leaves it no room.
    """

    tokens: list[int]
    log_probs: list[float]
    hypothesis: Hypothesis
    lost: int | None
    search_error: bool


def ghost(log: BeamLog, state: DecodingState, tokens: list[int]) -> Ghost:
    """Follow a reference.

    Args:
        log: of the search.
        state: the model with one row, nothing fed yet.
        tokens: the reference, with <eos>.
    """
    log_probs = forced(state, tokens)
    reference = hypothesis(tokens, log_probs, log.config)
    best = max((h.score for h in log.replay()), default=-torch.inf)
    given = sum(node.fate is Fate.FORCED for node in log.nodes)
    lost = lost_at(log, tokens)
    return Ghost(tokens, log_probs, reference, lost, lost is not None and lost > given and reference.score > best)


def lost_at(log: BeamLog, tokens: list[int]) -> int | None:
    """The step at which a search had no live candidate with these tokens any more; None: it kept them to their end."""
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


@torch.inference_mode()
def explain_search(
    translator: Translator, text: str, reference: str | None = None, prefix: str = ""
) -> tuple[BeamLog, Ghost | None]:
    """Translate a sentence and say why it became what it became.

    Args:
        translator: the model, its tokenizers, and how it searches.
        text: the sentence; of a long one only as much is read as `Translator.translate_lines` reads.
        reference: what it should have become.
        prefix: how the translation has to begin.

    Raises:
        InputError: the prefix leaves no room for a token.
    """
    ids = translator.tokenizers.source.encode(text)[: translator.longest_source - 1]
    begun, limit = translator.tokenizers.target.encode(prefix), len(ids) + translator.config.max_extra
    if len(begun) >= limit:
        raise InputError(f"the beginning has {len(begun)} tokens, and the whole may have {limit}; give fewer words")
    source = torch.tensor([[*ids, EOS]], device=translator.device)
    padding_mask, model = torch.ones_like(source, dtype=torch.bool), translator.model
    with evaluating(model):
        log = logged(model.start(source, padding_mask), limit, translator.config, begun)
        if reference is None:
            return log, None
        return log, ghost(
            log, model.start(source, padding_mask), [*translator.tokenizers.target.encode(reference), EOS]
        )
