"""The scene in Chinese: classifiers, 了 and 没有, time and place before the verb, relative clauses before their noun."""

from heedful.data.scenes.sentence import Link, Word
from heedful.data.scenes.tree import Clause, Gap, Nominal, Pair, Phrase, Place, Pronoun, Question, Scene

SPACE = ""

PRONOUNS = {"he": ("他", "他们"), "she": ("她", "她们"), "it": ("它", "它们"), "": ("", "他们")}
OWNERS = {"my": "我", "our": "我们", "his": "他", "her": "她", "their": "他们"}
NUMERALS = {"a": "一", "two": "两", "three": "三", "four": "四", "five": "五", "some": "几"}
MODALS = {"can": "能", "must": "必须", "want": "想", "should": "应该"}
DENIALS = {"can": "不能", "must": "不可以", "want": "不想", "should": "不应该"}
CONJUNCTIONS = {"and": "而", "but": "但是", "because": "因为", "although": "虽然", "if": "如果"}
QUESTIONS = {"who": "谁", "what": "什么", "where": "哪里"}


def realise(scene: Scene) -> list[Word]:
    """Tell a scene in Chinese."""
    words = _clause(scene.main)
    if scene.second is not None:
        words = _joined(scene, words, scene.second)
    end = ((scene, "end"),)
    if scene.main.asked:
        asks = any(word.text in QUESTIONS.values() for word in words)
        return [*words, *([] if asks else [Word("吗", "particle", end)]), Word("？", "punctuation", end)]
    return [*words, Word("。", "punctuation", end)]


def _joined(scene: Scene, main: list[Word], second: Clause) -> list[Word]:
    link = ((scene, "link"),)
    comma = Word("，", "punctuation", ((scene, "comma"),))
    if scene.link in ("when", "while"):
        moment = [Word("的", "particle", link), Word("时候", "conjunction", link)]
        return [*_clause(second, told=False), *moment, comma, *main]
    conjunction = Word(CONJUNCTIONS[scene.link], "conjunction", link)
    if scene.second_first:
        return [conjunction, *_clause(second), comma, *main]
    return [*main, comma, conjunction, *_clause(second)]


def _clause(clause: Clause, told: bool = True) -> list[Word]:
    """A clause; one that only tells which thing or moment is meant is not `told` and does without 了."""
    if clause.voice == "existential":
        subject = nominal(clause.subject, "subject")
        return [*_there(clause.place), Word("有", "verb", ((clause, "verb"), (clause, "tense"))), *subject]
    subject, time = nominal(clause.subject, "subject"), _time(clause)
    start = [*time, *subject] if clause.time_first else [*subject, *time]
    if clause.verb.frame == "copula":
        return start + _state(clause)
    if clause.voice == "passive":
        return start + _suffered(clause)
    return start + _action(clause, told)
...
