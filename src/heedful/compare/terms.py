"""Terms on which systems are compared: one task, the same data, test set and language, and the same classes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.digest import data_digest
from heedful.errors import InputError

UNSAID = DataConfig.target_language  # of a recipe that names no language


@dataclass(frozen=True)
class Terms:
    """Terms of a comparison, which its first system sets.

    Attributes:
        system: the name of that system.
        task: the task.
        data: SHA-256 of its training data; None if its files are not here, as may be for a trained model.
        test: the test set, with absolute paths.
        test_digest: SHA-256 of the test set.
        test_name: the test set, in words.
        language: the target language, by which texts are scored.
        labels: the classes that are told apart; empty for a task without classes.
    """

    system: str
    task: str
    data: str | None
    test: CorpusConfig
    test_digest: str
    test_name: str
    language: str
    labels: tuple[str, ...]

    @classmethod
    def of(cls, system: str, recipe: Recipe, recipes: Sequence[Recipe], *, is_trained: bool) -> "Terms":
        """Find the terms of a comparison.

        Args:
            system: the name of the first system.
            recipe: its recipe.
            recipes: those of all systems, of which the first that names a test set or a language decides.
            is_trained: True if it is a trained model, whose training data need not be here.

        Raises:
            InputError: no recipe names a test set or validation set, or the files of either cannot be read.
        """
        test, name = test_set(recipes)
        named = (found for one in recipes if (found := one.data.target_language) != UNSAID)
        return cls(
            system=system,
            task=recipe.task,
            data=trained_on(recipe) if is_trained else data_digest(recipe),
            test=test,
            test_digest=test_digest(recipe, test),
            test_name=name,
            language=next(named, UNSAID),
            labels=recipe.data.labels,
        )

    def check(self, recipe: Recipe) -> None:
        """Check that a system has the task of the terms, and writes their language.

        Raises:
            InputError: it has another.
        """
        if recipe.task != self.task:
            raise InputError(
                f'its task is "{recipe.task}", and that of {self.system} is "{self.task}"; compare one task'
            )
        if recipe.data.target_language not in (UNSAID, self.language):
            raise InputError(
                f'its data.target_language is "{recipe.data.target_language}", and texts are scored here as those of '
                f'"{self.language}"; compare systems that write one language'
            )

    def check_data(self, recipe: Recipe) -> None:
        """Check that a system that is to be trained has the training data and the test set of the terms.

        Raises:
            InputError: something differs.
        """
        if data_digest(recipe) != self.data:
            raise InputError(
                f"its training text, validation text or tokenizer differ from those of {self.system}; give all recipes "
                "the same [data] and [tokenizer], as systems are compared on the same data"
            )
        if recipe.data.test and test_digest(recipe, recipe.data.test) != self.test_digest:
            raise InputError(f"its test set (data.test) differs from that of {self.system}; name the same or none")

    def check_labels(self, recipe: Recipe) -> None:
        """Check that a trained classifier or tagger tells apart the classes of the terms.

        Raises:
            InputError: it tells others apart, or the same in another order.
        """
        if recipe.data.labels != self.labels:
            raise InputError(
                f"it tells apart {', '.join(recipe.data.labels)}, and {self.system} {', '.join(self.labels)}; compare "
                "systems whose data.labels are the same"
            )

    def applied(self, recipe: Recipe, *, is_trained: bool) -> Recipe:
        """Return the recipe of a system with the test set, unless it names its own, and with the language."""
        own = None if is_trained else recipe.data.test
        return replace(recipe, data=replace(recipe.data, test=own or self.test, target_language=self.language))


def test_set(recipes: Sequence[Recipe]) -> tuple[CorpusConfig, str]:
    """Return the test set that recipes name, or else their validation set, and its name in words.

    Raises:
        InputError: no recipe names either.
    """
    for part, name in (("test", "the test set"), ("valid", "the validation set (no recipe names a test set)")):
        for recipe in recipes:
            if corpus := getattr(recipe.data, part):
                return absolute(corpus, recipe), f"{name}, {corpus.source}"
    raise InputError("there is nothing to test the systems on; set data.test in one of the recipes")


def trained_on(recipe: Recipe) -> str | None:
    """Return the SHA-256 of the training data of a trained model; None if its files are not here."""
    try:
        return data_digest(recipe)
    except InputError:
        return None


def test_digest(recipe: Recipe, test: CorpusConfig) -> str:
    """Return the SHA-256 of a test set and of how a recipe reads it."""
    return data_digest(replace(recipe, data=replace(recipe.data, train=(test,), valid=None)))


def absolute(corpus: CorpusConfig, recipe: Recipe) -> CorpusConfig:
    """Return a corpus with paths that do not depend on the root of a recipe's data."""
    paths = {
        side: os.path.join(recipe.data.root, path) for side in ("source", "target") if (path := getattr(corpus, side))
    }
    return replace(corpus, **paths)
