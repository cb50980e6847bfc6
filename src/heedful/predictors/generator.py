"""Generates text with a language model (GPT): continues prompts, all at once or as a stream."""

import math
from collections import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Literal, NamedTuple, Unpack, overload

import torch
from torch import Tensor

from heedful.architectures import LanguageModel
from heedful.architectures.model import batches, check_numbers, evaluating
from heedful.config.options import GenerateOptions, with_options
from heedful.config.schema import GenerateConfig
from heedful.nn.masks import AttentionMask
from heedful.predictors.outputs import TokenScores, log_probs_of
from heedful.predictors.predictor import TEXTS, Done, InputKind, Predictor, as_text
from heedful.search.generation import GenerationRow, Reason, TextStream
from heedful.search.sampling import sample
from heedful.text.sequences import pad
from heedful.text.tokenizer import EOS, UNK, Tokenizer

WINDOW = 1024  # prompts read at a time: enough to make batches of similar length


@dataclass(frozen=True)
class GenerationRequest:
    """Request to a text generator: a prompt and the settings for its continuation.

    Attributes:
        prompt: the text to continue; an empty prompt begins a new document.
        config: the settings; `batch_tokens` is ignored, the generator's own value holds.
    """

    prompt: str
    config: GenerateConfig


@dataclass(frozen=True)
class Generation:
    """Continuation of a prompt: the generated text, its tokens and their log-probabilities.

    Attributes:
        text: the generated text, so that prompt + text reads on without a seam; a stop string and whatever follows it
            in the same token are left out.
        tokens: the ids of the generated tokens, without <eos>.
        token_scores: log P of each token, and of <eos> if it was generated, under the model before any filter.
        reason: "eos": the model ended the text; "stop": a stop string was reached; "length": cut at `max_tokens`.
    """

    text: str
    tokens: list[int]
    token_scores: list[float]
    reason: Reason

    def __str__(self) -> str:
        return self.text


class ScoredWindow(NamedTuple):
    """Tokens that the model reads at once, and the place of the first one from which the next token is scored."""

    tokens: list[int]
    first: int


class Generator(Predictor[LanguageModel, Generation]):
    """Text generator: a language model with its tokenizer. An output depends on its own request only, not on the batch.

    Args:
        model: a decoder-only language model.
        tokenizer: the tokenizer of the model.
        config: the default settings of requests, and `batch_tokens`.
        context: the most tokens that the model reads; None: any number. A prompt or text longer than this is continued
            from its last `context` // 2 tokens.
    """

    tokenizer: Tokenizer

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, config: GenerateConfig, context: int | None = None
    ) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.config: GenerateConfig = config
        self.context = context
        self.never = [i for i in range(tokenizer.first_piece) if i not in (UNK, EOS)]  # ids that are never generated

    def with_options(self, **options: Unpack[GenerateOptions]) -> "Generator":
        """Create a generator that shares this model, with other default settings for generation."""
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
            prompts: a string or a `GenerationRequest`, which is continued once; or an iterable of these, which gives a
                list of continuations in the same order.
            options: keys of [generate] for this call, such as `temperature=0.7`.

        Raises:
            InputError: a prompt is not a text or holds half a character; an option does not exist, or its value is not
                allowed.
            RunError: the model's output is not a number.
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
        """Continue any number of prompts, in their order; prompts of similar length form a batch.

        Args:
            prompts: strings, or requests, each with settings of its own.
            window: number of prompts read before their continuations are yielded.
            done: called with the number of prompts that have just ended, as soon as they have.
            options: keys of [generate] for this call, such as `temperature=0.7`.
        """
        return self._continued(self._prompts(options).each(prompts), window, done)

    def stream(
        self, prompt: str | GenerationRequest, **options: Unpack[GenerateOptions]
    ) -> abc.Generator[str, None, Generation]:
        """Generate the continuation of one prompt as a stream: yield each part of the text as soon as it is final.

        The value of the generator, as of `yield from`, is the whole continuation.
        """
        return self._streamed(self._prompts(options).read(prompt))

    @overload
    def score(self, texts: str, *, end: bool = False) -> TokenScores: ...
    @overload
    def score(self, texts: Iterable[str], *, end: bool = False) -> list[TokenScores]: ...
    def score(self, texts: object, *, end: bool = False) -> TokenScores | list[TokenScores]:
        """Compute the log-probability of each token of a text, or of each of several texts, as the model reads them.

        The first token follows an <eos>, as at the beginning of a document in training. Of a text longer than the
        context, each token is given at least the `context` // 2 tokens before it.

        Args:
            texts: a string, or an iterable of strings, which gives a list in the same order.
            end: score the <eos> after the text, too: the probability that the text ends there.

        Raises:
            InputError: an input is not a text.
            RunError: the model's output is not a number.
        """
        return TEXTS.one_or_all(lambda each: self._scored(each, end=end), texts)

    def _scored(self, texts: Iterator[str], *, end: bool) -> Iterator[TokenScores]:
        while window := list(islice(texts, WINDOW)):
            rows = [[*ids, EOS] if end else ids for ids in self.tokenizer.encode_batch(window)]
            cuts = [self._cut_to_context([EOS, *row]) for row in rows]
            scores = iter(self._score_windows([part for parts in cuts for part in parts]))
            for row, parts in zip(rows, cuts, strict=True):
                log_probs = [score for _ in parts for score in next(scores)]
                yield TokenScores(row, self.tokenizer.pieces(row), log_probs)

    def _cut_to_context(self, tokens: list[int]) -> list[ScoredWindow]:
        """Cut tokens into windows of the context; each predicts the tokens that those before it have not."""
        window = len(tokens) - 1 if self.context is None else min(self.context, len(tokens) - 1)
        cuts: list[ScoredWindow] = []
        done = 0  # tokens that are predicted, the first one not counted
        while done < len(tokens) - 1:
            begin = 0 if done == 0 else min(done - window // 2, len(tokens) - 1 - window)
            cuts.append(ScoredWindow(tokens[begin : begin + window + 1], done - begin))
            done = begin + window
        return cuts

    @torch.inference_mode()
    def _score_windows(self, windows: list[ScoredWindow]) -> list[list[float]]:
        scores: list[list[float]] = [[]] * len(windows)
        with evaluating(self.model):
            for batch in batches([window.tokens for window in windows], self.config.batch_tokens):
                tokens, padding_mask = self._padded([windows[i].tokens for i in batch])
                mask = AttentionMask(padding_mask[:, :-1], tokens.size(1) - 1, causal=True)
                hidden = self.model.hidden(tokens[:, :-1], mask)
                for index, states, row in zip(batch, hidden, tokens, strict=True):
                    first, stop = windows[index].first, len(windows[index].tokens) - 1
                    log_probs = log_probs_of(states[first:stop], row[first + 1 : stop + 1], self.model.output)
                    check_numbers(log_probs)
                    scores[index] = log_probs.tolist()
        return scores

    def _padded(self, rows: list[list[int]], side: Literal["left", "right"] = "right") -> tuple[Tensor, Tensor]:
        ids, padding_mask = (torch.from_numpy(x).to(self.device) for x in pad(rows, side=side))
        return ids, padding_mask

    def _prompts(self, options: GenerateOptions) -> InputKind[GenerationRequest]:
        """Check options, and make the kind of input that prompts with them are; they override settings of a request."""
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
            yield from map(_generation, rows)

    def _streamed(self, request: GenerationRequest) -> abc.Generator[str, None, Generation]:
        (row,) = self._rows([request])
        count = 0
        for _ in self._steps([row]):
            yield from row.text.parts[count:]
            count = len(row.text.parts)
        return _generation(row)

    def reads_whole(self, prompt: str) -> bool:
        """True if a prompt fits the context of the model; of a longer prompt only the last part is read."""
        return self.context is None or len(self.tokenizer.encode(prompt)) <= self.context

    def _rows(self, requests: list[GenerationRequest]) -> list[GenerationRow]:
        space = self.tokenizer.first_space  # the tokenizer adds it, which must not begin a text after an empty prompt
        prompts = self.tokenizer.encode_batch([request.prompt for request in requests])
        return [
            GenerationRow(request.config, prompt, TextStream(request.config.stop, prefix="" if prompt else space))
            for request, prompt in zip(requests, prompts, strict=True)
        ]

    def _steps(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Generate tokens for rows until all have ended; yield after each token."""
        while rows:
            for row in rows:
                row.crop(self.context)

            # A batch is the rows with the longest windows that fit, at least one, each as wide as it may become.
            rows = sorted(rows, key=lambda row: len(row.window), reverse=True)
            room = accumulate((row.left for row in rows), max)
            widths = (min(len(rows[0].window) + tokens, self.context or math.inf) for tokens in room)
            count = sum(size * width <= self.config.batch_tokens for size, width in enumerate(widths, start=1))
            batch, rest = rows[: max(1, count)], rows[max(1, count) :]

            yield from self._run(batch)
            rows = rest + [row for row in batch if not row.done]

    @torch.inference_mode()
    def _run(self, rows: list[GenerationRow]) -> Iterator[None]:
        """Generate tokens until each row has ended or the batch, padding included, fills the context of the model."""
        prompts, padding_mask = self._padded([row.window for row in rows], side="left")
        with evaluating(self.model):
            state = self.model.start(prompts, padding_mask)
        tokens = state.begin
        width = prompts.size(1)
        while rows and (self.context is None or width <= self.context):
            with evaluating(self.model):  # not around the yield, after which the caller may train the model
                logits = state.step(tokens)
            choices, scores = sample(logits, rows, self.never)
            for row, token, score in zip(rows, choices.tolist(), scores.tolist(), strict=True):
                row.take(token, score, self.tokenizer.spell([token]))
            yield

            going = [i for i, row in enumerate(rows) if not row.done]
            if 0 < len(going) < len(rows):
                state.select(torch.tensor(going, device=tokens.device))
            rows = [rows[i] for i in going]
            tokens = choices[going].to(tokens.device)
            width += 1


def _generation(row: GenerationRow) -> Generation:
    return Generation(row.text.text, row.output, row.scores, row.reason)
