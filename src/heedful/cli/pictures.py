"""Pictures beside texts on the command line: queries that name a picture, and folders of pictures to search."""

import os
from collections.abc import Iterable, Iterator
from os.path import isdir, isfile  # False, and no error, for a sentence that is too long for a name
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.files import named_files
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import Recipe


def queries(texts: Iterable[str], recipe: "Recipe") -> Iterator[str | Path]:
    """Tell pictures from texts among the queries of a command: pictures are files and folders that are there.

    Raises:
        InputError: a query is named like a picture, and there is no such file; or a folder holds no pictures.
    """
    for text in texts:
        if looks_like_a_picture(text) or isdir(text):
            yield from named_files([text], recipe)
        else:
            yield text


def looks_like_a_picture(text: str) -> bool:
    """True if a query is the name of a picture, be it there or not: by its ending, and as a path or without spaces."""
    from heedful.media.images import ENDINGS

    if not text.lower().endswith(ENDINGS):
        return text.startswith(("./", "../", "/", "~/")) and not any(map(str.isspace, text))
    return isfile(text) or "/" in text or os.sep in text or not any(map(str.isspace, text))


def check_folder(corpus: Path, model: str, *, reads_pictures: bool) -> None:
    """Check that a corpus that is a folder is searched by a model that reads pictures.

    Raises:
        InputError: it is not.
    """
    if corpus.is_dir() and not reads_pictures:
        raise InputError(
            f"--corpus {corpus}: is a folder, and {model} searches texts; name a file with a text on each line, or a "
            'model for the task "image_text_retrieval", which searches pictures'
        )
