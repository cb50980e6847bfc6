"""A scene as a tree, before any language: who does what to whom, where, when, and what is asked, denied or told of it.

Nodes compare by identity. The languages say which node each of their words expresses, and that is what aligns them.
"""

from dataclasses import dataclass

from heedful.data.scenes.lexicon import Adjective, Noun, Relation, Time, Verb

Determiner = str  # "the", "a", "this", "my", "two", ...; "" is none: milk, dogs, Anna


@dataclass(eq=False, slots=True)
class Phrase:
    """A noun with what belongs to it."""

    noun: Noun
    plural: bool
    determiner: Determiner
    adjective: Adjective | None = None
    owner: "Phrase | None" = None  # whose it is; takes the place of the determiner
    relative: "Clause | None" = None  # what else is said about it: a clause with a Gap for it


@dataclass(eq=False, slots=True)
class Pronoun:
    """Stands for people or things that were named before; without a noun it is the speaker."""

    noun: Noun | None
    plural: bool


@dataclass(eq=False, slots=True)
class Pair:
    """Two who act together."""

    first: Phrase
    second: Phrase
    plural = True


@dataclass(eq=False, slots=True)
class Question:
    """What is asked for: "who", "what" or "where"."""

    word: str
    plural = False


@dataclass(eq=False, slots=True)
class Gap:
    """The place in a relative clause of the phrase that it describes."""

    phrase: Phrase

    @property
    def plural(self) -> bool:
        """Whether the phrase is plural: the verb behind a relative pronoun agrees with it."""
        return self.phrase.plural


Nominal = Phrase | Pronoun | Pair | Question | Gap


@dataclass(eq=False, slots=True)
class Place:
    """Where something is, or, as a goal, where it goes; the relation "to" is only a goal."""

    relation: Relation
    phrase: Phrase | Question


@dataclass(eq=False, slots=True)
class Clause:
    """One verb with its company. Which slots are filled follows from the verb's frame and from `voice`."""

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
    content: "Clause | None" = None  # what is said, believed, hoped


@dataclass(eq=False, slots=True)
class Scene:
    """One clause, or two with the word that links the second to the first."""

    main: Clause
    link: str = ""  # "and", "but", or before a subordinate clause "because", "although", "when", "while", "if"
    second: Clause | None = None
    second_first: bool = False  # whether the subordinate clause comes first
