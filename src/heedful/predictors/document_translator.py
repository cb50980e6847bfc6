"""Translation of documents: paragraphs are translated sentence by sentence, and keep their markup and their blanks."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sentencex.sentencex import segment as split_sentences

from heedful.documents.document import Segment, Tag
from heedful.documents.tags import Link, Range, Sentence, project_tags, with_stand_ins, without_stand_ins
from heedful.errors import InputError
from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator, blank_after, literals
from heedful.predictors.predictor import Done
from heedful.predictors.translator import WINDOW, Translation, Translator


class LineTranslator(Protocol):
    """Translator of sentences."""

    def translate_lines(self, lines: Iterable[str], window: int, done: Done) -> Iterator[Translation]: ...


class Source(NamedTuple):
    """Segment with placeholders for the tags that are words, these tags, and the ranges of its sentences."""

    segment: Segment
    words: Mapping[str, Tag]
    sentences: Sequence[Range]


class TranslatedSegment(NamedTuple):
    """Translation of a segment, and the translations of its sentences, in order."""

    segment: Segment
    sentences: Sequence[Translation]


@dataclass(frozen=True)
class DocumentTranslator:
    """Translator of the segments of documents. The translation of a segment never depends on other segments.

    Attributes:
        translator: The translator, which also aligns words.
        lines: The translator of sentences; by default, one that preserves literals.
    """

    translator: Translator
    lines: LineTranslator | None = None

    def translate_segments(
        self, segments: Iterable[Segment], window: int = WINDOW, done: Done = lambda _: None
    ) -> Iterator[TranslatedSegment]:
        """Translate segments, in order.

        Args:
            segments: Texts of any length, with their inline tags.
            window: Number of sentences read before their translations are yielded.
            done: Called with the number of sentences just translated, after each batch.
        """
        lines = self.lines or LiteralPreservingTranslator(self.translator)
        for sources in self._windows(segments, window):
            texts = [source.text[begin:end] for source, _, sentences in sources for begin, end in sentences]
            # A sentence that occurs several times, as the strings of a program do, is translated once.
            unique = list(dict.fromkeys(texts))
            answers = lines.translate_lines(unique, max(len(unique), 1), done)
            translations = dict(zip(unique, answers, strict=True))
            done(len(texts) - len(unique))
            marked = {
                source.text[begin:end]: translations[source.text[begin:end]].text
                for source, _, sentences in sources
                for begin, end in sentences
                if _has_tag(source, begin, end)
            }
            links = self._links(marked)
            for source, words, sentences in sources:
                parts = [translations[source.text[begin:end]] for begin, end in sentences]
                segment = joined(source, sentences, [part.text for part in parts], links)
                yield TranslatedSegment(without_stand_ins(segment, words), parts)

    def _windows(self, segments: Iterable[Segment], window: int) -> Iterator[list[Source]]:
        """Yield the segments in groups of at least `window` sentences, which are translated together."""
        sources: list[Source] = []
        count = 0
        for segment in segments:
            source, words = with_stand_ins(segment)
            sources.append(Source(source, words, list(self.sentences(source.text))))
            count += len(sources[-1].sentences)
            if count >= window:
                yield sources
                sources, count = [], 0
        if sources:
            yield sources

    def _links(self, translations: Mapping[str, str]) -> dict[str, Sequence[Link]]:
        """Return the links between the words of each text and its translation; none if the model cannot align."""
        if not translations:  # aligning imports torch, also if CTranslate2 translates
            return {}
        try:
            alignments = self.translator.align(list(translations.items()))
        except InputError:  # without cross-attention
            return {}
        return {text: alignment.links for text, alignment in zip(translations, alignments, strict=True)}

    def sentences(self, text: str) -> Iterator[Range]:
        """Yield the range of each sentence in a text, without the blanks around it; a line break or a tab ends one."""
        recipe = self.translator.recipe
        for line in re.finditer(r"[^\r\n\t]+", text):
            position = line.start()
            for sentence in split_sentences(recipe.data.source_language if recipe else "en", line[0]):
                core = sentence.strip()
                if core:
                    begin = position + sentence.index(core)
                    yield begin, begin + len(core)
                position += len(sentence)


def joined(
    source: Segment, sentences: Sequence[Range], translations: Sequence[str], links: Mapping[str, Sequence[Link]]
) -> Segment:
    """Join the translations of the sentences of a segment as the sentences are, and place the tags of the segment.

    `links` has the links between the words of sentences and those of their translations.
    """
    text, position = "", 0
    parts: list[Sentence] = []
    for (begin, end), translation in zip(sentences, translations, strict=True):
        sentence, blank = source.text[begin:end], source.text[position:begin]
        if parts:
            blank = blank_after(source.text[slice(*parts[-1].source)], text[slice(*parts[-1].target)], blank)
        text += blank
        words = [
            Link(_shifted(link.source, begin), _shifted(link.target, len(text))) for link in links.get(sentence, ())
        ]
        solid = [_shifted((span.begin, span.end), len(text)) for span in literals(translation)]
        parts.append(Sentence((begin, end), (len(text), len(text) + len(translation)), words, solid))
        text += translation
        position = end
    return project_tags(source, text + source.text[position:], parts)


def _has_tag(segment: Segment, begin: int, end: int) -> bool:
    """Return True if a segment has a tag between two characters of a sentence."""
    following = bisect_right(segment.tags, begin, key=lambda tag: tag.position)
    return following < len(segment.tags) and segment.tags[following].position < end


def _shifted(part: Range, offset: int) -> Range:
    return part[0] + offset, part[1] + offset
