"""Packages for Argos Translate hold what it opens: CTranslate2's model, a SentencePiece model and metadata."""

import json
from dataclasses import replace
from zipfile import ZipFile

import pytest

import heedful
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import TokenizerConfig
from heedful.convert.argos_export import argos_language, argos_misfits
from heedful.convert.exporter import export_model
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

ctranslate2 = pytest.importorskip("ctranslate2")
sentencepiece = pytest.importorskip("sentencepiece")

TEXTS = ["Where is the train station?", "I am learning to cook.", "", "A name: Ångström 🙂"]


@pytest.mark.parametrize("precision", [None, "float32"])
def test_a_package_translates_as_in_argos_translate(precision, tmp_path):
    exported = heedful.export("en-de", tmp_path / "out", to="argos", precision=precision, inputs=TEXTS)
    assert exported.agreement.inputs == 3
    assert exported.agreement.is_equal  # also in int8, as the model is stored

    with ZipFile(tmp_path / "out/translate-en_de-1_0.argosmodel") as package:
        package.extractall(tmp_path)
    folder = tmp_path / "translate-en_de-1_0"
    assert json.loads((folder / "metadata.json").read_text()) == {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
    assert (folder / "README.md").read_text() == (tmp_path / "out/README.md").read_text()
    assert (folder / "model/model.bin").stat().st_size < (6e6 if precision is None else 24e6)

    # The calls of argostranslate 1.11, in tokenizer.py and translate.py.
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"), compute_type="auto")
    [result] = translator.translate_batch(
        [tokenizer.encode(TEXTS[0], out_type=str)], replace_unknowns=True, beam_size=4, length_penalty=0.2
    )
    assert tokenizer.decode_pieces(result.hypotheses[0]) == "Wo ist der Bahnhof?"


def test_languages_that_the_recipe_does_not_name_are_options(tmp_path):
    heedful.export("en-de", tmp_path / "out", to="argos", source_language="pt-BR", target_language="zh-Hant", inputs=[])
    with ZipFile(tmp_path / "out/translate-pb_zt-1_0.argosmodel") as package:
        metadata = json.loads(package.read("translate-pb_zt-1_0/metadata.json"))
    assert (metadata["from_name"], metadata["to_name"]) == ("Portuguese (Brazil)", "Chinese (traditional)")
    with pytest.raises(InputError, match='target_language: "xx" is not an ISO 639 language code'):
        heedful.export("en-de", tmp_path / "other", to="argos", target_language="xx")


def test_codes_of_languages_have_no_region():
    assert argos_language("de-AT") == ("de", "German")
    assert argos_language("hsb") == ("hsb", "hsb")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"data": {"target_language": "de"}}, 'data.source_language = "src": must be an ISO 639 code such as en; give'),
    ],
)
def test_what_a_package_cannot_express_is_named(settings, problem):
    [misfit] = argos_misfits(recipe_from_dict(settings, "test"))
    assert misfit.startswith(problem)


def test_a_tokenizer_that_sentencepiece_cannot_express_is_refused_before_anything_is_written(tmp_path):
    loaded = load_model("en-de")
    tokenizer = train_tokenizer(["one two"], TokenizerConfig(kind="word"))
    with pytest.raises(InputError, match=r'tokenizer\.kind = "word": must be one of "bpe"'):
        export_model(replace(loaded, tokenizers=TokenizerPair(tokenizer, tokenizer)), "argos", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_package_of_two_vocabularies_decodes_the_target_with_the_tokenizer_of_the_source(tmp_path):
    source = train_tokenizer(["one two three"] * 9, TokenizerConfig(vocab_size=290))
    target = train_tokenizer(["天气 很好，我们", "Größe two"] * 9, TokenizerConfig(vocab_size=300))
    settings = {"d_model": 16, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tie": "output"}
    data = {"source_language": "en", "target_language": "zh"}
    recipe = recipe_from_dict({"task": "translation", "model": settings, "data": data}, "test")
    pair = TokenizerPair(source, target)
    write_model(tmp_path / "model", recipe, pair, weights(find_task("translation").build(recipe, pair)))
    exported = heedful.export(tmp_path / "model", tmp_path / "out", "argos", "float32", ["one two", "three  ones"])
    assert exported.agreement.is_equal

    with ZipFile(tmp_path / "out/translate-en_zh-1_0.argosmodel") as package:
        names = json.loads(package.read("translate-en_zh-1_0/model/target_vocabulary.json"))
        file = package.read("translate-en_zh-1_0/sentencepiece.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=file)
    for text in ("天气  很好 two, three", "Größe 🙂 one"):
        # The calls of argostranslate 1.11, in tokenizer.py and translate.py.
        decoded = processor.decode_pieces([names[i] for i in target.encode(text)]).replace("▁", " ")
        assert decoded.removeprefix(" ") == text
