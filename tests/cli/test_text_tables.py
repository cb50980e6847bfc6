"""Tables in, tables out, for all commands that answer texts: one rule of what is read and of what is written."""

import csv
import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from invocation import invoke
from torch import nn

from heedful.architectures import EncoderDecoder, LanguageModel, MaskedLanguageModel, Model, TextClassifier, weights
from heedful.checkpoint import write_model
from heedful.config.schema import (
    CorpusConfig,
    DataConfig,
    DecodeConfig,
    GenerateConfig,
    ModelConfig,
    Recipe,
    TokenizerConfig,
)
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

LETTERS = "abcdefg"
TOKENIZER = train_tokenizer([LETTERS], TokenizerConfig(kind="character", mask=True))
SIZES = {"d_model": 14, "d_ff": 19, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tie": "none"}
COMMANDS = ("translate", "write", "generate", "fill", "predict")
COLUMNS = {"translate": "translation", "write": "answer", "generate": "answer", "fill": "filled", "predict": "label"}
TEXTS = ["ab, [MASK] cd", 'say "[MASK]"', "ab\ncd [MASK]\r\nef", "a\u2028b\x85c\td [MASK]", "a\\b [MASK]", "[MASK] c"]
CORPUS = CorpusConfig(source="train.csv", source_field="Text", target_field="Verdict")


def network(command: str) -> tuple[str, ModelConfig, Model]:
    """The task, the configuration and an untrained model for a command."""
    size = len(TOKENIZER)
    family = {"generate": "decoder", "fill": "encoder", "predict": "encoder"}.get(command, "encoder_decoder")
    config = ModelConfig(**SIZES, family=family)
    match command:
        case "translate" | "write":
            task = "translation" if command == "translate" else "summarisation"
            return task, config, EncoderDecoder(config, size, size)
        case "generate":
            return "language_model", config, LanguageModel(config, size)
        case "fill":
            return "masked_lm", config, MaskedLanguageModel(config, size, pairs=True)
        case _:
            return "classification", config, TextClassifier(config, size, 2)


def write_model_of(command: str, folder: Path, corpus: CorpusConfig = CORPUS) -> Path:
    torch.manual_seed(1)
    task, config, model = network(command)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    labels = ("no", "yes") if command == "predict" else ()
    recipe = Recipe(
        task=task,
        model=config,
        data=DataConfig(train=(corpus,), labels=labels, max_length=53, source_language="fr"),
        decode=DecodeConfig(beam=2, max_extra=5),
        generate=GenerateConfig(max_tokens=5, seed=3),
        tokenizer=TokenizerConfig(kind="character", mask=True),
    )
    write_model(folder, recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(model))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for command in COMMANDS:
        write_model_of(command, folder / command)
    return folder


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return request.param


Run = Callable[..., str]


@pytest.fixture
def run(command: str, models: Path) -> Run:
    return lambda *arguments, **more: invoke(command, "--model", models / command, *arguments, **more).stdout


def answer_in(command: str, line: str) -> object:
    """The answer in a line of --json, as a table has it."""
    values = json.loads(line)
    match command:
        case "translate" | "write":
            return values["translations"][0]["text"] if values["translations"] else ""
        case "generate":
            return values["text"]
        case "fill":
            return values
        case _:
            return values["label"]


def answers(command: str, run: Run, texts: list[str]) -> list[object]:
    return [answer_in(command, line) for line in run("--json", *texts).split("\n")[:-1]]


def column_of_answer(command: str) -> str:
    return "candidates" if command == "fill" else COLUMNS[command]


def write_table(file: str, rows: list[dict[str, str]]) -> str:
    if ".jsonl" in file:
        content = "".join(json.dumps(row) + "\n" for row in rows)
    elif ".tsv" in file:
        content = "".join("\t".join(cells) + "\n" for cells in [list(rows[0]), *(row.values() for row in rows)])
    else:
        with Path("cells").open("w", newline="") as stream:
            csv.writer(stream).writerows([list(rows[0]), *(row.values() for row in rows)])
        content = Path("cells").read_bytes().decode()
    data = content.encode()
    Path(file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    return file


def read_table(file: str) -> list[dict[str, Any]]:
    if file.endswith(".jsonl"):
        return [json.loads(line) for line in Path(file).read_bytes().decode().split("\n")[:-1]]
    with Path(file).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, strict=True))


@pytest.mark.parametrize("end", [".csv", ".jsonl"])
@pytest.mark.parametrize("file", ["in.csv", "in.jsonl", "in.csv.gz"])
def test_rows_are_answered_and_written_back_as_they_are(command: str, run: Run, file: str, end: str) -> None:
    rows = [{"id": str(number), "Text": text, "Verdict": "x,\ny"} for number, text in enumerate(TEXTS)]
    assert run("--input", write_table(file, rows), "--output", f"out{end}") == ""
    written = read_table(f"out{end}")
    assert [{name: row[name] for name in rows[0]} for row in written] == rows
    found = [row[column_of_answer(command)] for row in written]
    if command == "fill" and end == ".csv":
        found = [json.loads(str(cell)) for cell in found]
    assert found == answers(command, run, TEXTS)
    assert list(written[0])[: len(rows[0]) + 1] == [*rows[0], COLUMNS[command]]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_table_is_read_from_standard_input_too(command: str, run: Run, form: str) -> None:
    texts = ["ab [MASK]", "cd [MASK]"]
    rows = [{"Text": text, "Verdict": "x"} for text in texts]
    file = write_table(f"in.{form}", rows)
    wanted = run(*texts) if command != "generate" else run(stdin="".join(f"{text}\n" for text in texts))
    assert run("--input", file) == wanted
    for source in ([], ["-"], ["--input", "-"]):
        assert run("--input-format", form, *source, stdin=Path(file).read_bytes()) == wanted
    assert run("--input", "-", stdin="".join(f"{text}\n" for text in texts)) == wanted


@pytest.mark.parametrize("option", ["--column", "--source-field"])
@pytest.mark.parametrize("name", ["other", "OTHER", "3"])
def test_the_column_can_be_named_in_all_commands_alike(command: str, run: Run, option: str, name: str) -> None:
    texts = ["ab [MASK]", "cd [MASK]"]
    file = write_table("in.csv", [{"Text": "x", "Verdict": "y", "Other": text} for text in texts])
    plain = run("--input", write_table("plain.csv", [{"Text": text, "Verdict": "y"} for text in texts]))
    assert run("--input", file, option, name) == plain
    with pytest.raises(InputError, match=r"no column is named 'Othr' \(did you mean 'Other'\?\).*--column"):
        run("--input", file, option, "Othr")
    with pytest.raises(InputError, match=r"columns were given \(Other\).*--input-format"):
        run(option, "Other", stdin="ab [MASK]\n")


@pytest.mark.parametrize("end", [".csv", ".tsv", ".jsonl"])
def test_without_the_recipes_column_the_one_of_the_text_is_read_and_said(command: str, models: Path, end: str) -> None:
    texts = [f"{letter} is [MASK] for all" for letter in LETTERS]
    rows = [{"label": ["no", "yes"][i % 2], "id": str(i), "review": text} for i, text in enumerate(texts)]
    file = write_table(f"in{end}", rows)
    result = invoke(command, "--model", models / command, "--input", file)
    named = invoke(command, "--model", models / command, "--input", file, "--column", "review")
    assert result.stdout == named.stdout
    assert f"heedful: {file}: the text is read from column 'review'; choose another with --column\n" in result.stderr


def test_a_table_whose_text_is_in_doubt_is_refused(command: str, run: Run) -> None:
    rows = [{"title": f"{letter} one [MASK]", "body": f"{letter} two [MASK]"} for letter in LETTERS]
    with pytest.raises(InputError, match=r"in\.csv: .*several columns may contain the text.*--column"):
        run("--input", write_table("in.csv", rows))


def test_lines_of_text_become_a_table_by_the_name_of_the_output(command: str, run: Run) -> None:
    texts = ["ab, [MASK]", 'cd "[MASK]"']
    run("--output", "out.csv", stdin="".join(f"{text}\n" for text in texts))
    written = read_table("out.csv")
    assert [row["text"] for row in written] == texts
    assert list(written[0])[:2] == ["text", COLUMNS[command]]


def test_json_lines_are_not_put_into_a_table_of_another_kind(command: str, run: Run) -> None:
    with pytest.raises(InputError, match=r"--output out\.csv: the file name asks for a table"):
        run("ab [MASK]", "--json", "--output", "out.csv")
    run("ab [MASK]", "--json", "--output", "out.jsonl")
    assert Path("out.jsonl").read_text() == run("ab [MASK]", "--json")


def test_a_table_of_another_language_order_is_read_by_its_language(tmp_path: Path, models: Path) -> None:
    file = str(tmp_path / "in.csv")
    rows = [{"de": f"{letter} eins zwei", "FR": f"{letter} un deux"} for letter in LETTERS]
    with Path(file).open("w", newline="") as stream:
        csv.writer(stream).writerows([list(rows[0]), *(row.values() for row in rows)])
    run = partial(invoke, "translate", "--model", models / "translate")
    assert run("--input", file).stdout == run("--input", file, "--column", "FR").stdout


def test_samples_of_a_prompt_are_rows_with_their_seed(tmp_path: Path, models: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_table("in.csv", [{"Text": "ab", "Verdict": "x"}, {"Text": "cd", "Verdict": "y"}])
    invoke("generate", "--model", models / "generate", "--input", file, "--output", "out.csv", "--samples", 3)
    rows = read_table("out.csv")
    assert [(row["Text"], row["seed"]) for row in rows] == [(text, seed) for text in ("ab", "cd") for seed in "345"]
    said = invoke("generate", "--model", models / "generate", "--json", "--samples", 3, "ab", "cd").stdout
    assert [row["answer"] for row in rows] == [json.loads(line)["text"] for line in said.split("\n")[:-1]]


def test_the_best_words_are_put_into_the_gaps(tmp_path: Path, models: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "ab [MASK] c[MASK]"
    invoke("fill", "--model", models / "fill", text, "--output", "out.jsonl")
    [row] = read_table("out.jsonl")
    first, second = (gap[0]["text"] for gap in row["candidates"])
    assert row["filled"] == f"ab {first} c{second}"


def test_tables_in_a_folder_of_lines_are_refused(tmp_path: Path, models: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_text("ab\n")
    (tmp_path / "in" / "a.csv").write_text("Text\nab\n")
    arguments = ("--model", models / "translate", "--input", tmp_path / "in", "--output", tmp_path / "out")
    with pytest.raises(InputError, match=r"a\.csv is a table, .*--input FILE"):
        invoke("translate", *arguments)


@pytest.mark.parametrize("command", ["translate", "write"], indirect=True)
def test_line_ends_of_an_answer_are_escaped_on_lines_and_kept_elsewhere(command: str, run: Run, monkeypatch) -> None:
    said = "one\ntwo\r\nthree\u2028four\x85five\tsix \\n C:\\data"
    monkeypatch.setattr("heedful.text.tokenizer.Tokenizer.decode", lambda *_: said)
    assert run("ab") == "one\\ntwo\\r\\nthree\u2028four\x85five\tsix \\\\n C:\\data\n"
    assert answers(command, run, ["ab"]) == [said]
    for out in ("out.csv", "out.jsonl"):
        run("ab", "--output", out)
        assert [row[COLUMNS[command]] for row in read_table(out)] == [said]
    Path("lines").mkdir()
    Path("lines/a.txt").write_text("ab\ncd\n")
    run("--input", "lines", "--output", "folder")
    assert Path("folder/a.txt").read_bytes().decode() == 2 * run("ab")
