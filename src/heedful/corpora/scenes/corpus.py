"""Files of a corpus of scenes, and the split into training, validation and test data by the English text alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

from heedful.corpora.scenes.sentence import ScenePair

T = TypeVar("T")


def divide(
    drawn: Iterator[T],
    text: Callable[[T], str],
    sizes: Mapping[str, int],
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[T]]:
    """Split generated items of distinct text into "train", "valid" and "test", as many for each as `sizes` says.

    A checksum of the text decides: one in 16 is for validation and one for testing, whatever is drawn with it.

    Args:
        drawn: Generates items, as many as it takes.
        text: Gives the English text of an item.
        sizes: The wanted number of items for each of the three parts.
        done: Called with the number of items that are added.
    """
    parts: dict[str, list[T]] = {purpose: [] for purpose in sizes}
    seen: set[str] = set()
    while any(len(parts[purpose]) < size for purpose, size in sizes.items()):
        item = next(drawn)
        english = text(item)
        purpose = {0: "valid", 1: "test"}.get(crc32(english.encode()) % 16, "train")
        if english not in seen and len(parts[purpose]) < sizes[purpose]:
            seen.add(english)
            parts[purpose].append(item)
            done(1)
    return parts


def corpus_files(languages: str, parts: Mapping[str, Sequence[ScenePair]]) -> dict[str, str]:
    """Return the files of a corpus of scenes, contents by name; line i of all files of a part is about pair i.

    For a part "train" in "en-de" these are train.en and train.de with the text, train.words.en and train.words.de with
    its words between spaces, train.roles.en and train.roles.de with the role of each word, and train.align with the
    alignment of the words, as "0-0 1-2".
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
