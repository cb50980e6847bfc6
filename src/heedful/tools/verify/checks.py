"""Checks that verify a model: each measures the difference between two results that should be equal.

`CHECKS`, at the end, lists them with the largest difference that rounding may cause. Shapes: R rows, T tokens,
V logits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures.model import DecodingState
from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import DecodeConfig
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import MASKED_SCORE, MAX_PLAIN_KEYS, Attention, scaled_dot_product, scaled_scores
from heedful.search.beam import beam_search, greedy_search, search
from heedful.search.top_k import best_tokens
from heedful.text.tokenizer import EOS
from heedful.tools.verify import engine_check, training_checks
from heedful.tools.verify.subjects import FIRST_WORD, Subject, Writer, largest_difference, relative_difference

ROUNDING = 2e-5  # largest relative difference between float32 results that are equal in exact arithmetic
STEPS = 5  # output tokens
ALPHA = 0.7  # exponent of the length penalty, in the search and in the scores that it is checked against
MAX_EXHAUSTIVE = 3  # output tokens, few enough to try all outputs
IMPOSSIBLE = -1e4  # logit of a token that is removed from the vocabulary


@dataclass(frozen=True)
class Check:
    name: str  # description of the two results that are compared
    measure: Callable[[Subject, LoadedModel], float | None]  # None for a model to which the check does not apply
    limit: float = ROUNDING  # the largest difference that passes

    def passes(self, difference: float) -> bool:
        """Return True if a difference is within the limit; NaN is not."""
        return difference <= self.limit


def alone(subject: Subject) -> list[Tensor]:
    """Compute the outputs of each example in a separate batch."""
    return [subject.outputs(subject.model, [example])[0] for example in subject.examples]


def in_a_batch(subject: Subject) -> float:
    """Compare the outputs of one batch of all examples, padded on each side in turn, with the outputs of each alone."""
    together = [rows for side in subject.sides for rows in subject.outputs(subject.model, subject.examples, side)]
    return largest_difference(together, alone(subject) * len(subject.sides))


def order_of_rows(subject: Subject) -> float:
    outputs = subject.outputs(subject.model, subject.examples)
    return largest_difference(subject.outputs(subject.model, subject.examples[::-1])[::-1], outputs)


def later_tokens(subject: Writer) -> float:
    """Compare the outputs at the first three target tokens before and after the later tokens are changed."""
    examples = [example for example in subject.examples if len(example[-1]) > 3]
    changed = [(*source, text.clone()) for *source, text in examples]
    for *_, text in changed:
        text[3:] = FIRST_WORD + (text[3:] - FIRST_WORD + 1) % max(1, subject.vocabulary - FIRST_WORD)
    outputs, later = (subject.outputs(subject.model, rows) for rows in (examples, changed))
    return largest_difference([rows[:3] for rows in later], [rows[:3] for rows in outputs])


def attention_kernels(subject: Subject) -> float | None:
    """Compare the kernel of each attention layer with the formula in float64.

    The layer chooses its kernel by the number of keys, so two numbers are tried. A query that may not attend to any key
    gets the mean of all values. Linear attention has no fast kernel of scores.
    """
    attentions = [module for module in subject.model.modules() if isinstance(module, Attention)]
    layers = [attention for attention in attentions if attention.scores is scaled_scores]
    differences = []
    for layer in layers:
        for keys in (11, MAX_PLAIN_KEYS + 7):
            size, value_size = layer.q.out_features // layer.heads, layer.v.out_features // layer.kv_heads
            q = torch.randn(2, layer.heads, 7, size, generator=subject.random)
            k, v = (
                torch.randn(2, layer.kv_heads, keys, width, generator=subject.random) for width in (size, value_size)
            )
            bias = torch.zeros(2, 1, 7, keys)
            bias[0, :, :, 8:] = bias[1, :, 3] = MASKED_SCORE  # padding, and a query that sees nothing
            formula = scaled_dot_product(q.double(), k.double(), v.double(), bias.double())[0].float()
            formula[1, :, 3] = v[1].mean(1).repeat_interleave(layer.heads // layer.kv_heads, dim=0)
            differences.append(relative_difference(layer.attention_fn(q, k, v, bias, 0.0), formula))
    return float(torch.tensor(differences).max()) if differences else None


def with_recorder(subject: Subject) -> float:
    """Compare a forward pass in which every tensor is recorded with one without a recorder."""
    outputs = []
    for example in subject.examples:
        with recording(subject.model, list(taps(subject.model))):
            outputs += subject.outputs(subject.model, [example])
    return largest_difference(outputs, alone(subject))


def token_by_token(subject: Writer) -> float:
    """Compare cached decoding, one token at a time, with a forward pass over the whole text at once."""
    targets = torch.stack([subject.ids(STEPS) for _ in subject.examples])
    logits = stepwise_logits(subject.start(subject.examples), targets)
    return largest_difference(logits, teacher_forced_logits(subject, targets, range(len(targets))))


def repeated_and_dropped(subject: Writer) -> float:
    """Compare rows that are duplicated and dropped in the middle of a search with forward passes over whole texts."""
    targets, rows = torch.stack([subject.ids(STEPS) for _ in subject.examples]), [0, 0, 1, 3, 3]
    state = subject.start(subject.examples)
    first = stepwise_logits(state, targets[:, :3])
    state.select(torch.tensor(rows))
    later = [state.step(targets[rows, position - 1]) for position in range(3, STEPS)]
    logits = [torch.cat([first[row], *(x[i : i + 1] for x in later)]) for i, row in enumerate(rows)]
    return largest_difference(logits, teacher_forced_logits(subject, targets[rows], rows))


def stepwise_logits(state: DecodingState, targets: Int[Tensor, "R T"]) -> list[Float[Tensor, "T V"]]:
    """Compute the logits of each token of target texts, one token at a time."""
    inputs = torch.cat([state.begin[:, None], targets[:, :-1]], dim=1)
    return list(torch.stack([state.step(column) for column in inputs.T], dim=1))


def teacher_forced_logits(
    subject: Writer, targets: Int[Tensor, "R T"], rows: range | list[int]
) -> list[Float[Tensor, "T V"]]:
    """Compute the logits of each token of target texts, one forward pass per text."""
    return [
        subject.teacher_forced_logits(subject.examples[row], text[None])[0]
        for row, text in zip(rows, targets, strict=True)
    ]


def greedy(subject: Writer) -> float:
    """Count the examples for which beam search with beam size 1 and greedy search give different outputs."""
    limits, config = [STEPS] * len(subject.examples), DecodeConfig(beam=1)
    beam = beam_search(subject.start(subject.examples), limits, config)
    plain = greedy_search(subject.start(subject.examples), limits, config)
    return float(sum(a[0].tokens != b[0].tokens for a, b in zip(beam, plain, strict=True)))


class CutVocabulary:
    """Decoding state restricted to a few tokens of the vocabulary: all others get very low logits."""

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


def exhaustive(subject: Writer) -> float:
    """Count at how many of the five best ranks the outputs of a wide beam and of an exhaustive search differ.

    The candidates are all texts of up to three tokens from a vocabulary of four.
    """
    example = subject.examples[0]
    _, likely = best_tokens(subject.start([example]).step(subject.start([example]).begin), 4)
    words = [token for token in likely[0].tolist() if token != EOS][:3]
    tokens = [EOS, *words]

    def score(text: list[int]) -> float:
        """Compute the log-probability of a text, normalised over these few tokens and divided by |y|^ALPHA."""
        logits = subject.teacher_forced_logits(example, torch.tensor([text]))[0]
        logs = logits[:, tokens].double().log_softmax(-1)
        return sum(float(logs[i, tokens.index(token)]) for i, token in enumerate(text)) / len(text) ** ALPHA

    texts = [[*beginning, EOS] for length in range(MAX_EXHAUSTIVE) for beginning in product(words, repeat=length)]
    texts += [list(text) for text in product(words, repeat=MAX_EXHAUSTIVE)]
    best = sorted(texts, key=lambda text: -score(text))[:5]

    config = DecodeConfig(beam=len(texts), n_best=5, penalty="average", alpha=ALPHA, patience=0)
    [hypotheses] = search(CutVocabulary(subject.start([example]), tokens), [MAX_EXHAUSTIVE], config)
    outputs = [[*output.tokens, EOS] if output.complete else list(output.tokens) for output in hypotheses]
    return float(sum(a != b for a, b in zip(outputs, best, strict=True)))


def for_subjects(kind: Any, measure: Callable[[Any], float | None]) -> Callable[[Subject, LoadedModel], float | None]:
    """Wrap a measure so that it runs without gradients, and returns None for other kinds of subject."""

    @torch.no_grad()
    def measured(subject: Subject, _: LoadedModel) -> float | None:
        return measure(subject) if isinstance(subject, kind) else None

    return measured


CHECKS = (
    Check("an example alone vs. in a batch with padding", for_subjects(Subject, in_a_batch)),
    Check("a batch vs. the same batch in another order", for_subjects(Subject, order_of_rows)),
    Check("the first output tokens vs. with later tokens changed", for_subjects(Writer, later_tokens)),
    Check("one token at a time with a cache vs. all at once", for_subjects(Writer, token_by_token)),
    Check("rows that a search repeats and drops vs. each text alone", for_subjects(Writer, repeated_and_dropped)),
    Check("beam search of size 1 vs. greedy search", for_subjects(Writer, greedy), 0),
    Check("a wide beam vs. enumerating all outputs of a few tokens", for_subjects(Writer, exhaustive), 0),
    Check("fast attention kernels vs. the formula in float64", for_subjects(Subject, attention_kernels)),
    Check("a forward pass with all tensors recorded vs. without", for_subjects(Subject, with_recorder)),
    Check("outputs with CTranslate2 vs. with torch", engine_check.with_ctranslate2),
    Check("the model in memory vs. saved and loaded", training_checks.saved_model, 0),
    Check("the gradient of several batches vs. of one", training_checks.several_batches),
    Check("updates with a checkpoint in between vs. without", training_checks.resumed_run, 0),
    Check("updates by two processes (weights whole or sharded) vs. by one", training_checks.several_processes, 0),
)
