"""Preparation of images, audio clips and videos: each file is decoded once, to check it, and stored unchanged."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain, islice, tee
from pathlib import Path

import torch

from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import (
    VALID,
    DataFolder,
    PreparedData,
    at_least_one,
    one_store_each,
    require_training_data,
)
from heedful.data.readers.corpus import corpus_files
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.media_files import MediaFile, media_files, other_files, read_content
from heedful.data.stores import SMALL_VOCABULARY, MediaExample, MediaStore
from heedful.errors import InputError
from heedful.media.modality import modality_of
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted
from heedful.workers import map_ahead

CHUNK = 8  # number of files that are sent to a worker at a time

Target = Callable[[MediaFile, CorpusConfig, TokenizerPair], list[int]]


def prepare_media(
    recipe: Recipe,
    folder: Path,
    target: Target,
    new_tokenizers: Callable[[], TokenizerPair],
    load_tokenizers: Callable[[Path], TokenizerPair],
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None = None,
) -> PreparedData[MediaStore]:
    """Return the prepared images, audio clips or videos of a recipe; see `DataFolder`.

    Args:
        recipe: The recipe of the model.
        folder: A folder for this data only.
        target: Returns the targets of a file: the index of its class, or the tokens of its text.
        new_tokenizers: Loads or trains the tokenizers.
        load_tokenizers: Reads the tokenizers from the folder to which they were saved.
        report: Called with progress messages.
        tokenizers: The tokenizers of a model that is tested on `data.valid`, without training data; None for training.
    """
    if tokenizers is None:
        require_training_data(recipe)
    writes_text = FAMILIES[recipe.model.family].pairs
    # The following strings are part of the digest. Settings of later versions add nothing by default, so that existing
    # data keeps its digest.
    channel = f", channel {recipe.audio.channel}" if recipe.audio.channel else ""
    truncated = ", truncated" if recipe.data.truncated_files == "read" else ""
    reading = ", ".join(map(str, (recipe.image, recipe.video, recipe.audio))) + channel + truncated
    is_whisper = recipe.task == "speech_recognition" and recipe.tokenizer.kind == "foreign"
    # The wording must not change, because the digests of existing data depend on it.
    prompt = f", behind the prompt for {recipe.transcribe.language}" if is_whisper else ""
    data = DataFolder(
        recipe,
        folder,
        MediaStore.open,
        one_store_each(recipe.data),
        report,
        tokenizers,
        load_tokenizers=load_tokenizers,
        settings=f", {recipe.data.max_length} tokens, {recipe.data.bad_files}, {reading}{prompt}",
    )
    prepared = data.stored()
    if prepared is None:
        with data.build(lambda _: ()):
            tokenizers = tokenizers or new_tokenizers()
            for store_folder, (corpus,), drops in data.new_stores(tokenizers):
                trains = store_folder.name != VALID
                examples = _examples(corpus, recipe, tokenizers, target, drops, trains=trains, writes_text=writes_text)
                files = at_least_one(examples, corpus.source, drops, "files")
                store = MediaStore.write(store_folder, files, max(*tokenizers.sizes, SMALL_VOCABULARY))
                report(f"{corpus.source}: {counted(len(store), 'files')}, {drops}")
                for line in drops.remark_lines(len(store), recipe.data.max_length):
                    report(line)
                source = corpus_files(corpus, recipe.data)[0]
                if trains and source.is_dir() and (others := other_files(source, recipe.data.modality)):
                    report(others)
        prepared = data.built()

    positions = recipe.model.learned_target_positions if writes_text else None
    corpus, valid = recipe.data.valid, prepared.valid
    if corpus is not None and valid is not None and positions is not None:
        # Validation and test texts are not filtered, so the decoder must have enough positions for the longest one.
        tokens = valid.lengths[:, 1]
        if tokens.max() > positions:
            file = next(islice(media_files(corpus, recipe.data), int(tokens.argmax()), None))
            raise InputError(
                f"{file.place(corpus)}: its text of {tokens.max():,} tokens is longer than the {positions:,} positions "
                "that the decoder learns; shorten it, or raise model.max_target_positions"
            )
    return prepared


def _examples(
    corpus: CorpusConfig,
    recipe: Recipe,
    tokenizers: TokenizerPair,
    target: Target,
    drops: DropReport,
    *,
    trains: bool,
    writes_text: bool,
) -> Iterator[MediaExample]:
    for file, content, positions in read_files(corpus, recipe, drops, skip=skips_bad(recipe, training=trains)):
        targets = target(file, corpus, tokenizers)
        # Only training texts are dropped: scores on a test set are comparable only if all of it is tested.
        if trains and len(targets) > recipe.data.filters.max_tokens:
            drops.drop("too many tokens", file.place(corpus), None)
            continue
        if writes_text:
            drops.count_tokens(f"target tokens of {corpus.source}", targets)
        yield MediaExample(content, positions, targets)


def skips_bad(recipe: Recipe, *, training: bool) -> bool:
    return recipe.data.bad_files == "skip_all" or (training and recipe.data.bad_files == "skip")


def read_files(
    corpus: CorpusConfig, recipe: Recipe, drops: DropReport, *, skip: bool
) -> Iterator[tuple[MediaFile, bytes, int]]:
    """Yield each file of a corpus, in order, with its bytes and its number of positions in the stack of layers.

    With `skip`, bad files are left out and added to `drops`; otherwise the first one raises an InputError.
    """
    modality = modality_of(recipe)

    def decode(file: MediaFile) -> tuple[int, bool] | InputError:
        """Return the number of positions of a file, and whether it is silent audio; return the error for a bad file."""
        try:
            content = read_content(file, corpus)
        except InputError as error:
            return error
        try:
            decoded = modality.read(content)
            return modality.tokens(decoded), modality.is_silent(decoded)
        except InputError as error:
            return InputError(f"{file.place(corpus)}: {error}")

    files = media_files(corpus, recipe.data, drops)
    # Workers decode files ahead; this process reads the bytes again, which is cheaper than receiving them.
    ahead, chunks = tee(iter(lambda: list(islice(files, CHUNK)), []))
    with closing(map_ahead(lambda chunk: list(map(decode, chunk)), ahead, torch.get_num_threads())) as answers:
        for file, answer in zip(chain.from_iterable(chunks), chain.from_iterable(answers), strict=True):
            try:
                if isinstance(answer, InputError):
                    raise answer
                content = read_content(file, corpus)
            except InputError as error:
                if not skip:
                    raise
                drops.drop("bad file", str(error), None)
                drops.bad_files.append(str(error))
            else:
                count, silent = answer
                if silent:
                    drops.remark("silent", file.place(corpus), None)
                yield file, content, count
