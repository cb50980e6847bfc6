"""Scenes as trees, independent of language: who does what to whom, where and when; statement, question or negation.

Nodes compare by identity. Words of a sentence refer to the nodes that they express, which is how they are aligned.
"""

from dataclasses import dataclass

from heedful.corpora.scenes.lexicon import Adjective, Noun, Relation, Time, Verb

Determiner = str  # "the", "a", "this", "my", "two", ...; "" for none: milk, dogs, Anna


@dataclass(eq=False, slots=True)
class Phrase:
    """A noun phrase: a noun with its number, determiner, adjective, owner and relative clause."""

    noun: Noun
    plural: bool
    determiner: Determiner
    adjective: Adjective | None = None
    owner: "Phrase | None" = None  # the owner of the noun, instead of a determiner
    relative: "Clause | None" = None  # a relative clause about the phrase, in which a Gap stands for it


@dataclass(eq=False, slots=True)
class Pronoun:
    """A pronoun for people or things; without a noun it is "I" or "we"."""

    noun: Noun | None
    plural: bool


@dataclass(eq=False, slots=True)
class Pair:
    """Two noun phrases joined by "and", such as two people who act together."""

    first: Phrase
    second: Phrase
    plural = True


@dataclass(eq=False, slots=True)
class Question:
    """A question word in place of a phrase: "who", "what" or "where"."""

    word: str
    plural = False


@dataclass(eq=False, slots=True)
class Gap:
    """A gap in a relative clause, in place of the phrase that the clause describes."""

    phrase: Phrase

    @property
    def plural(self) -> bool:
        """True if the phrase is plural: the verb after a relative pronoun agrees with it."""
        return self.phrase.plural


Nominal = Phrase | Pronoun | Pair | Question | Gap


@dataclass(eq=False, slots=True)
class Place:
    """A place where something is or, as a goal, where it goes; "to" and "into" occur in goals only."""

    relation: Relation
    phrase: Phrase | Question


@dataclass(eq=False, slots=True)
class Clause:
    """A clause: a verb with subject, objects, place and time; the verb's frame and `voice` determine which of these."""

    verb: Verb
    subject: Nominal
    tense: str  # "present", "progressive", "past", "past progressive", "perfect", "future" or "modal"
    modal: str = ""  # "can", "must", "want" or "should"
    voice: str = "active"  # "active", "passive" (subject: who it is done to, agent: who does it) or "existential"
    negated: bool = False
    asked: bool = False
    object: Nominal | None = None
    recipient: Nominal | None = None
    agent: Nominal | None = None
    predicate: Adjective | None = None
    standard: Nominal | None = None  # what the subject is compared with
    place: Place | None = None
    goal: Place | None = None
    time: Time | None = None
    time_first: bool = False
    content: "Clause | None" = None  # reported speech or thought


@dataclass(eq=False, slots=True)
class Scene:
    """A scene, expressed by one sentence: one clause, or two with the word that links the second to the first."""

    main: Clause
    link: str = ""  # "and", "but", or before a subordinate clause "because", "although", "when", "while", "if"
    second: Clause | None = None
    second_first: bool = False  # True if the subordinate clause comes first
