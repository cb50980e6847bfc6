"""A text generator whose model runs on CTranslate2: greedy decoding, and scores of texts.

Sampling needs torch: CTranslate2 has a different random number generator, and does not run one step at a time, so
heedful cannot sample the tokens itself.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from threading import Event
from typing import Any

from heedful.config.options import GenerateOptions, with_options
from heedful.config.schema import GenerateConfig, Recipe
from heedful.machine.cores import usable_cores
from heedful.predictors.ctranslate2_model import (
    CTranslate2Model,
    CTranslate2Predictor,
    Rows,
    ScoredOutputs,
    as_tokens,
    refuse,
)
from heedful.predictors.generator import Generation, GenerationRequest, Generator
from heedful.predictors.predictor import InputKind
from heedful.search.generation import GenerationRow
from heedful.text.pipeline import EOS
from heedful.text.tokenizer_pair import TokenizerPair

MAX_LOGITS = 2**24  # in memory at a time while texts are scored
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty", "no_repeat_ngram")
DEFAULTS = GenerateConfig()


def search_misfits(config: GenerateConfig) -> list[str]:
    """List the generation settings that CTranslate2 does not support, each with the supported values."""
    misfits = []
    if config.temperature != 0 and config.top_k != 1:
        misfits.append(f"generate.temperature = {config.temperature:g}: must be 0, because only torch samples tokens")
    for name in PENALTIES:
        value, default = getattr(config, name), getattr(DEFAULTS, name)
        if value != default:
            misfits.append(f"generate.{name} = {value:g}: must be {'left out' if default is None else f'{default:g}'}")
    return misfits


class DecoderOnly(CTranslate2Model):
    """Language model that decodes greedily, and scores tokens."""

    engine = "Generator"

    def score(self, windows: Rows, firsts: Sequence[int], batch_tokens: int) -> list[list[float]]:
        """Compute log P of the tokens after index `firsts[i]` in each window i, each token given all before it."""
        results = self.engine_for(windows).score_batch(
            as_tokens(windows),
            max_input_length=0,
            max_batch_size=batch_tokens,
            batch_type="tokens",
        )
        return [result.log_probs[first:] for result, first in zip(results, firsts, strict=True)]

    def decode(
        self,
        windows: Rows,
        take: Callable[[int, int], bool],
        max_tokens: int,
        min_tokens: int,
        suppressed: Sequence[int],
    ) -> Iterator[None]:
        """Continue windows with the most probable tokens.

        Yield after each token if there is one window, or at the end of each continuation if there are several.

        Args:
            windows: The tokens to continue, at least one each.
            take: Called with the index of a window and its next token; returns True if it was the last.
            max_tokens: Maximum number of tokens in a continuation, <eos> included.
            min_tokens: Minimum number of tokens before <eos> is allowed.
            suppressed: Tokens that are not generated.
        """
        steps: SimpleQueue[bool] = SimpleQueue()  # True at the end
        closed = Event()

        def step(result: Any) -> bool:
            ended = take(result.batch_id, result.token_id)
            # A single text is streamed token by token; for several, only their ends are reported.
            if ended or len(windows) == 1:
                steps.put(False)
            # True stops the row in CTranslate2, which is also right if the caller has stopped reading the stream.
            return ended or closed.is_set()

        def compute() -> None:
            self.engine_for(windows).generate_batch(
                as_tokens(windows),
                # One batch per core.
                max_batch_size=-(-len(windows) // usable_cores()),
                max_length=max_tokens,
                min_length=min_tokens,
                suppress_sequences=as_tokens([token] for token in suppressed),
                include_prompt_in_result=False,
                return_end_token=True,
                callback=step,
            )

        # CTranslate2 returns only at the end. Its callbacks, in another thread, pass each step to this generator.
        with ThreadPoolExecutor(1) as executor:
            work = executor.submit(compute)
            work.add_done_callback(lambda _: steps.put(True))
            try:
                while not steps.get():
                    yield
            finally:
                closed.set()
            with self.computing():
                # Raises the error of the other thread, if any.
                work.result()


class CTranslate2Generator(CTranslate2Predictor, Generator):
    """Text generator whose model runs on CTranslate2; `heedful.load(..., engine="ctranslate2")` returns one."""

    model_class = DecoderOnly
    reference_class = Generator

    def __init__(self, model: DecoderOnly, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> None:
        self.model: Any = model  # instead of a torch module
        self.recipe = model.recipe
        self.tokenizer = tokenizers.source
        self.config = with_options(model.recipe.generate, options or {})
        self.context = model.recipe.data.max_length

    @staticmethod
    def misfits(recipe: Recipe, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> list[str]:
        del tokenizers
        if getattr(recipe.model, "positions", None) == "relative":
            return [
                'model.positions = "relative": must have a different value, because CTranslate2 misplaces tokens after '
                "a prompt"
            ]
        return [] if options is None else search_misfits(with_options(recipe.generate, options))

    def _prompts(self, options: GenerateOptions) -> InputKind[GenerationRequest]:
        prompts = super()._prompts(options)

        def read(prompt: object) -> GenerationRequest:
            request = prompts.read(prompt)
            refuse(search_misfits(request.config))
            return request

        return replace(prompts, read=read)

    def score_windows(self, windows: list[list[int]], firsts: list[int]) -> list[list[float]]:
        batch_tokens = min(self.config.batch_tokens, max(1, MAX_LOGITS // len(self.tokenizer)))
        return self.model.score(windows, firsts, batch_tokens)

    def _run(self, rows: list[GenerationRow]) -> Iterator[None]:
        # The rows of a call must have the same settings. Windows of a single token are in separate calls, because one
        # in a batch makes CTranslate2 repeat the prompts of all rows.
        groups: dict[tuple[int, bool, bool], list[GenerationRow]] = defaultdict(list)
        for row in rows:
            min_tokens = max(0, row.config.min_tokens - len(row.output))
            groups[min_tokens, row.config.ignore_eos, len(row.window) == 1].append(row)
        for (min_tokens, ignores_eos, _), group in groups.items():
            yield from self._decode(group, min_tokens, [*self.suppressed, EOS] if ignores_eos else self.suppressed)

    def _decode(self, rows: list[GenerationRow], min_tokens: int, suppressed: list[int]) -> Iterator[None]:
        """Generate tokens for rows until each has ended or fills the context of the model."""

        def take(index: int, token: int) -> bool:
            row = rows[index]
            row.take(token, self.tokenizer.spell([token]))
            return row.done or (self.context is not None and len(row.window) > self.context)

        max_tokens = max(row.remaining for row in rows)
        return self.model.decode([row.window for row in rows], take, max_tokens, min_tokens, suppressed)

    def _generations(self, rows: Sequence[GenerationRow]) -> Iterator[Generation]:
        def score(outputs: list[list[tuple[list[int], int]]]) -> list[list[float]]:
            windows, firsts = map(list, zip(*(window for output in outputs for window in output), strict=True))
            scores = iter(self.score_windows(windows, firsts))
            return [[score for _ in output for score in next(scores)] for output in outputs]

        batch = ScoredOutputs(score)
        for row in rows:
            length = len(row.output) + (row.reason == "eos")
            scores = batch.add(predicting_windows(row, self.context), length)
            yield Generation(row.text.text, row.output, scores, row.reason)


def predicting_windows(row: GenerationRow, context: int | None) -> list[tuple[list[int], int]]:
    """Return the windows in which an output's tokens were predicted, each with the index of its last context token."""
    windows = []
    tokens = [*row.output, EOS] if row.reason == "eos" else row.output
    # The generation is replayed without the model: the row loses the same context tokens at the same steps.
    replayed = GenerationRow(row.config, row.prompt)
    while tokens:
        replayed.crop(context)
        size = len(replayed.window)
        replayed.window += tokens if context is None else tokens[: context + 1 - size]
        tokens = tokens[len(replayed.window) - size :]
        windows.append(([*replayed.window], size - 1))
    return windows
