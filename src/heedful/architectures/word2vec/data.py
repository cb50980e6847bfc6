"""Preparation of text for word vectors: words and phrases as a token stream of their numbers."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.architectures.word2vec.windows import find_phrases, join_all
from heedful.config.schema import CorpusConfig, Recipe, TokenizerConfig
from heedful.data.preparation.prepared_data import Preparation, PreparedData, one_store_for_all, prepare_data
from heedful.data.preparation.text import all_texts, check_documents, long_lines
from heedful.data.readers.filters import DropReport
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.text.pipeline import reserved
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer, word_tokenizer
from heedful.text.words import split_words
from heedful.wording import counted

FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
ASCII_WORD = re.compile(r"\w+", re.ASCII)


def prepare_words(
    recipe: Recipe,
    options: Word2VecConfig,
    folder: Path,
    report: Callable[[str], None],
    given: TokenizerPair | None = None,
) -> PreparedData[TokenStream]:
    """Return the words of a recipe's documents as a stored token stream; words outside the vocabulary are left out.

    Arguments and errors are those of `heedful.data.preparation.prepared_data.prepare_data`; the options decide which
    pairs of words become phrases.
    """
    if given is None:
        check_documents(recipe)

    def documents(
        corpora: Sequence[CorpusConfig], passes: Sequence[Container[str]], drops: DropReport
    ) -> Iterator[Sequence[str]]:
        texts = all_texts(corpora, recipe, drops)
        return join_all((words_of(text, recipe.tokenizer) for text in texts), passes)

    def tokenizers() -> TokenizerPair:
        passes: list[Container[str]] = []
        # Each pass joins what the passes before have joined: "new_york" and "times" in the second.
        for threshold in () if recipe.tokenizer.path else options.phrases:
            words = documents(recipe.data.train, passes, DropReport())
            phrases = find_phrases(words, threshold, options.phrase_discount)
            report(f"{counted(len(phrases), 'phrases')} with a score above {threshold:g}")
            passes.append(phrases)
        tokenizer = given_tokenizer(recipe)
        if tokenizer is None:
            report("counting the words")
            words = documents(recipe.data.train, passes, DropReport())
            tokenizer = frequent_words(Counter(chain.from_iterable(words)), recipe.tokenizer)
        return TokenizerPair(tokenizer, tokenizer)

    def write(place: Path, corpora: Sequence[CorpusConfig], made: TokenizerPair, drops: DropReport) -> None:
        passes = vocabulary_phrases(made.source, options)
        stream = TokenStream.write(place, encoded(documents(corpora, passes, drops), made.source), len(made.source))
        size = counted(len(stream.offsets) - 1, "documents")
        report(f"{place.name}: {size}, {counted(len(stream) - len(stream.offsets) + 1, 'words')}, {drops}")

    form = FORMS.get(recipe.tokenizer.normalization, "")
    words = Preparation(
        parts=one_store_for_all(recipe.data),
        tokenizers=tokenizers,
        write=write,
        open=TokenStream.open,
        texts=lambda corpus: long_lines(corpus, recipe.data),
        settings=f", phrases {options.phrases} {options.phrase_discount}{', in ' * bool(form)}{form}",
    )
    return prepare_data(recipe, folder, words, report, given)


def words_of(text: str, config: TokenizerConfig) -> list[str]:
    """Cut a normalised text into words: at spaces only, if it is already tokenized, else without punctuation marks."""
    if form := FORMS.get(config.normalization):
        text = unicodedata.normalize(form, text)
    text = text.lower() if config.lowercase else text
    if config.pretokenized:
        return text.split()
    words = ASCII_WORD.findall(text) if text.isascii() else split_words(text)  # the same words, but at once
    return [word for word in words if word[0].isalnum()]


def frequent_words(counts: Counter[str], config: TokenizerConfig) -> Tokenizer:
    """Make a word tokenizer of the most frequent words, in the order of their frequency; code points decide ties."""
    if not counts:
        raise InputError("the training text holds no words; give other files")
    # Its texts are words already, with spaces between them.
    spaced = replace(config, pretokenized=True)
    first = len(reserved(spaced))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: config.vocab_size - first]
    return word_tokenizer({word: i for i, word in enumerate(ranked, start=first)}, spaced)


def encoded(documents: Iterable[Sequence[str]], tokenizer: Tokenizer) -> Iterator[Encoded]:
    """Yield the numbers of each document's words, without those outside the vocabulary, and the size of its text."""
    numbers = word_numbers(tokenizer)
    for words in documents:
        ids = [numbers[word] for word in words if word in numbers]
        yield ids, sum(len(word.encode("utf-8")) + 1 for word in words)


def vocabulary_phrases(tokenizer: Tokenizer, options: Word2VecConfig) -> list[Container[str]]:
    """List the phrases of a vocabulary once for each pass that joins them; all texts are joined alike."""
    return [frozenset(word_numbers(tokenizer))] * len(options.phrases)


def word_numbers(tokenizer: Tokenizer) -> dict[str, int]:
    """Map each word of the vocabulary of a word tokenizer to its number."""
    ids = range(tokenizer.first_word, len(tokenizer))
    return {text.removeprefix(" "): i for i, text in zip(ids, tokenizer.texts(ids), strict=True)}
