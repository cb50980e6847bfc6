"""Random parts of a scene: phrases and clauses that make sense in every language."""

import random
from collections.abc import Sequence
from typing import TypeVar

from heedful.corpora.sampling import Sampler
from heedful.corpora.scenes.lexicon import (
    ADJECTIVES,
    BESIDE,
    INTO,
    NOUNS,
    ON,
    TENSES,
    TIMES,
    TO,
    VERBS,
    Noun,
    Relation,
    Verb,
    nouns_of,
)
from heedful.corpora.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Pronoun

W = TypeVar("W", Noun, Verb)

MAN, WOMAN = NOUNS[:2]
PEOPLE, LIVING, PLACES, INSIDES, ROOMS, LANDMARKS, SURFACES = (
    nouns_of(kinds) for kinds in ("people", "living", "place", "inside", "room", "landmark surface", "surface")
)
DESTINATIONS = tuple(place for place in PLACES if place not in ROOMS)
QUALITIES = {noun: tuple(quality for quality in ADJECTIVES if noun.kinds & quality.kinds) for noun in NOUNS}

# Determiners; repeated ones are more likely. "owner" stands for a possessor such as "the man's", "" for no determiner.
MANY = ("two", "three", "four", "five", "some", "many")
POSSESSIVES = ("my", "our", "his", "her", "their", "owner")
ANY = ("the",) * 10 + ("a",) * 3 + ("this", *POSSESSIVES, "owner", "two", "three", "some", "many")
DEFINITE = ("the",) * 10 + ("this", *POSSESSIVES, "owner")
OBJECT = ("the", "a") * 6 + ("", "", "this", *POSSESSIVES, *MANY)
OWNED = ("a",) * 5 + ("", *MANY)
LIKED = (*DEFINITE, "", "", "", "")
DENIED = ("the",) * 6 + ("a",) * 4 + ("", "my", "his", "her", "owner")
WHERE = ("the",) * 8 + ("a", "my", "his", "owner")
MODALS = ("can", "must", "want", "should")

FRAMES = ("transitive",) * 6 + ("intransitive",) * 3 + ("ditransitive",) * 2 + ("motion", "placement")
VERBS_OF = {frame: tuple(verb for verb in VERBS if verb.frame == frame) for frame in (*FRAMES, "report", "copula")}
TIMES_OF = {tense: tuple(time for time in TIMES if tense in time.tenses) for tense in (*TENSES["activity"], "present")}
(BE,) = VERBS_OF["copula"]
# Verbs of relative clauses about a noun, which is their subject (DOING) or their object (DONE).
SIMPLE = (*VERBS_OF["intransitive"], *VERBS_OF["transitive"])
DOING = {noun: tuple(verb for verb in SIMPLE if noun in verb.subjects) for noun in LIVING}
DONE = {noun: tuple(verb for verb in SIMPLE if noun in verb.objects and "_" not in verb.chinese) for noun in NOUNS}
IDENTIFYING = ("present", "progressive", "past", "habit")


class Author(Sampler):
    """Sampler of the phrases and clauses of one scene.

    No noun or verb repeats unless no other is left, so that references are clear.
    """

    def __init__(self, rng: random.Random, strangers: bool):
        """Sample with `rng`; with `strangers`, "he", "she" and "they" may refer to people outside the scene."""
        super().__init__(rng)
        self._strangers = strangers
        self._used: set[Noun | Verb] = set()

    def fresh(self, words: Sequence[W]) -> W:
        """Sample a noun or verb that is not in the scene yet, if there is one, and record that it is used."""
        word = self.one([word for word in words if word not in self._used] or words)
        self._used.add(word)
        return word

    def phrase(self, noun: Noun, determiners: Sequence[str], described: float = 0.25, several: float = 0.3) -> Phrase:
        """Sample a noun phrase; `described` and `several` are the chances of an adjective and of a plural."""
        if "name" in noun.kinds:
            return Phrase(noun, plural=False, determiner="")
        determiner = self.one(determiners)
        if determiner in POSSESSIVES and noun.category in ("person", "animal", "place") and "own" not in noun.kinds:
            determiner = "the"
        if determiner in POSSESSIVES and noun.category == "person":
            several /= 3  # few have two mothers
        if not noun.counted and (determiner == "a" or determiner in MANY):
            determiner = ""
        plural = noun.counted and (determiner in ("", *MANY) or (determiner != "a" and self.chance(several)))
        phrase = Phrase(noun, plural, "the" if determiner == "owner" else determiner)
        if determiner == "owner":
            phrase.owner = self.phrase(self.fresh(PEOPLE), ("the",), described=0.1)
        if QUALITIES[noun] and self.chance(described):
            phrase.adjective = self.one(QUALITIES[noun])
        return phrase

    def subject(self, verb: Verb, determiners: Sequence[str] = ANY) -> Nominal:
        """Sample a subject for a verb: a pronoun, a noun phrase, or two noun phrases joined by "and"."""
        if PEOPLE[0] in verb.subjects and self.chance(0.14):
            return self._pronoun()
        first = self.phrase(self.fresh(verb.subjects), determiners)
        if self.chance(0.06) and first.owner is None:
            return Pair(first, self.phrase(self.fresh(verb.subjects), ("the", "a"), described=0))
        return first

    def _pronoun(self) -> Pronoun:
        if not self._strangers or self.chance(0.3):
            return Pronoun(None, self.chance(0.5))
        return self.one((Pronoun(MAN, False), Pronoun(WOMAN, False), Pronoun(MAN, True)))

    def action(self, tense: str = "", negated: bool = False, frames: Sequence[str] = FRAMES) -> Clause:
        """Sample a clause with a random verb and subject, in a tense (see TENSES) or, for "", any that the verb has."""
        verbs = VERBS_OF[self.one(frames)]
        verb = self.fresh([verb for verb in verbs if tense in TENSES[verb.aspect]] if tense else verbs)
        tense = tense or self.one(TENSES[verb.aspect])
        negated = negated and tense != "habit"
        return self.clause(verb, tense, self.subject(verb, DEFINITE if negated else ANY), negated)

    def clause(
        self, verb: Verb, tense: str, subject: Nominal, negated: bool = False, object_: Nominal | None = None
    ) -> Clause:
        """Build a clause from a verb and a subject: sample its objects, and sometimes a place and a time."""
        clause = Clause(verb, subject, "present" if tense == "habit" else tense, negated=negated, object=object_)
        if tense == "modal":
            clause.modal = self.one(MODALS)
        if verb.frame == "ditransitive":
            clause.recipient = (
                self._pronoun()
                if self._strangers and self.chance(0.2)
                else self.phrase(self.fresh(PEOPLE), DEFINITE, described=0.15)
            )
        if object_ is None and verb.frame in ("transitive", "ditransitive", "placement"):
            clause.object = self.object(verb, negated)
        if verb.frame == "motion":
            into = len(verb.chinese) == 2 and self.chance(0.4)
            noun = self.fresh(INSIDES if into else DESTINATIONS)
            clause.goal = Place(INTO if into else TO, self.phrase(noun, WHERE, described=0.15, several=0.05))
        elif verb.frame == "placement":
            clause.goal = self.near((*BESIDE, ON, ON, ON))
        elif verb.anywhere and self.chance(0.3):
            clause.place = self.place()
        if tense == "habit" or (TIMES_OF[tense] and self.chance(0.4)):
            clause.time = self.one(TIMES_OF[tense])
            clause.time_first = "early" not in clause.time.tenses and self.chance(0.35)
        return clause

    def object(self, verb: Verb, negated: bool = False) -> Nominal:
        """Sample an object for a verb: a noun phrase or a pronoun."""
        if self._strangers and verb.frame == "transitive" and PEOPLE[0] in verb.objects and self.chance(0.15):
            return self._pronoun()
        if "owning" in verb.tags:
            determiners = ("a", "a", "") if negated else OWNED
        elif negated:
            determiners = DENIED
        else:
            determiners = LIKED if verb.aspect == "state" else OBJECT
        return self.phrase(self.fresh(verb.objects), determiners)

    def place(self) -> Place:
        """Sample a place where something happens, such as a garden."""
        noun = self.fresh(PLACES)
        return Place(noun.where, self.phrase(noun, WHERE, described=0.15, several=0.05))

    def near(self, relations: Sequence[Relation]) -> Place:
        """Sample a place relative to a landmark, such as a tree or a car, or to a piece of furniture."""
        relation = self.one(relations)
        noun = self.fresh(SURFACES if relation is ON else LANDMARKS)
        return Place(relation, self.phrase(noun, WHERE, described=0.15, several=0.05))

    def relate(self, phrase: Phrase, timed: bool) -> None:
        """Add a relative clause to a noun phrase, in which the noun is the subject or the object of a verb.

        Unless `timed` is True, only a clause in the present tense may have an adverbial of time, such as "often".
        """
        phrase.determiner, phrase.owner, phrase.adjective = "the", None, None
        as_subject = phrase.noun in LIVING and self.chance(0.5)
        verb = self.fresh((DOING if as_subject else DONE)[phrase.noun])
        # The clause identifies somebody or something, so its tense suits known facts.
        tense = self.one([tense for tense in TENSES[verb.aspect] if tense in IDENTIFYING])
        if as_subject:
            phrase.relative = self.clause(verb, tense, Gap(phrase))
        else:
            phrase.relative = self.clause(verb, tense, self.subject(verb), object_=Gap(phrase))
        phrase.relative.time_first = False
        if not timed and phrase.relative.tense != "present":
            phrase.relative.time = None

    def description(self, noun: Noun) -> Clause:
        """Sample a clause with an adjective about a noun: it is big, or bigger than another one."""
        quality = self.one(QUALITIES[noun])
        subject = self.phrase(noun, DEFINITE, described=0)
        clause = Clause(BE, subject, self.one(("present", "present", "past")), predicate=quality)
        if quality.english_more and self.chance(0.4):
            alike = [other for other in NOUNS if other.kinds & quality.kinds and other.category == noun.category]
            clause.standard = self.phrase(self.fresh(alike), DEFINITE, described=0)
        return clause
