"""Scenes in Chinese: classifiers, 了 and 没有, time and place before the verb, relative clauses before their noun."""

from heedful.corpora.scenes.sentence import Link, Word, time_words
from heedful.corpora.scenes.tree import Clause, Nominal, Pair, Phrase, Place, Pronoun, Question, Scene

SPACE = ""
ATTACHED = ""  # texts of words that follow the word before them without a space

PRONOUNS = {"he": ("他", "他们"), "she": ("她", "她们"), "it": ("它", "它们"), "": ("", "他们")}
OWNERS = {"my": "我", "our": "我们", "his": "他", "her": "她", "their": "他们"}
NUMERALS = {"a": "一", "two": "两", "three": "三", "four": "四", "five": "五", "some": "几"}
MODALS = {"can": "能", "must": "必须", "want": "想", "should": "应该"}
DENIALS = {"can": "不能", "must": "不可以", "want": "不想", "should": "不应该"}
CONJUNCTIONS = {"and": "而", "but": "但是", "because": "因为", "although": "虽然", "if": "如果"}
QUESTIONS = {"who": "谁", "what": "什么", "where": "哪里"}


def realise(scene: Scene) -> list[Word]:
    words = _clause(scene.main)
    if scene.second is not None:
        words = _joined(scene, words, scene.second)
    end = ((scene, "end"),)
    if not scene.main.asked:
        return [*words, Word("。", "punctuation", end)]
    asking = any(word.text in QUESTIONS.values() for word in words)
    return [*words, *([] if asking else [Word("吗", "particle", end)]), Word("？", "punctuation", end)]


def _joined(scene: Scene, main: list[Word], second: Clause) -> list[Word]:
    link = ((scene, "link"),)
    comma = Word("，", "punctuation", ((scene, "comma"),))
    if scene.link in ("when", "while"):
        moment = [Word("的", "particle", link), Word("时候", "conjunction", link)]
        return [*_clause(second, is_news=False), *moment, comma, *main]
    conjunction = Word(CONJUNCTIONS[scene.link], "conjunction", link)
    if scene.link == "if":
        return [conjunction, *_clause(second), comma, *main]
    return [*main, comma, conjunction, *_clause(second)]


def _clause(clause: Clause, is_news: bool = True) -> list[Word]:
    """Express a clause. Unless `is_news` is True, it only identifies a thing or a moment, and has no 了."""
    subject = nominal(clause.subject, "subject")
    time = [] if clause.time is None else time_words(clause, clause.time.chinese)
    if clause.voice == "existential":
        return [*_location(clause.place), Word("有", "verb", ((clause, "verb"), (clause, "tense"))), *subject]
    start = [*time, *subject] if clause.time_first else [*subject, *time]
    if clause.verb.frame == "copula" and clause.predicate is None:  # somebody or something is at a place
        be, *words = _place(clause.place)
        be = be._replace(role="verb", links=(*be.links, (clause, "verb"), (clause, "tense")))
        return [*start, *(_denial(clause) if clause.negated else []), be, *words]
    if clause.verb.frame == "copula":
        return start + _description(clause)
    if clause.voice == "passive":
        return start + _passive(clause)
    return start + _action(clause, is_news)


def _action(clause: Clause, is_news: bool) -> list[Word]:
    """Express the predicate: tense and negation markers, the place, and the verb with the words around it."""
    verb, tense = (clause, "verb"), (clause, "tense")
    marks = _marks(clause)
    is_event = is_news and clause.verb.aspect != "state" and not clause.negated
    is_completed = is_event and clause.tense in ("past", "perfect")
    links: list[Link] = [verb]
    if not (is_completed or any(tense in mark.links for mark in marks)):
        links.append(tense)
    if clause.verb.frame == "motion":
        links.append((clause.goal, "preposition"))
    # The words of the verb: a coverb before its object (or ""), the word that takes 了, and the rest.
    parts = clause.verb.chinese
    coverb, head, tail = (parts[0], parts[2], parts[3:]) if "_" in parts else ("", parts[0], parts[1:])
    if clause.goal is not None and clause.verb.frame == "motion":
        coverb, head, tail = "", parts[clause.goal.relation.english == ("into",)], ()
    # The recipient, or else the object, precedes a verb with two parts.
    recipient, thing = nominal(clause.recipient, "recipient"), nominal(clause.object, "object", clause.negated)
    early, late = ([], [*recipient, *thing]) if not coverb else (recipient, thing) if recipient else (thing, [])
    return [
        *marks,
        *_place(clause.place),
        *([Word(coverb, "particle", (verb,))] if coverb else []),
        *early,
        Word(head, "verb", tuple(links)),
        *([Word("了", "auxiliary", (tense,))] if is_completed else []),
        *(Word(part, "particle", (verb,)) for part in tail),
        *late,
        *_location(clause.goal),
        *([] if clause.content is None else _clause(clause.content)),
    ]


def _marks(clause: Clause) -> list[Word]:
    """Return the words for tense, modality and negation, which precede the verb and its place."""
    if clause.negated:
        return _denial(clause)
    if clause.tense in ("progressive", "past progressive"):
        where = clause.place.phrase if clause.place else None
        mark = "" if isinstance(where, Question) else "正" if where else "正在"
    else:
        mark = {"perfect": "已经", "future": "会", "modal": MODALS.get(clause.modal, "")}.get(clause.tense, "")
    return [Word(mark, "auxiliary", ((clause, "tense"),))] if mark else []


def _denial(clause: Clause) -> list[Word]:
    denial, tense = (clause, "negation"), (clause, "tense")
    if clause.tense in ("progressive", "past progressive"):
        during = [] if clause.place else [Word("在", "auxiliary", (tense,))]
        return [Word("没有", "negation", (denial,)), *during]
    if clause.tense == "perfect":
        return [Word("还", "time", ((clause, "yet"),)), Word("没有", "negation", (denial, tense))]
    if clause.tense == "past":
        return [Word("没有", "negation", (denial, tense))]
    if clause.tense == "present":
        return [Word("没" if clause.verb.chinese == ("有",) else "不", "negation", (denial,))]
    return [Word(DENIALS.get(clause.modal, "不会"), "negation", (denial, tense))]


def _passive(clause: Clause) -> list[Word]:
    tense = (clause, "tense")
    return [
        *(_denial(clause) if clause.negated else []),
        Word("被", "preposition", ((clause, "agent"),)),
        *nominal(clause.agent, "agent"),
        Word(clause.verb.chinese[0], "verb", ((clause, "verb"),)),
        *([] if clause.negated else [Word("了", "auxiliary", (tense,))]),
    ]


def _description(clause: Clause) -> list[Word]:
    """Express a predicate with an adjective: 很大, 不大, 比猫大; colours are 是黑色的."""
    if clause.predicate is None:
        return []
    copula, quality = ((clause, "verb"), (clause, "tense")), ((clause, "predicate"),)
    words = [Word(clause.predicate.chinese_predicate, "predicate", quality)]
    if not clause.predicate.english_more:
        words = [Word("是", "verb", copula), *words, Word("的", "particle", quality)]
    elif clause.standard is not None:
        than = Word("比", "conjunction", ((clause, "than"),))
        words = [than, *nominal(clause.standard, "standard"), *words]
    elif not (clause.negated or clause.asked):
        words = [Word("很", "particle", copula), *words]
    return [*_denial(clause), *words] if clause.negated else words


def _place(place: Place | None) -> list[Word]:
    return [] if place is None else [Word("在", "preposition", ((place, "preposition"),)), *_location(place)]


def _location(place: Place | None) -> list[Word]:
    """Express a place without 在: the noun and the word for the side."""
    if place is None:
        return []
    side = place.relation.chinese
    after = [Word(side, "preposition", ((place, "preposition"),))] if side else []
    return [*nominal(place.phrase, "place"), *after]


def nominal(item: Nominal | None, role: str, denied: bool = False) -> list[Word]:
    """Express a noun phrase in Chinese, with the role of its noun; a gap has no words, nor does "a" in a denial."""
    if isinstance(item, Phrase):
        return _phrase(item, role, denied)
    if isinstance(item, Pronoun):
        forms = ("我", "我们") if item.noun is None else PRONOUNS[item.noun.pronoun]
        return [Word(forms[item.plural], role, ((item, "noun"),))]
    if isinstance(item, Pair):
        link = Word("和", "conjunction", ((item, "and"),))
        return [*_phrase(item.first, role), link, *_phrase(item.second, role)]
    if isinstance(item, Question):
        return [Word(QUESTIONS[item.word], role, ((item, "noun"),))]
    return []


def _phrase(phrase: Phrase, role: str, denied: bool = False) -> list[Word]:
    noun = phrase.noun
    words = [] if denied and phrase.determiner == "a" else _determiner(phrase)
    if phrase.owner is not None:
        words = [*nominal(phrase.owner, "possessor"), Word("的", "particle", ((phrase, "owner"),))]
    if phrase.relative is not None:
        relativizer = Word("的", "relativizer", ((phrase.relative, "relativizer"),))
        words = [*_clause(phrase.relative, is_news=False), relativizer, *words]
    if phrase.adjective is not None:
        words += [Word(text, "adjective", ((phrase, "adjective"),)) for text in phrase.adjective.chinese]
    # 们 is needed for people whose number no other word shows.
    is_shown = phrase.relative is not None or not (phrase.owner or phrase.determiner in ("the", *OWNERS))
    plural = "们" if phrase.plural and "person" in phrase.noun.kinds and not is_shown else ""
    return [*words, Word(noun.chinese + plural, role, ((phrase, "noun"),))]


def _determiner(phrase: Phrase) -> list[Word]:
    links = ((phrase, "determiner"),)
    text = phrase.determiner
    if text in OWNERS:
        return [Word(OWNERS[text], "determiner", links), Word("的", "particle", links)]
    if text in NUMERALS:
        first = NUMERALS[text]
    elif text == "many":
        return [Word("很多", "determiner", links)]
    elif text == "this" or (text == "the" and phrase.relative is not None):
        first = "这" if text == "this" else "那"
        if phrase.plural:
            return [Word(first + "些", "determiner", links)]
    else:
        some = text == "the" and phrase.plural and "person" not in phrase.noun.kinds
        return [Word("那些", "determiner", links)] if some else []
    return [Word(first, "determiner", links), Word(phrase.noun.classifier, "classifier", links)]
