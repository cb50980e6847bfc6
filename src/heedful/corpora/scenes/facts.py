"""Facts of a story, and two texts made of them: a summary, and a dialogue of questions and answers about the story."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from heedful.corpora.sampling import Sampler
from heedful.corpora.scenes.author import LIVING, PEOPLE, QUALITIES
from heedful.corpora.scenes.lexicon import Noun, Verb
from heedful.corpora.scenes.tree import Clause, Nominal, Phrase, Place, Pronoun, Question, Scene

QUESTIONS = 4  # in a dialogue
Content = tuple[object, ...]  # the content of a fact without its negation


class Exchange(NamedTuple):
    """A question about a story and its answer: a sentence, or True and False for "yes" and "no"."""

    question: Scene
    answer: Scene | bool


def facts(story: Sequence[Scene]) -> list[Clause]:
    """List what a story says of people and things, in its order: clauses in the active voice, without adjectives.

    Left out are reported thoughts, the introduction of a new noun ("There was ..."), and denials of a place: he did not
    sleep in the garden, but perhaps elsewhere.
    """
    clauses: list[Clause | None] = []
    for scene in story:
        clauses += [scene.second, scene.main] if scene.second_first else [scene.main, scene.second]
    return [_plain(clause) for clause in clauses if clause and _is_fact(clause)]


def _is_fact(clause: Clause) -> bool:
    denies_place = clause.negated and clause.place is not None and not _is_location(clause)
    return not (clause.content or clause.voice == "existential" or denies_place)


def _is_location(clause: Clause) -> bool:
    return clause.verb.frame == "copula" and clause.predicate is None


def summary(story: Sequence[Scene]) -> list[Scene]:
    """Summarise a story by the facts about its main character, the subject of most facts (of several, the first)."""
    clauses = facts(story)
    if not clauses:
        return list(story[:1])
    ((main, _),) = Counter(noun for clause in clauses if (noun := _noun(clause.subject))).most_common(1)
    clauses = [clause for clause in clauses if _noun(clause.subject) is main]
    first, *others = {(_content(clause), clause.negated): clause for clause in clauses}.values()  # without repetitions
    return [Scene(first), *(Scene(replace(clause, subject=_pronoun(main))) for clause in others)]


def dialogue(story: Sequence[Scene], seed: str) -> list[Exchange]:
    """Sample questions that a story answers in exactly one way; what it does not say is taken to be untrue.

    Each is about another fact. Its subject is a pronoun if it was also the subject of the exchange before.
    """
    sampler = Sampler(random.Random(seed))
    clauses = facts(story)
    rest = list(clauses)
    exchanges: list[Exchange] = []
    topic = None
    while rest and len(exchanges) < QUESTIONS:
        clause = sampler.one(rest)
        rest.remove(clause)
        kinds = _exchanges(clause, clauses)
        if not kinds:
            continue
        question, answer = sampler.one(sampler.one(kinds))
        subject = _noun(question.main.subject)
        if subject and subject is topic:
            question = Scene(replace(question.main, subject=_pronoun(subject)))
        exchanges.append(Exchange(question, answer))
        topic = subject or (_noun(answer.main.subject) if isinstance(answer, Scene) else None)
    return exchanges


def _exchanges(clause: Clause, clauses: Sequence[Clause]) -> list[list[Exchange]]:
    """List questions about one fact, by kind, each with the only answer that the facts of the story give."""
    if sum(_content(other) == _content(clause) for other in clauses) > 1:  # it may be both affirmed and denied
        return []
    if clause.negated:
        return [[Exchange(_question(replace(clause, negated=False)), False)]]
    kinds = [[Exchange(_question(clause), True)]]
    if untrue := list(_untrue(clause, clauses)):
        kinds.append([Exchange(_question(other), False) for other in untrue])
    subject, thing = _noun(clause.subject), _noun(clause.object)
    alike = [other for other in clauses if _same(other.verb, clause.verb) and not other.negated]
    if thing and subject in PEOPLE and sum(_noun(other.object) is thing for other in alike) == 1:
        kinds.append([Exchange(_question(replace(clause, subject=Question("who"))), Scene(clause))])
    if thing and thing not in LIVING and sum(_noun(other.subject) is subject for other in alike) == 1:
        answer = Scene(replace(clause, subject=_pronoun(subject)) if subject else clause)
        kinds.append([Exchange(_question(replace(clause, object=Question("what"))), answer)])
    return kinds


def _untrue(clause: Clause, clauses: Sequence[Clause]) -> Iterator[Clause]:
    """Yield clauses that differ from a fact in their subject or their object, and that the story does not imply.

    There are none about places: somebody who bought bread in a city was there, and who drove there also went there.
    """
    if clause.place or clause.goal:
        return
    contents = {_content(other) for other in clauses}
    # Who bought somebody a ring also bought a ring.
    pairs = {(_noun(other.subject), _noun(other.object)) for other in clauses if _same(other.verb, clause.verb)}
    cast = dict.fromkeys(noun for other in clauses for noun in _nouns(other))  # in the order of the story
    for slot, suitable in {"subject": clause.verb.subjects, "object": clause.verb.objects}.items():
        for noun in cast:
            if getattr(clause, slot) and noun in suitable and noun not in _nouns(clause):
                other = replace(clause, **{slot: _phrase(noun)})
                subject, thing = _noun(other.subject), _noun(other.object)
                implied = thing is not None and (subject, thing) in pairs
                absurd = clause.predicate is not None and clause.predicate not in QUALITIES[noun]
                if _content(other) not in contents and not implied and not absurd:
                    yield other


def _plain(clause: Clause) -> Clause:
    """Return a clause in the simple past and the active voice, without adjectives, times and the places of actions."""
    passive = clause.voice == "passive"
    subject = _bare(clause.agent if passive else clause.subject)
    assert subject is not None, "each clause of a story is about one person or thing"
    return Clause(
        clause.verb,
        subject,
        "past",
        negated=clause.negated,
        object=_bare(clause.subject if passive else clause.object),
        recipient=_bare(clause.recipient),
        predicate=clause.predicate,
        standard=_bare(clause.standard),
        place=_near(clause.place) if _is_location(clause) else None,
        goal=_near(clause.goal),
    )


def _near(place: Place | None) -> Place | None:
    phrase = _bare(place.phrase) if place else None
    return Place(place.relation, phrase) if place and phrase else None


def _bare(item: Nominal | None) -> Phrase | None:
    noun = _noun(item)
    return _phrase(noun) if noun else None


def _phrase(noun: Noun) -> Phrase:
    return Phrase(noun, plural=False, determiner="" if "name" in noun.kinds else "the")


def _pronoun(noun: Noun) -> Nominal:
    """Return the pronoun for a noun or, for a person of unknown gender, the noun again."""
    return Pronoun(noun, plural=False) if noun.pronoun else _phrase(noun)


def _question(clause: Clause) -> Scene:
    return Scene(replace(clause, asked=True))


def _noun(item: Nominal | None) -> Noun | None:
    return item.noun if isinstance(item, Phrase | Pronoun) else None


def _nouns(clause: Clause) -> list[Noun]:
    """List the nouns of a clause, from its subject to its goal."""
    places = [place.phrase for place in (clause.place, clause.goal) if place]
    items = [clause.subject, clause.object, clause.recipient, clause.standard, *places]
    return [noun for item in items if (noun := _noun(item))]


def _content(clause: Clause) -> Content:
    relations = [place.relation for place in (clause.place, clause.goal) if place]
    return (clause.verb.english, clause.predicate, *relations, *_nouns(clause))


def _same(verb: Verb, other: Verb) -> bool:
    """Return True if two verbs are the same word in any language: one can buy something, and buy somebody something."""
    return verb.english == other.english or verb.german == other.german or verb.chinese == other.chinese
