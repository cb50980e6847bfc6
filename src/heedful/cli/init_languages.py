"""Languages of a parallel text in `heedful init`: given as options, or guessed from names and script."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.errors import InputError
from heedful.text.languages import is_language, language_called

if TYPE_CHECKING:
    from heedful.data.proposals.pair_survey import Side

ENDINGS = re.compile(r"(\.(txt|text|md))?(\.(gz|bz2|xz))?$")  # file endings that may follow a language code
AT_END = re.compile(r"(?:^|[-._])([a-z]{2}(?:[-_](?:[A-Z]{2}|Han[st]|Latn|Cyrl|cn|tw|br))?)$")
SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko"}  # scripts that are taken for one language
UNKNOWN = {"source": "src", "target": "tgt"}  # as in a recipe that names no languages


def language_of(role: str, given: str | None, name: str, side: "Side") -> str:
    """Return the language of one side of a parallel text: as given, or else a guess, which is printed.

    Args:
        role: "source" or "target".
        given: The language code given as an option; None: guess.
        name: The name of the file, or of the column of a table.
        side: Statistics of the text of this side.
    """
    if given:
        return given
    guesses = {
        f"by the end of the name {Path(name).name}": language_in(name),
        f"by the name {Path(name).name}": language_called(Path(name).name),
        f"as its script is {side.script}": SCRIPTS.get(side.script or ""),
        "as neither name nor script tells which": UNKNOWN[role],
    }
    reason, language = next((reason, guess) for reason, guess in guesses.items() if guess)
    typer.echo(f"{role} language: {language}, {reason}; if that is wrong, give --{role}-language")
    return language


def language_in(name: str) -> str | None:
    """Find the language code that ends a name such as train.de.gz, news-de.txt or zh_TW, file endings aside."""
    found = AT_END.search(ENDINGS.sub("", Path(name).name))
    return found[1] if found and is_language(found[1]) else None


def check_different(languages: tuple[str, str]) -> None:
    """Refuse a source language equal to the target language, as both sides would get one file name.

    Raises:
        InputError: The languages are equal.
    """
    if languages[0] == languages[1]:
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")
