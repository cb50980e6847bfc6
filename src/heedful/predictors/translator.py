"""Translation with a trained encoder-decoder: lines in, translations out, in order and in bounded memory."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack, overload

from heedful.config.options import DecodeOptions
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.predictors.outputs import TokenScores
from heedful.predictors.predictor import (
    TEXTS,
    Done,
    InputKind,
    Predictor,
    as_text,
    check_one_text,
    described,
)
from heedful.search.constraints import Constraints, Guide, each_constraint
from heedful.search.hypothesis import Hypothesis
from heedful.storage.written_files import own_file
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:  # torch is imported with the model
    from heedful.architectures.model import SourceToTarget
    from heedful.predictors.word_alignment import Alignment

A = TypeVar("A")

LOG = logging.getLogger(__name__)
WINDOW = 1024  # lines read at a time: enough to make batches of similar length
MAX_SOURCE_TOKENS = 1000  # with <eos>; the cost of attention grows with the square
CHARACTERS_PER_TOKEN = 64  # more than in any language, so that a very long line need not be encoded whole

ConstraintsOfTexts = Constraints | Iterable[Constraints | None] | None  # for all texts together, or one for each


class UnmetConstraints(InputError):
    """No translation was found that satisfies the constraints of the text with an index, for a reason."""

    def __init__(self, reason: str, index: int) -> None:
        super().__init__(f"text {index + 1:,}: {reason}")
        self.reason = reason
        self.index = index


@dataclass(frozen=True)
class Alternative:
    """One of the n best translations of a line: its text and its hypothesis."""

    text: str
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Translation:
    """Translation of one line: the n best alternatives, and whether the line was truncated.

    Attributes:
        alternatives: At most `n_best` translations, best first; none if the line is blank.
        truncated: True if the line was longer than the model can read, so that its end is not translated.
    """

    alternatives: list[Alternative]
    truncated: bool

    @property
    def text(self) -> str:
        """The text of the best translation; empty if the line is blank."""
        return self.alternatives[0].text if self.alternatives else ""

    @property
    def complete(self) -> bool:
        """False if the best translation reached the length limit, and was cut there."""
        return all(best.hypothesis.complete for best in self.alternatives[:1])

    def __str__(self) -> str:
        return self.text


class Translator(Predictor["SourceToTarget", str]):
    """Translator: an encoder-decoder with its tokenizers. The translation of a line never depends on other lines."""

    tokenizer: Tokenizer

    def __init__(self, model: "SourceToTarget", tokenizers: TokenizerPair, config: DecodeConfig) -> None:
        super().__init__(model)
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.source
        self.config: DecodeConfig = config

    def with_options(self, **options: Unpack[DecodeOptions]) -> "Translator":
        """Create a translator that shares this model, with different decoding settings."""
        self.tokenizers.check_shortlist(options.get("shortlist", 0))
        return self._configured(options)

    @overload
    def translate(
        self, texts: str, *, constraints: ConstraintsOfTexts = None, **options: Unpack[DecodeOptions]
    ) -> str: ...
    @overload
    def translate(
        self, texts: Iterable[str], *, constraints: ConstraintsOfTexts = None, **options: Unpack[DecodeOptions]
    ) -> list[str]: ...
    def translate(
        self, texts: object, *, constraints: ConstraintsOfTexts = None, **options: Unpack[DecodeOptions]
    ) -> str | list[str]:
        """Translate a text, usually a sentence, or each of several texts.

        A blank text has an empty translation. Only the best translation is returned; `translate_lines` returns the
        `decode.n_best` best ones.

        Args:
            texts: A string, which gives one translation; or an iterable of strings, which gives a list in the same
                order.
            constraints: Constraints on the translations: the same for all texts, or an iterable with one for each text.
            options: Keys of [decode] for this call, such as `beam=1`, as for `with_options`.
        """
        translator = self.with_options(**options)
        remedy = "for the n best, use `.alternatives` of each result of translate_lines(texts, n_best=...)"
        check_one_text(options, translator.config, f"translate gives one translation of a text; {remedy}")
        return TEXTS.one_or_all(
            lambda lines: (each.text for each in translator.translate_lines(lines, constraints=constraints)), texts
        )

    __call__ = predict = translate

    def translate_lines(
        self,
        lines: Iterable[str],
        window: int = WINDOW,
        done: Done = lambda _: None,
        *,
        constraints: ConstraintsOfTexts = None,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[Translation]:
        """Translate any number of lines, in order, and yield each translation with all its alternatives.

        Args:
            lines: Texts, usually one sentence each.
            window: Number of lines read before their translations are yielded.
            done: Called with the number of lines just translated, after each batch.
            constraints: Constraints on the translations: the same for all lines, or an iterable with one for each line.
                A line whose translation satisfies its constraints anyway is translated as without them; others are
                searched again. Each of the `n_best` translations satisfies them.
            options: Keys of [decode] for this call, such as `n_best=3`, as for `with_options`.

        Raises:
            UnmetConstraints: No translation of a line satisfies its constraints, or the search finds none.
        """
        pairs = each_constraint(constraints, TEXTS.each(lines))
        return self.with_options(**options)._translated(pairs, window, done)

    def _translated(
        self, lines: "Iterator[tuple[str, Constraints | None]]", window: int, done: Done
    ) -> Iterator[Translation]:
        max_characters = self.longest_source * CHARACTERS_PER_TOKEN
        before = 0  # lines in previous windows
        while pairs := list(islice(lines, window)):
            # Keep one character more than is read, which shows below that the line was longer.
            texts = [line[: max_characters + 1] for line, _ in pairs]
            rows = self.tokenizers.source.encode_batch(texts)
            rows = [row if text.strip() else [] for text, row in zip(texts, rows, strict=True)]
            # One position is reserved for <eos>.
            rows_read = [row[: self.longest_source - 1] for row in rows]
            try:
                outputs = self.constrained(rows_read, self.search_rows(rows_read, done), [each for _, each in pairs])
            except UnmetConstraints as error:
                raise UnmetConstraints(error.reason, before + error.index) from error
            before += len(pairs)

            for text, row, hypotheses in zip(texts, rows, outputs, strict=True):
                truncated = len(text) > max_characters or len(row) >= self.longest_source
                decode = self.tokenizers.target.decode
                yield Translation([Alternative(decode(h.tokens), h) for h in hypotheses], truncated)

    @overload
    def translate_text(self, texts: str, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def translate_text(self, texts: Iterable[str], **options: Unpack[DecodeOptions]) -> list[str]: ...
    def translate_text(self, texts: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Translate a text of any length, or each of several texts, sentence by sentence.

        Line breaks, indentation and blanks stay as they are, and what is not natural language, such as a URL, is
        copied.

        Args:
            texts: A string, which gives one translation; or an iterable of strings, which gives a list in the same
                order.
            options: Keys of [decode] for this call, such as `beam=1`, as for `with_options`.
        """
        from heedful.documents.document import Segment
        from heedful.predictors.document_translator import DocumentTranslator

        translator = DocumentTranslator(self.with_options(**options))
        return TEXTS.one_or_all(
            lambda each: (part.segment.text for part in translator.translate_segments(map(Segment, each))), texts
        )

    def translate_file(
        self, source: str | Path, output: str | Path, *, replace: bool = False, **options: Unpack[DecodeOptions]
    ) -> None:
        """Translate a document, such as a .txt file; its format stays the same.

        Args:
            source: The document.
            output: The file to write. It is written at once when everything is translated.
            replace: Replace a file that heedful did not write.
            options: Keys of [decode] for this call, such as `beam=1`, as for `with_options`.
        """
        from heedful.documents.document import read_document
        from heedful.predictors.document_translator import DocumentTranslator

        document = read_document(Path(source))
        translator = DocumentTranslator(self.with_options(**options))
        segments = [part.segment for part in translator.translate_segments(document.segments)]
        with own_file(Path(output), replace=replace) as stream:
            stream.write(document.with_segments(segments))

    @overload
    def score(self, pairs: tuple[str, str]) -> TokenScores: ...
    @overload
    def score(self, pairs: Iterable[tuple[str, str]]) -> list[TokenScores]: ...
    def score(self, pairs: object) -> TokenScores | list[TokenScores]:
        """Compute the log-probability of each token of a translation given its source, <eos> at the end included.

        Args:
            pairs: A tuple of a source and a translation; or an iterable of such pairs, which gives a list in the same
                order.

        Raises:
            RunError: The model computes NaN.
        """
        return one_or_all_pairs(self._scored, pairs)

    def _scored(self, pairs: Iterator[tuple[str, str]]) -> Iterator[TokenScores]:
        number = 0
        limits = {"source": self.model.max_positions(), "translation": self.model.max_target_positions()}
        while window := list(islice(pairs, WINDOW)):
            sources = [[*row, EOS] for row in self.tokenizers.source.encode_batch([source for source, _ in window])]
            targets = [[*row, EOS] for row in self.tokenizers.target.encode_batch([target for _, target in window])]
            # The score of a truncated text would look like a score of the whole text, so a long pair is an error.
            for rows in zip(sources, targets, strict=True):
                number += 1
                for row, (side, limit) in zip(rows, limits.items(), strict=True):
                    if limit is not None and len(row) > limit:
                        raise InputError(
                            f"pair {number}: the {side} has {len(row):,} tokens, but the model reads at most "
                            f"{limit:,}; shorten it"
                        )
            scores = self._score_rows(sources, targets)
            yield from map(TokenScores, targets, map(self.tokenizers.target.pieces, targets), scores)

    def _score_rows(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        from heedful.search.source_to_target import score_rows

        return score_rows(self.model, sources, targets, self.config.batch_tokens)

    @overload
    def align(self, pairs: tuple[str, str]) -> "Alignment": ...
    @overload
    def align(self, pairs: Iterable[tuple[str, str]]) -> "list[Alignment]": ...
    def align(self, pairs: object) -> "Alignment | list[Alignment]":
        """Align the words of a translation with those of its source, by the cross-attention of the decoder.

        The words are those of `heedful.text.words.word_spans`. A word may have several links, or none. The end of an
        overlong text has none. The first model of an ensemble aligns.

        Args:
            pairs: A tuple of a source and a translation, by this model or by others; or an iterable of such pairs,
                which gives a list in the same order.

        Raises:
            InputError: The model has no cross-attention.
        """
        return one_or_all_pairs(self._aligned, pairs)

    def _aligned(self, pairs: Iterator[tuple[str, str]]) -> "Iterator[Alignment]":
        from heedful.predictors.word_alignment import Aligner

        limits = self.longest_source - 1, self.longest_output(self.longest_source)
        aligner = Aligner(self.model, self.tokenizers, limits, self.config.batch_tokens // self.config.beam)
        while window := list(islice(pairs, WINDOW)):
            yield from aligner.align(window)

    def search_rows(self, rows: list[list[int]], done: Done = lambda _: None) -> list[list[Hypothesis]]:
        """Find the `n_best` translations of each row of token ids without <eos>, best first; an empty row has none.

        `done` is called with the number of rows just searched, after each batch.
        """
        from heedful.search.beam import check_beam
        from heedful.search.source_to_target import search_rows

        check_beam(self.config.beam, len(self.tokenizers.target), self.device)
        limits = [self.longest_output(len(row)) for row in rows]
        return search_rows(self.model, rows, limits, self.config, done, self.tokenizers.shortlist)

    def constrained(
        self, rows: list[list[int]], outputs: list[list[Hypothesis]], constraints: "Sequence[Constraints | None]"
    ) -> list[list[Hypothesis]]:
        """Search again for the rows whose outputs violate their constraints; return the outputs of all rows."""
        decode = self.tokenizers.target.decode
        strict = {
            index: each
            for index, (each, hypotheses) in enumerate(zip(constraints, outputs, strict=True))
            if each and not all(each.strict.are_met(decode(h.tokens)) for h in hypotheses)
        }
        if not strict:
            return outputs
        guides = {index: Guide(each.strict, self.tokenizers.target, self.config) for index, each in strict.items()}
        limits = [self.longest_output(len(rows[index])) for index in guides]
        for index, guide in guides.items():
            problem = guide.problem()
            if problem and not strict[index].preferred:
                raise UnmetConstraints(problem, index)
        LOG.info("%d of %d texts do not satisfy their constraints: torch searches again", len(guides), len(rows))
        searches = self._constrained_search([rows[index] for index in guides], limits, list(guides.values()))
        results, fewer = list(outputs), {}
        for (index, guide), limit, hypotheses in zip(guides.items(), limits, searches, strict=True):
            results[index] = hypotheses
            if not hypotheses and not strict[index].preferred:
                raise UnmetConstraints(guide.failure(limit), index)
            if not hypotheses:
                fewer[index] = replace(strict[index], preferred=strict[index].preferred[:-1])
        try:
            again = self.constrained([rows[i] for i in fewer], [outputs[i] for i in fewer], list(fewer.values()))
        except UnmetConstraints as error:
            raise UnmetConstraints(error.reason, list(fewer)[error.index]) from error
        for index, hypotheses in zip(fewer, again, strict=True):
            results[index] = hypotheses
        return results

    def _constrained_search(
        self, rows: list[list[int]], limits: list[int], guides: list[Guide]
    ) -> list[list[Hypothesis]]:
        from heedful.search.constrained import search_constrained_rows

        return search_constrained_rows(self.model, rows, limits, self.config, guides)

    def problem_of(self, text: str, constraints: Constraints) -> str | None:
        """Explain why no translation of a text can satisfy its constraints; None if one may."""
        guide = Guide(constraints.strict, self.tokenizers.target, self.config)
        size = min(len(self.tokenizers.source.encode(text)), self.longest_source - 1)
        return guide.problem() or guide.length_problem(self.longest_output(size))

    @property
    def longest_source(self) -> int:
        """Maximum number of source tokens, with <eos>; the rest of a longer line is not translated."""
        return min(self.model.max_positions() or MAX_SOURCE_TOKENS, MAX_SOURCE_TOKENS)

    def longest_output(self, source: int) -> int:
        """Return the maximum number of output tokens, with <eos>, for a source of `source` tokens, without <eos>."""
        limit = source + self.config.extra
        return min(limit, self.model.max_target_positions() or limit)


def as_pair(value: object) -> tuple[str, str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(f"{described(value)} is not a pair; give (source, translation), or several in a list")
    return as_text(value[0]), as_text(value[1])


PAIRS = InputKind("pair", (tuple,), as_pair, "(source, translation)")


def one_or_all_pairs(answers: Callable[[Iterator[tuple[str, str]]], Iterator[A]], pairs: object) -> A | list[A]:
    """Return one result for a pair, and a list of results, in order, for an iterable of pairs."""
    if isinstance(pairs, str) or hasattr(pairs, "columns"):  # items would be characters or column names, not pairs
        as_pair(pairs)
    return PAIRS.one_or_all(answers, pairs)
