"""Files of a scenes corpus."""

from collections.abc import Iterable, Mapping, Sequence

from heedful.corpora.scenes.sentence import ScenePair


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
