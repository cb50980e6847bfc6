"""English scenes as constituency trees in brackets, such as (S (NP the cat) (VP is sleeping) .).

The words and their order are those of `english`. The labels are those of the Penn Treebank (Marcus et al. 1993), with
fewer kinds of phrases; adverbials of time are ADVP.
"""

from heedful.corpora.scenes import english
from heedful.corpora.scenes.sentence import Word
from heedful.corpora.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Question, Scene

SPACE = " "
ATTACHED = ")"  # texts of words that follow the word before them without a space
END = Word(")", "bracket")


def realise(scene: Scene) -> list[Word]:
    *_, end = english.realise(scene)
    if scene.second is None:
        return [*_clause(scene.main)[:-1], end, END]
    main, second = _clause(scene.main), _clause(scene.second)
    link = Word(scene.link, "conjunction", ((scene, "link"),))
    comma = Word(",", "punctuation", ((scene, "comma"),))
    if scene.link in ("and", "but"):
        joined = [*main, *([comma] if scene.link == "but" else []), link, *second]
    elif scene.second_first:
        joined = [*_bracket("SBAR", [link, *second]), comma, *main]
    else:
        joined = [*main, *_bracket("SBAR", [link, *second])]
    return _bracket("S", [*joined, end])


def _bracket(label: str, words: list[Word]) -> list[Word]:
    """Put words in brackets; no words remain no words."""
    return [Word(f"({label}", "bracket"), *words, END] if words else []


def _clause(clause: Clause) -> list[Word]:
    subject = _nominal(clause.subject, "subject")
    finite, *rest = english.verbs(clause)
    if clause.voice == "existential":
        there = Word("there", "particle", ((clause, "verb"),))
        phrase = _bracket("VP", [finite, *rest, *subject, *_place(clause.place)])
        return _bracket("S", [*_bracket("NP", [there]), *phrase])
    early, late = (_bracket("ADVP", words) for words in english.times(clause))
    complements = _complements(clause)
    first, last = (late, []) if clause.time_first else ([], late)
    if isinstance(clause.subject, Question):
        return _bracket("SBARQ", [*subject, *early, *_bracket("VP", [finite, *rest, *complements, *last])])
    if clause.asked:
        # Without a second verb, as in "is the key on the table", nothing but the verb "is" heads the predicate.
        predicate = _bracket("VP", [*rest, *complements, *last]) if rest else [*complements, *last]
        asked = _bracket("SQ", [finite, *subject, *early, *predicate])
        front = _question_word(clause)
        return _bracket("SBARQ", [*front, *asked]) if front else asked
    body = _bracket("S", [*first, *subject, *early, *_bracket("VP", [finite, *rest, *complements, *last])])
    front = english.relativizer(clause)
    return _bracket("SBAR", [*_bracket("WHNP", front), *body]) if front else body


def _question_word(clause: Clause) -> list[Word]:
    """Return the question word at the beginning of a clause, unless it is the subject."""
    if isinstance(clause.object, Question):
        return _nominal(clause.object, "object")
    if clause.place is not None and isinstance(clause.place.phrase, Question):
        return _bracket("WHADVP", english.nominal(clause.place.phrase, "place"))
    return []


def _complements(clause: Clause) -> list[Word]:
    words: list[Word] = []
    if clause.recipient is not None:
        words += _nominal(clause.recipient, "recipient")
    if clause.object is not None and not isinstance(clause.object, Question):
        words += _nominal(clause.object, "object")
    if clause.predicate is not None:
        links = ((clause, "predicate"),)
        if clause.standard is None:
            words += _bracket("ADJP", [Word(clause.predicate.english, "predicate", links)])
        else:
            more = [Word(text, "predicate", links) for text in clause.predicate.english_more]
            than = Word("than", "conjunction", ((clause, "than"),))
            words += _bracket("ADJP", [*more, *_bracket("PP", [than, *_nominal(clause.standard, "standard")])])
    if clause.agent is not None:
        by = Word("by", "preposition", ((clause, "agent"),))
        words += _bracket("PP", [by, *_nominal(clause.agent, "agent")])
    words += _place(clause.place) + _place(clause.goal)
    if clause.content is not None:
        words += _bracket("SBAR", [Word("that", "conjunction", ((clause, "that"),)), *_clause(clause.content)])
    return words


def _place(place: Place | None) -> list[Word]:
    if place is None or isinstance(place.phrase, Question):
        return []
    words = [Word(text, "preposition", ((place, "preposition"),)) for text in place.relation.english]
    return _bracket("PP", [*words, *_nominal(place.phrase, "place")])


def _nominal(item: Nominal, role: str) -> list[Word]:
    if isinstance(item, Gap):
        return []
    if isinstance(item, Question):
        return _bracket("WHNP", english.nominal(item, role))
    if isinstance(item, Pair):
        link = Word("and", "conjunction", ((item, "and"),))
        return _bracket("NP", [*_nominal(item.first, role), link, *_nominal(item.second, role)])
    if not isinstance(item, Phrase):
        return _bracket("NP", english.nominal(item, role))
    owner = 0 if item.owner is None else len(english.determiner(item, ""))
    words = english.phrase_without_clause(item, role)
    phrase = _bracket("NP", [*_bracket("NP", words[:owner]), *words[owner:]])
    return _bracket("NP", [*phrase, *_clause(item.relative)]) if item.relative else phrase
