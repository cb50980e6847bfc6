"""`heedful data`: public data sets for the recipes."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Mirror, folder_to_write
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import did_you_mean


def data(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets, such as multi30k-en-de; --list shows all of them.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Data folder: each data set becomes a folder in it.", callback=folder_to_write)
    ] = Path("data"),
    mirror: Mirror = None,
    list_sets: Annotated[
        bool, typer.Option("--list", help="List the data sets with size, licence and citation.")
    ] = False,
) -> None:
    """Download public data sets that the recipes use, and check them against their checksums.

    An interrupted download is resumed by the same command; a data set that is
    already in the data folder is only checked. The licences of the data sets are
    their own: see --list, and SOURCE.md in each folder. Data sets of sentence
    pairs from tatoeba.org grow over time; they are split into training,
    validation and test data so that no sentence is in more than one part.
    """
    from heedful.data.catalogue import public_sets
    from heedful.tools.data_sets import fetch

    sets = public_sets()
    if list_sets:
        sizes = {name: f"{'~' * each.is_estimated}{each.size / 1e6:,.1f} MB" for name, each in sets.items()}
        width, size_width = max(map(len, sets)), max(map(len, sizes.values()))
        for name, each in sets.items():
            typer.echo(f"{name:{width}}  {sizes[name]:>{size_width}}  {each.content}")
            typer.echo(f"{'':{width}}  {'':{size_width}}  licence: {each.licence}; {each.citation}")
        return
    if not names:
        raise InputError("name one or more data sets, such as `heedful data multi30k-en-de`; --list shows all of them")
    for name in names:
        if name not in sets:
            close = get_close_matches(name, sets)
            remedy = did_you_mean(close) if close else "`heedful data --list` lists all of them"
            raise InputError(f"{name}: unknown data set; {remedy}")
    for name in dict.fromkeys(names):
        with show_progress(f"downloading {name}") as progress:
            is_new = fetch(sets[name], out, mirror, progress)
        typer.echo(f"{out / name}: {'complete' if is_new else 'already complete'}; licence: {sets[name].licence}")
