"""Files of a corpus of scenes: raw text for training, and words, roles and alignments in files beside it."""

from collections.abc import Iterable, Mapping, Sequence

from heedful.data.scenes.sentence import ScenePair


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
