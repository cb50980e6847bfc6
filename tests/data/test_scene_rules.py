"""Rules of grammar, checked on thousands of sentences by small tables of their own."""

import re

import pytest

from heedful.data.scenes import generate


@pytest.fixture(scope="module")
def in_german():
    return list(generate("en-de", 8009, seed=19))


@pytest.fixture(scope="module")
def in_chinese():
    return list(generate("en-zh", 8009, seed=19))


def roles_of(sentence):
    return list(zip(sentence.words, sentence.roles, strict=True))


# ---- English

SINGULAR, PLURAL, SPEAKER = {"is", "was", "has", "does"}, {"are", "were", "have", "do"}, {"am", "was", "have", "do"}
PLURALS = {"men", "women", "children", "mice", "we", "they"}


def agrees(subjects, verb):
    """Whether a verb suits the words with the role of its subject."""
    (subject, *more) = (word.lower() for word in subjects)
    if more or subject in PLURALS or (subject.endswith("s") and not subject.endswith("ss")):
        return verb in PLURAL
    return verb in (SPEAKER if subject == "i" else SINGULAR)


def test_english_verbs_agree_with_their_subjects(in_german):
    checked = 0
    for pair in in_german:
        verbs = [word for word in map(str.lower, pair.source.words) if word in SINGULAR | PLURAL | SPEAKER]
        if verbs and not {"relativizer", "conjunction"} & set(pair.source.roles):
            checked += 1
            assert agrees([word for word, role in roles_of(pair.source) if role == "subject"], verbs[0]), pair.source.text
    assert checked > 2000


def test_english_verbs_agree_across_a_relative_clause(in_german):
    """One sentence in fourteen; in half of these, a noun of the other number stands between subject and verb."""
    checked = attracted = 0
    for pair in in_german:
        found = re.fullmatch(r"(.*?) (who|that) (.*) (is|are|was|were|has|have) (\w+ ?\w*.*)", pair.source.text)
        roles = list(pair.source.roles)
        if not found or roles.count("relativizer") != 1 or roles.index("relativizer") != roles.index("subject") + 1:
            continue
        start = len(pair.source.words) - len(found[5].split()) - 1
        if roles[start:].count("verb") > 1 or "conjunction" in roles[:start]:
            continue  # that verb is in the relative clause
        checked += 1
        subject, verb = pair.source.words[roles.index("subject")], found[4]
        assert agrees([subject], verb), pair.source.text
        between = [word for word, role in roles_of(pair.source)[:start] if role in ("subject", "object", "place")][1:]
        attracted += any(not agrees([word], verb) for word in between)
    assert checked > 150
    assert attracted > checked / 4
