"""Export of translators as Argos Translate packages, which LibreTranslate installs as well.

A package, a .argosmodel file, is a zip archive with metadata.json, README.md, the model in CTranslate2's format, and
the SentencePiece model of the source. Argos Translate decodes the target with the same SentencePiece model, which also
joins pieces that are not in its vocabulary.
"""

import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import Recipe
from heedful.convert.ctranslate2_export import (
    PRECISIONS,
    compare_translator,
    model_misfits,
    save,
    specification,
)
from heedful.convert.exporter import Agreement, Exporter
from heedful.convert.model import Model, check_empty, count_values
from heedful.convert.sentencepiece_export import sentencepiece_misfits, sentencepiece_model
from heedful.errors import InputError
from heedful.predictors.translator import Translator
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.tasks.text_to_text import Translation
from heedful.text.languages import NAMES, base_language, is_language
from heedful.text.tokenizer import Tokenizer

TITLE = "Argos Translate"
VERSION = "1.0"  # of a package
MODEL, TOKENIZER = "model", "sentencepiece.model"  # in a package
OWN_CODES = {  # codes that only Argos Translate uses, and English names, by language code in lower case
    "zh-hant": ("zt", "Chinese (traditional)"),
    "zh-tw": ("zt", "Chinese (traditional)"),
    "zh-hk": ("zt", "Chinese (traditional)"),
    "pt-br": ("pb", "Portuguese (Brazil)"),
}


def write(model: Model, folder: Path, precision: str) -> int:
    """Write a translator as a .argosmodel file to a new or empty folder; return the number of values in the weights.

    Raises:
        InputError: A package cannot represent the model, or CTranslate2 or SentencePiece is not installed.
        RunError: The folder cannot be written.
    """
    check_empty(folder)
    recipe = model.recipe
    tokenizer = sentencepiece_model(model.tokenizers.source)
    # Argos Translate passes SentencePiece's pieces to CTranslate2, whose vocabulary therefore has to contain them.
    vocabularies = vocabulary(model.tokenizers.source), vocabulary(model.tokenizers.target)
    spec = specification(recipe.model, model.weights, recipe.model.max_positions)
    name = package_name(recipe)
    archive = BytesIO()
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer, TemporaryDirectory() as temporary:
        save(spec, Path(temporary), recipe.model, vocabularies, precision)
        with ZipFile(archive, "w", ZIP_DEFLATED) as package:
            package.writestr(f"{name}/metadata.json", json.dumps(metadata(recipe), indent=2) + "\n")
            package.writestr(f"{name}/README.md", model.card)
            package.writestr(f"{name}/{TOKENIZER}", tokenizer.SerializeToString())
            for file in sorted(Path(temporary).iterdir()):
                package.write(file, f"{name}/{MODEL}/{file.name}")
        writer.write(f"{name}.argosmodel", [archive.getvalue()])
    return count_values(model.weights)


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    return [piece.piece for piece in sentencepiece_model(tokenizer).pieces]


def reject_misfit(model: Model) -> None:
    """Raise an InputError if a package cannot represent a model; all settings that would have to differ are listed."""
    recipe, pair = model.recipe, model.tokenizers
    tokenizers = (pair.source,) if pair.joint else (pair.source, pair.target)
    misfits = [*argos_misfits(recipe), *model_misfits(recipe.model)]
    misfits += dict.fromkeys(misfit for tokenizer in tokenizers for misfit in sentencepiece_misfits(tokenizer))
    if misfits:
        raise InputError("\n  ".join([f"{TITLE} cannot represent this model:", *misfits]))


def argos_misfits(recipe: Recipe) -> list[str]:
    """List the settings that a package cannot represent, except those of CTranslate2 and SentencePiece."""
    languages = {"source": recipe.data.source_language, "target": recipe.data.target_language}
    return [
        f'data.{side}_language = "{code}": must be an ISO 639 code such as en; give it with --{side}-language'
        for side, code in languages.items()
        if not is_language(code)
    ]


def argos_language(code: str) -> tuple[str, str]:
    """Return the Argos Translate code of a language and its English name."""
    base = base_language(code)
    return OWN_CODES.get(code.lower().replace("_", "-"), (base, NAMES.get(base, base)))


def package_name(recipe: Recipe) -> str:
    """Return the name that Argos Translate gives a package, such as "translate-en_de-1_0"."""
    (source, _), (target, _) = map(argos_language, (recipe.data.source_language, recipe.data.target_language))
    return f"translate-{source}_{target}-{VERSION.replace('.', '_')}"


def metadata(recipe: Recipe) -> dict[str, object]:
    """Return the contents of metadata.json."""
    source, target = map(argos_language, (recipe.data.source_language, recipe.data.target_language))
    return {
        "package_version": VERSION,
        "argos_version": "1.9",
        "from_code": source[0],
        "from_name": source[1],
        "to_code": target[0],
        "to_name": target[1],
    }


def compare_outputs(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare translations with those of the package, which SentencePiece and CTranslate2 run as in Argos Translate."""
    from sentencepiece import SentencePieceProcessor

    texts = [text for text in texts if text.strip()]
    name = package_name(loaded.recipe)
    with TemporaryDirectory() as temporary:
        with ZipFile(folder / f"{name}.argosmodel") as package:
            package.extractall(temporary)
        processor = SentencePieceProcessor(model_file=str(Path(temporary) / name / TOKENIZER))
        rows, target = processor.encode(texts, out_type=str), vocabulary(loaded.tokenizers.target)
        return compare_translator(loaded.use_as(Translator), Path(temporary) / name / MODEL, texts, rows, target)


EXPORTER = Exporter(
    title=TITLE,
    writer=write,
    check=reject_misfit,
    tasks=(Translation,),
    precisions=("int8", *(p for p in PRECISIONS if p != "int8")),
    compare=compare_outputs,
)
