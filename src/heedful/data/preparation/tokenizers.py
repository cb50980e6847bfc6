"""The tokenizer of a recipe: the one that it names, or one that is trained on its texts."""

from collections.abc import Callable, Iterable
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import check_trainable, train_tokenizer


def one_tokenizer(recipe: Recipe, texts: Iterable[str], report: Callable[[str], None]) -> TokenizerPair:
    """Return the tokenizer that a recipe names, or train one on `texts`, for both sides of a pair.

    Raises:
        InputError: The recipe names a pair of different tokenizers, or there is no text to train on.
    """
    tokenizer = given_tokenizer(recipe)
    if tokenizer is None:
        report(f"training the {recipe.tokenizer.kind} tokenizer")
        tokenizer = train_tokenizer(texts, recipe.tokenizer)
    return TokenizerPair(tokenizer, tokenizer)


def given_tokenizer(recipe: Recipe) -> Tokenizer | None:
    """Load the tokenizer that a recipe names; None if one is to be trained, and the settings allow that.

    Raises:
        InputError: The recipe names a pair of different tokenizers, or none that can be loaded; or none can be trained.
    """
    path = recipe.tokenizer.path
    if path is None:
        check_trainable(recipe.tokenizer)
        return None
    pair = TokenizerPair.load(Path(path))
    if not pair.joint:
        raise InputError(f"{path}: holds a tokenizer for each of two languages; name the folder of one")
    return pair.source
