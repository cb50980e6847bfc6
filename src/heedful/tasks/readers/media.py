"""Readers of images, audio files and videos, which are decoded with torch."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from heedful.config.schema import CorpusConfig, MaskingConfig, Recipe
from heedful.data.preparation.media import read_files, skips_bad
from heedful.data.preparation.prepared_data import require_training_data
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.media_files import MediaFile, media_files, media_labels
from heedful.errors import InputError
from heedful.tasks.readers import ExampleReader
from heedful.tasks.readers.texts import check_label, with_class_weights
from heedful.text.training import existing_tokenizer


class MediaReader(ExampleReader):
    """Reader of images, audio files or videos.

    Attributes:
        has_texts: True if each file has a text, which needs a tokenizer.
    """

    has_texts: ClassVar[bool] = False

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        require_training_data(recipe)
        if cls.has_texts:
            existing_tokenizer(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        return read_files(corpus, recipe, DropReport(), skip=skips_bad(recipe, training=corpus in recipe.data.train))


class LabelledFileReader(MediaReader):
    """Reader of images, audio files or videos, each with one of the classes in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the classes of the training data, unless the recipe lists them, and the weights of the classes."""
        recipe = replace(recipe, data=replace(recipe.data, labels=media_labels(recipe.data)))
        return with_class_weights(recipe, lambda corpus: (file.target for file in media_files(corpus, recipe.data)))

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Check the class of every file if the recipe lists the classes, then decode the files one by one."""
        for file in media_files(corpus, recipe.data) if recipe.data.labels else ():
            class_number(file, corpus, recipe)
        return super().peek(corpus, recipe)


def class_number(file: MediaFile, corpus: CorpusConfig, recipe: Recipe) -> int:
    """Return the number of a file's class, from 0, after checking its label."""
    is_piece = file.line is not None and corpus.part != WHOLE
    check_label(file.target, recipe.data, file.place(corpus), is_piece=is_piece)
    return recipe.data.labels.index(file.target)


class FileWithTextReader(MediaReader):
    """Reader of images or audio files, each with its text: a caption, or the spoken words."""

    has_texts = True

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        """Check that a recipe has training data, a tokenizer or settings for one, and any spoken language it needs."""
        super().check(recipe)
        speech, target_language = recipe.transcribe, recipe.data.target_language
        languages = speech.languages
        # The prompt of a multilingual Whisper model contains the language (Radford et al. 2022, section 2.3).
        if (speech.language or target_language) in languages or (speech.language is None and not languages):
            return
        if not languages:
            raise InputError(
                f'transcribe.language = "{speech.language}": the model knows only one language; leave this setting out'
            )
        raise InputError(
            f"transcribe.language: the model distinguishes {len(languages)} languages; set it to the spoken one, "
            f"such as {languages[0]}"
        )

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the spoken language, for a model that distinguishes several."""
        speech, target_language = recipe.transcribe, recipe.data.target_language
        if speech.language is not None or target_language not in speech.languages:
            return recipe
        return replace(recipe, transcribe=replace(speech, language=target_language))


class ImageTextReader(MediaReader):
    """Reader of images, each paired with a text."""

    has_texts = True


class MaskedImageReader(MediaReader):
    """Reader of images without labels, in which some patches are masked."""

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        super().check(recipe)
        if replace(recipe.masking, rate=MaskingConfig.rate) != MaskingConfig():
            raise InputError('task = "masked_patches" uses only masking.rate; leave the other keys of [masking] out')
        if recipe.image.mixup:
            raise InputError('task = "masked_patches" has no classes to mix; leave image.mixup out')
