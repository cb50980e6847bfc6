"""The grammar of the scenes on trees that were built, and told, by hand."""

import pytest

from heedful.corpora.scenes import chinese, english, german
from heedful.corpora.scenes.lexicon import ADJECTIVES, BESIDE, INTO, NOUNS, NOWHERE, ON, TIMES, TO, VERBS
from heedful.corpora.scenes.sentence import sentence
from heedful.corpora.scenes.tree import Clause, Gap, Pair, Phrase, Place, Pronoun, Question, Scene

UNDER = BESIDE[0]


def noun(name):
    (found,) = (noun for noun in NOUNS if noun.english[0] == name)
    return found


def quality(name, of=""):
    (found,) = (word for word in ADJECTIVES if word.english == name and (not of or word.kinds & noun(of).kinds))
    return found


def the(name, determiner="the", adjective="", **parts):
    """A phrase such as the("dog", "two", "old", plural=True)."""
    described = quality(adjective, of=name) if adjective else None
    return Phrase(noun(name), parts.pop("plural", False), determiner, described, **parts)


def it(name="", plural=False):
    return Pronoun(noun(name) if name else None, plural)


def time(name):
    (found,) = (time for time in TIMES if " ".join(time.english) == name)
    return found


def at(name, relation=None):
    return Place(relation or noun(name).where, the(name))


def does(base, subject, tense="past", frame="transitive", german_infinitive="", **slots):
    (verb,) = (
        verb
        for verb in VERBS
        if (verb.english.base, verb.frame) == (base, frame) and verb.german.infinitive.startswith(german_infinitive)
    )
    return Clause(verb, subject, tense, **slots)


def who(phrase, base, tense="past", subject=None, **slots):
    """The phrase with a relative clause: about what it does or, with a subject, about what is done to it."""
    if subject is not None:
        slots["object"] = Gap(phrase)
    phrase.relative = does(base, subject or Gap(phrase), tense, **slots)
    return phrase


def sleeps(subject, tense="progressive", **slots):
    return does("sleep", subject, tense, "intransitive", **slots)


def is_(subject, tense="present", **slots):
    return does("be", subject, tense, "copula", **slots)


SCENES = {
    "a participle at the end": (
        Scene(
            does(
                "give",
                the("woman", adjective="old"),
                "perfect",
                "ditransitive",
                recipient=the("child"),
                object=the("shirt", "a", "red"),
            )
        ),
        "The old woman has given the child a red shirt.",
        "Die alte Frau hat dem Kind ein rotes Hemd gegeben.",
        "年老的女人已经给了孩子一件红色的衬衫。",
    ),
    "a separable verb": (
        Scene(does("open", the("man"), object=the("door"), time=time("this morning"))),
        "The man opened the door this morning.",
        "Der Mann machte heute Morgen die Tür auf.",
        "男人今天早上打开了门。",
    ),
    "time first, then the verb": (
        Scene(
            does("buy", it(), "future", object=the("apple", "two", plural=True), time=time("tomorrow"), time_first=True)
        ),
        "Tomorrow I will buy two apples.",
        "Morgen werde ich zwei Äpfel kaufen.",
        "明天我会买两个苹果。",
    ),
    "agreement across a relative clause": (
        Scene(sleeps(who(the("dog", plural=True), "see", subject=the("girl"), place=at("park")), place=at("garden"))),
        "The dogs that the girl saw in the park are sleeping in the garden.",
        "Die Hunde, die das Mädchen im Park sah, schlafen im Garten.",
        "女孩在公园里看见的那些狗正在花园里睡觉。",
    ),
    "a relative clause behind the bracket": (
        Scene(
            does("find", the("boy", "a"), "perfect", object=who(the("man", plural=True), "help", "past", the("queen")))
        ),
        "A boy has found the men that the queen helped.",
        "Ein Junge hat die Männer gefunden, denen die Königin half.",
        "一个男孩已经找到了女王帮助的那些男人。",
    ),
    "somebody who": (
        Scene(is_(who(the("king"), "love", "present", object=the("cat", "", plural=True)), predicate=quality("lazy"))),
        "The king who loves cats is lazy.",
        "Der König, der Katzen liebt, ist faul.",
        "爱猫的那位国王很懒。",
    ),
    "denied": (
        Scene(does("read", it("woman"), negated=True, object=the("letter", "a"), place=at("library"))),
        "She did not read a letter in the library.",
        "Sie las in der Bibliothek keinen Brief.",
        "她没有在图书馆里读信。",
    ),
    "denied for now": (
        Scene(does("feed", it("man", True), "perfect", negated=True, object=the("horse", "our"))),
        "They have not fed our horse yet.",
        "Sie haben unser Pferd noch nicht gefüttert.",
        "他们还没有喂我们的马。",
    ),
    "an owner": (
        Scene(
            is_(
                the("bicycle", owner=the("boy", adjective="young")),
                "past",
                predicate=quality("cheap"),
                standard=the("car", owner=the("Peter", "")),
            )
        ),
        "The young boy's bicycle was cheaper than Peter's car.",
        "Das Fahrrad des jungen Jungen war billiger als Peters Auto.",
        "年轻的男孩的自行车比彼得的汽车便宜。",
    ),
    "a passive": (
        Scene(does("eat", the("egg", plural=True), german_infinitive="fressen", voice="passive", agent=the("lion"))),
        "The eggs were eaten by the lion.",
        "Die Eier wurden vom Löwen gefressen.",
        "那些鸡蛋被狮子吃了。",
    ),
    "there is": (
        Scene(is_(the("mouse", "three", plural=True), voice="existential", place=at("bed", UNDER))),
        "There are three mice under the bed.",
        "Unter dem Bett sind drei Mäuse.",
        "床下面有三只老鼠。",
    ),
    "asked": (
        Scene(does("call", the("mother", "his"), "past", asked=True, object=it("woman"))),
        "Did his mother call her?",
        "Rief seine Mutter sie an?",
        "他的母亲给她打了电话吗？",
    ),
    "asked what": (
        Scene(does("look", the("teacher"), "progressive", asked=True, object=Question("what"))),
        "What is the teacher looking for?",
        "Was sucht die Lehrerin?",
        "老师正在找什么？",
    ),
    "asked where": (
        Scene(sleeps(Pair(the("Anna", ""), the("Tom", "")), asked=True, place=Place(NOWHERE, Question("where")))),
        "Where are Anna and Tom sleeping?",
        "Wo schlafen Anna und Tom?",
        "安娜和汤姆在哪里睡觉？",
    ),
    "to and into": (
        Scene(
            does("go", the("cow"), "past", "motion", goal=at("house", INTO)),
            "and",
            does("run", the("cat"), "past", "motion", goal=at("school", TO)),
        ),
        "The cow went into the house and the cat ran to the school.",
        "Die Kuh ging ins Haus und die Katze rannte zur Schule.",
        "牛走进了房子，而猫跑去了学校。",
    ),
    "put and lay": (
        Scene(
            does(
                "put",
                the("uncle"),
                "modal",
                "placement",
                "legen",
                modal="want",
                object=the("book"),
                goal=at("table", ON),
            )
        ),
        "The uncle wants to put the book on the table.",
        "Der Onkel will das Buch auf den Tisch legen.",
        "叔叔想把书放在桌子上。",
    ),
    "it is what he needs": (
        Scene(
            does("look", the("student"), "progressive", object=the("key")),
            "because",
            does("need", it("student"), "present", object=it("key")),
        ),
        "The student is looking for the key because he needs it.",
        "Der Student sucht den Schlüssel, weil er ihn braucht.",
        "学生正在找钥匙，因为他需要它。",
    ),
    "when it happened": (
        Scene(
            sleeps(the("child"), "past progressive"),
            "when",
            does("close", the("friend"), object=the("window", plural=True)),
            second_first=True,
        ),
        "When the friend closed the windows, the child was sleeping.",
        "Als der Freund die Fenster zumachte, schlief das Kind.",
        "朋友关上那些窗户的时候，孩子正在睡觉。",
    ),
    "what somebody says": (
        Scene(
            does(
                "say",
                the("farmer", "many", plural=True),
                "present",
                "report",
                content=does("have", the("doctor", "this"), "present", negated=True, object=the("lamp", "a")),
            )
        ),
        "Many farmers say that this doctor does not have a lamp.",
        "Viele Bauern sagen, dass diese Ärztin keine Lampe hat.",
        "很多农民说这位医生没有灯。",
    ),
}


def told(scene):
    languages = english, german, chinese
    return tuple(sentence(each.realise(scene), each.SPACE, each.ATTACHED).text for each in languages)


@pytest.mark.parametrize("example", SCENES.values(), ids=SCENES)
def test_a_scene_is_told_in_three_languages(example):
    scene, *texts = example
    assert list(told(scene)) == texts
