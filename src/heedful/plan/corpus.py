"""Corpus on paper: a task with as many tokens of training data as fill a batch, without any text."""

import numpy as np

from heedful.config.schema import Recipe
from heedful.data.passages import SentenceStore
from heedful.data.preparation.pairs import PreparedPairs
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.filters import DropReport
from heedful.data.stores.pair_store import PairStore
from heedful.data.stream import TokenStream
from heedful.errors import InputError
from heedful.tasks import Task, find_task
from heedful.tasks.language_model import TextWindows
from heedful.tasks.masked_lm import Passages
from heedful.tasks.model_size import Unwritten, vocabulary_sizes
from heedful.tasks.parts.sequence_to_sequence import Pairs
from heedful.text.tokenizer_pair import TokenizerPair

TOKEN = 7  # any id of a real token
SENTENCE = 32  # tokens of a sentence in the passages for BERT


class PlannedTokenizer(Unwritten):
    """Placeholder tokenizer whose words, from which random tokens are drawn, have the highest ids."""

    @property
    def first_word(self) -> int:
        """The first id of the vocabulary that a masked token may be replaced by."""
        return len(self) // 2


def longest_sentence(recipe: Recipe) -> int:
    """Return the tokens, with <eos>, of the longest sentence that the filters and the model allow."""
    return min(recipe.data.filters.max_tokens, recipe.model.learned_positions or recipe.data.filters.max_tokens)


def task_on_paper(recipe: Recipe, length: int) -> Task:
    """Create the task of a recipe with data for a full batch, but without any text.

    Args:
        recipe: the recipe.
        length: tokens of each sentence on both sides, for encoder-decoders; other models fill `data.max_length`.

    Raises:
        InputError: batches of the task cannot be known without its data, or its tokenizer cannot be read.
    """
    kind = find_task(recipe.task)
    tokenizers = TokenizerPair(*map(PlannedTokenizer, vocabulary_sizes(recipe)))
    data = kind.dataset
    if issubclass(data, Pairs):
        return kind(data(recipe, pairs(recipe, tokenizers, length)))
    if issubclass(data, TextWindows):
        return kind(data(recipe, prepared(tokenizers, stream(recipe))))
    if issubclass(data, Passages):
        return kind(data(recipe, prepared(tokenizers, sentences(recipe))))
    raise InputError(
        f'task = "{recipe.task}": the batches depend on the examples; prepare the data (a run does that first), and '
        "give it with --prepared RUN/data"
    )


def prepared(tokenizers: TokenizerPair, store: TokenStream | SentenceStore) -> PreparedData:
    """Make prepared data of a store of running text."""
    return PreparedData(tokenizers, (store,), (1.0,), None, "", DropReport())


def pairs(recipe: Recipe, tokenizers: TokenizerPair, length: int) -> PreparedPairs:
    """Make the prepared pairs of one batch, with sentences of one length."""
    count = max(1, recipe.train.batch_tokens // length)
    store = PairStore(
        ids=np.full(2 * count * length, TOKEN, np.uint16),
        lengths=np.full((count, 2), length, np.int32),
        offsets=2 * length * np.arange(count),
        files=(),
    )
    return PreparedPairs(tokenizers, (store,), (1.0,), None, "", DropReport(), [])


def stream(recipe: Recipe) -> TokenStream:
    """Make a text for the windows of one batch of a language model."""
    size = max(recipe.train.batch_tokens, recipe.data.max_length) + 2 * recipe.data.max_length
    return TokenStream(np.full(size, TOKEN, np.uint16), np.array([0, size]), size, files=())


def sentences(recipe: Recipe) -> SentenceStore:
    """Make a text for the passages of a batch of a masked language model, in two documents."""
    size = max(recipe.train.batch_tokens, recipe.data.max_length) * 3 // SENTENCE + 2
    bounds = SENTENCE * np.arange(size + 1)
    return SentenceStore(np.full(SENTENCE * size, TOKEN, np.uint16), bounds, np.array([0, size // 2, size]), files=())
