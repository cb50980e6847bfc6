"""Exporters, which write heedful models for other programs and compare the programs' outputs with the model's.

A new format is a file in this folder with an `Exporter`, and a line in `registry.EXPORTERS`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.architectures import weights
from heedful.checkpoint.load import LoadedModel
from heedful.config.families import FAMILIES
from heedful.config.schema import ModelConfig, Recipe
from heedful.convert.model import Model
from heedful.convert.model_card import model_card
from heedful.convert.settings import names_of
from heedful.data.readers.corpus import read_pairs
from heedful.data.readers.documents import read_documents
from heedful.errors import InputError, RunError
from heedful.predictors.generator import Generator
from heedful.registry import EXPORTERS
from heedful.storage.atomic import named_write_errors
from heedful.storage.complete_folder import CARD
from heedful.storage.written_files import own_file
from heedful.tasks import find_task
from heedful.tasks.image_text_retrieval import ImageTextRetrieval
from heedful.tasks.task import Task
from heedful.text.languages import check_language
from heedful.text.pipeline import EOS
from heedful.wording import counted

COMPARED_INPUTS = 200
SINGLE_INPUTS = 20  # number of inputs that are compared if the program reads one at a time
PROMPT_CHARACTERS, CONTINUATION_TOKENS = 30, 50  # length of the prompts and of their continuations in comparisons
MAX_ROUNDING = 1e-3  # difference of log-probabilities in float32 that counts as rounding


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement between the outputs of an exported model and of the original in heedful.

    Attributes:
        inputs: Number of inputs that were compared.
        equal: Number of inputs for which both choose the same tokens or class; all inputs if there is no choice.
        difference: Largest absolute difference in the log-probability of a token or class, or in a numeric output.
        program: Name of the program that opened the exported model.
    """

    inputs: int
    equal: int
    difference: float
    program: str

    @property
    def is_equal(self) -> bool:
        """True if all outputs are equal, and all numbers are equal up to rounding."""
        return self.equal == self.inputs and self.difference < MAX_ROUNDING

    def __str__(self) -> str:
        return (
            f"{self.equal:,} of {counted(self.inputs, 'inputs')} have the same output in {self.program}, and the "
            f"largest difference is {self.difference:.2g}"
        )

    @property
    def disagreement(self) -> str:
        """Number of unequal outputs and the largest difference, as text for the message of a failed export."""
        values = f"log-probabilities or values differ by up to {self.difference:.2g}"
        if self.equal == self.inputs:
            return f"{values} between {self.program} and heedful"
        unequal = self.inputs - self.equal
        verb = "differs" if unequal == 1 else "differ"
        outputs = f"{unequal:,} of {counted(self.inputs, 'outputs')} {verb} between {self.program} and heedful"
        return f"{outputs} ({values})" if self.difference else outputs

    @property
    def cause(self) -> str:
        """Probable cause of a disagreement and a remedy, as text for the same message."""
        if 0 < self.difference < MAX_ROUNDING:
            return (
                "This is rounding: the best outputs are almost tied, as in a model that was trained only briefly. "
                "Train it further, or report this with the recipe"
            )
        return "Please report this with the recipe"


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """Exporter of heedful models to the format of another program.

    Attributes:
        title: Name of the format or its program, for messages.
        writer: Writes a model that fits to a new or empty folder, with weights in one of the precisions, and returns
            the number of values in the weights.
        check: Rejects a model that the format cannot represent; the message does not name the model.
        precisions: Types of the stored weights; the first is the default. In float32, outputs must equal the model's.
        compare: Compares the outputs of a model with those of the folder in the other program, for inputs: texts, or
            file names for image and audio models. None if outputs are not compared.
        compares_media: False if `compare` supports only models that read nothing but text.
        engine: Package that `compare` needs in addition to those of `writer`: outputs are compared only if it is
            installed. None if `compare` needs no other package.
        architecture: Architecture that a model must have; None for any.
        tasks: Tasks that a model can have; None for any.
        changes: Returns sentences for the user about what `writer` changes in a model.
    """

    title: str
    writer: Callable[[Model, Path, str], int]
    check: Callable[[Model], object] = lambda _: None
    precisions: tuple[str, ...] = ("float32",)
    compare: Callable[[LoadedModel, Path, Sequence[str]], Agreement] | None = None
    compares_media: bool = True
    engine: str | None = None
    architecture: str | None = ModelConfig.architecture
    tasks: tuple[type[Task[Any]], ...] | None = None
    changes: Callable[[Model], tuple[str, ...]] = lambda _: ()

    def write(self, model: Model, folder: Path, precision: str | None = None) -> int:
        """Write a model to a new or empty folder, and return the number of values in the weights."""
        self.reject_misfit(model)
        if precision not in (None, *self.precisions):
            raise InputError(
                f"precision {precision}: not available in this format; choose one of {', '.join(self.precisions)}"
            )
        return self.writer(model, folder, precision or self.precisions[0])

    def reject_misfit(self, model: Model) -> None:
        """Raise an InputError, which does not name the model, if the format cannot represent a model."""
        task, architecture = model.recipe.task, model.recipe.model.architecture
        if self.tasks is not None and not issubclass(find_task(task), self.tasks):
            raise InputError(f'is for the task "{task}", but this format needs {names_of(self.tasks)}')
        if self.architecture not in (None, architecture):
            raise InputError(
                f'cannot be exported: its architecture is "{architecture}", but models in this format have the '
                f'architecture "{self.architecture}"'
            )
        self.check(model)


@dataclass(frozen=True, kw_only=True)
class Export:
    """Result of an export.

    Attributes:
        parameters: Number of values in its weights.
        agreement: Agreement of its outputs with the original's; None if they were not compared.
        notes: Sentences about what the export changed, and why the outputs were not compared.
        commit: URL of the commit on the Hub; None if the model was not pushed.
    """

    parameters: int
    agreement: Agreement | None
    notes: tuple[str, ...]
    commit: str | None = None


def export_model(
    loaded: LoadedModel,
    to: str,
    folder: Path,
    precision: str | None = None,
    inputs: Iterable[str] | None = None,
    location: str = ".",
) -> Export:
    """Write a loaded model in another format, and compare the outputs.

    Args:
        loaded: The model.
        to: The format, a name in `EXPORTERS`.
        folder: A new or empty folder, which is removed if weights are stored in float32 but the outputs differ.
        precision: Type of the stored weights; by default the format's first.
        inputs: Inputs to compare, of which at most `COMPARED_INPUTS` are used; by default the validation set.
        location: Where the code in the model card loads the model from: the card's folder, or a name on the Hub.

    Raises:
        InputError: The format or the precision is not available, or the format cannot represent the model.
        RunError: The weights are stored in float32, but the outputs differ.
    """
    if to not in EXPORTERS:
        raise InputError(f'unknown export format "{to}"; choose one of {", ".join(EXPORTERS)}')
    exporter = EXPORTERS[to]
    is_comparable = exporter.compares_media or loaded.recipe.data.modality == "text"
    if inputs is not None and not is_comparable:
        raise InputError(f"--inputs: in the format {to}, only text models are compared; leave --inputs out")
    # The card is created before the weights are written, because an Argos Translate package contains it.
    card = model_card(loaded, to, precision or exporter.precisions[0], location)
    model = replace(as_converted(loaded), card=card)
    try:
        exporter.reject_misfit(model)
    except InputError as error:
        raise InputError(
            f"{loaded.name}: {error}\nformats for this model: {', '.join(fitting_formats(model))}"
        ) from error
    parameters = exporter.write(model, folder, precision)
    agreement, notes = None, exporter.changes(model)
    if exporter.engine is not None and find_spec(exporter.engine) is None:
        notes += (f"not compared with the model, because the package {exporter.engine} is not installed",)
    elif exporter.compare is not None and is_comparable:
        compared = list(islice(validation_inputs(loaded.recipe) if inputs is None else inputs, COMPARED_INPUTS))
        if any(map(str.strip, compared)):
            # A shortlist limits the tokens of a search; other programs choose among all tokens, so it is off here.
            decode = replace(loaded.recipe.decode, shortlist=0)
            plain = replace(loaded, recipe=replace(loaded.recipe, decode=decode))
            agreement = exporter.compare(plain, folder, compared)
        elif inputs is not None:
            notes += ("not compared with the model, because the given inputs are empty; give texts with --inputs FILE",)
        else:
            notes += (f"not compared with the model, because {missing_inputs(loaded.recipe)} with --inputs FILE",)
    # With fewer bits the weights are rounded, and outputs may differ. In float32 a difference is an error in the
    # export, and a folder with different results must not be used.
    if agreement and (precision or exporter.precisions[0]) == "float32" and not agreement.is_equal:
        rmtree(folder)
        raise RunError(f"{folder}: {agreement.disagreement}, so the folder was deleted. {agreement.cause}")
    with named_write_errors(folder), own_file(folder / CARD, replace=True) as file:
        file.write(card.encode("utf-8"))
    return Export(parameters=parameters, agreement=agreement, notes=notes)


def missing_inputs(recipe: Recipe) -> str:
    """Say why the validation set has no inputs to compare, and what to give instead."""
    if recipe.data.modality == "text":
        return "its validation set is missing; give texts"
    if issubclass(find_task(recipe.task), ImageTextRetrieval):
        return "only its encoder of texts is compared; give texts"
    return "its validation set does not contain texts; give files"


def as_converted(loaded: LoadedModel) -> Model:
    return Model(
        recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model), adapter=loaded.adapter
    )


def fitting_formats(model: Model) -> list[str]:
    """List the formats that can represent a model."""

    def fits(name: str) -> bool:
        try:
            EXPORTERS[name].reject_misfit(model)
        except InputError:
            return False
        return True

    return [name for name in EXPORTERS if fits(name)]


def with_languages(loaded: LoadedModel, source: str | None, target: str | None) -> LoadedModel:
    """Set the languages of a loaded model to ISO 639 codes. None keeps the language in its recipe."""
    languages = {side: code for side, code in (("source", source), ("target", target)) if code is not None}
    for side, code in languages.items():
        check_language(code, f"{side}_language")
    data = replace(loaded.recipe.data, **{f"{side}_language": code for side, code in languages.items()})
    return replace(loaded, recipe=replace(loaded.recipe, data=data))


@runtime_checkable
class TextEngine(Protocol):
    """Adapter for an exported GPT in another program. It takes and returns heedful's token ids."""

    def continue_greedily(self, prompt: str, count: int, suppressed: Sequence[int]) -> list[int]:
        """Continue a prompt with the most probable tokens except `suppressed`; stop before <eos> or after `count`."""
        ...

    def log_probs(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Compute the log-probability of each id after the first one, given the ids before it."""
        ...


def compare_generator(loaded: LoadedModel, engine: TextEngine, texts: Sequence[str], program: str) -> Agreement:
    """Compare the outputs of a GPT in heedful and in another program, for the first texts that are not blank.

    Both generate by greedy search, and both score the same tokens, up to the length of the context.
    """
    generator, context = loaded.use_as(Generator), loaded.recipe.data.max_length
    texts = [text for text in texts if text.strip()][:SINGLE_INPUTS]
    equal, differences = 0, [0.0]
    for text, score in zip(texts, generator.score(texts), strict=True):
        prompt = text[:PROMPT_CHARACTERS]
        # The prompt and its continuation have to fit into the context.
        count = min(CONTINUATION_TOKENS, max(1, context - len(generator.tokenizer.encode(prompt))))
        output = generator.generate(prompt, temperature=0.0, max_tokens=count)
        equal += output.tokens == engine.continue_greedily(prompt, count, generator.suppressed)
        # A text follows <eos>, as in training. The program reads at most `context` tokens, so only the tokens that
        # heedful scores in its first window are compared.
        log_probs = engine.log_probs([EOS, *score.tokens][: context + 1])
        differences.append(float(np.abs(log_probs - score.log_probs[: len(log_probs)]).max(initial=0.0)))
    return Agreement(inputs=len(texts), equal=equal, difference=max(differences), program=program)


def validation_inputs(recipe: Recipe) -> Iterator[str]:
    """Yield the source texts of a recipe's validation set, or nothing if its files are missing or are not texts."""
    if recipe.data.valid is None or recipe.data.modality != "text":
        return
    try:
        if FAMILIES[recipe.model.family].pairs:
            yield from (pair.source for pair in read_pairs(recipe.data.valid, recipe.data))
        else:
            yield from (document.text for document in read_documents(recipe.data.valid, recipe.data))
    except InputError:
        return
