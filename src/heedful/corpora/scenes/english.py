"""Scenes in English: agreement, do-support, questions, "a" or "an", "who" or "that"."""

from heedful.corpora.scenes.sentence import Word, time_words
from heedful.corpora.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Pronoun, Question, Scene

SPACE = " "
ATTACHED = ".?,"  # texts of words that follow the word before them without a space

OBJECT_FORMS = {"I": "me", "we": "us", "he": "him", "she": "her", "it": "it", "they": "them"}


def realise(scene: Scene) -> list[Word]:
    words = _clause(scene.main)
    if scene.second is not None:
        words = _joined(scene, words, _clause(scene.second))
    return [*words, Word("?" if scene.main.asked else ".", "punctuation", ((scene, "end"),))]


def _joined(scene: Scene, main: list[Word], second: list[Word]) -> list[Word]:
    link = Word(scene.link, "conjunction", ((scene, "link"),))
    comma = Word(",", "punctuation", ((scene, "comma"),))
    if scene.second_first:
        return [link, *second, comma, *main]
    if scene.link == "but":
        return [*main, comma, link, *second]
    return [*main, link, *second]


def _clause(clause: Clause) -> list[Word]:
    subject = nominal(clause.subject, "subject")
    finite, *rest = verbs(clause)
    if clause.voice == "existential":
        return [Word("there", "particle", ((clause, "verb"),)), finite, *rest, *subject, *_place(clause.place)]
    early, late = times(clause)
    inverted = clause.asked and not isinstance(clause.subject, Question)
    core = [finite, *subject, *early, *rest] if inverted else [*subject, *early, finite, *rest]
    if clause.time_first:
        return [*late, *core, *_complements(clause)]
    return [*_front(clause), *core, *_complements(clause), *late]


def relativizer(clause: Clause) -> list[Word]:
    """Return the relative pronoun of a relative clause, and no words for any other clause."""
    for slot in (clause.subject, clause.object):
        if isinstance(slot, Gap):
            human = slot is clause.subject and "person" in slot.phrase.noun.kinds
            return [Word("who" if human else "that", "relativizer", ((clause, "relativizer"),))]
    return []


def _front(clause: Clause) -> list[Word]:
    """Return the beginning of a clause: a relative pronoun, or a question word that is not the subject."""
    if pronoun := relativizer(clause):
        return pronoun
    if isinstance(clause.object, Question):
        return nominal(clause.object, "object")
    if clause.place is not None and isinstance(clause.place.phrase, Question):
        return nominal(clause.place.phrase, "place")
    return []


def _complements(clause: Clause) -> list[Word]:
    words: list[Word] = []
    if clause.recipient is not None:
        words += nominal(clause.recipient, "recipient")
    if clause.object is not None and not isinstance(clause.object, Question):
        words += nominal(clause.object, "object")
    words += _predicate(clause)
    if clause.agent is not None:
        words += [Word("by", "preposition", ((clause, "agent"),)), *nominal(clause.agent, "agent")]
    words += _place(clause.place) + _place(clause.goal)
    if clause.content is not None:
        words += [Word("that", "conjunction", ((clause, "that"),)), *_clause(clause.content)]
    return words


def _predicate(clause: Clause) -> list[Word]:
    if clause.predicate is None:
        return []
    links = ((clause, "predicate"),)
    if clause.standard is None:
        return [Word(clause.predicate.english, "predicate", links)]
    more = [Word(text, "predicate", links) for text in clause.predicate.english_more]
    than = Word("than", "conjunction", ((clause, "than"),))
    return [*more, than, *nominal(clause.standard, "standard")]


def _place(place: Place | None) -> list[Word]:
    if place is None or isinstance(place.phrase, Question):
        return []
    words = [Word(text, "preposition", ((place, "preposition"),)) for text in place.relation.english]
    return [*words, *nominal(place.phrase, "place")]


def times(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Return the adverb before the verb, and the time at the end or the front of the clause."""
    if clause.tense == "perfect" and clause.negated:
        return [], [Word("yet", "time", ((clause, "yet"),))]
    if clause.time is None:
        return [], []
    words = time_words(clause, clause.time.english)
    return (words, []) if "early" in clause.time.tenses else ([], words)


def verbs(clause: Clause) -> list[Word]:
    """Return the verb with its negation, its auxiliaries and its particle, the finite one first."""
    finite, *rest = _verb_forms(clause)
    if clause.negated and finite.text == "can":
        finite = Word("cannot", finite.role, (*finite.links, (clause, "negation")))
    elif clause.negated:
        rest = [Word("not", "negation", ((clause, "negation"),)), *rest]
    return [finite, *rest]


def _verb_forms(clause: Clause) -> list[Word]:
    verb = clause.verb.english
    main, tense = (clause, "verb"), (clause, "tense")
    first_person = isinstance(clause.subject, Pronoun) and clause.subject.noun is None
    third = not (clause.subject.plural or first_person)
    supported = clause.negated or (clause.asked and not isinstance(clause.subject, Question))
    auxiliaries, form = _auxiliaries(clause, third, supported)
    words = [Word(text, "auxiliary", (tense,)) for text in auxiliaries]
    if not auxiliaries and clause.verb.frame == "copula":
        words.append(Word(_be(clause, third), "verb", (main, tense)))
    else:
        words.append(Word(form, "verb", (main,) if auxiliaries else (main, tense)))
    return words + [Word(text, "particle", (main,)) for text in verb.particle]


def _auxiliaries(clause: Clause, third: bool, supported: bool) -> tuple[list[str], str]:
    """Return the auxiliaries of the tense, and the form of the main verb after them."""
    verb = clause.verb.english
    be, do = _be(clause, third), "did" if clause.tense == "past" else "does" if third else "do"
    if clause.voice == "passive":
        return [be], verb.participle
    if clause.modal == "want":
        return [do, "want", "to"] if supported else ["wants" if third else "want", "to"], verb.base
    if supported and clause.verb.frame != "copula":
        simple = [do], verb.base
    else:
        simple = [], verb.past if clause.tense == "past" else verb.third if third else verb.base
    return {
        "progressive": ([be], verb.gerund),
        "past progressive": ([be], verb.gerund),
        "perfect": (["has" if third else "have"], verb.participle),
        "future": (["will"], verb.base),
        "modal": ([clause.modal], verb.base),
    }.get(clause.tense, simple)


def _be(clause: Clause, third: bool) -> str:
    if clause.tense in ("past", "past progressive"):
        return "were" if clause.subject.plural else "was"
    return "is" if third else "are" if clause.subject.plural else "am"


def nominal(item: Nominal, role: str) -> list[Word]:
    """Express a noun phrase in English, with the role of its noun; a gap has no words."""
    if isinstance(item, Phrase):
        return _phrase(item, role)
    if isinstance(item, Pronoun):
        one, several = ("I", "we") if item.noun is None else (item.noun.pronoun, "they")
        form = several if item.plural else one
        return [Word(form if role == "subject" else OBJECT_FORMS[form], role, ((item, "noun"),))]
    if isinstance(item, Pair):
        link = Word("and", "conjunction", ((item, "and"),))
        return [*_phrase(item.first, role), link, *_phrase(item.second, role)]
    return [Word(item.word, role, ((item, "noun"),))] if isinstance(item, Question) else []


def _phrase(phrase: Phrase, role: str) -> list[Word]:
    words = phrase_without_clause(phrase, role)
    return words if phrase.relative is None else [*words, *_clause(phrase.relative)]


def phrase_without_clause(phrase: Phrase, role: str) -> list[Word]:
    words: list[Word] = []
    if phrase.adjective is not None:
        words.append(Word(phrase.adjective.english, "adjective", ((phrase, "adjective"),)))
    words.append(Word(phrase.noun.english[phrase.plural], role, ((phrase, "noun"),)))
    return [*determiner(phrase, words[0].text), *words]


def determiner(phrase: Phrase, following: str) -> list[Word]:
    if phrase.owner is not None:
        *words, owner = _phrase(phrase.owner, "possessor")
        suffix = "'" if phrase.owner.plural and owner.text.endswith("s") else "'s"
        return [*words, Word(owner.text + suffix, owner.role, (*owner.links, (phrase, "owner")))]
    text = phrase.determiner
    if text == "a" and following[0] in "aeiou":
        text = "an"
    elif text == "this" and phrase.plural:
        text = "these"
    return [Word(text, "determiner", ((phrase, "determiner"),))] if text else []
