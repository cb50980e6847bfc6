"""Input of `heedful predict` with a tagger: texts to cut into words, or words that are given."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.inputs import place_of
from heedful.cli.tables import GivenTexts
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.data.readers.corpus import TableRow
    from heedful.data.readers.whole_rows import WholeRow
    from heedful.predict.text_predictor import TextPredictor


def word_lists(predictor: "TextPredictor", source: Path | None, field: str | None) -> GivenTexts | None:
    """Read the lists of words in a .jsonl file for a tagger; None for other models, and if the file has none.

    Raises:
        InputError: a line of the file has no list of words, or a word is not a string.
    """
    from heedful.data.readers.word_lists import has_word_lists, read_word_lists
    from heedful.predict.tagger import Tagger

    if source is None or not isinstance(predictor, Tagger) or not has_word_lists(source, field):
        return None
    count = sum(1 for _ in read_word_lists(source, field))
    return GivenTexts(map(as_line, read_word_lists(source, field)), count, "row")


def as_line(row: "TableRow") -> "WholeRow":
    """Return a row of words as one of a single cell, in which spaces are between the words."""
    from heedful.data.readers.whole_rows import WholeRow

    return WholeRow(row.line, row.texts, ("\t".join(row.texts),))


def as_pretokenized(asked: GivenTexts, predictor: "TextPredictor", source: Path | None) -> GivenTexts:
    """Take the words of each text as spaces separate them, or as a JSON array lists them.

    Raises:
        InputError: the model is not a tagger.
    """
    from heedful.data.readers.word_lists import words_in
    from heedful.predict.tagger import Tagger
    from heedful.text.words import CutText

    if not isinstance(predictor, Tagger):
        raise InputError("--pretokenized is for models that tag words, and this one reads texts; leave it out")

    def rows() -> "Iterator[WholeRow]":
        for row in asked.rows:
            place = place_of(source, row.line)
            texts = (text if isinstance(text, CutText) else words_in(text, place) for text in row.texts)
            yield row._replace(texts=tuple(texts))

    return replace(asked, rows=rows())
