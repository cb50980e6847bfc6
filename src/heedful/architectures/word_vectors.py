"""Pretrained word vectors as a model's initial embeddings (Kim 2014; Qi et al. 2018)."""

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

MIN_COVERAGE = 0.5  # share of the words of a vocabulary that a file of word vectors for its language has

# A letter of a script without spaces between words: Thai to Lao, Burmese, Khmer, kana, Han.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)


def place_vectors(
    model: Model, recipe: Recipe, tokenizers: TokenizerPair, tell: Callable[[str], object] = lambda _: None
) -> None:
    """Copy a recipe's word vectors to the embeddings of whole words, and freeze the embeddings if the recipe says so.

    `tell` is called with a sentence where a file has few of the words.

    Raises:
        InputError: a file cannot be read, its vectors have another size than the model, it has none of the words, or
            the model reads no tokens.
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
            raise InputError(f"{path}: the model reads no tokens; leave model.source_vectors out")
        covered, words = place(path, embedding, tokenizer)
        if covered < MIN_COVERAGE * words:
            tell(
                f"{path}: has vectors of {covered:,} of the {words:,} words of the vocabulary ({covered / words:.0%}), "
                "and the others begin at random; check that it is for this language, and that it writes words as the "
                'vocabulary does (tokenizer.lowercase, tokenizer.kind = "word")'
            )
        embedding.weight.requires_grad_(not recipe.model.freeze_vectors)


def check_vectors(recipe: Recipe) -> None:
    """Check that a recipe's word vectors can be read and fit the model; only the beginning of each file is read."""
    for name in filter(None, (recipe.model.source_vectors, recipe.model.target_vectors)):
        check_size(Path(name), vector_size(Path(name)), recipe.model.d_model)


def check_size(path: Path, size: int, width: int) -> None:
    """Check that word vectors have the size of the model's embeddings."""
    if size != width:
        raise InputError(f"{path}: has vectors of size {size}; set model.d_model = {size}, now {width}")


@torch.no_grad()
def place(path: Path, embedding: EmbeddingTable, tokenizer: Tokenizer) -> tuple[int, int]:
    """Copy the word vectors of one file to all tables of an embedding, scaled to the variance of new embeddings.

    Returns the number of words of the vocabulary that have a vector, and of all its words, punctuation excluded.
    """
    words = whole_words(tokenizer.texts(range(len(tokenizer))), tokenizer.config.kind)
    rows, indices = match(read_vectors(path, frozenset(words)), words)
    check_size(path, rows.shape[1], embedding.weight.size(1))
    vectors = torch.from_numpy(rows)
    # The model's other weights were drawn for embeddings of this variance.
    vectors *= float(embedding.weight.std() / vectors.std())
    for table in embedding.parameters():
        table[torch.from_numpy(indices)] = vectors.to(table.device)
    are_words = [number >= tokenizer.first_word and any(map(str.isalnum, word)) for number, word in enumerate(words)]
    return sum(are_words[index] for index in indices), sum(are_words)


def whole_words(texts: Sequence[str], kind: str) -> list[str]:
    """List the word that each piece of a vocabulary is; empty for a piece that is only a part of words.

    The king inside of asking is not a king. A punctuation mark is a word anywhere, and where words are written without
    spaces, any piece may be one. Texts are those of `Tokenizer.texts`; all pieces of the kind "word" are words.
    """

    def is_whole(piece: str) -> bool:
        return piece.startswith(" ") or UNSPACED.match(piece) is not None or not any(map(str.isalnum, piece))

    return [piece.removeprefix(" ") if kind == "word" or is_whole(piece) else "" for piece in texts]
