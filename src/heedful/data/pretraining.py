"""From documents to what a masked language model is trained on: sentences, kept as long as nothing of them changed.

folder/train       the sentences of the training documents
folder/valid       those of the validation documents
folder/tokenizer   the vocabulary
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.digest import data_digest
from heedful.data.filters import DropReport
from heedful.data.one_text import check_corpora, text_tokenizer, texts
from heedful.data.passages import SentenceStore
from heedful.data.reuse import made_once
from heedful.data.sentences import split_sentences
from heedful.errors import InputError
from heedful.text.pair import TokenizerPair
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Passages:
    """Everything that training and validation read."""

    tokenizer: Tokenizer
    train: SentenceStore
    valid: SentenceStore | None
    digest: str
    report: DropReport


def prepare_passages(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Passages:
    """Return the prepared sentences of a recipe: from `folder` if it holds just that, otherwise made there.

    Args:
        recipe: Its data and tokenizer tables count.
        folder: A folder of its own. What was prepared from something else is replaced.
        report: Told in sentences what is done.

    Raises:
        InputError: The text cannot be used, nothing of it is left, or `folder` holds something else.
        RunError: The folder cannot be written.
    """
    check_corpora(recipe)
    digest = data_digest(recipe)
    return made_once(
        folder,
        digest,
        make=lambda temporary: _write(recipe, temporary, report),
        read=lambda drops: _open(recipe, folder, digest, drops),
        report=report,
    )


def _write(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> DropReport:
    total = DropReport()
    tokenizer = _masking(text_tokenizer(recipe, report), recipe)
    TokenizerPair(tokenizer, tokenizer).save(folder / "tokenizer")
    parts = {"train": recipe.data.train, "valid": (recipe.data.valid,) if recipe.data.valid else ()}
    for name, corpora in parts.items():
        if corpora:
            drops = DropReport()
            store = SentenceStore.write(folder / name, _sentences(corpora, recipe, tokenizer, drops), len(tokenizer))
            size = f"{len(store):,} documents, {len(store.sentences) - 1:,} sentences, {len(store.ids):,} tokens"
            report(f"{name}: {size}, {drops}")
            total.merge(drops)
    return total


def _masking(tokenizer: Tokenizer, recipe: Recipe) -> Tokenizer:
    """The tokenizer itself, if it has a <mask>.

    Raises:
        InputError: It has none.
    """
    if not tokenizer.config.mask:
        where = f"{recipe.tokenizer.path}: this tokenizer has" if recipe.tokenizer.path else "the tokenizer would have"
        raise InputError(f"{where} no <mask>, which hidden tokens are replaced with; set tokenizer.mask = true")
    return tokenizer


def _sentences(
    corpora: Sequence[CorpusConfig], recipe: Recipe, tokenizer: Tokenizer, drops: DropReport
) -> Iterator[list[list[int]]]:
    """The sentences of each document as ids.

    Raises:
        InputError: There is no document.
    """
    empty = True
    for corpus in corpora:
        for text in texts(corpus, recipe, drops):
            empty = False
            yield tokenizer.encode_batch(split_sentences(text))
    if empty:
        raise InputError(f"{corpora[0].source}: no text is left ({drops}); check the files")


def _open(recipe: Recipe, folder: Path, digest: str, drops: DropReport) -> Passages:
    return Passages(
        tokenizer=TokenizerPair.load(folder / "tokenizer").source,
        train=SentenceStore.open(folder / "train"),
        valid=SentenceStore.open(folder / "valid") if recipe.data.valid else None,
        digest=digest,
        report=drops,
    )
