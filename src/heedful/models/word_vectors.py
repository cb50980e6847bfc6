"""Word vectors from elsewhere as a model's first embeddings (Kim 2014; Qi et al. 2018)."""

from pathlib import Path

import torch

from heedful.config.schema import Recipe
from heedful.data.vectors import match, read_vectors, vector_size
from heedful.errors import InputError
from heedful.models.transformer import EncoderDecoder
from heedful.nn.embedding import Embedding
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

SPACE = "▁"  # marks the beginning of a word in a piece


def place_vectors(model: EncoderDecoder, recipe: Recipe, tokenizers: TokenizerPair) -> None:
    """Give the pieces of the vocabulary that are words the vectors that the recipe names, and freeze all if it says so.

    Raises:
        InputError: a file cannot be read, has vectors of another size than the model, or has none of the words.
    """
    sides = (
        (recipe.model.source_vectors, model.source_embedding, tokenizers.source),
        (recipe.model.target_vectors, model.target_embedding, tokenizers.target),
    )
    for path, embedding, tokenizer in sides:
        if path is not None:
            place(Path(path), embedding, tokenizer)
            embedding.weight.requires_grad_(not recipe.model.freeze_vectors)


def check_vectors(recipe: Recipe) -> None:
    """Whether the word vectors that a recipe names can be read and fit its model; of each file the beginning is read.

    Raises:
        InputError: a file cannot be read, or has vectors of another size than the model.
    """
    for name in filter(None, (recipe.model.source_vectors, recipe.model.target_vectors)):
        check_size(Path(name), vector_size(Path(name)), recipe.model.d_model)


def check_size(path: Path, size: int, width: int) -> None:
    """Whether vectors are as wide as the model.

    Raises:
        InputError: they are not.
    """
    if size != width:
        raise InputError(f"{path}: has vectors of size {size}; set model.d_model = {size}, now {width}")


@torch.no_grad()
def place(path: Path, embedding: Embedding, tokenizer: Tokenizer) -> None:
    """Copy the vectors of one file, scaled as a whole to the variance that embeddings are drawn with."""
    words = [piece.removeprefix(SPACE) for piece in tokenizer.pieces(range(len(tokenizer)))]
    rows, indices = match(read_vectors(path, frozenset(words)), words)
    width = embedding.weight.size(1)
    check_size(path, rows.shape[1], width)
    vectors = torch.from_numpy(rows)
    embedding.weight[torch.from_numpy(indices)] = vectors / vectors.std() * width**-0.5
