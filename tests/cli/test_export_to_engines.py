"""`heedful export --to ctranslate2` writes what CTranslate2 opens, and compares it with the model."""

import re
from dataclasses import replace

import pytest
from invocation import invoke

from heedful.checkpoint import load_model
from heedful.convert.exporter import Agreement
from heedful.errors import InputError, RunError
from heedful.registry import EXPORTERS

ctranslate2 = pytest.importorskip("ctranslate2")

TEXTS = "Where is the train station?\nI am learning to cook.\n\nShe has never been to Berlin.\n"


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS)
    return path


@pytest.mark.parametrize(
    ("equal", "difference", "message"),
    [
        (48, 2e-6, "2 of 50 outputs differ between X and heedful (log-probabilities or values differ by up to 2e-06)"),
        (49, 0.0, "1 of 50 outputs differs between X and heedful"),
        (50, 0.5, "log-probabilities or values differ by up to 0.5 between X and heedful"),
    ],
)
def test_a_disagreement_counts_what_differs_and_only_rounding_asks_for_more_training(equal, difference, message):
    agreement = Agreement(inputs=50, equal=equal, difference=difference, program="X")
    assert agreement.disagreement == message
    assert ("Train it further" in agreement.cause) == (difference == 2e-6)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_bundled_translator_leaves_heedful(precision, texts, tmp_path):
    options = ["--to", "ctranslate2", "--precision", precision, "--inputs", texts]
    result = invoke("export", "en-de", tmp_path / "out", *options)
    assert f"parameters in {precision}" in result.stdout
    assert "of 3 inputs have the same output in CTranslate2" in result.stderr

    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "out/tokenizer.json"))
    source = tokenizer.encode("Where is the train station?", add_special_tokens=False).tokens
    [result] = ctranslate2.Translator(str(tmp_path / "out")).translate_batch([source])
    assert tokenizer.decode([tokenizer.token_to_id(token) for token in result.hypotheses[0]]) == "Wo ist der Bahnhof?"


def test_tokenizers_leave_heedful_without_weights(texts, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    result = invoke("export", "en-de", tmp_path / "out", "--to", "sentencepiece", "--inputs", texts)
    assert re.fullmatch(rf"{tmp_path}/out: (0\.\d MB|\d+\.\d kB) for SentencePiece\n", result.stdout)
    assert "4 of 4 inputs have the same output in SentencePiece" in result.stderr

    ours = load_model("en-de").tokenizers.source
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out/sentencepiece.model"))
    assert processor.encode(TEXTS.splitlines()) == ours.encode_batch(TEXTS.splitlines())
    vocabulary = (tmp_path / "out/sentencepiece.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in vocabulary] == processor.id_to_piece(list(range(len(ours))))


def test_languages_of_a_model_are_options(tmp_path):
    invoke("export", "en-de", tmp_path / "out", "--source-language", "en-GB", "--target-language", "de-AT")
    data = load_model(tmp_path / "out").recipe.data
    assert (data.source_language, data.target_language) == ("en-GB", "de-AT")
    assert 'language: ["en-GB", "de-AT"]\n' in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_a_model_folder_is_replaced_unless_its_card_was_changed(tmp_path):
    invoke("export", "en-de", tmp_path / "out")
    card = tmp_path / "out/README.md"
    original = card.read_text(encoding="utf-8")
    assert "replacing the model that was there" in invoke("export", "en-de", tmp_path / "out").stdout
    card.write_text("edited")
    load_model(tmp_path / "out")
    with pytest.raises(InputError, match="--force"):
        invoke("export", "en-de", tmp_path / "out")
    assert card.read_text() == "edited"
    invoke("export", "en-de", tmp_path / "out", "--force")
    assert card.read_text(encoding="utf-8") == original


def test_an_export_that_differs_is_removed(texts, tmp_path, monkeypatch):
    differs = Agreement(inputs=3, equal=2, difference=0.5, program="CTranslate2")
    exporter = replace(EXPORTERS["ctranslate2"], compare=lambda *_: differs)
    monkeypatch.setitem(EXPORTERS._imported, "ctranslate2", exporter)
    message = "1 of 3 outputs differs between CTranslate2 and heedful .*, so the folder was deleted. Please report"
    with pytest.raises(RunError, match=message):
        invoke("export", "en-de", tmp_path / "out", "--to", "ctranslate2", "--inputs", texts)
    assert not (tmp_path / "out").exists()


def test_without_texts_the_export_says_that_it_was_not_compared(tmp_path):
    result = invoke("export", "en-de", tmp_path / "out", "--to", "ctranslate2")
    assert "give texts with --inputs FILE" in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--precision", "int7"], "--precision int7: choose one of float32, bfloat16, int8"),
        (["--to", "ctranslate2", "--precision", "int7"], "--precision int7: choose one of float32, int8"),
        (["--inputs", "texts.txt"], "--to safetensors does not compare outputs"),
    ],
)
def test_options_of_the_other_format_are_refused(options, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        invoke("export", "en-de", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()
