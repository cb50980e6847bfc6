"""Checks of decoding: a token at a time, hypotheses that change places, greedy search and exhaustive search."""

from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures.model import DecodingState
from heedful.config.schema import DecodeConfig
from heedful.search.beam import beam_search, search
from heedful.search.greedy import greedy_search
from heedful.search.top_k import best_tokens
from heedful.text.tokenizer import EOS
from heedful.tools.verify.subjects import Generating, Subject, furthest

STEPS = 5  # tokens that are written
ALPHA = 0.7  # of the length penalty, in the search and in the scores that it must agree with
LONGEST = 3  # tokens of an output that are few enough to try all
IMPOSSIBLE = -1e4  # logit of a token that is cut from the vocabulary


def token_by_token(subject: Subject) -> float | None:
    """Difference between logits of a token at a time, with a cache, and of the whole text at once."""
    if not isinstance(subject, Generating):
        return None
    written = torch.stack([subject.ids(STEPS) for _ in subject.examples])
    return furthest(stepwise(subject.start(subject.examples), written), whole(subject, written, range(len(written))))


def selected(subject: Subject) -> float | None:
    """Difference between logits of rows that a search repeats and drops on its way, and of whole texts at once."""
    if not isinstance(subject, Generating):
        return None
    written, rows = torch.stack([subject.ids(STEPS) for _ in subject.examples]), [0, 0, 1, 3, 3]
    state = subject.start(subject.examples)
    first = stepwise(state, written[:, :3])
    state.select(torch.tensor(rows))
    went_on = [state.step(written[rows, place - 1]) for place in range(3, STEPS)]
    found = [torch.cat([first[row], *(x[i : i + 1] for x in went_on)]) for i, row in enumerate(rows)]
    return furthest(found, whole(subject, written[rows], rows))


def stepwise(state: DecodingState, written: Int[Tensor, "R T"]) -> list[Float[Tensor, "T V"]]:
    """The logits of each token of written texts, a token at a time."""
    fed = torch.cat([state.begin[:, None], written[:, :-1]], dim=1)
    return list(torch.stack([state.step(column) for column in fed.T], dim=1))


def whole(subject: Generating, written: Int[Tensor, "R T"], rows: range | list[int]) -> list[Float[Tensor, "T V"]]:
    """The logits of each token of written texts, all at once, for each example alone."""
    return [subject.forced(subject.examples[row], text[None])[0] for row, text in zip(rows, written, strict=True)]


def greedy(subject: Subject) -> float | None:
    """Count the examples whose output by beam search of size 1 is not that of greedy search."""
    if not isinstance(subject, Generating):
        return None
    limits, config = [STEPS] * len(subject.examples), DecodeConfig(beam=1)
    beam = beam_search(subject.start(subject.examples), limits, config)
    plain = greedy_search(subject.start(subject.examples), limits, config)
    return float(sum(a[0].tokens != b[0].tokens for a, b in zip(beam, plain, strict=True)))


class CutVocabulary:
    """Decoding state with a vocabulary of a few tokens."""

    def __init__(self, state: DecodingState, tokens: list[int]) -> None:
        self.state = state
        self.tokens = tokens
        self.begin = state.begin

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token to each row; return the logits, in which all tokens but those that are left are impossible."""
        logits = self.state.step(tokens)
        cut = torch.full_like(logits, IMPOSSIBLE)
        cut[:, self.tokens] = logits[:, self.tokens]
        return cut

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows."""
        self.state.select(rows)


def exhaustive(subject: Subject) -> float | None:
    """Count the best five outputs that a wide beam does not find, of all with three tokens out of four."""
    if not isinstance(subject, Generating):
        return None
    example = subject.examples[0]
    _, likely = best_tokens(subject.start([example]).step(subject.start([example]).begin), 4)
    words = [token for token in likely[0].tolist() if token != EOS][:3]
    texts = [[*said, EOS] for length in range(LONGEST) for said in product(words, repeat=length)]
    texts += [list(said) for said in product(words, repeat=LONGEST)]
    best = sorted(texts, key=lambda text: -score(subject, text, [EOS, *words]))[:5]
    state = CutVocabulary(subject.start([example]), [EOS, *words])
    config = DecodeConfig(beam=len(texts), n_best=5, penalty="average", alpha=ALPHA, patience=0)
    [found] = search(state, [LONGEST], config)
    outputs = [[*one.tokens, EOS] if one.complete else list(one.tokens) for one in found]
    return float(sum(a != b for a, b in zip(outputs, best, strict=True)))


def score(subject: Generating, text: list[int], tokens: list[int]) -> float:
    """Score an output of the first example by teacher forcing: log-probability among a few tokens over |y|^ALPHA."""
    logits = subject.forced(subject.examples[0], torch.tensor([text]))[0]
    left = logits[:, tokens].double().log_softmax(-1)
    return sum(float(left[place, tokens.index(token)]) for place, token in enumerate(text)) / len(text) ** ALPHA
