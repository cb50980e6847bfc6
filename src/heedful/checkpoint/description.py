"""Read and verify the recipe and the tokenizers of model folders and checkpoints.

This module does not import torch.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from heedful.config.load import current_keys, recipe_from_dict
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.complete_folder import Manifest, parse_file
from heedful.storage.disk import MAX_SETTINGS_BYTES
from heedful.text.tokenizer import DEFINITION, DESCRIPTION, MAX_FILE
from heedful.text.tokenizer_pair import JOINT, SOURCE, TARGET, NoTokenizers, TokenizerPair

if TYPE_CHECKING:
    from heedful.text.shortlist import Shortlist

RECIPE = "recipe.json"
TOKENIZER = "tokenizer"
QUANTISED = INT8, INT4 = ("int8", "int4")  # values of "weights" in the manifest of a model with matrices of integers


@dataclass(frozen=True)
class ModelDescription:
    """Contents of `recipe.json`: the resolved recipe and the vocabulary sizes."""

    recipe: dict[str, Any]
    source_vocab: int  # number of tokens, special tokens included
    target_vocab: int


DESCRIPTIONS = TypeAdapter(ModelDescription)


def read_shortlist(manifest: Manifest, sizes: tuple[int, int]) -> "Shortlist | None":
    """Read and verify the shortlist of a model folder, for vocabularies of these sizes; return None if it has none."""
    if not any(name.startswith(f"{TOKENIZER}/shortlist/") for name in manifest.files):
        return None
    from heedful.text.shortlist import ALWAYS, TABLE, Shortlist

    for name in (ALWAYS, TABLE):
        manifest.verify(f"{TOKENIZER}/{name}", MAX_FILE)
    return Shortlist.load(manifest.folder / TOKENIZER, sizes)


def read_description(manifest: Manifest) -> tuple[Recipe, TokenizerPair]:
    """Read and verify the recipe and the tokenizers of a model folder or checkpoint."""
    path = manifest.verify(RECIPE, MAX_SETTINGS_BYTES)
    description = parse_file(path, lambda data: DESCRIPTIONS.validate_json(data, strict=True))
    recipe = recipe_from_dict(current_keys(description.recipe), str(path))

    # Files that the manifest does not list are not read.
    tokenizers: TokenizerPair = NoTokenizers()
    if any(name.startswith(f"{TOKENIZER}/") for name in manifest.files):
        layout = (SOURCE, TARGET) if f"{TOKENIZER}/{SOURCE}/{DEFINITION}" in manifest.files else (JOINT,)
        for part in layout:
            for name in (DEFINITION, DESCRIPTION):
                manifest.verify(f"{TOKENIZER}/{part}/{name}", MAX_FILE)
        tokenizers = TokenizerPair.load(manifest.folder / TOKENIZER, layout)
        tokenizers = replace(tokenizers, shortlist=read_shortlist(manifest, tokenizers.sizes))

    sizes = tokenizers.sizes
    if (description.source_vocab, description.target_vocab) != sizes:
        raise InputError(
            f"{manifest.folder}: the model was trained with vocabularies of {description.source_vocab} and "
            f"{description.target_vocab} tokens, but its tokenizers have {sizes[0]} and {sizes[1]}: restore the "
            "tokenizers that it was trained with"
        )
    return recipe, tokenizers
