"""Scenes in English: agreement, do-support, questions, "a" or "an", "who" or "that".

A sentence is built as a constituency tree in brackets, such as (S (NP the cat) (VP is sleeping) .). Labels are those of
the Penn Treebank (Marcus et al. 1993), with fewer kinds of phrases; adverbials of time are ADVP.
"""

from heedful.corpora.scenes.sentence import Word, time_words
from heedful.corpora.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Pronoun, Question, Scene

SPACE = " "
ATTACHED = ".?,"  # texts of words that follow the word before them without a space

CLOSE = Word(")", "bracket")
OBJECT_FORMS = {"I": "me", "we": "us", "he": "him", "she": "her", "it": "it", "they": "them"}


def realise(scene: Scene) -> list[Word]:
    return [word for word in tree(scene) if word.role != "bracket"]


def tree(scene: Scene) -> list[Word]:
    """Express a scene as the words of a sentence with the brackets of its constituents."""
    end = Word("?" if scene.main.asked else ".", "punctuation", ((scene, "end"),))
    main = _clause(scene.main)
    if scene.second is None:
        return [*main[:-1], end, CLOSE]
    link = Word(scene.link, "conjunction", ((scene, "link"),))
    comma = Word(",", "punctuation", ((scene, "comma"),))
    second = _clause(scene.second)
    if scene.link == "and":
        return _bracket("S", [*main, link, *second, end])
    if scene.link == "but":
        return _bracket("S", [*main, comma, link, *second, end])
    subordinate = _bracket("SBAR", [link, *second])
    return _bracket("S", [*subordinate, comma, *main, end] if scene.second_first else [*main, *subordinate, end])


def _bracket(label: str, words: list[Word]) -> list[Word]:
    """Put words in brackets; no words remain no words."""
    return [Word(f"({label}", "bracket"), *words, CLOSE] if words else []


def _clause(clause: Clause) -> list[Word]:
    subject = _nominal(clause.subject, "subject")
    finite, *rest = _verbs(clause)
    if clause.voice == "existential":
        there = _bracket("NP", [Word("there", "particle", ((clause, "verb"),))])
        return _bracket("S", [*there, *_bracket("VP", [finite, *rest, *subject, *_place(clause.place)])])
    early, late = (_bracket("ADVP", words) for words in _times(clause))
    first, last = (late, []) if clause.time_first else ([], late)
    complements = [*_complements(clause), *last]
    if isinstance(clause.subject, Question):
        return _bracket("SBARQ", [*subject, *early, *_bracket("VP", [finite, *rest, *complements])])
    if clause.asked:
        # In "is the key on the table", no verb is left for a verb phrase.
        predicate = _bracket("VP", [*rest, *complements]) if rest else complements
        question = _bracket("SQ", [finite, *subject, *early, *predicate])
        front = _question_word(clause)
        return _bracket("SBARQ", [*front, *question]) if front else question
    statement = _bracket("S", [*first, *subject, *early, *_bracket("VP", [finite, *rest, *complements])])
    front = _bracket("WHNP", _relative_pronoun(clause))
    return _bracket("SBAR", [*front, *statement]) if front else statement


def _question_word(clause: Clause) -> list[Word]:
    """Return the question word at the beginning of a clause, unless it is the subject."""
    if isinstance(clause.object, Question):
        return _nominal(clause.object, "object")
    if clause.place is not None and isinstance(clause.place.phrase, Question):
        return _nominal(clause.place.phrase, "place")
    return []


def _relative_pronoun(clause: Clause) -> list[Word]:
    for slot in (clause.subject, clause.object):
        if isinstance(slot, Gap):
            human = slot is clause.subject and "person" in slot.phrase.noun.kinds
            return [Word("who" if human else "that", "relativizer", ((clause, "relativizer"),))]
    return []


def _complements(clause: Clause) -> list[Word]:
    words: list[Word] = []
    if clause.recipient is not None:
        words += _nominal(clause.recipient, "recipient")
    if clause.object is not None and not isinstance(clause.object, Question):
        words += _nominal(clause.object, "object")
    words += _predicate(clause)
    if clause.agent is not None:
        by = Word("by", "preposition", ((clause, "agent"),))
        words += _bracket("PP", [by, *_nominal(clause.agent, "agent")])
    words += _place(clause.place) + _place(clause.goal)
    if clause.content is not None:
        words += _bracket("SBAR", [Word("that", "conjunction", ((clause, "that"),)), *_clause(clause.content)])
    return words


def _predicate(clause: Clause) -> list[Word]:
    if clause.predicate is None:
        return []
    links = ((clause, "predicate"),)
    if clause.standard is None:
        return _bracket("ADJP", [Word(clause.predicate.english, "predicate", links)])
    more = [Word(text, "predicate", links) for text in clause.predicate.english_more]
    than = Word("than", "conjunction", ((clause, "than"),))
    return _bracket("ADJP", [*more, *_bracket("PP", [than, *_nominal(clause.standard, "standard")])])


def _place(place: Place | None) -> list[Word]:
    if place is None or isinstance(place.phrase, Question):
        return []
    words = [Word(text, "preposition", ((place, "preposition"),)) for text in place.relation.english]
    return _bracket("PP", [*words, *_nominal(place.phrase, "place")])


def _times(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Return the adverb before the verb, and the time at the end or the front of the clause."""
    if clause.tense == "perfect" and clause.negated:
        return [], [Word("yet", "time", ((clause, "yet"),))]
    if clause.time is None:
        return [], []
    words = time_words(clause, clause.time.english)
    return (words, []) if "early" in clause.time.tenses else ([], words)


def _verbs(clause: Clause) -> list[Word]:
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


def _nominal(item: Nominal, role: str) -> list[Word]:
    """Express a noun phrase in English, with the role of its noun; a gap has no words."""
    if isinstance(item, Phrase):
        return _phrase(item, role)
    if isinstance(item, Pronoun):
        one, several = ("I", "we") if item.noun is None else (item.noun.pronoun, "they")
        form = several if item.plural else one
        text = form if role == "subject" else OBJECT_FORMS[form]
        return _bracket("NP", [Word(text, role, ((item, "noun"),))])
    if isinstance(item, Pair):
        link = Word("and", "conjunction", ((item, "and"),))
        return _bracket("NP", [*_phrase(item.first, role), link, *_phrase(item.second, role)])
    if isinstance(item, Question):
        return _bracket("WHADVP" if item.word == "where" else "WHNP", [Word(item.word, role, ((item, "noun"),))])
    return []


def _phrase(phrase: Phrase, role: str) -> list[Word]:
    words = [Word(phrase.noun.english[phrase.plural], role, ((phrase, "noun"),))]
    if phrase.adjective is not None:
        words = [Word(phrase.adjective.english, "adjective", ((phrase, "adjective"),)), *words]
    noun_phrase = _bracket("NP", [*_determiner(phrase, words[0].text), *words])
    return noun_phrase if phrase.relative is None else _bracket("NP", [*noun_phrase, *_clause(phrase.relative)])


def _determiner(phrase: Phrase, following: str) -> list[Word]:
    if phrase.owner is not None:
        *words, owner, close = _phrase(phrase.owner, "possessor")
        suffix = "'" if phrase.owner.plural and owner.text.endswith("s") else "'s"
        return [*words, Word(owner.text + suffix, owner.role, (*owner.links, (phrase, "owner"))), close]
    text = phrase.determiner
    if text == "a" and following[0] in "aeiou":
        text = "an"
    elif text == "this" and phrase.plural:
        text = "these"
    return [Word(text, "determiner", ((phrase, "determiner"),))] if text else []
