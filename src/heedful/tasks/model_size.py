"""How large the model of a recipe is, before there is a vocabulary or a weight."""

from heedful.config.schema import Recipe
from heedful.models.parameters import ParameterCounts, count_without_building
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class Unwritten(Tokenizer):
    """A vocabulary of which nothing but its size is known."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def count_model(recipe: Recipe, source_vocab: int, target_vocab: int) -> ParameterCounts:
    """Count the parameters of the model that the task of a recipe builds, heads included.

    Args:
        recipe: its task and model count, and the classes of `data.labels`.
        source_vocab: tokens, special ones included.
        target_vocab: the same; tasks on one kind of text do not read it.

    Raises:
        InputError: there is no such task, or the number of classes is not known.
    """
    tokenizers = TokenizerPair(Unwritten(source_vocab), Unwritten(target_vocab))
    return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers))
