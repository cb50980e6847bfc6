"""Facts of stories: summaries and dialogues say what the story says, in every language, and nothing else."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from heedful.corpora.scenes.author import BE
from heedful.corpora.scenes.facts import dialogue, facts, summary
from heedful.corpora.scenes.lexicon import NOUNS, ON, VERBS, Noun, Verb
from heedful.corpora.scenes.stories import LANGUAGES, NO, YES, express, fact_files, split_stories, story
from heedful.corpora.scenes.tree import Clause, Phrase, Place, Pronoun, Question, Scene

COUNT = 300


@pytest.fixture(scope="module")
def drafts():
    return [story(seed=3, index=index) for index in range(COUNT)]


def named(name) -> Noun:
    return next(noun for noun in NOUNS if noun.english[0] == name)


def verb(base, frame="transitive") -> Verb:
    return next(each for each in VERBS if each.english.base == base and each.frame == frame)


def the(name) -> Phrase:
    return Phrase(named(name), plural=False, determiner="the")


KING, LAMP, QUEEN, CAT = map(the, ("king", "lamp", "queen", "cat"))
STORY = [
    Scene(Clause(BE, Phrase(named("king"), False, "a"), "past", voice="existential", place=None)),
    Scene(Clause(verb("buy"), KING, "past progressive", object=LAMP)),
    Scene(Clause(verb("steal"), LAMP, "past", voice="passive", agent=QUEEN)),
    Scene(Clause(verb("see"), Pronoun(named("queen"), plural=False), "past", negated=True, object=CAT)),
    Scene(
        Clause(verb("sleep", "intransitive"), KING, "past"),
        "when",
        Clause(verb("call"), QUEEN, "past", object=KING),
        second_first=True,
    ),
]


def test_facts_are_in_the_active_voice_the_simple_past_and_the_order_of_the_story():
    texts = express("en", [Scene(clause) for clause in facts(STORY)])
    assert texts == [
        "The king bought the lamp.",
        "The queen stole the lamp.",
        "The queen did not see the cat.",
        "The queen called the king.",
        "The king slept.",
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", ["The queen stole the lamp.", "She did not see the cat.", "She called the king."]),
        ("de", ["Die Königin stahl die Lampe.", "Sie sah die Katze nicht.", "Sie rief den König an."]),
        ("zh", ["女王偷了灯。", "她没有看见猫。", "她给国王打了电话。"]),
    ],
)
def test_a_summary_says_what_the_main_character_did(language, text):
    assert express(language, summary(STORY)) == text


def test_a_summary_contains_all_facts_of_one_character_and_no_others(drafts):
    for scenes in drafts:
        clauses = facts(scenes)
        subjects = [clause.subject.noun for clause in clauses]
        sentences = summary(scenes)
        main = sentences[0].main.subject.noun
        assert subjects.count(main) == max(Counter(subjects).values())
        statements = [express("en", [Scene(clause)])[0] for clause in clauses if clause.subject.noun is main]
        named_again = [Scene(replace(sentence.main, subject=the(main.english[0]))) for sentence in sentences]
        if "name" not in main.kinds:
            assert express("en", named_again) == list(dict.fromkeys(statements))
        assert len(sentences) == len(dict.fromkeys(statements))


def test_a_summary_is_shorter_than_its_story(drafts):
    words = [[len(" ".join(express("en", part)).split()) for part in (summary(scenes), scenes)] for scenes in drafts]
    assert sum(short for short, _ in words) < 0.5 * sum(long for _, long in words)


def test_every_question_has_one_answer_that_follows_from_the_facts(drafts):
    """A second reader, who knows only the texts of the facts, answers every question in the same way."""
    kinds = Counter()
    for number, scenes in enumerate(drafts):
        clauses = facts(scenes)
        told = Counter(express("en", [Scene(clause)])[0] for clause in clauses)
        for question, answer in dialogue(scenes, seed=str(number)):
            main = question.main
            if isinstance(answer, bool):
                statement = Scene(Clause(**{name: getattr(main, name) for name in Clause.__slots__} | {"asked": False}))
                if isinstance(main.subject, Pronoun):
                    determiner = "" if "name" in main.subject.noun.kinds else "the"
                    statement.main.subject = Phrase(main.subject.noun, False, determiner)
                assert (express("en", [statement])[0] in told) == answer, (told, express("en", [question]))
                kinds[str(answer)] += 1
                continue
            asked, given = ("subject", "object") if isinstance(main.subject, Question) else ("object", "subject")
            kinds[asked] += 1
            assert answer.main.verb is main.verb
            assert not answer.main.negated
            fitting = {
                noun_of(clause, asked)
                for clause in clauses
                if clause.verb.english == main.verb.english
                and not clause.negated
                and noun_of(clause, given) is noun_of(main, given)
            }
            assert fitting == {noun_of(answer.main, asked)}
    assert all(kinds[kind] > 20 for kind in ("True", "False", "subject", "object"))


def noun_of(clause, slot):
    return getattr(getattr(clause, slot), "noun", None)


def test_a_place_where_somebody_may_have_been_is_not_denied(drafts):
    for number, scenes in enumerate(drafts):
        for question, answer in dialogue(scenes, seed=str(number)):
            if answer is False and (question.main.place or question.main.goal):
                opposite = replace(question.main, asked=False, negated=True)
                if isinstance(opposite.subject, Pronoun):
                    continue
                assert express("en", [Scene(opposite)]) in [express("en", [Scene(clause)]) for clause in facts(scenes)]


def test_denials_of_a_place_are_no_facts():
    garden = Place(ON, the("garden"))
    scenes = [
        Scene(Clause(verb("sleep", "intransitive"), KING, "past", negated=True, place=garden)),
        Scene(Clause(verb("sleep", "intransitive"), QUEEN, "past", place=garden)),
        Scene(Clause(BE, LAMP, "past", negated=True, place=garden)),
    ]
    assert express("en", map(Scene, facts(scenes))) == ["The queen slept.", "The lamp was not on the garden."]


def test_what_is_implied_is_not_denied():
    """Who bought somebody a ring also bought a ring; a lamp is not asked whether it was hungry."""
    ring, king = the("ring"), the("king")
    scenes = [
        Scene(Clause(verb("buy", "ditransitive"), QUEEN, "past", object=ring, recipient=king)),
        Scene(Clause(verb("buy"), QUEEN, "past", object=LAMP)),
    ]
    texts = {
        express("en", [question])[0]
        for seed in range(200)
        for question, answer in dialogue(scenes, str(seed))
        if not answer
    }
    assert texts
    assert not texts & {"Did the queen buy the ring?", "Did she buy the ring?"}


def test_a_pronoun_in_a_question_takes_up_the_subject_of_the_exchange_before(drafts):
    taken_up = 0
    for number, scenes in enumerate(drafts):
        topic = None
        for question, answer in dialogue(scenes, seed=str(number)):
            subject = question.main.subject
            if isinstance(subject, Pronoun):
                assert subject.noun is topic
                taken_up += 1
            topic = getattr(subject, "noun", None) or answer.main.subject.noun
    assert taken_up > 50


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_has_a_story_its_summary_and_a_dialogue_that_begins_with_the_story(language):
    drafts = split_stories(train=20, valid=2, test=2, seed=1)
    files = fact_files(language, drafts)
    assert set(files) == {"train.jsonl", "valid.jsonl", "test.jsonl"}
    rows = [json.loads(line) for line in files["train.jsonl"].splitlines()]
    space = LANGUAGES[language].SPACE
    for row, scenes in zip(rows, drafts["train"], strict=True):
        assert row["story"] == space.join(express(language, scenes))
        assert row["summary"] == space.join(express(language, summary(scenes)))
        first, *others = row["dialogue"]
        assert first == {"role": "user", "content": row["story"]}
        assert [message["role"] for message in others] == ["user", "assistant"] * (len(others) // 2)
        assert all(re.search(r"[?？]$", message["content"]) for message in others[::2])
    answers = Counter(message["content"] for row in rows for message in row["dialogue"])
    assert all(answers[answer[language]] for answer in (YES, NO))


def test_questions_do_not_depend_on_the_language():
    drafts = split_stories(train=20, valid=1, test=1, seed=1)
    for part in drafts:
        lengths = [
            [len(json.loads(line)["dialogue"]) for line in fact_files(language, drafts)[f"{part}.jsonl"].splitlines()]
            for language in LANGUAGES
        ]
        assert lengths[0] == lengths[1] == lengths[2]
