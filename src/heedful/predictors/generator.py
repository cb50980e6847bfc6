"""Text generation with a language model (GPT): continuations of prompts, whole or as a stream, and scores of texts."""

import math
from collections import abc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Unpack, overload

from heedful.config.options import GenerateOptions, with_options
from heedful.config.schema import GenerateConfig
from heedful.predictors.outputs import TokenScores
from heedful.predictors.predictor import TEXTS, Done, InputKind, Predictor, as_text
from heedful.search.generation import GenerationRow, Reason, TextStream
from heedful.text.tokenizer import EOS, UNK, Tokenizer

if TYPE_CHECKING:  # torch is imported with the model
    from heedful.architectures.heads import CausalModel

WINDOW = 1024  # prompts read at a time: enough to make batches of similar length


@dataclass(frozen=True)
class GenerationRequest:
    """Request to a text generator: a prompt and the settings for its continuation.

    Attributes:
        prompt: The text to continue; an empty prompt begins a new document.
        config: The settings; its `batch_tokens` is ignored, because the generator forms the batches.
    """

    prompt: str
    config: GenerateConfig


@dataclass(frozen=True)
class Generation:
    """Continuation of a prompt: the generated text, its tokens and their log-probabilities.

    Attributes:
        text: The generated text, to be appended to the prompt without a space; a stop string and whatever follows it in
            the same token are left out.
        tokens: The ids of the generated tokens, without <eos>.
        token_scores: Log P of each token, and of <eos> if it was generated, before filters such as `temperature`.
        reason: "eos": the model ended the text; "stop": a stop string was reached; "length": cut at `max_tokens`.
    """

    text: str
    tokens: list[int]
    token_scores: Sequence[float]
    reason: Reason

    def __str__(self) -> str:
        return self.text


class Generator(Predictor["CausalModel", Generation]):
    """Text generator: a language model with its tokenizer. An output depends only on its own request, not on the batch.

    Args:
        model: A decoder-only language model.
        tokenizer: The tokenizer of the model.
        config: The default settings of requests, and `batch_tokens`.
        context: The maximum number of tokens that the model reads; None: any number. A longer prompt or text is
            continued from its last `context` // 2 tokens.
    """

    tokenizer: Tokenizer

    def __init__(
        self, model: "CausalModel", tokenizer: Tokenizer, config: GenerateConfig, context: int | None = None
    ) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.config: GenerateConfig = config
        self.context = context

    @cached_property
    def suppressed(self) -> list[int]:
        """The ids of tokens that are never generated."""
        # Training text contains <unk> and <eos> but no other special tokens, so the logits of the others are
        # meaningless.
        return [i for i in range(self.tokenizer.first_piece) if i not in (UNK, EOS)]

    def with_options(self, **options: Unpack[GenerateOptions]) -> "Generator":
        """Create a generator that shares this model, with different default settings."""
        return self._configured(options)

    @overload
    def generate(self, prompts: str | GenerationRequest, **options: Unpack[GenerateOptions]) -> Generation: ...
    @overload
    def generate(
        self, prompts: Iterable[str | GenerationRequest], **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    def generate(self, prompts: object, **options: Unpack[GenerateOptions]) -> Generation | list[Generation]:
        """Continue a prompt with generated text, or each of several prompts.

        Args:
            prompts: A string or a `GenerationRequest`, which is continued once; or an iterable of these, which gives a
                list of continuations in the same order.
            options: Keys of [generate] for this call, such as `temperature=0.7`.

        Raises:
            RunError: The model computes NaN.
        """
        return self._prompts(options).one_or_all(self._continued, prompts)

    __call__ = predict = generate

    def generate_lines(
        self,
        prompts: Iterable[str | GenerationRequest],
        window: int = WINDOW,
        done: Done = lambda _: None,
        **options: Unpack[GenerateOptions],
    ) -> Iterator[Generation]:
        """Continue any number of prompts, in order; prompts of similar length form a batch.

        Args:
            prompts: Strings, or requests with their own settings.
            window: Number of prompts read before their continuations are yielded.
            done: Called with the number of prompts just finished, after each step that finishes any.
            options: Keys of [generate] for this call, such as `temperature=0.7`.
        """
        return self._continued(self._prompts(options).each(prompts), window, done)

    def stream(
        self, prompt: str | GenerationRequest, **options: Unpack[GenerateOptions]
    ) -> abc.Generator[str, None, Generation]:
        """Generate the continuation of one prompt as a stream: yield each part of the text as soon as it is final.

        The return value of the generator, as with `yield from`, is the whole continuation.
        """
        request = self._prompts(options).read(prompt)  # outside `parts`, so that errors are raised at once

        def parts() -> abc.Generator[str, None, Generation]:
            (row,) = self._rows([request])
            count = 0
            for _ in self._steps([row]):
                yield from row.text.parts[count:]
                count = len(row.text.parts)
            [generation] = self._generations([row])
            return generation

        return parts()

    @overload
    def score(self, texts: str, *, end: bool = False) -> TokenScores: ...
    @overload
    def score(self, texts: Iterable[str], *, end: bool = False) -> list[TokenScores]: ...
    def score(self, texts: object, *, end: bool = False) -> TokenScores | list[TokenScores]:
        """Compute the log-probability of each token of a text, or of each token of several texts.

        The first token follows an <eos>, as at the beginning of a document in training. In a text longer than the
        context, each token is predicted from at least the `context` // 2 tokens before it, or from all if there are
        fewer.

        Args:
            texts: A string, or an iterable of strings, which gives a list in the same order.
            end: Also score the <eos> after the text: the probability that the text ends there.

        Raises:
            RunError: The model computes NaN.
        """
        return TEXTS.one_or_all(lambda each: self._scored(each, end=end), texts)

    def _scored(self, texts: Iterator[str], *, end: bool) -> Iterator[TokenScores]:
        while window := list(islice(texts, WINDOW)):
            rows = [[*ids, EOS] if end else ids for ids in self.tokenizer.encode_batch(window)]

            # Texts are split into overlapping windows of the context, and each token is scored in one of them.
            windows: list[list[int]] = []
            firsts: list[int] = []  # the index in each window after which tokens are scored
            owners: list[int] = []  # the text of each window
            for owner, tokens in enumerate([EOS, *row] for row in rows):
                size = len(tokens) - 1 if self.context is None else min(self.context, len(tokens) - 1)
                done = 0
                while done < len(tokens) - 1:
                    # Half a window is context for the first new token; the last window begins early enough to be full.
                    begin = 0 if done == 0 else min(done - size // 2, len(tokens) - 1 - size)
                    windows.append(tokens[begin : begin + size + 1])
                    firsts.append(done - begin)
                    owners.append(owner)
                    done = begin + size
            log_probs: list[list[float]] = [[] for _ in rows]
            for owner, scores in zip(owners, self.score_windows(windows, firsts), strict=True):
                log_probs[owner] += scores
            yield from map(TokenScores, rows, map(self.tokenizer.pieces, rows), log_probs)

    def score_windows(self, windows: list[list[int]], firsts: list[int]) -> list[list[float]]:
        """Compute log P of the tokens after index `firsts[i]` in each window i, each token given all before it."""
        from heedful.search.prompt_to_text import score_windows

        return score_windows(self.model, windows, firsts, self.config.batch_tokens)

    def _prompts(self, options: GenerateOptions) -> InputKind[GenerationRequest]:
        """Return the kind of input that reads prompts; `options` override the settings of a request."""
        config = with_options(self.config, options)

        def read(prompt: object) -> GenerationRequest:
            if isinstance(prompt, GenerationRequest):
                return replace(prompt, config=with_options(prompt.config, options))
            return GenerationRequest(as_text(prompt), config)

        return InputKind("text", (str, GenerationRequest), read, "a string")

    def _continued(
        self, requests: Iterable[GenerationRequest], window: int = WINDOW, done: Done = lambda _: None
    ) -> Iterator[Generation]:
        requests = iter(requests)
        while batch := list(islice(requests, window)):
            rows = self._rows(batch)
            ended = 0
            for _ in self._steps(rows):
                if more := sum(row.done for row in rows) - ended:
                    ended += more
                    done(more)
            yield from self._generations(rows)

    def reads_whole(self, prompt: str) -> bool:
        """Return True if a prompt fits into the model's context; only the last part of a longer one is read."""
        return self.context is None or len(self.tokenizer.encode(prompt)) <= self.context

    def _rows(self, requests: list[GenerationRequest]) -> list[GenerationRow]:
        # After an empty prompt, the output begins with the space that the tokenizer puts before a text; it is removed.
        space = self.tokenizer.first_space
        prompts = self.tokenizer.encode_batch([request.prompt for request in requests])
        return [
            GenerationRow(request.config, prompt, TextStream(request.config.stop, prefix="" if prompt else space))
            for request, prompt in zip(requests, prompts, strict=True)
        ]

    def _steps(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Generate tokens for rows until all have ended; yield after each token."""
        while rows:
            # A full context is cut in half, not by one token: the cache is recomputed after each cut.
            for row in rows:
                row.crop(self.context)

            # A batch has as many rows as fit, but at least one, with the longest windows first. The width of a row is
            # the maximum that it may reach.
            rows = sorted(rows, key=lambda row: len(row.window), reverse=True)
            room = accumulate((row.remaining for row in rows), max)
            widths = (min(len(rows[0].window) + tokens, self.context or math.inf) for tokens in room)
            # `widths` never decrease, so the sizes that fit are the first ones.
            count = sum(size * width <= self.config.batch_tokens for size, width in enumerate(widths, start=1))
            batch, rest = rows[: max(1, count)], rows[max(1, count) :]

            yield from self._run(batch)
            rows = rest + [row for row in batch if not row.done]

    def _run(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Generate tokens for a batch until all rows have ended or the context of the model is full."""
        from heedful.search.prompt_to_text import continue_rows

        return continue_rows(self.model, rows, self.context, self.suppressed, self.tokenizer.spell)

    def _generations(self, rows: Sequence[GenerationRow]) -> Iterator[Generation]:
        return (Generation(row.text.text, row.output, row.scores, row.reason) for row in rows)
