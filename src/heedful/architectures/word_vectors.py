"""Pretrained word vectors as initial embeddings of a model (Kim 2014; Qi et al. 2018)."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from heedful.architectures.model import EmbeddingTable, Model
from heedful.config.schema import Recipe
from heedful.data.word_vectors import match, read_vectors, vector_size
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

MIN_COVERAGE = 0.5  # share of the vocabulary's words; a warning is given if a file has vectors for fewer

# A letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)


def place_vectors(
    model: Model, recipe: Recipe, tokenizers: TokenizerPair, warn: Callable[[str], object] = lambda _: None
) -> None:
    """Copy a recipe's word vectors to the embeddings of whole words; with `model.freeze_vectors`, freeze the tables.

    `warn` is called with a message if a file has vectors for less than `MIN_COVERAGE` of the words.
    """
    sides = (
        (recipe.model.source_vectors, model.embedding_of("src"), tokenizers.source),
        (recipe.model.target_vectors, model.embedding_of("tgt"), tokenizers.target),
    )
    for file, embedding, tokenizer in sides:
        if file is None:
            continue
        path = Path(file)
        if embedding is None:
            raise InputError(f"{path}: the model's source is not text; leave model.source_vectors out")
        covered, words = place(path, embedding, tokenizer)
        if covered < MIN_COVERAGE * words:
            warn(
                f"{path}: has vectors for {covered:,} of the {words:,} vocabulary words ({covered / words:.0%}); "
                "the others start from random vectors; check that the file is for this language and spells words "
                'as the vocabulary does (tokenizer.lowercase, tokenizer.kind = "word")'
            )
        embedding.weight.requires_grad_(not recipe.model.freeze_vectors)


def check_vectors(recipe: Recipe) -> None:
    """Check, from the beginning of each file, that a recipe's word vectors can be read and fit the model."""
    for name in filter(None, (recipe.model.source_vectors, recipe.model.target_vectors)):
        check_size(Path(name), vector_size(Path(name)), recipe.model.d_model)


def check_size(path: Path, size: int, width: int) -> None:
    if size != width:
        raise InputError(f"{path}: has vectors of size {size}, but model.d_model = {width}; set it to {size}")


@torch.no_grad()
def place(path: Path, embedding: EmbeddingTable, tokenizer: Tokenizer) -> tuple[int, int]:
    """Copy the word vectors of one file to all tables of an embedding, scaled to the variance of new embeddings.

    Return the number of words in the vocabulary that have a vector, and the number of all words in it. Punctuation
    marks do not count.
    """
    words = whole_words(tokenizer.texts(range(len(tokenizer))), tokenizer.config.kind)
    rows, indices = match(read_vectors(path, frozenset(words)), words)
    check_size(path, rows.shape[1], embedding.weight.size(1))
    vectors = torch.from_numpy(rows)
    # The initialisation of the other weights assumes embeddings of this variance.
    vectors *= float(embedding.weight.std() / vectors.std())
    for table in embedding.parameters():
        table[torch.from_numpy(indices)] = vectors.to(table.device)
    is_word = [number >= tokenizer.first_word and any(map(str.isalnum, word)) for number, word in enumerate(words)]
    return sum(is_word[index] for index in indices), sum(is_word)


def whole_words(texts: Sequence[str], kind: str) -> list[str]:
    """Return each piece of a vocabulary as a word, or "" if it can only be part of a word.

    `texts` are the pieces as returned by `Tokenizer.texts`. In a vocabulary of kind "word", all pieces are words. In
    others, pieces that begin with a space are words: the "king" inside "asking" is not a king. Punctuation marks, and
    pieces that begin with a letter of a script without spaces, need no space to be words.
    """

    def is_whole(piece: str) -> bool:
        return piece.startswith(" ") or UNSPACED.match(piece) is not None or not any(map(str.isalnum, piece))

    return [piece.removeprefix(" ") if kind == "word" or is_whole(piece) else "" for piece in texts]
