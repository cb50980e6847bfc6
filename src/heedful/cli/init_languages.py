"""The languages of a parallel text: as the options of `heedful init` say, or guessed, which is told."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.errors import InputError
from heedful.text.languages import is_language, language_called

if TYPE_CHECKING:
    from heedful.data.pair_survey import Side

ENDINGS = re.compile(r"(\.(txt|text|md))?(\.gz)?$")  # that may stand behind a language in a file's name
AT_END = re.compile(r"(?:^|[-._])([a-z]{2}(?:[-_](?:[A-Z]{2}|Han[st]|Latn|Cyrl|cn|tw|br))?)$")
SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko"}  # those that write one language
UNKNOWN = {"source": "src", "target": "tgt"}  # as in a recipe that names no languages


def language_of(role: str, given: str | None, name: str, side: "Side") -> str:
    """The language of one side: the one that is given, or else a guess, with the option that corrects it.

    Args:
        role: "source" or "target".
        given: What an option says.
        name: The file, or the column of a table.
        side: How its text looks.
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
    """The code at the very end of a name such as train.de.gz, news-de.txt or zh_TW; only file endings may follow it."""
    found = AT_END.search(ENDINGS.sub("", Path(name).name))
    return found[1] if found and is_language(found[1]) else None


def check_different(languages: tuple[str, str]) -> None:
    """Refuse equal languages, which would make two files of one name.

    Raises:
        InputError: They are equal.
    """
    if languages[0] == languages[1]:
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")
