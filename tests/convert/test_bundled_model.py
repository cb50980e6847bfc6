"""The bundled model is small, and comes with its conversion for CTranslate2, so that its first use needs no torch."""

import heedful
from engine_models import run_without_torch
from heedful.architectures import weights
from heedful.checkpoint import load_model
from heedful.checkpoint.description import INT8
from heedful.checkpoint.find import find_model
from heedful.convert.engine import conversions, convert
from heedful.convert.model import Model
from heedful.storage.complete_folder import is_intact, read_manifest
from test_house import tracked_files

FOLDER = find_model("en-de")
SHIPPED = conversions(read_manifest(FOLDER), INT8)[0]


def test_its_files_in_the_repository_take_at_most_12_mb():
    assert sum(file.stat().st_size for file in tracked_files() if file.is_relative_to(FOLDER)) <= 12e6


def test_the_conversion_in_the_repository_is_that_of_the_model(tmp_path):
    assert is_intact(SHIPPED)
    assert {*SHIPPED.iterdir()} <= {*tracked_files()}
    loaded = load_model(FOLDER)
    model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
    again = convert(model, INT8, [tmp_path / "again"])
    for file in SHIPPED.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes(), f"{file}: translate with en-de to renew it"


def test_it_translates_without_torch_and_converts_nothing():
    before = sorted(SHIPPED.parent.iterdir())
    assert run_without_torch("translate", "Where is the train station?") == ["Wo ist der Bahnhof?"]
    assert run_without_torch("translate", "--precision", "int8", "I am tired.") == ["Ich bin müde."]
    assert sorted(SHIPPED.parent.iterdir()) == before


def test_both_engines_write_the_same():
    texts = ["Where is the train station?", "She has never been to Berlin, has she?", "I don't know"]
    ours, theirs = (heedful.load("en-de", engine=engine).translate(texts) for engine in ("torch", "ctranslate2"))
    assert ours == theirs
