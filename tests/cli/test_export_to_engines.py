"""`heedful export --to ctranslate2` writes what CTranslate2 opens, and compares it with the model."""

import pytest
from invocation import invoke

from heedful.convert import ctranslate2_export
from heedful.errors import InputError, RunError

ctranslate2 = pytest.importorskip("ctranslate2")

TEXTS = "Where is the train station?\nI am learning to cook.\n\nShe has never been to Berlin.\n"


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS)
    return path


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_bundled_translator_leaves_heedful(precision, texts, tmp_path):
    options = ["--to", "ctranslate2", "--precision", precision, "--inputs", texts]
    result = invoke("export", "en-de", tmp_path / "out", *options)
    assert f"for CTranslate2, in {precision}" in result.stdout
    assert "of 3 texts have the same output in CTranslate2" in result.stderr

    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "out/tokenizer.json"))
    source = tokenizer.encode("Where is the train station?", add_special_tokens=False).tokens
    [result] = ctranslate2.Translator(str(tmp_path / "out")).translate_batch([source])
    assert tokenizer.decode([tokenizer.token_to_id(token) for token in result.hypotheses[0]]) == "Wo ist der Bahnhof?"


def test_an_export_that_differs_is_removed(texts, tmp_path, monkeypatch):
    differs = ctranslate2_export.Agreement(texts=3, equal=2, difference=0.5)
    monkeypatch.setattr(ctranslate2_export, "compare_outputs", lambda *_: differs)
    with pytest.raises(RunError, match="2 of 3 texts have the same output"):
        invoke("export", "en-de", tmp_path / "out", "--to", "ctranslate2", "--inputs", texts)
    assert not (tmp_path / "out").exists()


def test_without_texts_the_export_says_that_it_was_not_compared(tmp_path):
    result = invoke("export", "en-de", tmp_path / "out", "--to", "ctranslate2")
    assert "give texts with --inputs FILE" in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--precision", "int8"], "--precision int8: is for --to ctranslate2"),
        (["--to", "ctranslate2", "--precision", "int7"], "--precision int7: choose one of float32, int8"),
        (["--to", "ctranslate2", "--dtype", "bfloat16"], "for ctranslate2 use --precision"),
    ],
)
def test_options_of_the_other_format_are_refused(options, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        invoke("export", "en-de", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()
