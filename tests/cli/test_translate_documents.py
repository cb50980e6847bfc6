"""`heedful translate FILE`: a document is translated as a whole, to a new file, also after an interruption."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from invocation import invoke

from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import load_model, write_model
from heedful.cli import documents
from heedful.config.schema import DataConfig, DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError, Interrupted, RunError
from heedful.predictors.document_translator import DocumentTranslator
from heedful.predictors.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXT = "A fox. A dog!\n\n   - a bird\n\thttps://example.org/\na fox".replace("\n", "\r\n")

run = partial(invoke, "translate")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator from English to German that knows nothing."""
    torch.manual_seed(1)
    config = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1)
    tokenizer = train_tokenizer([*LETTERS, LETTERS], TokenizerConfig(kind="character"))
    data = DataConfig(source_language="en", target_language="de")
    recipe = Recipe(model=config, data=data, decode=DecodeConfig(beam=2, max_extra=3))
    folder = tmp_path_factory.mktemp("documents") / "model"
    network = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture(scope="module")
def expected(model: Path) -> bytes:
    return load_model(model).use_as(Translator).translate_text(TEXT).encode()


def test_a_document_is_translated_to_a_file_next_to_it(model, file, expected):
    result = run(file, "--model", model)
    assert result.stdout == ""
    assert f"{file.with_name('notes.de.txt')}: 5 sentences translated" in result.stderr
    assert file.with_name("notes.de.txt").read_bytes() == expected
    assert file.read_bytes() == TEXT.encode()
    assert sorted(path.name for path in file.parent.iterdir()) == ["notes.de.txt", "notes.txt"]


def test_the_name_of_a_translation_has_the_other_language(model, file, expected):
    file = file.rename(file.with_name("notes.en.txt"))
    run(file, "--model", model)
    assert file.with_name("notes.de.txt").read_bytes() == expected


@pytest.mark.parametrize(
    ("name", "translated"),
    [
        ("film.en-US.srt", "film.de.srt"),
        ("en.json", "de.json"),
        ("open.json", "open.de.json"),
        ("a.fr.md", "a.fr.de.md"),
    ],
)
def test_the_language_of_a_name_is_replaced(name, translated):
    assert documents._translated_name(Path(name), "en", "de") == translated


def test_lines_of_a_document_are_translated_with_a_warning(model, file):
    subtitles = file.with_name("a film.srt")
    subtitles.write_text("A fox\n")
    result = run("--input", subtitles, "--model", model)
    assert f"run heedful translate '{subtitles}'" in result.stderr
    assert result.stdout.count("\n") == 1


def test_a_script_that_the_model_does_not_know_is_reported(model, file):
    file.write_text("שלום עולם\n" * 20, encoding="utf-8")
    assert "is not in the model's vocabulary" in run(file, "--model", model).stderr


def test_the_output_may_be_a_file_or_a_folder_or_the_document_itself(model, file, expected):
    output, folder = file.with_name("out.txt"), file.with_name("out")
    folder.mkdir()
    other = file.with_name("other.txt")
    other.write_bytes(b"a fox")
    run(file, "--model", model, "--output", output)
    run(file, other, "--model", model, "--output", folder)
    assert output.read_bytes() == (folder / "notes.txt").read_bytes() == expected
    assert (folder / "other.txt").exists()
    run(file, "--model", model, "--in-place")
    assert file.read_bytes() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{file}", "a fox"], r"notes.txt is a document, but 'a fox' is not one"),
        (["{file}", "--json"], r"--json is for lines and tables, but .*notes.txt is translated as a document"),
        (["{file}", "--input", "{file}"], r"--input is for lines and tables"),
        (["{file}", "--no-literals"], r"--no-literals is for lines and tables"),
        (["{file}", "--output", "a.md"], r"--output a.md: the format of .*notes.txt does not change; .* ends in .txt"),
        (["{file}", "--output", "{file}"], r"is also the input and would be overwritten"),
        (["{file}", "--output", "nix/a.txt"], r"there is no folder nix"),
        (["{file}", "{file}", "--output", "a.txt"], r"--output a.txt: there are 2 documents; give an existing folder"),
        (["{file}", "{file}"], r"notes.txt: its translation would replace that of .*notes.txt, .*notes.de.txt"),
        (["{file}", "{folder}/./notes.txt", "--in-place"], r"its translation would replace that of .*notes.txt"),
        (["{folder}/note.txt"], r'note.txt: no such file; did you mean ".*notes.txt"'),
        (["{file}", "--output", "a.txt", "--in-place"], r"--output a.txt and --in-place exclude each other"),
        (["a fox", "--in-place"], r"--in-place is for documents"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_written(model, file, arguments, message):
    names = {"file": str(file), "folder": str(file.parent)}
    with pytest.raises(InputError, match=message):
        run(*(argument.format(**names) for argument in arguments), "--model", model)
    assert list(file.parent.iterdir()) == [file]


def test_a_file_of_somebody_else_is_not_replaced(model, file, expected):
    output = file.with_name("notes.de.txt")
    output.write_bytes(b"precious")
    with pytest.raises(InputError, match=r"notes.de.txt: already exists, but was not written by heedful"):
        run(file, "--model", model)
    assert output.read_bytes() == b"precious"
    run(file, "--model", model, "--force")
    assert output.read_bytes() == expected


def test_a_broken_document_is_reported_before_the_first_is_translated(model, file):
    broken = file.with_name("broken.txt")
    broken.write_bytes(b"a\n\xff")
    with pytest.raises(InputError, match=r"broken.txt:2: is not UTF-8 text"):
        run(file, broken, "--model", model)
    assert sorted(path.name for path in file.parent.iterdir()) == ["broken.txt", "notes.txt"]


def test_a_glossary_applies_to_the_sentences_of_a_document(model, file):
    glossary = file.with_name("g.tsv")
    glossary.write_text("fox\tzebra\n")
    result = run(file, "--model", model, "--glossary", glossary)
    assert "glossary: 2 terms applied in 5 lines" in result.stderr
    assert len(re.findall(r"\bzebra\b", file.with_name("notes.de.txt").read_text())) == 2


@pytest.mark.parametrize("option", ["--prefix", "--term", "--alignments"])
def test_constraints_of_lines_are_not_for_documents(model, file, option):
    with pytest.raises(InputError, match=f"{option} is for lines and tables"):
        run(file, "--model", model, option, "x")


@pytest.fixture
def small_windows(monkeypatch):
    """Translate one segment at a time; the value takes the number of segments before Ctrl-C, and lists them."""
    translate_segments = DocumentTranslator.translate_segments
    translated: list[str] = []

    def until(limit):
        def interrupted(self, segments, window=1, done=lambda _: None):
            for part in translate_segments(self, segments, 1, done):
                if len(translated) == limit:
                    raise KeyboardInterrupt
                translated.append(part.segment.text)
                yield part

        translated.clear()
        monkeypatch.setattr(DocumentTranslator, "translate_segments", interrupted)
        return translated

    return until


def test_an_interrupted_translation_is_resumed(model, file, expected, small_windows):
    translated = small_windows(2)
    with pytest.raises(Interrupted, match="interrupted; the same command resumes the translation"):
        run(file, "--model", model)
    assert not file.with_name("notes.de.txt").exists()
    assert len(translated) == 2
    finished = file.with_name(".notes.de.txt.translated")
    with finished.open("a") as stream:
        stream.write('["half of a li')  # as a killed process leaves it
    translated = small_windows(9)
    run(file, "--model", model)
    assert len(translated) == 2  # of four segments
    assert file.with_name("notes.de.txt").read_bytes() == expected
    assert not finished.exists()


@pytest.mark.parametrize("change", ["text", "settings", "junk"])
def test_a_finished_part_of_something_else_is_not_used(model, file, small_windows, change):
    small_windows(2)
    with pytest.raises(Interrupted):
        run(file, "--model", model)
    if change == "text":
        file.write_bytes(TEXT.replace("fox", "wolf").encode())
    if change == "junk":
        file.with_name(".notes.de.txt.translated").write_bytes(b"\xff junk")
    translated = small_windows(9)
    run(file, "--model", model, *(["--beam", 3] if change == "settings" else []))
    assert len(translated) == 4


def test_a_finished_part_that_cannot_be_written_is_reported(model, file):
    file.with_name(".notes.de.txt.translated").mkdir()
    with pytest.raises(RunError, match=r"cannot read .*\.notes\.de\.txt\.translated: "):
        run(file, "--model", model)
    assert not file.with_name("notes.de.txt").exists()
