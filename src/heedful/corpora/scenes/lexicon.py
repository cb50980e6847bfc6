"""Lexicon of the scenes: nouns, adjectives, verbs and times in English, German and Chinese, read from tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

# Names for several categories of nouns that take part in the same actions.
GROUPS = {
    "people": "person name",
    "living": "person name animal",
    "goods": "text press thing garment dish container device vehicle fruit food drink",
    "wares": "goods furniture plant",
    "anything": "living goods furniture plant",
}

# The tenses that suit a verb, by its aspect; repeated ones are more likely. Nobody "is finding" (event) or "must lose"
# (happening) anything.
TENSES = {
    "activity": ("progressive", "progressive", "past", "past", "habit", "perfect", "future", "modal"),
    "process": ("progressive", "progressive", "past", "past", "habit", "future", "modal"),
    "event": ("past", "past", "past", "perfect", "future", "modal"),
    "happening": ("past", "past", "perfect", "future"),
    "state": ("present",),
}


class Relation(NamedTuple):
    """A relation in space: a preposition in English and German, a word after the noun in Chinese."""

    english: tuple[str, ...]
    german: str
    chinese: str


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun in English, German and Chinese; pairs of forms are singular and plural."""

    category: str
    kinds: frozenset[str]  # its category and its tags
    english: tuple[str, str]
    gender: str  # of the German noun: "m", "f" or "n"
    german: tuple[str, str]
    classifier: str
    chinese: str
    where: Relation  # the relation for being at a place, such as "in"; empty for other nouns

    @property
    def counted(self) -> bool:
        """True if the noun has a plural, unlike milk and Anna."""
        return self.english[1] != "-"

    @property
    def pronoun(self) -> str:
        """The English pronoun for the noun in the singular: "he", "she", "it", or "" for a person of unknown gender."""
        if "person" in self.kinds or "name" in self.kinds:
            return "he" if "he" in self.kinds else "she" if "she" in self.kinds else ""
        return "it"


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective in English, German and Chinese. Colours have no comparatives, and all other adjectives do."""

    kinds: frozenset[str]  # the categories of nouns that it suits, and its tags
    english: str
    english_more: tuple[str, ...]
    german: str
    german_stem: str  # takes the endings
    german_more: str
    chinese: tuple[str, ...]  # before a noun
    chinese_predicate: str


class EnglishVerb(NamedTuple):
    """The forms of an English verb; the particle follows it, as in "wake up"."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    particle: tuple[str, ...]


class GermanVerb(NamedTuple):
    """The forms of a German verb. Only the participle includes the separable prefix."""

    prefix: str
    infinitive: str
    third: str
    past: str
    participle: str


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb in English, German and Chinese, with the nouns that can be its subject and its object."""

    frame: str  # "intransitive", "transitive", "ditransitive", "motion", "placement", "report" or "copula"
    aspect: str  # a key of TENSES
    tags: frozenset[str]
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    english: EnglishVerb
    german: GermanVerb
    chinese: tuple[str, ...]

    @property
    def anywhere(self) -> bool:
        """True if a clause with the verb can say where the action happens."""
        return self.frame in ("intransitive", "transitive") and self.aspect != "state" and "fixed" not in self.tags


@dataclass(frozen=True, eq=False, slots=True)
class Time:
    """An adverbial of time in English, German and Chinese, with one or two words each."""

    tenses: tuple[str, ...]
    english: tuple[str, ...]
    german: tuple[str, ...]
    chinese: tuple[str, ...]


def _rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the section and the cells of each row of a table; `#` starts a comment, and `[name]` a section."""
    section = ""
    for line in (files("heedful.corpora.scenes") / table).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            yield section, [cell.strip() for cell in line.split("|")]


def _kinds(names: str) -> frozenset[str]:
    """Replace the names of groups by their categories."""
    expanded: set[str] = set()
    for name in names.split():
        expanded |= _kinds(GROUPS[name]) if name in GROUPS else {name}
    return frozenset(expanded)


def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """Return all nouns of these categories, groups or tags, in the order of the table of nouns."""
    noun_kinds = _kinds(kinds)
    return tuple(noun for noun in NOUNS if noun.kinds & noun_kinds)


def _read_noun(section: str, cells: list[str]) -> Noun:
    tags, english, german, chinese, *where = cells
    singular, plural = english.split()
    article, *forms = german.split()
    classifier, name = chinese.split()
    preposition, german_preposition, side = where[0].split() if where else ("", "", "")
    relation = Relation((preposition,), german_preposition, side.strip("-"))
    gender = {"der": "m", "die": "f", "das": "n"}[article]
    kinds = frozenset({section, *tags.split()})
    return Noun(section, kinds, (singular, plural), gender, (forms[0], forms[1]), classifier, name, relation)


def _read_adjective(cells: list[str]) -> Adjective:
    kinds, *languages = cells
    (english, english_more), (german, german_more), (attribute, predicate) = (
        (first.strip(), more.strip()) for first, _, more in (cell.partition(",") for cell in languages)
    )
    german, _, stem = german.partition("/")
    return Adjective(
        _kinds(kinds),
        english,
        tuple(english_more.split()),
        german,
        stem or german,
        german_more,
        tuple(attribute.split()),
        predicate,
    )


def _read_verb(frame: str, cells: list[str]) -> Verb:
    tags, subjects, objects, english, german, chinese = cells
    aspect, *others = tags.split()
    base, third, past, participle, gerund, *particle = english.split()
    infinitive, *parts = german.split()
    prefix, _, stem = infinitive.rpartition("-")
    return Verb(
        frame,
        aspect,
        frozenset(others),
        nouns_of(subjects),
        nouns_of(objects),
        EnglishVerb(base, third, past, participle, gerund, tuple(particle)),
        GermanVerb(prefix, stem, *parts),
        tuple(chinese.split()),
    )


NOUNS = tuple(_read_noun(section, cells) for section, cells in _rows("nouns.txt"))
ADJECTIVES = tuple(_read_adjective(cells) for _, cells in _rows("adjectives.txt"))
VERBS = tuple(_read_verb(frame, cells) for frame, cells in _rows("verbs.txt"))
TIMES = tuple(Time(*(tuple(cell.split()) for cell in cells)) for _, cells in _rows("times.txt"))

NOWHERE = Relation(("",), "", "")  # for questions with "where"
TO = Relation(("to",), "zu", "")
INTO = Relation(("into",), "in", "")
ON = Relation(("on",), "auf", "上")
BESIDE = (
    Relation(("under",), "unter", "下面"),
    Relation(("behind",), "hinter", "后面"),
    Relation(("in", "front", "of"), "vor", "前面"),
    Relation(("next", "to"), "neben", "旁边"),
)
