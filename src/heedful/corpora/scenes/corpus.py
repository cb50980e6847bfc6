"""Files of a scenes corpus, and the split into training, validation and test data by the English text alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

from heedful.corpora.scenes.sentence import ScenePair

T = TypeVar("T")


def divide(
    items: Iterator[T],
    text: Callable[[T], str],
    sizes: Mapping[str, int],
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[T]]:
    """Split generated items with distinct text into "train", "valid" and "test", by a checksum of the text alone.

    One text in 16 is for validation, and one in 16 for testing, whatever the seed and the sizes: a training text of one
    corpus is never a validation or test text of another.

    Args:
        items: An endless generator of items.
        text: Returns the English text of an item.
        sizes: The number of items for each part.
        done: Called with the number of items added.
    """
    parts: dict[str, list[T]] = {part: [] for part in sizes}
    texts: set[str] = set()
    while any(len(parts[part]) < size for part, size in sizes.items()):
        item = next(items)
        english = text(item)
        part = {0: "valid", 1: "test"}.get(crc32(english.encode()) % 16, "train")
        if english not in texts and len(parts[part]) < sizes[part]:
            texts.add(english)
            parts[part].append(item)
            done(1)
    return parts


def corpus_files(languages: str, parts: Mapping[str, Sequence[ScenePair]]) -> dict[str, str]:
    """Return the contents of the files of a scenes corpus, by name. Line i of each file of a part belongs to pair i.

    For the part "train" in "en-de", these are train.en and train.de with the text, train.words.en and train.words.de
    with its words separated by spaces, train.roles.en and train.roles.de with the role of each word, and train.align
    with the word alignment, such as "0-0 1-2".
    """
    files = {}
    for part, pairs in parts.items():
        files[f"{part}.align"] = _lines(" ".join(f"{i}-{j}" for i, j in pair.alignment) for pair in pairs)
        sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
        for language, sentences in zip(languages.split("-"), sides, strict=True):
            files[f"{part}.{language}"] = _lines(sentence.text for sentence in sentences)
            files[f"{part}.words.{language}"] = _lines(" ".join(sentence.words) for sentence in sentences)
            files[f"{part}.roles.{language}"] = _lines(" ".join(sentence.roles) for sentence in sentences)
    return files


def _lines(texts: Iterable[str]) -> str:
    return "".join(text + "\n" for text in texts)
