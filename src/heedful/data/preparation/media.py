"""Preparation of images, audio clips and videos: each file is decoded once, to find bad ones, and stored as it is."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice, tee
from pathlib import Path

import torch

from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.pairs import remarks
from heedful.data.preparation.prepared_data import (
    VALID,
    Preparation,
    PreparedData,
    at_least_one,
    one_store_each,
    prepare_data,
)
from heedful.data.readers.corpus import corpus_files
from heedful.data.readers.filters import DropReport
from heedful.data.readers.media_files import MediaFile, media_files, other_files, read_content
from heedful.data.stores import SMALL_VOCABULARY, MediaExample, MediaStore
from heedful.errors import InputError
from heedful.media.modality import modality_of
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted
from heedful.workers import map_ahead

CHUNK = 8  # files that a worker is given at a time

Target = Callable[[MediaFile, CorpusConfig, TokenizerPair], list[int]]


def prepare_media(
    recipe: Recipe,
    folder: Path,
    target: Target,
    tokenizers: Callable[[], TokenizerPair],
    load: Callable[[Path], TokenizerPair],
    report: Callable[[str], None],
    given: TokenizerPair | None = None,
) -> PreparedData[MediaStore]:
    """Return the prepared images, audio or videos of a recipe; see `prepare_data`.

    Args:
        recipe: Its data, image, video and audio tables count.
        folder: A folder for this data alone.
        target: Gives the targets of a file: the number of its class, or the tokens of its text.
        tokenizers: Loads or trains the tokenizers.
        load: Reads the tokenizers from the folder to which they were saved.
        report: Called with sentences that say what is done.
        given: The tokenizers of a model that is tested on `data.valid`, without training data.
    """
    if given is None:
        check_media(recipe)
    writes_text = FAMILIES[recipe.model.family].pairs

    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        (corpus,) = corpora
        trains = place.name != VALID

        def examples() -> Iterator[MediaExample]:
            for file, content, positions in read_files(corpus, recipe, drops, skip=skips_bad(recipe, training=trains)):
                targets = target(file, corpus, tokenizers)
                if trains and len(targets) > recipe.data.filters.max_tokens:
                    drops.drop("too many tokens", file.place(corpus), None)
                    continue
                if writes_text:
                    drops.count_tokens(f"target tokens of {corpus.source}", targets)
                yield MediaExample(content, positions, targets)

        files = at_least_one(examples(), corpus.source, drops, "files")
        store = MediaStore.write(place, files, max(*tokenizers.sizes, SMALL_VOCABULARY))
        report(f"{corpus.source}: {counted(len(store), 'files')}, {drops}")
        for sentence in remarks(drops, len(store), recipe.data.max_length):
            report(sentence)
        source = corpus_files(corpus, recipe.data)[0]
        if trains and source.is_dir() and (others := other_files(source, recipe.data.modality)):
            report(others)

    channel = f", channel {recipe.audio.channel}" if recipe.audio.channel else ""
    truncated = ", truncated" if recipe.data.truncated_files == "read" else ""
    reading = ", ".join(map(str, (recipe.image, recipe.video, recipe.audio))) + channel + truncated
    of_whisper = recipe.task == "speech_recognition" and recipe.tokenizer.kind == "foreign"
    prompt = f", behind the prompt for {recipe.transcribe.language}" if of_whisper else ""
    media = Preparation(
        parts=one_store_each(recipe.data),
        tokenizers=tokenizers,
        write=write,
        open=MediaStore.open,
        texts=lambda _: (),
        load=load,
        settings=f", {recipe.data.max_length} tokens, {recipe.data.bad_files}, {reading}{prompt}",
    )
    prepared = prepare_data(recipe, folder, media, report, given)
    learned = recipe.model.learned_target_positions if writes_text else None
    corpus, valid = recipe.data.valid, prepared.valid
    if corpus is not None and valid is not None and learned is not None:
        # no text of the validation or test set is filtered out, and the decoder must have positions for each
        tokens = valid.lengths[:, 1]
        if tokens.max() > learned:
            file = next(islice(media_files(corpus, recipe.data), int(tokens.argmax()), None))
            raise InputError(
                f"{file.place(corpus)}: its text of {tokens.max():,} tokens is longer than the {learned:,} positions "
                "that the decoder learns; shorten it, or raise model.max_target_positions"
            )
    return prepared


def check_media(recipe: Recipe) -> None:
    if not recipe.data.train:
        raise InputError("the recipe names no training data; give it a [[data.train]] with source")


def skips_bad(recipe: Recipe, *, training: bool) -> bool:
    return recipe.data.bad_files == "skip_all" or (training and recipe.data.bad_files == "skip")


def read_files(
    corpus: CorpusConfig, recipe: Recipe, drops: DropReport, *, skip: bool
) -> Iterator[tuple[MediaFile, bytes, int]]:
    """Yield each file of a corpus with its bytes and its number of positions in the stack, in order."""
    modality = modality_of(recipe)

    def tokens(file: MediaFile) -> tuple[int, bool] | InputError:
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
    # Other processes decode ahead; the bytes of a file are read again here, which is cheaper than to send them.
    ahead, chunks = tee(iter(lambda: list(islice(files, CHUNK)), []))
    with closing(map_ahead(lambda chunk: list(map(tokens, chunk)), ahead, torch.get_num_threads())) as answers:
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
