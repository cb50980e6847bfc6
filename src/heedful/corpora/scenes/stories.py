"""Stories: an endless corpus of texts, each a few scenes in a row about one small cast, for GPT and BERT."""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from heedful.corpora.scenes import chinese, english, german, grammar
from heedful.corpora.scenes.author import ANY, LANDMARKS, LIVING, PEOPLE, PLACES, QUALITIES, TIMES_OF, Author, W
from heedful.corpora.scenes.corpus import divide
from heedful.corpora.scenes.lexicon import Adjective, Noun, Verb, nouns_of
from heedful.corpora.scenes.sentence import sentence
from heedful.corpora.scenes.tree import Clause, Nominal, Phrase, Pronoun, Scene
from heedful.errors import InputError

PATIENCE = 1000  # scenes drawn before a story is given up; one story in some thousand comes to a dead end
WORDS = range(5, 21)  # of an English sentence, punctuation included
PROPS = nouns_of("text press thing garment dish container device vehicle plant")  # nothing that somebody could eat up
CAST = (PEOPLE, LIVING, PROPS, PROPS, PLACES)  # the main character first; one more comes from these or from LANDMARKS

# The kinds of scenes in a story; each is as likely as it is often here.
KINDS = (
    *(grammar.event,) * 12,
    *(grammar.timed,) * 3,
    *(grammar.report,) * 2,
    *(grammar.reason, grammar.also, grammar.passive, grammar.existence, grammar.location, grammar.description),
)


class NobodyLeft(Exception):
    """Raised when no character or thing in the cast of a story can take the part that a scene needs."""


class Narrator(Author):
    """Draws the scenes of one story with a fixed cast, in the past tense, each in view of the scenes before.

    A new character is "an old king", and from then on "the old king", or "he" after a sentence that named the king if
    nobody else of the cast is a "he". Each sentence takes up somebody or something that the last one named, names two
    or more that are known, and no more than one that is new. A verb comes again only where no other suits.
    """

    def __init__(self, rng: random.Random):
        super().__init__(rng, strangers=False)
        nouns = [super(Narrator, self).fresh(part) for part in (*CAST, self.one((*CAST, LANDMARKS)))]
        self._cast = {noun: self._trait(noun) for noun in nouns}
        self._met: set[Noun] = set()
        self._named = {nouns[0]}  # nouns named in the last sentence; before the first sentence, the main character
        self._verbs: set[Noun | Verb] = set()  # verbs of all sentences so far

    def _trait(self, noun: Noun) -> Adjective | None:
        """The lasting adjective of somebody or something in the story; names need none to be distinguished."""
        lasting = [quality for quality in QUALITIES[noun] if quality not in grammar.MOODS]
        return self.one(lasting) if lasting and "name" not in noun.kinds else None

    def scene(self) -> Scene:
        """Draw the next scene of the story.

        Raises:
            NobodyLeft: The cast can do nothing more that takes up the last scene.
        """
        for _ in range(PATIENCE):
            self._used = set(self._verbs)
            try:
                scene = self.one(KINDS)(self)
            except NobodyLeft:
                continue
            for clause in _clauses(scene):
                self._put_in_past(clause)
            if self._goes_on(scene):
                return scene
        raise NobodyLeft

    def fresh(self, words: Sequence[W]) -> W:
        """Return a random noun of the story's cast that the scene does not have yet, or a verb that such nouns suit.

        Raises:
            NobodyLeft: No word suits.
        """
        free = self._cast.keys() - self._used
        fitting = [word for word in words if _suits(word, free)]
        if not fitting:
            raise NobodyLeft
        return super().fresh(fitting)

    def phrase(self, noun: Noun, *_: object, **__: object) -> Phrase:
        """Return the phrase that names a member of the cast, with its adjective: "an old king", then "the old king"."""
        determiner = "" if "name" in noun.kinds else "the" if noun in self._met else "a"
        return Phrase(noun, plural=False, determiner=determiner, adjective=self._cast[noun])

    def subject(self, verb: Verb, determiners: Sequence[str] = ANY) -> Nominal:
        """Draw a subject for a verb from the story's cast: a noun phrase or, where it is clear, a pronoun."""
        clear = [noun for noun in self._cast if noun in verb.subjects and noun not in self._used and self._clear(noun)]
        if clear and self.chance(0.4):
            return Pronoun(self.fresh(clear), plural=False)
        return self.phrase(self.fresh(verb.subjects), determiners)

    def _clear(self, noun: Noun) -> bool:
        """True if a pronoun can mean nobody else than a noun that the last sentence named."""
        pronouns = [other.pronoun for other in self._cast]
        known = noun in self._named & self._met
        return known and noun.pronoun in ("he", "she") and pronouns.count(noun.pronoun) == 1

    def _put_in_past(self, clause: Clause) -> None:
        """Put a clause into the past; only the first sentence keeps its time."""
        clause.tense = "past progressive" if "progressive" in clause.tense else "past"
        clause.modal, clause.asked = "", False
        clause.negated = clause.negated and clause.verb.aspect != "state"
        if self._met or clause.time not in TIMES_OF["past"]:
            clause.time, clause.time_first = None, False

    def _goes_on(self, scene: Scene) -> bool:
        """True if a scene takes up the one before; if so, its characters and things are known from now on."""
        words = english.realise(scene)
        nodes = [node for word in words for node, part in word.links if part == "noun"]
        nouns = {node.noun for node in nodes if isinstance(node, Phrase | Pronoun)}
        named = {node.noun for node in nodes if isinstance(node, Phrase)}
        new = named - self._met
        enough = len(nouns - new) > 1 and len(new) < 2 if self._met else len(nouns) > 1
        if not (named and enough and nouns & self._named and len(words) in WORDS and _plausible(scene, new)):
            return False
        self._met |= named
        self._named = named
        self._verbs |= {clause.verb for clause in _clauses(scene)}
        return True


def _suits(word: Noun | Verb, nouns: AbstractSet[Noun]) -> bool:
    """True if a noun is among these nouns, or a verb has its subject and its object among them."""
    if isinstance(word, Noun):
        return word in nouns
    return not any(needed and nouns.isdisjoint(needed) for needed in (word.subjects, word.objects))


def _plausible(scene: Scene, new: AbstractSet[Noun]) -> bool:
    """True if "there is" names what is new, denials and thoughts what is known, and nobody changes but in mood."""
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
SENTENCES = range(4, 10)


def stories(
    language: str, count: int, seed: int, start: int = 0, sentences: Sequence[int] = SENTENCES
) -> Iterator[list[str]]:
    """Yield `count` stories of the corpus `seed` from story number `start` on, each as a list of sentences.

    A story is a function of the seed, its number and the choice of lengths; all languages tell the same stories.
    """
    check(language)
    for index in range(start, start + count):
        yield tell(language, story(seed, index, sentences))


def split_stories(
    language: str,
    train: int,
    valid: int,
    test: int,
    seed: int,
    sentences: Sequence[int] = SENTENCES,
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[list[str]]]:
    """Generate distinct stories, the given numbers of them for training, validation and testing.

    `sentences` are the lengths that stories may have.

    The purpose of a story follows from its English text, whatever the seed and the sizes: what is in one corpus for
    training is in no corpus for validation or testing. `done` is called with the number of stories that are added.
    """
    check(language)
    drawn = (story(seed, index, sentences) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    parts = divide(drawn, lambda scenes: " ".join(tell("en", scenes)), sizes, done)
    return {part: [tell(language, scenes) for scenes in kept] for part, kept in parts.items()}


def story_files(language: str, parts: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, str]:
    """Return text files of stories, contents by name such as "train.txt": a line a story, a blank line between two."""
    space = LANGUAGES[language].SPACE
    return {f"{part}.txt": "\n".join(space.join(story) + "\n" for story in told) for part, told in parts.items()}


def story(seed: int, index: int, sentences: Sequence[int] = SENTENCES) -> list[Scene]:
    """Draw the scenes of story number `index` of the corpus `seed`, a function of these arguments alone."""
    chance = random.Random(f"stories {seed} {index}")
    while True:
        narrator = Narrator(chance)
        try:
            return [narrator.scene() for _ in range(narrator.one(sentences))]
        except NobodyLeft:  # another cast will find more to do
            continue


def tell(language: str, scenes: Sequence[Scene]) -> list[str]:
    """Express each scene of a story as a sentence of a language."""
    tongue = LANGUAGES[language]
    return [sentence(tongue.realise(scene), tongue.SPACE).text for scene in scenes]


def check(language: str) -> None:
    if language not in LANGUAGES:
        raise InputError(f"unknown language {language!r}: stories come in {', '.join(LANGUAGES)}")
