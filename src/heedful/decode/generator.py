"""Text from a language model: prompts in, what follows them out, in the same order or as it is said."""

import math
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Unpack, overload

import torch

from heedful.config.options import GenerateOptions, with_options
from heedful.config.schema import GenerateConfig
from heedful.decode.generation_row import GenerationRow, Reason
from heedful.decode.predictor import BasePredictor, Done, as_text, one_or_all
from heedful.decode.sample import sample
from heedful.decode.streaming import TextStream
from heedful.decode.translator import evaluating
from heedful.models import LanguageModel
from heedful.text.padding import pad
from heedful.text.tokenizer import EOS, UNK, Tokenizer


@dataclass(frozen=True)
class GenerationRequest:
    """A text to go on from, and how.

    Attributes:
        prompt: may be empty: then a document begins.
        config: all but `batch_tokens`, which is the generator's.
    """

    prompt: str
    config: GenerateConfig


@dataclass(frozen=True)
class Generation:
    """What followed a prompt.

    Attributes:
        text: prompt + text reads on without a seam; a stop string and what came with it is left out.
        tokens: the ids that were said, without <eos>.
        token_scores: log P of each token, and of <eos> if it was said, under the model before anything was narrowed.
        reason: "eos": the model ended it; "stop": a stop string did; "length": it was cut at `max_tokens`.
    """

    text: str
    tokens: list[int]
    token_scores: list[float]
    reason: Reason

    def __str__(self) -> str:
        return self.text


class Generator(BasePredictor[LanguageModel]):
    """A language model with its tokenizer. What follows a prompt depends on its request alone, not on the others.

    Args:
        model: a decoder that was trained on text.
        tokenizer: its own.
        config: of the model; `batch_tokens` is heeded here, the rest is where requests may begin from.
        context: the most tokens that the model reads; None: any number. A text that outgrows it is continued from its
            last `context` // 2 tokens, and a longer prompt likewise.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, config: GenerateConfig, context: int | None = None
    ) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.config = config
        self.context = context
        self.never = [i for i in range(tokenizer.first_piece) if i not in (UNK, EOS)]  # ids that are never said

    def with_options(self, **options: Unpack[GenerateOptions]) -> "Generator":
        """This generator, which shares its model, with other settings to begin requests from.

        Raises:
            InputError: there is no such option, or a value that [generate] cannot have.
        """
        changed = copy(self)
        changed.config = with_options(self.config, options)
        changed.recipe = self.recipe and replace(self.recipe, generate=changed.config)
        return changed

    @overload
    def generate(
        self, prompts: str | GenerationRequest, done: Done = ..., **options: Unpack[GenerateOptions]
    ) -> Generation: ...
    @overload
    def generate(
        self, prompts: Iterable[str | GenerationRequest], done: Done = ..., **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    def generate(self, prompts: Any, done: Done = lambda _: None, **options: Any) -> Generation | list[Generation]:
        """Continue a prompt, or each of several; those of similar length are read together.

        Args:
            prompts: a string or a `Request`, which is continued once; or an iterable of them, which gives a list of
                what follows each, in order.
            done: told how many more of them have ended, as soon as they have.
            options: keys of [generate] for this call, such as `temperature=0.7`.

        Raises:
            InputError: something is no prompt or holds half a character, there is no such option, or a value that it
                cannot have.
            RunError: the model's output is not a number.
        """
        chosen = self.with_options(**options)
        return one_or_all(
            partial(chosen._continued, done), prompts, partial(chosen._request, options), (str, GenerationRequest)
        )

    def stream(self, prompt: str | GenerationRequest, **options: Unpack[GenerateOptions]) -> Iterator[str]:
        """The text that `generate` gives for one prompt, each part as soon as nothing can change it.

        Raises:
            InputError, RunError: as `generate`.
        """
        chosen = self.with_options(**options)
        return chosen._streamed(chosen._request(options, prompt))

    def _request(self, options: Mapping[str, Any], prompt: object) -> GenerationRequest:
        """What is asked by a prompt; `options` change a request that brings settings of its own."""
        if isinstance(prompt, GenerationRequest):
            return replace(prompt, config=with_options(prompt.config, options))
        return GenerationRequest(as_text(prompt), self.config)

    def _continued(self, done: Done, requests: Iterable[GenerationRequest]) -> list[Generation]:
        rows = self._rows(list(requests))
        ended = 0
        for _ in self._steps(rows):
            if more := sum(row.done for row in rows) - ended:
                ended += more
                done(more)
        return [Generation(row.text.text, row.output, row.scores, row.reason) for row in rows]

    def _streamed(self, request: GenerationRequest) -> Iterator[str]:
        (row,) = self._rows([request])
        given = 0
        for _ in self._steps([row]):
            yield from row.text.parts[given:]
            given = len(row.text.parts)

    def reads_whole(self, prompt: str) -> bool:
        """Whether a prompt fits the context; of a longer one only the last part is read."""
        return self.context is None or len(self.tokenizer.encode(prompt)) <= self.context

    def unknown(self, prompt: str) -> list[str]:
        """The parts of a prompt that are in no piece of the vocabulary: <unk> is read for them."""
        return self.tokenizer.unknown(prompt)

    def _rows(self, requests: list[GenerationRequest]) -> list[GenerationRow]:
        """What is known of each request before anything is said: only a document's first word has no space before."""
        space = self.tokenizer.first_space
        prompts = self.tokenizer.encode_batch([request.prompt for request in requests])
        return [
            GenerationRow(request.config, prompt, TextStream(request.config.stop, prefix="" if prompt else space))
            for request, prompt in zip(requests, prompts, strict=True)
        ]

    def _steps(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Take rows to their end, and yield after each token."""
        while rows:
            batch, rest = self._cut(rows)
            yield from self._run(batch)
            rows = rest + [row for row in batch if not row.done]

    def _cut(self, rows: list[GenerationRow]) -> tuple[list[GenerationRow], list[GenerationRow]]:
        """The rows with the longest windows that fit a batch, at least one, and the others."""
        for row in rows:
            row.crop(self.context)
        rows = sorted(rows, key=lambda row: len(row.window), reverse=True)
        lefts = accumulate((row.left for row in rows), max)
        widths = (min(len(rows[0].window) + left, self.context or math.inf) for left in lefts)
        count = sum(size * width <= self.config.batch_tokens for size, width in enumerate(widths, start=1))
        return rows[: max(1, count)], rows[max(1, count) :]

    @torch.inference_mode()
    def _run(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Say tokens until each row has ended or the batch, padding included, fills the context: then read anew."""
        prompts, padding_mask = (
            torch.from_numpy(x).to(self.device) for x in pad([r.window for r in rows], side="left")
        )
        with evaluating(self.model):
            state = self.model.start(prompts, padding_mask)
        tokens = state.begin
        width = prompts.size(1)
        while rows and (self.context is None or width <= self.context):
            with evaluating(self.model):
                logits = state.step(tokens)
            chosen, scores = sample(logits, rows, self.never)
            for row, token, score in zip(rows, chosen.tolist(), scores.tolist(), strict=True):
                row.take(token, score, self.tokenizer.spell([token]))
            yield
            going = [i for i, row in enumerate(rows) if not row.done]
            if 0 < len(going) < len(rows):
                state.select(torch.tensor(going, device=tokens.device))
            rows = [rows[i] for i in going]
            tokens = chosen[going].to(tokens.device)
            width += 1
