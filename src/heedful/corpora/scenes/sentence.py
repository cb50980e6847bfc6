"""Generated sentences with the role of each word, and the word alignment of two sentences about the same scene."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

ROLES = (
    "subject",
    "object",
    "recipient",  # the indirect object
    "agent",  # who does it, in the passive
    "standard",  # what the subject is compared with
    "predicate",  # an adjective after "is"
    "place",
    "time",
    "possessor",
    "verb",
    "auxiliary",  # has, will, can; Chinese words for tense and for the passive
    "particle",  # the rest of a verb: wake up, wants to, macht auf, 睡觉; 的, 吗, 很
    "negation",
    "determiner",  # including possessives and numerals
    "classifier",
    "adjective",
    "preposition",  # including Chinese words for the side, such as 下面
    "conjunction",
    "relativizer",  # the relative pronoun; Chinese 的 after a relative clause
    "punctuation",
    "bracket",  # of a constituency tree
)

Link = tuple[object, str]  # a node of the scene's tree, and a part of it


class Word(NamedTuple):
    """A word of a generated sentence: its text, its role in its clause, and the parts of the scene it expresses."""

    text: str
    role: str
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A generated sentence with one role per word (see ROLES); punctuation marks are words."""

    words: tuple[str, ...]
    roles: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ScenePair:
    """A generated sentence, its translation and their word alignment: sorted pairs of word numbers, from 0.

    One word may correspond to several: both parts of a separable verb to the verb, a Chinese classifier to the
    determiner or numeral next to it, the finite verb to the auxiliary that English needs to deny or ask ("does"), a
    fused preposition ("im") to the preposition and the article. Words without a counterpart, such as an English article
    whose noun is bare in Chinese, are not aligned.
    """

    source: Sentence
    target: Sentence
    alignment: tuple[tuple[int, int], ...]


def time_words(clause: object, texts: tuple[str, ...]) -> list[Word]:
    """Express a time as one word that links to all of it, or as two that each link to half: tonight, heute Abend."""
    links = (clause, "time first"), (clause, "time last")
    halves = (links,) if len(texts) == 1 else ((links[0],), (links[1],))
    return [Word(text, "time", half) for text, half in zip(texts, halves, strict=True)]


def sentence(words: list[Word], space: str, attached: str) -> Sentence:
    """Join words into a sentence that starts with a capital letter; `space` separates words other than `attached`."""
    texts = [word.text for word in words]
    texts[0] = texts[0][0].upper() + texts[0][1:]
    text = texts[0] + "".join(each if each in attached else space + each for each in texts[1:])
    return Sentence(tuple(texts), tuple(word.role for word in words), text)


def align(source: list[Word], target: list[Word]) -> tuple[tuple[int, int], ...]:
    """Align two sentences: list the word pairs, by index, that express the same part of the scene."""
    indices: dict[Link, list[int]] = defaultdict(list)  # of the target words that express each part
    for j, word in enumerate(target):
        for link in word.links:
            indices[link].append(j)
    pairs = {(i, j) for i, word in enumerate(source) for link in word.links for j in indices.get(link, ())}
    return tuple(sorted(pairs))
