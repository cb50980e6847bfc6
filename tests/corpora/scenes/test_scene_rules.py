"""Rules of grammar, checked on thousands of sentences by small tables of their own."""

import pytest

from heedful.corpora.scenes import generate


@pytest.fixture(scope="module")
def in_german():
    return list(generate("en-de", 5003, seed=19))


@pytest.fixture(scope="module")
def in_chinese():
    return list(generate("en-zh", 5003, seed=19))


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
            assert agrees([word for word, role in roles_of(pair.source) if role == "subject"], verbs[0]), (
                pair.source.text
            )
    assert checked > 1000


def test_english_verbs_agree_inside_a_relative_clause(in_german):
    checked = 0
    for pair in in_german:
        words = roles_of(pair.source)
        for (noun, _), (_, role), (verb, _) in zip(words, words[1:], words[2:], strict=False):
            if role == "relativizer" and verb in SINGULAR | PLURAL:
                assert agrees([noun], verb), pair.source.text
                checked += 1
    assert checked > 30


def behind_relative_clause(sentence):
    """The subject, the words of its relative clause with their roles, and the finite verb behind them."""
    roles = list(sentence.roles)
    if roles.count("relativizer") != 1 or "conjunction" in roles or "?" in sentence.words:
        return None
    start = roles.index("relativizer")
    finite = [i for i, word in enumerate(sentence.words) if word in ("is", "are", "was", "were", "has", "have")]
    finite = [i for i in finite if sentence.words[i][0] != "h" or roles[i] == "auxiliary"]
    if roles[start - 1] != "subject" or not finite or roles[finite[-1] + 1 :].count("verb") > 1:
        return None  # the relative clause describes another phrase, or the last of these verbs is in it
    if roles[: finite[-1]].count("verb") == 0:
        return None
    return sentence.words[start - 1], roles_of(sentence)[start : finite[-1]], sentence.words[finite[-1]]


def test_english_verbs_agree_across_a_relative_clause(in_german):
    """In many sentences a noun of the other number stands between the subject and its verb."""
    checked = attracted = 0
    for pair in in_german:
        found = behind_relative_clause(pair.source)
        if found is not None:
            subject, between, verb = found
            assert agrees([subject], verb), pair.source.text
            nouns = [word for word, role in between if role in ("subject", "object", "place")]
            checked += 1
            attracted += any(not agrees([word], verb) for word in nouns)
    assert checked > 100
    assert attracted > checked / 4


# ---- German

NOUNS = {
    "m": "Mann König Vater Hund Vogel Brief Apfel Hut Ring Tisch Stuhl",
    "f": "Frau Königin Mutter Katze Kuh Maus Zeitung Lampe Tante Blume Tür",
    "n": "Kind Pferd Schwein Buch Hemd Kleid Ei Auto Fahrrad Foto Bett",
    "p": "Frauen Königinnen Katzen Zeitungen Lampen Tanten Blumen Türen Autos Fotos Eier "
    "Männer Mütter Kinder Hunde Kühe Mäuse Pferde Schweine Bücher Hüte "
    "Männern Müttern Kindern Hunden Kühen Mäusen Pferden Schweinen Büchern Hüten",
}
GENDERS = {noun: gender for gender, nouns in NOUNS.items() for noun in nouns.split()}  # p: plural
CASES = {"subject": 0, "standard": 0, "object": 1, "recipient": 2, "agent": 2}  # nominative, accusative, dative
DATIVE_VERBS = {
    "half",
    "halfen",
    "hilft",
    "helfen",
    "helfe",
    "geholfen",
    "danke",
    "dankt",
    "dankte",
    "dankten",
    "danken",
    "gedankt",
}
DER = {"m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem"), "p": ("die", "die", "den")}
EIN = {"m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em"), "p": ("e", "e", "en")}
AFTER_DER = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en"), "p": ("en", "en", "en")}
AFTER_EIN = {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en"), "p": ("en", "en", "en")}
EIN_WORDS = {
    stem + ending: ending for stem in ("ein", "kein", "mein", "sein") for ending in ("", "e", "en", "em", "er")
}


def noun_phrases(sentence):
    """(article, adjectives, noun, case) of each known noun with an article whose role tells its case."""
    words = roles_of(sentence)
    dative = bool(DATIVE_VERBS & {word.lower() for word, _ in words})
    if dative and sentence.roles.count("verb") > 1:
        return  # which of the verbs is it?
    for index, (noun, role) in enumerate(words):
        if noun in GENDERS and role in CASES:
            start = index - 1
            while words[start][1] == "adjective":
                start -= 1
            if start >= 0 and words[start][1] == "determiner":
                case = 2 if dative and role == "object" else CASES[role]
                yield words[start][0].lower(), [word for word, _ in words[start + 1 : index]], noun, case


def test_german_articles_adjectives_and_nouns_agree_in_gender_number_and_case(in_german):
    articles, adjectives = 0, 0
    for pair in in_german:
        for article, described, noun, case in noun_phrases(pair.target):
            gender = GENDERS[noun]
            if article in EIN_WORDS:
                assert EIN_WORDS[article] == EIN[gender][case], pair.target.text
                ending = AFTER_EIN[gender][case]
            elif article in ("der", "die", "das", "den", "dem"):
                assert article == DER[gender][case], pair.target.text
                ending = AFTER_DER[gender][case]
            else:
                continue
            assert gender != "p" or case != 2 or noun.endswith(("n", "s")), pair.target.text
            assert case == 2 or noun not in ("Männern", "Hunden", "Büchern", "Kindern"), pair.target.text
            assert all(word.endswith(ending) for word in described), pair.target.text
            articles += 1
            adjectives += len(described)
    assert articles > 700
    assert adjectives > 100


FINITE = {"ist", "sind", "war", "waren", "hat", "haben", "wird", "werden", "kann", "können", "muss", "müssen", "wurde"}


def test_german_verbs_end_subordinate_clauses(in_german):
    checked = 0
    for pair in in_german:
        words = pair.target.words
        starts = [i for i, word in enumerate(words) if word in ("dass", "weil", "obwohl")]
        if starts and FINITE & set(words[starts[0] :]):
            assert words[-2] in FINITE, pair.target.text
            assert words[starts[0] - 1] == ","
            checked += 1
    assert checked > 200


def test_german_verbs_come_second_after_a_time(in_german):
    checked = 0
    for pair in in_german:
        roles = "".join(
            "t" if role == "time" else "v" if role in ("verb", "auxiliary") else "x" for role in pair.target.roles
        )
        if roles.startswith("t"):
            assert roles.lstrip("t").startswith("v"), pair.target.text
            checked += 1
    assert checked > 300


def test_german_prefixes_part_from_their_verbs_and_end_the_clause(in_german):
    checked = 0
    for pair in in_german:
        words = pair.target.words
        for index, word in enumerate(words):
            if (
                word in ("auf", "zu", "an", "ein", "mit", "weg", "aus", "vor")
                and pair.target.roles[index] == "particle"
            ):
                assert words[index + 1] in (".", "?", ",", "und"), pair.target.text
                checked += 1
    assert checked > 200


def test_german_pronouns_take_the_gender_of_the_noun_before(in_german):
    pronouns = {"m": {"er", "ihn"}, "f": {"sie"}, "n": {"es"}}
    checked = 0
    for pair in in_german:
        if "because" in pair.source.words and "it" in pair.source.words:
            (found,) = (j for i, j in pair.alignment if pair.source.words[i] == "it")
            things = [word for word, role in roles_of(pair.target) if role == "object" and word in GENDERS]
            if things:
                assert pair.target.words[found] in pronouns[GENDERS[things[0]]], pair.target.text
                checked += 1
    assert checked > 20


# ---- Chinese

CLASSIFIERS = {
    "本": {"书"},
    "只": {"狗", "猫", "鸟", "老鼠", "猴子"},
    "匹": {"马"},
    "头": {"牛", "熊", "狮子", "猪"},
    "张": {"照片", "桌子", "床"},
    "条": {"裙子", "船", "河"},
    "件": {"衬衫"},
    "辆": {"汽车", "自行车"},
    "把": {"钥匙", "雨伞", "吉他", "椅子"},
    "杯": {"牛奶", "水", "咖啡", "茶"},
}


def test_chinese_classifiers_suit_their_nouns(in_chinese):
    seen = set()
    for pair in in_chinese:
        words = roles_of(pair.target)
        for index, (classifier, role) in enumerate(words):
            if role == "classifier" and classifier in CLASSIFIERS:
                described = next(i for i in range(index + 1, len(words)) if words[i][1] != "adjective")
                assert words[described][0] in CLASSIFIERS[classifier], pair.target.text
                seen.add(classifier)
    assert seen == set(CLASSIFIERS)


def test_chinese_does_not_deny_what_is_done(in_chinese):
    """没有 and 了 exclude each other."""
    denied = [pair.target for pair in in_chinese if "没有" in pair.target.words]
    assert len(denied) > 50
    for sentence in denied:
        if not {"conjunction", "relativizer"} & set(sentence.roles):
            assert "了" not in sentence.words, sentence.text


def test_chinese_tells_place_and_time_before_the_verb(in_chinese):
    checked = 0
    for pair in in_chinese:
        roles = pair.target.roles
        early = [i for i, word in enumerate(pair.target.words) if roles[i] == "time" or word == "在"]
        if early and not {"conjunction", "relativizer"} & set(roles):
            assert {"verb", "predicate"} & set(roles[early[-1] :]), pair.target.text
            checked += 1
    assert checked > 500


# ---- How much there is of what

SHARES = {  # of all sentences, at least
    "a relative clause": (0.10, lambda pair: "relativizer" in pair.source.roles),
    "a relative clause between subject and verb": (0.06, lambda pair: behind_subject(pair.source)),
    "a subordinate clause": (0.14, lambda pair: bool(LINKS & conjunctions(pair.source))),
    "a verb in two parts with words between": (0.25, lambda pair: bracket(pair.target) > 2),
    "a question": (0.10, lambda pair: pair.source.words[-1] == "?"),
    "a denial": (0.05, lambda pair: "negation" in pair.source.roles),
    "a passive": (0.04, lambda pair: "agent" in pair.source.roles),
    "another order of the words": (0.40, lambda pair: crossings(pair.alignment) > 0),
}


LINKS = {"that", "because", "although", "when", "while", "if"}


def conjunctions(sentence):
    return {word.lower() for word, role in roles_of(sentence) if role == "conjunction"}


def behind_subject(sentence):
    return any(pair == ("subject", "relativizer") for pair in zip(sentence.roles, sentence.roles[1:], strict=False))


def bracket(sentence):
    """How far the parts of the German verb stand apart."""
    parts = [i for i, role in enumerate(sentence.roles) if role in ("verb", "auxiliary", "particle")]
    return parts[1] - parts[0] if len(parts) == 2 else 0


def crossings(alignment):
    return sum(i < k and j > m for i, j in alignment for k, m in alignment)


@pytest.mark.parametrize("name", SHARES)
def test_there_is_enough_of(name, in_german):
    least, has = SHARES[name]
    assert sum(bool(has(pair)) for pair in in_german) >= least * len(in_german)
