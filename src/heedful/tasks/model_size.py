"""Model size: counts the parameters of a recipe's model without building weights or a vocabulary."""

from heedful.config.schema import Recipe
from heedful.models.parameters import ParameterCounts, count_without_building
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class Unwritten(Tokenizer):
    """Placeholder tokenizer that knows only the size of its vocabulary."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def count_model(recipe: Recipe, source_vocab: int, target_vocab: int) -> ParameterCounts:
    """Count the parameters of the model that the task of a recipe builds, heads included.

    Args:
        recipe: the recipe; task, model and the classes of `data.labels` matter.
        source_vocab: the size of the source vocabulary, special tokens included.
        target_vocab: the size of the target vocabulary; tasks on one kind of text ignore it.

    Raises:
        InputError: there is no such task, or the number of classes is not known.
    """
    tokenizers = TokenizerPair(Unwritten(source_vocab), Unwritten(target_vocab))
    return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers))
