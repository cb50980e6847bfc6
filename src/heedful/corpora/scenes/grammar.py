"""The kinds of scenes, such as events, questions and passives, and how often each occurs."""

import random
from collections.abc import Callable
from itertools import accumulate

from heedful.corpora.scenes.author import ANY, BE, DEFINITE, DONE, PEOPLE, QUALITIES, TIMES_OF, VERBS_OF, Author
from heedful.corpora.scenes.lexicon import ADJECTIVES, BESIDE, NOUNS, NOWHERE, ON, TENSES, VERBS, nouns_of
from heedful.corpora.scenes.tree import Clause, Nominal, Phrase, Place, Pronoun, Question, Scene

PASSIVES = tuple(verb for verb in VERBS if "passive" in verb.tags)
MOODS = tuple(quality for quality in ADJECTIVES if "mood" in quality.kinds)
FEELINGS = tuple(verb for verb in VERBS_OF["transitive"] if verb.aspect == "state" and "owning" not in verb.tags)
HUMAN = tuple(verb for verb in VERBS if PEOPLE[0] in verb.subjects)
TAKING_THINGS = tuple(verb for verb in VERBS_OF["transitive"] if PEOPLE[0] not in verb.objects)
LASTING = tuple(verb for verb in HUMAN if verb.anywhere and "progressive" in TENSES[verb.aspect])
REASONED = tuple(verb for verb in VERBS_OF["transitive"] if verb in HUMAN)
BRIEF = ("intransitive", "transitive", "transitive", "motion")
DESCRIBED = tuple(noun for noun in NOUNS if QUALITIES[noun])
MOVABLE = nouns_of("person animal text press thing garment dish container device fruit food drink")
SOME = ("a",) * 4 + ("two", "three", "four", "some", "many")


def draw(rng: random.Random) -> Scene:
    """Sample a scene of a random kind; `rng.random` is the only source of randomness."""
    point = rng.random() * TOTALS[-1]
    kind = next(kind for kind, total in zip(KINDS, TOTALS, strict=True) if point < total)
    return kind(Author(rng, strangers=kind not in NAMING_ALL))


def event(author: Author) -> Scene:
    """Generate a scene with an action, such as: the old woman has given the child a red apple."""
    return Scene(author.action(negated=author.chance(0.2)))


def identified(author: Author) -> Scene:
    """Generate a scene with a relative clause, such as: the dogs that the girl saw are sleeping in the garden."""
    clause = author.description(author.fresh(DESCRIBED)) if author.chance(0.2) else author.action()
    slots = (clause.subject, None if clause.goal else clause.object)
    phrases = [slot for slot in slots if isinstance(slot, Phrase) and DONE[slot.noun] and "name" not in slot.noun.kinds]
    if phrases:
        phrase = author.one(phrases)
        author.relate(phrase, timed=clause.time is None)
        if phrase is clause.object:  # a place or time at the end would seem to belong to the relative clause
            clause.place = None
            clause.time_first = clause.time is not None and "early" not in clause.time.tenses
    return Scene(clause)


def description(author: Author) -> Scene:
    """Generate a scene with an adjective as its predicate, such as: the horse is bigger than the dog."""
    clause = author.description(author.fresh(DESCRIBED))
    clause.negated = author.chance(0.15)
    return Scene(clause)


def existence(author: Author) -> Scene:
    """Generate a scene with "there is" or "there are", such as: there are two cats under the table."""
    thing = author.phrase(author.fresh(MOVABLE), SOME)
    place = author.place() if author.chance(0.4) else author.near((*BESIDE, ON, ON))
    return Scene(Clause(BE, thing, "present", voice="existential", place=place))


def location(author: Author) -> Scene:
    """Generate a scene that states, denies or asks where something is, such as: the key is on the table."""
    thing = author.phrase(author.fresh(MOVABLE), DEFINITE)
    place = author.place() if author.chance(0.4) else author.near((*BESIDE, ON, ON))
    return Scene(Clause(BE, thing, "present", place=place, negated=author.chance(0.15), asked=author.chance(0.2)))


def passive(author: Author) -> Scene:
    """Generate a scene in the passive voice, such as: the mouse was caught by the cat."""
    verb = author.fresh(PASSIVES)
    clause = Clause(verb, author.phrase(author.fresh(verb.objects), DEFINITE), "past", voice="passive")
    clause.agent = author.phrase(author.fresh(verb.subjects), ANY)
    clause.negated = author.chance(0.1)
    if author.chance(0.4):
        clause.time, clause.time_first = author.one(TIMES_OF["past"]), author.chance(0.35)
    return Scene(clause)


def asked(author: Author) -> Scene:
    """Generate a yes-no question, such as: does the man see the dog?"""
    clause = author.description(author.fresh(DESCRIBED)) if author.chance(0.2) else author.action()
    return _question(clause)


def asked_who(author: Author) -> Scene:
    """Generate a question about the subject, such as: who is looking for the dog?"""
    verb = author.fresh([verb for verb in HUMAN if verb.frame not in ("report", "copula")])
    return _question(author.clause(verb, author.one(TENSES[verb.aspect]), Question("who")))


def asked_what(author: Author) -> Scene:
    """Generate a question about the object, such as: what did the girl buy yesterday?"""
    verb = author.fresh(TAKING_THINGS)
    tense = author.one(TENSES[verb.aspect])
    return _question(author.clause(verb, tense, author.subject(verb), object_=Question("what")))


def asked_where(author: Author) -> Scene:
    """Generate a question about the place, such as: where is the cat sleeping?"""
    where = Place(NOWHERE, Question("where"))
    if author.chance(0.3):
        return _question(Clause(BE, author.phrase(author.fresh(MOVABLE), DEFINITE), "present", place=where))
    verb = author.fresh(LASTING)
    clause = author.clause(verb, author.one(("progressive", "future")), author.subject(verb))
    clause.place = where
    return _question(clause)


def _question(clause: Clause) -> Scene:
    clause.asked, clause.time_first = True, False
    return Scene(clause)


def report(author: Author) -> Scene:
    """Generate a scene with reported speech or thought, such as: the boy thinks that the dog has eaten the meat."""
    verb = author.fresh(VERBS_OF["report"])
    clause = Clause(verb, author.subject(verb), "present")
    clause.content = author.description(author.fresh(DESCRIBED)) if author.chance(0.3) else author.action()
    clause.content.time_first = False
    return Scene(clause)


def reason(author: Author) -> Scene:
    """Generate a scene with a reason, or with "although", such as: the woman looks for the key because she needs it."""
    verb = author.fresh(REASONED)
    someone = author.phrase(author.fresh(PEOPLE), ANY)
    main = author.clause(verb, author.one(TENSES[verb.aspect]), someone)
    main.place = None  # the pronoun "it" could mean the place
    reasons = [reason for reason in _reasons(author, main) if reason is not None]
    if not reasons:
        return Scene(main)
    second = author.one(reasons)
    second.tense = "past" if main.tense == "past" else "present"
    link = "because" if second.predicate is None or author.chance(0.6) else "although"
    return Scene(main, link, second)


def _reasons(author: Author, main: Clause) -> list[Clause | None]:
    """Sample clauses that may give a reason, with pronouns for the subject and the object of the main clause."""
    she, it = _pronoun_for(main.subject), _pronoun_for(main.object)
    mood = she and Clause(BE, she, "present", predicate=author.one(MOODS))
    if not (she and it and it.noun and she.noun):
        return [mood]
    feelings = [verb for verb in FEELINGS if it.noun in verb.objects and verb is not main.verb]
    feeling = Clause(author.one(feelings), she, "present", object=it) if feelings else None
    distinct = (it.plural, it.noun.pronoun) != (she.plural, she.noun.pronoun) and not (it.plural and she.plural)
    qualities = QUALITIES[it.noun]
    quality = Clause(BE, it, "present", predicate=author.one(qualities)) if distinct and qualities else None
    return [mood, feeling, quality]


def _pronoun_for(item: Nominal | None) -> Pronoun | None:
    """Return the pronoun for somebody or something; None if the gender is unknown."""
    if isinstance(item, Phrase) and (item.plural or item.noun.pronoun):
        return Pronoun(item.noun, item.plural)
    return None


def timed(author: Author) -> Scene:
    """Generate a scene with "when", "while" or "if", such as: when the girl opened the door, the cat was sleeping."""
    link = author.one(("when", "when", "while", "if"))
    second, main = {
        "when": ("past", author.one(("past", "past progressive"))),
        "while": author.one((("progressive", "progressive"), ("past progressive", "past progressive"))),
        "if": ("present", "future"),
    }[link]
    return Scene(_brief(author, main), link, _brief(author, second), second_first=author.chance(0.6))


def also(author: Author) -> Scene:
    """Generate a scene with "and" or "but", such as: the man is reading a letter and the woman is sleeping."""
    if author.chance(0.4):
        noun = author.fresh(DESCRIBED)
        first = author.description(noun)
        second = author.description(author.fresh([other for other in DESCRIBED if other.category == noun.category]))
        second.tense = first.tense
        return Scene(first, "but", second)
    tense = author.one(("past", "progressive"))
    return Scene(_brief(author, tense), "and", _brief(author, tense))


def _brief(author: Author, tense: str) -> Clause:
    """Sample a clause with an action, in a tense and without an adverbial of time."""
    action_tense = {"past progressive": "progressive", "present": "past"}.get(tense, tense)
    clause = author.action(action_tense, frames=BRIEF)
    clause.tense, clause.time, clause.time_first = tense, None, False
    return clause


KINDS: dict[Callable[[Author], Scene], int] = {
    event: 32,
    identified: 14,
    description: 6,
    existence: 4,
    location: 3,
    passive: 6,
    asked: 6,
    asked_who: 3,
    asked_what: 2,
    asked_where: 3,
    report: 6,
    reason: 6,
    timed: 6,
    also: 3,
}
TOTALS = tuple(accumulate(KINDS.values()))
NAMING_ALL = (reason, timed, also)  # kinds of scenes where he, she and they are people that the scene names
