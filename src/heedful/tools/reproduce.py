"""Reproduction of a recipe: a new run is compared with the stored results of earlier ones."""

import json
import math
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from heedful.data.catalogue import public_sets
from heedful.errors import InputError, RunError
from heedful.storage.paths import no_folder
from heedful.wording import all_of, either

RESULTS = "results.toml"
STUDENT = (math.nan, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 97.5 % for 1, 2, ... 9 degrees
COMMANDS = {"python": [sys.executable], "heedful": [sys.executable, "-m", "heedful"]}


class StoredRun(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seed: int
    score: float
    precision: str


class StoredResults(BaseModel):
    """The file results.toml of a recipe."""

    model_config = ConfigDict(extra="forbid")

    metric: str
    """The name of the score: as in the JSON of `heedful evaluate`, or as in the log of a training."""

    part: Literal["test", "validation"] = "test"
    """The part of the data that is scored."""

    runs: Annotated[list[StoredRun], MinLen(1)]

    evaluate: list[str] = []
    """Further options of `heedful evaluate`."""

    data: list[str] = []
    """The public data sets of the recipe, which `heedful data` downloads."""

    prepare: list[str] = []
    """Commands that write the folder `folder` from the data sets; {data} and {recipe} stand for the folders."""

    folder: str = "."
    """The folder that the recipe's data files are in, relative to the data folder."""

    prepared: str = ""
    """The file that the commands write last, relative to the data folder. If it exists, they do not run again. Not set:
    the folder."""

    @field_validator("data")
    @classmethod
    def _are_public(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in public_sets():
                raise ValueError(f'"{name}" is not a public data set; `heedful data --list` lists them')
        return names

    @field_validator("prepare")
    @classmethod
    def _are_commands(cls, lines: list[str]) -> list[str]:
        for line in lines:
            if line.split(" ")[0] not in COMMANDS:
                raise ValueError(f'"{line}" does not begin with {either(COMMANDS)}')
        return lines

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % prediction interval for the score of a further run; None for a single stored run."""
        scores = [run.score for run in self.runs]
        if len(scores) == 1:
            return None
        degrees = min(len(scores) - 1, len(STUDENT) - 1)
        margin = STUDENT[degrees] * stdev(scores) * math.sqrt(1 + 1 / len(scores))
        return fmean(scores) - margin, fmean(scores) + margin


def stored_results(recipe: Path) -> StoredResults:
    """Read the results that are stored with a recipe."""
    if not recipe.is_dir():
        raise InputError(no_folder(recipe, f"give the folder of a recipe with {RESULTS}"))
    path = recipe / RESULTS
    if not path.is_file():
        raise InputError(f"{path}: no such file, so there is nothing to reproduce; choose a recipe that has one")
    try:
        return StoredResults.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not a TOML file: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {key}: {first['msg']}") from error


def prepare(results: StoredResults, recipe: Path, data: Path) -> None:
    """Run the commands that write the data files of a recipe, unless they are already there."""
    if (data / (results.prepared or results.folder)).exists():
        return
    for line in results.prepare:
        name, *arguments = [word.format(data=data, recipe=recipe) for word in shlex.split(line)]
        if subprocess.run([*COMMANDS[name], *arguments], check=False).returncode:
            raise RunError(f"`{line}` in {recipe / RESULTS} has failed; see its message above")


def scores_on_test_set(results: StoredResults, run: Path, data: Path) -> dict[str, float]:
    """Evaluate a run on the test set of its recipe; return the scores by name."""
    command = [*COMMANDS["heedful"], "evaluate", str(run), "--data", str(data), "--json", *results.evaluate]
    evaluation = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if evaluation.returncode:
        raise RunError(f"{run}: the evaluation has failed; see its message above")
    scores = json.loads(evaluation.stdout)["scores"]
    if isinstance(scores, list):  # of translations, with their signatures
        scores = {score["name"]: score["value"] for score in scores}
    return scores


def comparison(results: StoredResults, seed: int, scores: Mapping[str, float]) -> tuple[Sequence[str], bool]:
    """Compare the score of a new run with the stored ones; return lines of text, and False if it is out of range."""
    if results.metric not in scores:
        raise InputError(
            f'metric = "{results.metric}" in {RESULTS}: the {results.part} set has no such score, but {all_of(scores)}'
        )
    score = scores[results.metric]
    text = [f"{results.metric} on the {results.part} set, seed {seed}: {score:.4g}"]
    text += [f"  stored, seed {run.seed} ({run.precision}): {run.score:.4g}" for run in results.runs]
    if results.interval is None:
        text.append(f"  difference: {score - results.runs[0].score:+.2g}; one run gives no interval to judge it by")
        return text, True
    low, high = results.interval
    is_within = low <= score <= high
    verdict = "reproduced: it is" if is_within else "not reproduced: it is not"
    text.append(f"  {verdict} between {low:.4g} and {high:.4g}, where 95% of further runs are expected")
    return text, is_within
