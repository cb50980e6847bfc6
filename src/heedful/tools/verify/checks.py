"""Checks that verify a model: each measures the difference of two results that should be equal.

At the end is the table of all checks, with the largest difference that rounding may make. Shapes: R rows, T tokens,
V logits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures.model import DecodingState
from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import DecodeConfig
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import MASKED_SCORE, SENTENCE, Attention, scaled_dot_product
from heedful.search.beam import beam_search, search
from heedful.search.greedy import greedy_search
from heedful.search.top_k import best_tokens
from heedful.text.tokenizer import EOS
from heedful.tools.verify import of_training
from heedful.tools.verify.subjects import FIRST, Subject, Writer, apart, furthest

ROUNDING = 2e-5  # largest difference of float32 results that are equal in exact arithmetic, relative to the largest
STEPS = 5  # tokens that are written
ALPHA = 0.7  # of the length penalty, in the search and in the scores that it must agree with
ALL_TRIED = 3  # tokens of an output that are few enough to try all
IMPOSSIBLE = -1e4  # logit of a token that is cut from the vocabulary


@dataclass(frozen=True)
class Check:
    """A check of a model; it does not apply to models for which `measure` gives None."""

    name: str  # what is compared, in words
    measure: Callable[[Subject, LoadedModel], float | None]
    limit: float = ROUNDING  # the largest difference that passes

    def passes(self, difference: float) -> bool:
        """True if a difference is within the limit; NaN is not."""
        return difference <= self.limit


def alone(subject: Subject) -> list[Tensor]:
    """The outputs of each example in a separate batch."""
    return [subject.outputs(subject.model, [example])[0] for example in subject.examples]


def in_a_batch(subject: Subject) -> float:
    """Rows in a batch with longer and shorter ones, padded on each side, and each row alone."""
    together = [rows for side in subject.sides for rows in subject.outputs(subject.model, subject.examples, side)]
    return furthest(together, alone(subject) * len(subject.sides))


def order_of_rows(subject: Subject) -> float:
    outputs = subject.outputs(subject.model, subject.examples)
    return furthest(subject.outputs(subject.model, subject.examples[::-1])[::-1], outputs)


def later_tokens(subject: Subject) -> float | None:
    """The outputs at the first three written tokens, and those with other tokens after these."""
    if not isinstance(subject, Writer):
        return None
    examples = [example for example in subject.examples if len(example[-1]) > 3]
    changed = []
    for *source, text in examples:
        other = text.clone()
        other[3:] = FIRST + (text[3:] - FIRST + 1) % max(1, subject.vocabulary - FIRST)
        changed.append((*source, other))
    outputs, later = (subject.outputs(subject.model, rows) for rows in (examples, changed))
    return furthest([rows[:3] for rows in later], [rows[:3] for rows in outputs])


def attention_kernels(subject: Subject) -> float | None:
    """The kernel of each attention layer and the formula in float64.

    Which kernel is the fastest depends on the number of keys. A query that sees nothing gets a mean value.
    """
    layers = [module for module in subject.model.modules() if isinstance(module, Attention)]
    differences = []
    for layer in layers:
        for keys in (11, SENTENCE + 7):
            size, value_size = layer.q.out_features // layer.heads, layer.v.out_features // layer.kv_heads
            q = torch.randn(2, layer.heads, 7, size, generator=subject.random)
            k, v = (
                torch.randn(2, layer.kv_heads, keys, width, generator=subject.random) for width in (size, value_size)
            )
            bias = torch.zeros(2, 1, 7, keys)
            bias[0, :, :, 8:] = bias[1, :, 3] = MASKED_SCORE  # padding, and a query that sees nothing
            formula = scaled_dot_product(q.double(), k.double(), v.double(), bias.double())[0].float()
            formula[1, :, 3] = v[1].mean(1).repeat_interleave(layer.heads // layer.kv_heads, dim=0)
            differences.append(apart(layer.attention_fn(q, k, v, bias, 0.0), formula))
    return float(torch.tensor(differences).max()) if differences else None


def recorded(subject: Subject) -> float:
    """A forward pass with every tensor recorded, and one that nobody watches."""
    watched = []
    for example in subject.examples:
        with recording(subject.model, list(taps(subject.model))):
            watched += subject.outputs(subject.model, [example])
    return furthest(watched, alone(subject))


def token_by_token(subject: Subject) -> float | None:
    """A token at a time, with a cache, and the whole text at once."""
    if not isinstance(subject, Writer):
        return None
    written = torch.stack([subject.ids(STEPS) for _ in subject.examples])
    return furthest(stepwise(subject.start(subject.examples), written), whole(subject, written, range(len(written))))


def selected(subject: Subject) -> float | None:
    """Rows that a search repeats and drops on its way, and whole texts at once."""
    if not isinstance(subject, Writer):
        return None
    written, rows = torch.stack([subject.ids(STEPS) for _ in subject.examples]), [0, 0, 1, 3, 3]
    state = subject.start(subject.examples)
    first = stepwise(state, written[:, :3])
    state.select(torch.tensor(rows))
    later = [state.step(written[rows, place - 1]) for place in range(3, STEPS)]
    logits = [torch.cat([first[row], *(x[i : i + 1] for x in later)]) for i, row in enumerate(rows)]
    return furthest(logits, whole(subject, written[rows], rows))


def stepwise(state: DecodingState, written: Int[Tensor, "R T"]) -> list[Float[Tensor, "T V"]]:
    """The logits of each token of written texts, a token at a time."""
    fed = torch.cat([state.begin[:, None], written[:, :-1]], dim=1)
    return list(torch.stack([state.step(column) for column in fed.T], dim=1))


def whole(subject: Writer, written: Int[Tensor, "R T"], rows: range | list[int]) -> list[Float[Tensor, "T V"]]:
    """The logits of each token of written texts, all at once, for each example alone."""
    return [subject.forced(subject.examples[row], text[None])[0] for row, text in zip(rows, written, strict=True)]


def greedy(subject: Subject) -> float | None:
    """Count the examples whose output by beam search of size 1 is not that of greedy search."""
    if not isinstance(subject, Writer):
        return None
    limits, config = [STEPS] * len(subject.examples), DecodeConfig(beam=1)
    beam = beam_search(subject.start(subject.examples), limits, config)
    plain = greedy_search(subject.start(subject.examples), limits, config)
    return float(sum(a[0].tokens != b[0].tokens for a, b in zip(beam, plain, strict=True)))


class CutVocabulary:
    """Decoding state with a vocabulary of a few tokens: all others get logits that are impossible."""

    def __init__(self, state: DecodingState, tokens: list[int]) -> None:
        self.state = state
        self.tokens = tokens
        self.begin = state.begin

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        logits = self.state.step(tokens)
        cut = torch.full_like(logits, IMPOSSIBLE)
        cut[:, self.tokens] = logits[:, self.tokens]
        return cut

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.state.select(rows)


def exhaustive(subject: Subject) -> float | None:
    """Count the best five outputs that a wide beam does not find, of all with three tokens out of four."""
    if not isinstance(subject, Writer):
        return None
    example = subject.examples[0]
    _, likely = best_tokens(subject.start([example]).step(subject.start([example]).begin), 4)
    words = [token for token in likely[0].tolist() if token != EOS][:3]
    tokens = [EOS, *words]

    def score(text: list[int]) -> float:
        """The log-probability by teacher forcing, among the few tokens, over |y|^ALPHA."""
        logits = subject.forced(example, torch.tensor([text]))[0]
        logs = logits[:, tokens].double().log_softmax(-1)
        return sum(float(logs[place, tokens.index(token)]) for place, token in enumerate(text)) / len(text) ** ALPHA

    texts = [[*beginning, EOS] for length in range(ALL_TRIED) for beginning in product(words, repeat=length)]
    texts += [list(text) for text in product(words, repeat=ALL_TRIED)]
    best = sorted(texts, key=lambda text: -score(text))[:5]

    config = DecodeConfig(beam=len(texts), n_best=5, penalty="average", alpha=ALPHA, patience=0)
    [hypotheses] = search(CutVocabulary(subject.start([example]), tokens), [ALL_TRIED], config)
    outputs = [[*one.tokens, EOS] if one.complete else list(one.tokens) for one in hypotheses]
    return float(sum(a != b for a, b in zip(outputs, best, strict=True)))


def of_subject(measure: Callable[[Subject], float | None]) -> Callable[[Subject, LoadedModel], float | None]:
    """Make a measure of a subject alone one that is called without gradients, and without the loaded model."""

    @torch.no_grad()
    def measured(subject: Subject, _: LoadedModel) -> float | None:
        return measure(subject)

    return measured


CHECKS = (
    Check("an example alone, and in a batch with padding", of_subject(in_a_batch)),
    Check("a batch, and the same in another order", of_subject(order_of_rows)),
    Check("the first tokens written, and the same before other ones", of_subject(later_tokens)),
    Check("a token at a time with a cache, and all at once", of_subject(token_by_token)),
    Check("texts that a search repeats and drops, and each alone", of_subject(selected)),
    Check("beam search of size 1, and greedy search", of_subject(greedy), 0),
    Check("a wide beam, and all outputs of three tokens out of four", of_subject(exhaustive), 0),
    Check("fast attention kernels, and the formula in float64", of_subject(attention_kernels)),
    Check("a forward pass with all tensors recorded, and unwatched", of_subject(recorded)),
    Check("the model in memory, and written and read again", of_training.saved, 0),
    Check("the gradient of several batches, and of one", of_training.several_batches),
    Check("updates with a checkpoint on the way, and without", of_training.resumed, 0),
    Check("updates by two processes, the weights whole or shared, and by one", of_training.several_processes, 0),
)
