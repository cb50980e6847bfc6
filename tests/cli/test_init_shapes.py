"""Each shape of a data set in the table of the docs is used for the task that the table names."""

import csv
import gzip
import io
import json
import re
import shlex
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from invocation import invoke

from heedful.config.load import load_recipe
from heedful.data.readers.corpus import read_pairs, read_replies
from heedful.data.readers.labelled import read_labelled, read_scored
from heedful.errors import InputError

PEOPLE = ["a man", "a girl", "an old dog", "the cook", "two boys", "my sister", "the teacher"]
PLACES = ["station", "bridge", "market", "school", "harbour", "river", "castle", "garden", "mill", "church", "forest"]
TEXTS = [f"{PEOPLE[n % 7]} walks from the {PLACES[n % 11]} to the {PLACES[(n // 7) % 11]}." for n in range(120)]
GERMAN = [text.replace("walks from the", "geht von").replace(" to the ", " nach ") for text in TEXTS]
OTHERS = [text.replace("walks", "runs") for text in TEXTS[1:] + TEXTS[:1]]
SCORES = [round(n % 26 / 5, 1) for n in range(120)]
LABELS = ["good", "bad"] * 60


def table(*columns: object, separator: str = "\t", header: str = "", quoting: int = csv.QUOTE_MINIMAL) -> str:
    stream = io.StringIO()
    rows = [tuple(header.split()), *zip(*columns, strict=True)] if header else list(zip(*columns, strict=True))
    csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def lines(*columns: object, header: str = "") -> str:
    rows = [header.split(), *zip(*columns, strict=True)] if header else list(zip(*columns, strict=True))
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def objects(keys: str, *columns: object) -> list[dict[str, object]]:
    return [dict(zip(keys.split(), row, strict=True)) for row in zip(*columns, strict=True)]


def as_lines(rows: list[dict[str, object]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def squad() -> str:
    paragraphs = []
    for number, text in enumerate(TEXTS):
        answer = {"text": PEOPLE[number % 7], "answer_start": 0}
        question = {"id": str(number), "question": "Who walks?", "answers": [answer]}
        paragraphs.append({"context": f"{text} {number}", "qas": [question]})
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})


def tagged(separator: str, columns: int) -> str:
    between = separator + separator.join(["NN"] * (columns - 2)) + separator if columns > 2 else separator
    tags = dict.fromkeys(PLACES, "B-PLACE")
    words = (f"{text[:-1]} {number}".split() for number, text in enumerate(TEXTS))
    return "".join("".join(f"{word}{between}{tags.get(word, 'O')}\n" for word in sentence) + "\n" for sentence in words)


def chat(number: int, who: str, what: str) -> list[dict[str, str]]:
    said = [("system", "Be kind."), ("user", TEXTS[number]), ("assistant", GERMAN[number]), ("user", "And then?")]
    said += [("assistant", f"{number} sleeps.")]
    return [{who: role, what: text} for role, text in said]


TAB = "\t_"  # an empty column of CoNLL-U
PLACE = "In the old town where all of them live."
NUMBERS = [f"{n % 500:04d}" for n in range(120)]
COMMAS = [f"{score + 0.25:.2f}".replace(".", ",") for score in SCORES]
SHAPES: dict[str, tuple[str, str | Callable[[], str]]] = {
    "sts.tsv": ("regression", lines(TEXTS, OTHERS, SCORES, header="sentence1 sentence2 score")),
    "sts-glue.tsv": (
        "regression",
        lines(
            *(range(120), ["news"] * 60 + ["forum"] * 60, NUMBERS, ["none"] * 120, TEXTS, OTHERS, SCORES),
            header="index genre old_index source1 sentence1 sentence2 score",
        ),
    ),
    "sts-benchmark.csv": (
        "regression",
        lines(["news", "forum"] * 60, ["2012", "2013"] * 60, NUMBERS, SCORES, TEXTS, OTHERS).replace(
            "runs from the mill", 'runs "from" the mill'
        )
        + "news\t2012\t0007\t2.5\tA dog.\tA cat.\thttp://a\thttp://b\n" * 3,
    ),
    "sts-quoted.tsv": (
        "regression",
        table(NUMBERS, TEXTS, OTHERS, SCORES, header="id sentence1 sentence2 score", quoting=csv.QUOTE_ALL),
    ),
    "pairs-scored.csv": ("regression", table(TEXTS, OTHERS, SCORES, separator=",")),
    "decimal-commas.csv": ("regression", table(TEXTS, COMMAS, separator=",", header="text score")),
    "semicolons.csv": ("regression", table(TEXTS, COMMAS, separator=";", header="text price")),
    "snli.jsonl": (
        "classification",
        as_lines(
            [
                {"annotator_labels": ["a"], "gold_label": label, "sentence1": a, "sentence1_parse": f"((( {a} )))"}
                | {"sentence2": b, "sentence2_parse": f"((( {b} )))", "pairID": f"x{n}"}
                for n, (label, a, b) in enumerate(zip(["yes", "no", "maybe"] * 40, TEXTS, OTHERS, strict=True))
            ]
        ),
    ),
    "reviews.tsv": ("classification", lines(TEXTS, LABELS, header="review verdict")),
    "label-first.csv": ("classification", table(LABELS, TEXTS, separator=",")),
    "paraphrases.txt": (
        "classification",
        "\ufeff" + lines(["1", "0"] * 60, NUMBERS, TEXTS, OTHERS, header="Quality #1_ID #1_String #2_String"),
    ),
    "trec.label": (
        "classification",
        "".join(f"{'HUM:ind' if n % 2 else 'LOC'} {text}\n" for n, text in enumerate(TEXTS)),
    ),
    "fasttext.train": (
        "classification",
        "".join(f"__label__{label} {text}\n" for label, text in zip(LABELS, TEXTS, strict=True)),
    ),
    "records.json": ("classification", json.dumps(objects("text label", TEXTS, LABELS), indent=1)),
    "columns.json": ("classification", json.dumps({"text": TEXTS, "label": LABELS})),
    "records.jsonl": ("classification", as_lines(objects("id text label", range(120), TEXTS, LABELS))),
    "anki.txt": ("translation", lines(TEXTS, GERMAN, [f"CC-BY 2.0 #{n}" for n in range(120)])),
    "translation.jsonl": (
        "translation",
        as_lines([{"translation": {"en": a, "de": b}} for a, b in zip(TEXTS, GERMAN, strict=True)]),
    ),
    "languages.csv": ("translation", table(TEXTS, GERMAN, separator=",", header="en de")),
    "names.conll": ("tagging", lambda: tagged(" ", 2)),
    "names-columns.txt": ("tagging", lambda: "-DOCSTART- -X- -X- O\n\n" + tagged(" ", 4)),
    "names.tsv": ("tagging", lambda: "# a comment\n" + tagged("\t", 2)),
    "words-and-tags.jsonl": (
        "tagging",
        lambda: as_lines(
            [{"tokens": text.split(), "ner_tags": ["O", "B-X", *["O"] * (len(text.split()) - 2)]} for text in TEXTS]
        ),
    ),
    "parts-of-speech.txt": ("tagging", lambda: re.sub(r"\S+$", "NN", tagged(" ", 2), flags=re.MULTILINE) + "the DT\n"),
    "treebank.conllu": (
        "tagging",
        lambda: "".join(
            f"# sent_id = {n}\n1-2\t{text.split()[0]}{TAB * 8}\n"
            + "".join(
                f"{k}\t{word}\t_\t{'VERB' if word == 'walks' else 'NOUN'}{TAB * 6}\n"
                for k, word in enumerate(f"{text} {n}".split(), start=1)
            )
            + "\n"
            for n, text in enumerate(TEXTS)
        ),
    ),
    "words-and-parts.jsonl": (
        "tagging",
        lambda: as_lines(
            [{"tokens": text.split(), "upos": ["DET", *["NOUN"] * (len(text.split()) - 1)]} for text in TEXTS]
        ),
    ),
    "chat.jsonl": ("dialogue", lambda: as_lines([{"messages": chat(n, "role", "content")} for n in range(120)])),
    "sharegpt.json": (
        "dialogue",
        lambda: json.dumps([{"id": f"x{n}", "conversations": chat(n, "from", "value")} for n in range(120)]),
    ),
    "turns.jsonl": ("dialogue", lambda: as_lines([{"dialog": [text, "And then?", "No."]} for text in TEXTS])),
    "alpaca.json": (
        "text_to_text",
        json.dumps(objects("instruction input output", OTHERS, ["", PLACE] * 60, GERMAN)),
    ),
    "prompts.csv": ("text_to_text", table(TEXTS, GERMAN, separator=",", header="prompt completion")),
    "news.jsonl": ("summarisation", as_lines(objects("article highlights id", TEXTS, OTHERS, range(120)))),
    "squad.json": ("span_qa", squad),
    "squad-rows.jsonl": (
        "span_qa",
        lambda: as_lines(
            [
                {
                    "id": str(n),
                    "context": f"{text} {n}",
                    "question": "Who?",
                    "answers": {"text": [text[:5]], "answer_start": [0]},
                }
                for n, text in enumerate(TEXTS)
            ]
        ),
    ),
    "book.txt": ("language_model", "\n".join(TEXTS)),
    "notes.csv": ("language_model", table(range(120), TEXTS, separator=",", header="id text")),
    "strings.json": ("language_model", json.dumps(TEXTS)),
    "one-class.tsv": ("refused", lines(TEXTS, ["good"] * 120, header="text label")),
    "two-labels.csv": ("refused", table(TEXTS, LABELS, ["a", "b", "c"] * 40, separator=",")),
    "first-words.txt": (
        "refused",
        "".join(f"{label} {text}\n" for label, text in zip(["ham", "spam"] * 60, TEXTS, strict=True)),
    ),
    "questions.csv": ("refused", table(TEXTS, OTHERS, separator=",", header="question answer")),
    "word-pairs.txt": ("refused", lines([f"w{n}" for n in range(120)], [f"v{n}" for n in range(120)], SCORES)),
    "vectors.txt": ("refused", "".join(f"w{n}{' 0.5' * 25}\n" for n in range(20))),
}
UNUSED = {  # the columns that a shape has besides the text and the label
    "sts-glue.tsv": ["'index', 'genre', 'old_index', 'source1'"],
    "sts-benchmark.csv": ["'1', '2', '3'"],
    "sts-quoted.tsv": ["'id'"],
    "snli.jsonl": ["'annotator_labels', 'sentence1_parse', 'sentence2_parse', 'pairID'"],
    "paraphrases.txt": ["'#1_ID'"],
    "records.jsonl": ["'id'"],
    "anki.txt": ["'3'"],
    "sharegpt.json": ["'id'"],
    "news.jsonl": ["'id'"],
    "notes.csv": ["'id'"],
}
PAGES = ("docs/how-to/own-data.md", "docs/zh/own-data.md")


def content(name: str) -> str:
    text = SHAPES[name][1]
    return text if isinstance(text, str) else text()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name, (task, _) in SHAPES.items() if task != "refused"])
def test_a_shape_is_taken_for_its_task_and_the_second_best_can_be_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content(name), encoding="utf-8")
    task = SHAPES[name][0]
    first = invoke("init", name, "--out", "made").output.splitlines()[0]
    assert first.startswith(f"{name}: ")
    assert re.search(r"interpreted as .* data \(confidence: (certain|likely)\)", first)
    assert re.findall("; not used: (.*?)(?:;|$)", first) == UNUSED.get(name, [])
    recipe = load_recipe("made")
    assert recipe.task == task
    if task in ("classification", "regression"):
        read = read_scored if task == "regression" else read_labelled
        parts = [part for part in (*recipe.data.train, recipe.data.valid, recipe.data.test) if part]
        assert all(list(read(part, recipe.data)) for part in parts)
    words = shlex.split(first.partition("if this is wrong, run: ")[2])
    if words and "translation" not in words:  # a translation of one language into the same is refused
        assert words[:3] == ["heedful", "init", name]
        assert invoke(*words[1:], "--out", "second").exit_code == 0
        assert load_recipe("second").task == words[words.index("--task") + 1]


@pytest.mark.parametrize("name", [name for name, (task, _) in SHAPES.items() if task == "refused"])
def test_an_unsure_shape_is_refused_with_the_commands_to_choose_from(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content(name), encoding="utf-8")
    with pytest.raises(InputError, match=f"heedful init {name} --task "):
        invoke("init", name, "--out", "made")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("page", PAGES)
def test_the_table_in_the_docs_lists_these_shapes(page: str) -> None:
    text = Path(__file__).parents[2].joinpath(page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+\.\w+) \| .* \| (\w+) \|$", text, re.MULTILINE)
    tasks = {name: "refused" if task == "拒绝" else task for name, task in rows}
    assert tasks == {name: task for name, (task, _) in SHAPES.items()}


def test_replies_of_chats_and_answers_to_instructions_are_learned_and_beginnings_are_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("chat.jsonl", "alpaca.json"):
        Path(name).write_text(content(name), encoding="utf-8")
        invoke("init", name, "--out", name.split(".")[0])
    recipe = load_recipe("chat")
    parts = [part for part in (*recipe.data.train, recipe.data.valid, recipe.data.test) if part]
    read = [{(pair.source, pair.target) for pair in read_replies(part, recipe.data)} for part in parts]
    assert ("Be kind.\t" + TEXTS[0], GERMAN[0]) in set().union(*read)
    assert ("\t".join(("Be kind.", TEXTS[0], GERMAN[0], "And then?")), "0 sleeps.") in set().union(*read)
    assert not any(target == "And then?" for part in read for _, target in part)
    beginnings = [{source.split("\t")[1] for source, _ in part} for part in read]
    assert not beginnings[0] & beginnings[1]
    assert not beginnings[0] & beginnings[2]
    recipe = load_recipe("alpaca")
    pairs = {(pair.source, pair.target) for pair in read_pairs(recipe.data.train[0], recipe.data)}
    assert pairs <= {
        (text + f"\n{PLACE}" * (n % 2), german) for n, (text, german) in enumerate(zip(OTHERS, GERMAN, strict=True))
    }


FOLDERS = {
    "imdb": (["train/pos", "train/neg", "train/unsup", "test/pos", "test/neg"], "classification", ("train/unsup",)),
    "moods": (["good", "bad", "unlabelled"], "classification", ("unlabelled",)),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_texts_for_each_class_becomes_a_classifier(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders, task, unused = FOLDERS[name]
    for place, folder in enumerate(folders):
        Path(name, folder).mkdir(parents=True)
        for number in range(12):
            Path(name, folder, f"{number}.txt").write_text(f"{TEXTS[12 * place + number]}\nIt is {folder} {number}.\n")
    first = invoke("init", name, "--out", "made").output.splitlines()[0]
    assert (
        f"not used: {', '.join(map(repr, unused))}; if this is wrong, run: heedful init {name} --task language_model"
        in first
    )
    recipe = load_recipe("made")
    assert (recipe.task, len(recipe.data.labels)) == (task, 2)
    valid, test = recipe.data.valid, recipe.data.test
    assert valid is not None
    assert test is not None
    tested = [example.text for example in read_labelled(test, recipe.data)]
    assert (len(tested) == 24 and all("test/" in text for text in tested)) if name == "imdb" else len(tested) == 2
    invoke("init", name, "--out", "text", "--task", "language_model")
    assert load_recipe("text").task == "language_model"


def test_a_folder_of_two_languages_becomes_a_translator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus-en-de").mkdir()
    for part in ("train", "val", "other"):
        Path(f"corpus-en-de/{part}.en").write_text("\n".join(TEXTS))
        Path(f"corpus-en-de/{part}.de").write_text("\n".join(GERMAN))
    Path("corpus-en-de/LICENSE.txt").write_text("free")
    first = invoke("init", "corpus-en-de").output.splitlines()[0]
    assert "train.en with its translation train.de, validation set val.en, interpreted as translation data" in first
    assert (
        "not used: 'other.de', 'other.en'; if this is wrong, run: heedful init corpus-en-de/train.de corpus-en-de/"
        in first
    )
    assert load_recipe("en-de").data.source_language == "en"


@pytest.mark.parametrize(("name", "task"), [("reviews.tsv", "classification"), ("names.conll", "tagging")])
def test_a_folder_of_parts_keeps_them(name: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("set").mkdir()
    ending = Path(name).suffix
    for part in ("train", "dev", "test"):
        Path(f"set/{part}{ending}").write_text(content(name))
    Path("set/README.md").write_text("what this is")
    first = invoke("init", "set", "--out", "made").output.splitlines()[0]
    assert (
        f", test in test{ending}, valid in dev{ending}, interpreted as" in first
        or f", valid in dev{ending}, test in" in first
    )
    assert load_recipe("made").task == task


def test_a_folder_of_other_files_is_not_read_for_its_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name in (("packed", "clips.tar.xz"), ("questions", "en.json")):
        Path(folder).mkdir()
        Path(folder, "about-it.md").write_text("A long enough note. " * 200)
        Path(folder, "notes.txt").write_text("A long enough note. " * 200)
        Path(folder, name).write_text("x" * 99_999 if folder == "packed" else squad())
        Path(folder, f"2{name}").write_text("x" * 99_999 if folder == "packed" else squad())
    for folder, message in (
        ("packed", "little running text, and other files; unpack .*clips.tar.xz"),
        ("questions", "data sets, none of which is named train; .*init questions/.*en.json or heedful init"),
    ):
        with pytest.raises(InputError, match=f"{folder}: contains {message}"):
            invoke("init", folder)


def test_a_folder_that_heedful_made_is_not_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text(content("book.txt"))
    invoke("init", "book.txt", "--out", "made")
    with pytest.raises(
        InputError, match="made: contains a run, a model or a recipe; give a folder with nothing but data"
    ):
        invoke("init", "made")


def test_a_name_that_is_not_there_gets_the_nearest_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("phrases.en").write_text("a\n")
    with pytest.raises(InputError, match=r'phrase.en: no such file or folder; did you mean "phrases.en"\?'):
        invoke("init", "phrase.en")


@pytest.mark.parametrize("given", [["phrase.en", "phrases.de"], ["phrases.en", "phrases.dee"]])
def test_of_two_files_one_that_is_not_there_gets_the_nearest_ones_before_anything_is_said(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("phrases.en", "phrases.de"):
        Path(name).write_text("a\n")
    with pytest.raises(InputError, match=r'no such file or folder; did you mean "phrases\.(en|de)"'):
        invoke("init", *given)
    assert not capsys.readouterr().out


def test_numbers_with_unclear_commas_are_refused_and_others_are_written_with_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, numbers in (("unclear", "{},{:03}"), ("comma", "{},{:02}"), ("grouped", "1,{:03},{:03}")):
        values = [numbers.format(n % 9 + 101, n) for n in range(99)]
        Path(f"{name}.csv").write_text(table(TEXTS[:99], values, separator=",", header="text price"))
    with pytest.raises(InputError, match="the numbers in 'price' have commas, as in 101,000, which may be"):
        invoke("init", "unclear.csv")
    for name, first in (("comma", 101.00), ("grouped", 1_101_000.0)):
        invoke("init", f"{name}.csv", "--out", name)
        recipe = load_recipe(name)
        scores = {example.score for example in read_scored(recipe.data.train[0], recipe.data)}
        assert min(scores) - first < 10
        assert max(scores) < 2 * first


def test_a_table_of_pixels_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("digits.csv").write_text("".join(f"{','.join(str((n * k) % 251) for k in range(65))}\n" for n in range(30)))
    with pytest.raises(InputError, match=r"contains 65 columns of numbers and no text; are they image pixels\? "):
        invoke("init", "digits.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("clips.tar.xz", b"\xfd7zXZ", "contains packed or binary data, not text; unpack it"),
        (
            "speech.npy.gz",
            gzip.compress(b"\x93NUMPY", mtime=0),
            "is a NumPy array; save it as .wav if it is an audio file",
        ),
        ("speech.npy", b"\x93NUMPY", "is a NumPy array; save it as .wav if it is an audio file"),
        ("speech.npz", b"PK\x03\x04", "contains NumPy arrays, not text; save audio as .wav, images as .png"),
        ("rows.parquet", b"PAR1", "is a Parquet file; save it as CSV or JSON Lines"),
        ("rows.bin", b"\0\1", "contains binary data, not text; save its contents as text"),
    ],
)
def test_packed_and_binary_data_is_refused_with_what_to_do(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data", name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: {message}"):
        invoke("init", f"data/{name}")
    advice = f"unpack {name}" if "unpack" in message else f"{name} {message}"
    with pytest.raises(InputError, match=f"data: contains no running text, but other files; {advice}") as caught:
        invoke("init", "data")
    assert "language model" not in str(caught.value)


def test_a_folder_of_word_pairs_names_what_scores_word_vectors(tmp_path: Path) -> None:
    rows = "".join(f"{a}\t{b}\t{n}.5\n" for n, (a, b) in enumerate(combinations(PLACES, 2)))
    for name in ("some.txt", "others.txt"):
        (tmp_path / name).write_text(rows)
    message = "others.txt: contains word pairs with numbers, not running text; they evaluate word vectors"
    with pytest.raises(
        InputError, match=f"{message}: see `heedful vectors similarity --help`. To train a language model"
    ):
        invoke("init", str(tmp_path))


@pytest.mark.parametrize("names", [["model.bin", "source_vocabulary.txt"], ["model.safetensors", "config.json"]])
def test_a_model_of_another_toolkit_is_refused_with_the_command_that_converts_it(
    names: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(
        InputError, match=f"contains a model from another toolkit, .*: heedful convert {tmp_path} --out"
    ):
        invoke("init", str(tmp_path))
