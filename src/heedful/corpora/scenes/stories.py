"""Stories: an endless corpus of texts, each a sequence of scenes about one small cast.

GPT and BERT can be trained on the texts; their summaries and dialogues about them (`facts`) are for encoder-decoders.
"""

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from heedful.corpora.sampling import divide
from heedful.corpora.scenes import chinese, english, german, grammar
from heedful.corpora.scenes.author import ANY, LANDMARKS, LIVING, PEOPLE, PLACES, QUALITIES, TIMES_OF, Author, W
from heedful.corpora.scenes.facts import dialogue, summary
from heedful.corpora.scenes.lexicon import Adjective, Noun, Verb, nouns_of
from heedful.corpora.scenes.sentence import sentence
from heedful.corpora.scenes.tree import Clause, Nominal, Phrase, Pronoun, Scene
from heedful.errors import InputError

PATIENCE = 1000  # attempts at a scene before its story is abandoned, as happens to one story in a few thousand
WORDS = range(5, 21)  # number of words in an English sentence, including punctuation
PROPS = nouns_of("text press thing garment dish container device vehicle plant")  # nothing edible
CAST = (PEOPLE, LIVING, PROPS, PROPS, PLACES)  # the main character first; one more is from any of these or LANDMARKS

# The kinds of scenes in a story; repeated ones are more likely.
KINDS = (
    *(grammar.event,) * 12,
    *(grammar.timed,) * 3,
    *(grammar.report,) * 2,
    *(grammar.reason, grammar.also, grammar.passive, grammar.existence, grammar.location, grammar.description),
)


class NobodyLeft(Exception):
    """Raised if a story's cast has nobody and nothing for a role that a scene needs."""


class Narrator(Author):
    """Sampler of the scenes of a story with a fixed cast, in the past tense, each consistent with the previous ones.

    A new character is "an old king", then "the old king", or "he" after a sentence with the king if nobody else in the
    cast is a "he"; a reason may have any pronoun: "because he loved him". Each sentence after the first mentions
    something from the previous one, two or more known members of the cast, and at most one new one. A verb is repeated
    only if no other suits.
    """

    def __init__(self, rng: random.Random):
        super().__init__(rng, strangers=False)
        nouns = [super(Narrator, self).fresh(part) for part in (*CAST, self.one((*CAST, LANDMARKS)))]
        # Each member of the cast keeps one adjective, except for names.
        self._cast: dict[Noun, Adjective | None] = {}
        for noun in nouns:
            lasting = [quality for quality in QUALITIES[noun] if quality not in grammar.MOODS]
            self._cast[noun] = self.one(lasting) if lasting and "name" not in noun.kinds else None
        self._known: set[Noun] = set()  # named in the sentences so far
        self._named = {nouns[0]}  # in the last sentence; before the first sentence, the main character
        self._verbs: set[Noun | Verb] = set()  # of all sentences so far

    def scene(self) -> Scene:
        """Sample the next scene of the story.

        Raises:
            NobodyLeft: No scene with this cast was found that follows the last one.
        """
        for _ in range(PATIENCE):
            self._used = set(self._verbs)
            try:
                scene = self.one(KINDS)(self)
            except NobodyLeft:
                continue
            for clause in _clauses(scene):
                clause.tense = "past progressive" if "progressive" in clause.tense else "past"
                clause.modal, clause.asked = "", False
                clause.negated = clause.negated and clause.verb.aspect != "state"
                if self._known or clause.time not in TIMES_OF["past"]:  # only the first sentence has a time
                    clause.time, clause.time_first = None, False
            if self._accept(scene):
                return scene
        raise NobodyLeft

    def fresh(self, words: Sequence[W]) -> W:
        """Sample a noun of the cast that is not in the scene yet, or a verb with subjects and objects among such nouns.

        Raises:
            NobodyLeft: No word suits.
        """
        free = self._cast.keys() - self._used

        def suits(word: Noun | Verb) -> bool:
            if isinstance(word, Noun):
                return word in free
            return not any(nouns and free.isdisjoint(nouns) for nouns in (word.subjects, word.objects))

        fitting = [word for word in words if suits(word)]
        if not fitting:
            raise NobodyLeft
        return super().fresh(fitting)

    def phrase(self, noun: Noun, *_: object, **__: object) -> Phrase:
        """Return the phrase that names a member of the cast, with its adjective: "an old king", then "the old king"."""
        determiner = "" if "name" in noun.kinds else "the" if noun in self._known else "a"
        return Phrase(noun, plural=False, determiner=determiner, adjective=self._cast[noun])

    def subject(self, verb: Verb, determiners: Sequence[str] = ANY) -> Nominal:
        """Sample a subject for a verb from the cast: a noun phrase or, where it is unambiguous, a pronoun."""
        pronouns = [noun.pronoun for noun in self._cast]
        clear = [
            noun
            for noun in self._cast
            if noun in verb.subjects
            and noun not in self._used
            and noun in self._named & self._known
            and noun.pronoun in ("he", "she")
            and pronouns.count(noun.pronoun) == 1
        ]
        if clear and self.chance(0.4):
            return Pronoun(self.fresh(clear), plural=False)
        return self.phrase(self.fresh(verb.subjects), determiners)

    def _accept(self, scene: Scene) -> bool:
        """Add a scene to the story if it follows the previous one; return True if it was added."""
        words = english.realise(scene)
        nodes = [node for word in words for node, part in word.links if part == "noun"]
        nouns = {node.noun for node in nodes if isinstance(node, Phrase | Pronoun)}
        named_nouns = {node.noun for node in nodes if isinstance(node, Phrase)}
        new = named_nouns - self._known
        has_enough = len(nouns - new) > 1 and len(new) < 2 if self._known else len(nouns) > 1
        if not (named_nouns and has_enough and nouns & self._named and len(words) in WORDS and _plausible(scene, new)):
            return False
        self._known |= named_nouns
        self._named = named_nouns
        self._verbs |= {clause.verb for clause in _clauses(scene)}
        return True


def _plausible(scene: Scene, new: AbstractSet[Noun]) -> bool:
    """Return True if a scene can continue a story.

    "There is" must introduce a new noun, and negations and reported thoughts must not introduce any. "If" is excluded.
    A predicate adjective must express a mood or a comparison.
    """
    main = scene.main
    if main.voice == "existential":
        return isinstance(main.subject, Phrase) and main.subject.noun in new
    if scene.link == "if" or (new and (main.negated or main.content)):
        return False
    return all(
        clause.predicate is None or clause.predicate in grammar.MOODS or clause.standard for clause in _clauses(scene)
    )


def _clauses(scene: Scene) -> list[Clause]:
    return [clause for clause in (scene.main, scene.main.content, scene.second) if clause is not None]


LANGUAGES = {"en": english, "de": german, "zh": chinese}
YES, NO = {"en": "Yes.", "de": "Ja.", "zh": "是的。"}, {"en": "No.", "de": "Nein.", "zh": "没有。"}
SENTENCES = range(4, 10)


def stories(
    language: str, count: int, seed: int, start: int = 0, sentences: Sequence[int] = SENTENCES
) -> Iterator[list[str]]:
    """Yield `count` stories of the corpus with seed `seed`, from number `start` on, each as a list of sentences.

    A story is a function of the seed, its number and the possible lengths; it is the same in all languages.
    """
    check_language(language)
    for index in range(start, start + count):
        yield express(language, story(seed, index, sentences))


def split_stories(
    train: int,
    valid: int,
    test: int,
    seed: int,
    sentences: Sequence[int] = SENTENCES,
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[list[Scene]]]:
    """Generate distinct stories, as scenes, for training, validation and testing; for `done` see `divide`.

    `sentences` are the possible lengths of stories.
    """
    drafts = (story(seed, index, sentences) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    return divide(drafts, lambda scenes: " ".join(express("en", scenes)), sizes, done)


def story_files(language: str, parts: Mapping[str, Sequence[Sequence[Scene]]]) -> dict[str, str]:
    """Return the contents of text files by name, such as "train.txt": one line per story, separated by blank lines."""
    check_language(language)
    return {f"{part}.txt": "\n".join(_text(language, each) + "\n" for each in drafts) for part, drafts in parts.items()}


def fact_files(language: str, parts: Mapping[str, Sequence[Sequence[Scene]]]) -> dict[str, str]:
    """Return the contents of tables by name, such as "train.jsonl": each row has a story, its summary and a dialogue.

    The dialogue is a list of messages that begins with the story.
    """
    check_language(language)
    return {
        f"{part}.jsonl": "".join(json.dumps(_row(language, each), ensure_ascii=False) + "\n" for each in drafts)
        for part, drafts in parts.items()
    }


def _row(language: str, scenes: Sequence[Scene]) -> dict[str, Any]:
    story_text = _text(language, scenes)
    messages = [{"role": "user", "content": story_text}]
    for question, answer in dialogue(scenes, seed=_text("en", scenes)):
        reply = (YES if answer else NO)[language] if isinstance(answer, bool) else _text(language, [answer])
        messages.append({"role": "user", "content": _text(language, [question])})
        messages.append({"role": "assistant", "content": reply})
    return {"story": story_text, "summary": _text(language, summary(scenes)), "dialogue": messages}


def _text(language: str, scenes: Sequence[Scene]) -> str:
    return LANGUAGES[language].SPACE.join(express(language, scenes))


def story(seed: int, index: int, sentences: Sequence[int] = SENTENCES) -> list[Scene]:
    """Sample the scenes of story `index` of the corpus with seed `seed`, which depend on these arguments alone."""
    rng = random.Random(f"stories {seed} {index}")
    while True:
        narrator = Narrator(rng)
        try:
            return [narrator.scene() for _ in range(narrator.one(sentences))]
        except NobodyLeft:  # try another cast
            continue


def express(language: str, scenes: Sequence[Scene]) -> list[str]:
    """Express each scene of a story as a sentence in a language."""
    tongue = LANGUAGES[language]
    return [sentence(tongue.realise(scene), tongue.SPACE, tongue.ATTACHED).text for scene in scenes]


def check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise InputError(f"unknown language {language!r}; choose one of {', '.join(LANGUAGES)}")
