"""Scenes in German: gender, case and number on every article, adjective and noun; the verb second, first or last."""

import re
from typing import Literal

from heedful.corpora.scenes.lexicon import Noun
from heedful.corpora.scenes.sentence import Word, time_words
from heedful.corpora.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Pronoun, Question, Scene

SPACE = " "
ATTACHED = ".?,"  # texts of words that follow the word before them without a space

Case = Literal["nominative", "accusative", "dative", "genitive"]
Order = Literal["second", "first", "last"]  # position of the finite verb in the clause


def _paradigm(nominative: str, accusative: str, dative: str, genitive: str) -> dict[tuple[str, str], str]:
    """Return the forms by case and by gender or plural, each row in the order of GENDERS; a dash is an empty ending."""
    rows = {"nominative": nominative, "accusative": accusative, "dative": dative, "genitive": genitive}
    return {
        (case, gender): form.strip("-")
        for case, row in rows.items()
        for gender, form in zip(GENDERS, row.split(), strict=True)
    }


GENDERS = "mfnp"  # masculine, feminine, neuter, plural
DEFINITE = _paradigm("der die das die", "den die das die", "dem der dem den", "des der des der")
RELATIVE = _paradigm("der die das die", "den die das die", "dem der dem denen", "dessen deren dessen deren")
STRONG_ARTICLE = _paradigm("er e es e", "en e es e", "em er em en", "es er es er")  # dieser, viele, einige
MIXED_ARTICLE = _paradigm("- e - e", "en e - e", "em er em en", "es er es er")  # ein, kein, mein
STRONG = _paradigm("er e es e", "en e es e", "em er em en", "en er en er")  # adjectives without an article before them
MIXED = _paradigm("er e es en", "en e es en", "en en en en", "en en en en")  # after ein, kein, mein
WEAK = _paradigm("e e e en", "en e e en", "en en en en", "en en en en")  # after der, dieser

DETERMINERS = {
    "this": ("dies", STRONG_ARTICLE, WEAK),
    "a": ("ein", MIXED_ARTICLE, MIXED),
    "no": ("kein", MIXED_ARTICLE, MIXED),
    "my": ("mein", MIXED_ARTICLE, MIXED),
    "our": ("unser", MIXED_ARTICLE, MIXED),
    "his": ("sein", MIXED_ARTICLE, MIXED),
    "her": ("ihr", MIXED_ARTICLE, MIXED),
    "their": ("ihr", MIXED_ARTICLE, MIXED),
    "some": ("einig", STRONG_ARTICLE, STRONG),
    "many": ("viel", STRONG_ARTICLE, STRONG),
}
NUMERALS = {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
PRONOUNS = {  # nominative, accusative, dative
    "m": ("er", "ihn", "ihm"),
    "f": ("sie", "sie", "ihr"),
    "n": ("es", "es", "ihm"),
    "p": ("sie", "sie", "ihnen"),
    "I": ("ich", "mich", "mir"),
    "we": ("wir", "uns", "uns"),
}
FUSED = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("in", "das"): "ins",
}
AUXILIARIES = {  # first person, third person, plural
    "be": ("bin", "ist", "sind"),
    "have": ("habe", "hat", "haben"),
    "future": ("werde", "wird", "werden"),
    "passive": ("wurde", "wurde", "wurden"),
    "can": ("kann", "kann", "können"),
    "must": ("muss", "muss", "müssen"),
    "must not": ("darf", "darf", "dürfen"),
    "want": ("will", "will", "wollen"),
    "should": ("sollte", "sollte", "sollten"),
}
CONJUNCTIONS = {
    "and": "und",
    "but": "aber",
    "because": "weil",
    "although": "obwohl",
    "when": "als",
    "while": "während",
    "if": "wenn",
}
QUESTIONS = {"who": "wer", "what": "was", "where": "wo"}


def realise(scene: Scene) -> list[Word]:
    words = _joined(scene, scene.second) if scene.second is not None else _clause(scene.main, "second")
    words.append(Word("?" if scene.main.asked else ".", "punctuation", ((scene, "end"),)))
    follows = [*(word.role == "punctuation" for word in words[1:]), False]
    return [word for word, mark in zip(words, follows, strict=True) if not (word.text == "," and mark)]


def _joined(scene: Scene, second: Clause) -> list[Word]:
    link = Word(CONJUNCTIONS[scene.link], "conjunction", ((scene, "link"),))
    comma = Word(",", "punctuation", ((scene, "comma"),))
    if scene.second_first:
        return [link, *_clause(second, "last"), comma, *_clause(scene.main, "first")]
    main = _clause(scene.main, "second")
    if scene.link == "and":
        return [*main, link, *_clause(second, "second")]
    return [*main, comma, link, *_clause(second, "second" if scene.link == "but" else "last")]


def _clause(clause: Clause, order: Order) -> list[Word]:
    """Express a clause: [front] [finite verb] [middle] [rest of the verb], or with the finite verb at the end."""
    fields = _fields(clause)
    front = fields.pop(_front(clause, order), [])
    middle = [word for field in fields.values() for word in field]
    tail = [] if clause.object is None else _relative(clause.object)
    if clause.content is not None:
        that = Word("dass", "conjunction", ((clause, "that"),))
        tail = [Word(",", "punctuation"), that, *_clause(clause.content, "last")]
    finite, closing = _verbs(clause)
    if order != "last":
        return [*front, finite, *middle, *closing, *tail]
    if closing and closing[0].role == "particle":
        finite, closing = finite._replace(text=closing[0].text + finite.text), []
    return [*front, *middle, *closing, finite, *tail]


def _front(clause: Clause, order: Order) -> str:
    """Return the field that begins the clause, or "" if it begins with the verb or the middle."""
    for slot in ("subject", "object"):
        if isinstance(getattr(clause, slot), Gap | Question):
            return slot
    if clause.place is not None and isinstance(clause.place.phrase, Question):
        return "place"
    if order != "second" or clause.asked:
        return ""
    if clause.voice == "existential":
        return "place"
    return "time" if clause.time_first else "subject"


def _fields(clause: Clause) -> dict[str, list[Word]]:
    """Return the fields of a clause by name, in the order of the middle.

    Pronouns are early, new things are late, and "nicht" precedes a predicate.
    """
    thing, goal, negation = clause.object, clause.goal, (clause, "negation")
    # A negation gives an indefinite phrase the article "kein", and is "nicht" elsewhere.
    indefinite = thing if isinstance(thing, Phrase) and thing.determiner in ("a", "") else None
    if indefinite and (indefinite.owner is not None or "name" in indefinite.noun.kinds):
        indefinite = None
    case: Case = "dative" if "dative" in clause.verb.tags else "accusative"
    objects = nominal(thing, case, "object")
    if clause.negated and indefinite:
        no, *rest = _phrase(indefinite, case, "object", "no")
        objects = [*_yet(clause), no._replace(links=(*no.links, negation)), *rest]
    agent: list[Word] = []
    if clause.agent is not None:
        by = Word("von", "preposition", ((clause, "agent"),))
        agent = _prepositional(by, nominal(clause.agent, "dative", "agent"))
    words = {
        "subject": [*nominal(clause.subject, "nominative", "subject"), *_relative(clause.subject)],
        "object": objects,
        "recipient": nominal(clause.recipient, "dative", "recipient"),
        "time": [] if clause.time is None else time_words(clause, clause.time.german),
        "negation": [] if indefinite or not clause.negated else [*_yet(clause), Word("nicht", "negation", (negation,))],
        "place": _place(clause.place, "dative"),
        "agent": agent,
        "goal": _place(goal, "dative" if goal and goal.relation.german == "zu" else "accusative"),
        "predicate": _predicate(clause),
    }
    pronouns = [slot for slot in ("object", "recipient") if isinstance(getattr(clause, slot), Pronoun)]
    early_place = ["place"] if indefinite else []
    order = ["subject", *pronouns, "time", *early_place, "recipient", "object", "negation", "place"]
    return {slot: words[slot] for slot in [*order, "agent", "goal", "predicate"]}


def _yet(clause: Clause) -> list[Word]:
    return [Word("noch", "time", ((clause, "yet"),))] if clause.tense == "perfect" else []


def _place(place: Place | None, case: Case) -> list[Word]:
    if place is None:
        return []
    words = nominal(place.phrase, case, "place")
    if isinstance(place.phrase, Question):
        return words
    return _prepositional(Word(place.relation.german, "preposition", ((place, "preposition"),)), words)


def _prepositional(preposition: Word, words: list[Word]) -> list[Word]:
    """Put a preposition before a noun phrase, and contract it with the article where German does."""
    fused = FUSED.get((preposition.text, words[0].text))
    if fused is None:
        return [preposition, *words]
    return [Word(fused, "preposition", (*preposition.links, *words[0].links)), *words[1:]]


def _predicate(clause: Clause) -> list[Word]:
    if clause.predicate is None:
        return []
    links = ((clause, "predicate"),)
    if clause.standard is None:
        return [Word(clause.predicate.german, "predicate", links)]
    than = Word("als", "conjunction", ((clause, "than"),))
    standard = nominal(clause.standard, "nominative", "standard")
    return [Word(clause.predicate.german_more, "predicate", links), than, *standard]


def _relative(item: Nominal) -> list[Word]:
    if not isinstance(item, Phrase) or item.relative is None:
        return []
    comma = Word(",", "punctuation")
    return [comma, *_clause(item.relative, "last"), comma]


def _verbs(clause: Clause) -> tuple[Word, list[Word]]:
    """Return the finite verb, and the words that close the clause: separable prefix, participle or infinitive."""
    verb, subject = clause.verb.german, clause.subject
    main, tense = (clause, "verb"), (clause, "tense")
    is_first_person = isinstance(subject, Pronoun) and subject.noun is None
    person = 2 if subject.plural else 0 if is_first_person else 1  # the index of a form in AUXILIARIES
    auxiliary = _auxiliary(clause)
    if auxiliary:
        form = verb.participle if auxiliary in ("have", "be", "passive") else verb.prefix + verb.infinitive
        return Word(AUXILIARIES[auxiliary][person], "auxiliary", (tense,)), [Word(form, "verb", (main,))]
    if clause.tense in ("past", "past progressive"):
        finite = verb.past + ("" if not subject.plural else "n" if verb.past.endswith("e") else "en")
    elif verb.infinitive == "sein":
        finite = AUXILIARIES["be"][person]
    elif subject.plural:
        finite = verb.infinitive
    elif is_first_person and verb.third.endswith("t"):
        finite = verb.infinitive.removesuffix("n").removesuffix("e") + "e"
    else:
        finite = verb.third
    prefix = [Word(verb.prefix, "particle", (main,))] if verb.prefix else []
    return Word(finite, "verb", (main, tense)), prefix


def _auxiliary(clause: Clause) -> str:
    """Return the key of AUXILIARIES, or "" for a verb without an auxiliary."""
    if clause.voice == "passive":
        return "passive"
    if clause.tense == "perfect":
        return "be" if "sein" in clause.verb.tags else "have"
    if clause.tense == "future":
        return "future"
    return "must not" if clause.modal == "must" and clause.negated else clause.modal


def nominal(item: Nominal | None, case: Case, role: str) -> list[Word]:
    """Express a noun phrase in German, without its relative clause, in a case and with the role of its noun."""
    if isinstance(item, Phrase):
        return _phrase(item, case, role, item.determiner)
    if isinstance(item, Pronoun):
        # Pronouns for people follow natural gender ("das Mädchen ... sie"), all others the gender of the noun.
        if item.noun is None:
            row = "we" if item.plural else "I"
        else:
            row = "p" if item.plural else {"he": "m", "she": "f", "it": item.noun.gender}[item.noun.pronoun]
        form = PRONOUNS[row][("nominative", "accusative", "dative").index(case)]
        return [Word(form, role, ((item, "noun"),))]
    if isinstance(item, Pair):
        link = Word("und", "conjunction", ((item, "and"),))
        return [*nominal(item.first, case, role), link, *nominal(item.second, case, role)]
    if isinstance(item, Question):
        return [Word(QUESTIONS[item.word], role, ((item, "noun"),))]
    if item is None:
        return []
    gender = "p" if item.plural else item.phrase.noun.gender
    return [Word(RELATIVE[case, gender], "relativizer", ((item.phrase.relative, "relativizer"),))]


def _phrase(phrase: Phrase, case: Case, role: str, determiner: str) -> list[Word]:
    gender = "p" if phrase.plural else phrase.noun.gender
    owner = phrase.owner
    named = owner is not None and "name" in owner.noun.kinds
    # The article in its case, and the endings that adjectives have after it.
    determiner = "" if named else "the" if owner else determiner
    article, endings = NUMERALS.get(determiner, ""), STRONG
    if determiner == "the":
        article, endings = DEFINITE[case, gender], WEAK
    elif determiner in DETERMINERS:
        stem, forms, endings = DETERMINERS[determiner]
        article = stem + forms[case, gender]
    words = [Word(article, "determiner", ((phrase, "determiner"),))] if article else []
    if owner is not None and named:
        words.append(Word(owner.noun.german[0] + "s", "possessor", ((owner, "noun"), (phrase, "owner"))))
    if phrase.adjective is not None:
        adjective = phrase.adjective.german_stem + endings[case, gender]
        words.append(Word(adjective, "adjective", ((phrase, "adjective"),)))
    words.append(Word(_noun(phrase.noun, phrase.plural, case), role, ((phrase, "noun"),)))
    if owner is not None and not named:
        words += nominal(owner, "genitive", "possessor")
    return words


def _noun(noun: Noun, plural: bool, case: Case) -> str:
    one, many = noun.german
    if plural:
        return many + "n" if case == "dative" and many[-1] not in "ns" else many
    if "weak" in noun.kinds and case != "nominative":
        return many
    if case == "genitive" and noun.gender != "f":
        syllables = re.findall("[aeiouyäöü]+", one.lower())
        return one + ("es" if len(syllables) == 1 else "s")
    return one
