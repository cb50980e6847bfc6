"""Model size: counts the parameters of a recipe's model without building weights or a vocabulary."""

from pathlib import Path

from heedful.architectures.parameters import ParameterCounts, count_without_building
from heedful.config.families import FAMILIES
from heedful.config.schema import Recipe
from heedful.config.user_code import custom_code_errors
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class SizeOnly(Tokenizer):
    """Placeholder tokenizer that knows only the size of its vocabulary."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def vocabulary_sizes(recipe: Recipe) -> tuple[int, int]:
    """Return the source and target vocabulary sizes of a recipe's model, special tokens included.

    They are the sizes of the recipe's tokenizer if it exists, otherwise the largest that the recipe allows. Both are 0
    for a model of images, audio or videos that neither reads nor writes text.
    """
    has_text = recipe.data.modality == "text" or FAMILIES[recipe.model.family].pairs
    if not has_text and not find_task(recipe.task).spec.reads_text:
        return 0, 0
    if recipe.tokenizer.path is not None and Path(recipe.tokenizer.path).exists():
        return TokenizerPair.load(Path(recipe.tokenizer.path)).sizes
    return recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size


def count_model(recipe: Recipe, source_vocab: int, target_vocab: int) -> ParameterCounts:
    """Count the parameters of a recipe's model, heads included, for vocabularies of these sizes."""
    tokenizers = TokenizerPair(SizeOnly(source_vocab), SizeOnly(target_vocab))
    with custom_code_errors(recipe, "the model cannot be built"):
        return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers))
