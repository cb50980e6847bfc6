"""`heedful init` for one text, a folder, a table and JSON objects: what is seen, what is written, what is refused."""

import json
from pathlib import Path

import own_text
import pytest
from invocation import invoke

from heedful.config.load import load_recipe
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.documents import read_documents
from heedful.data.readers.labelled import read_labelled
from heedful.errors import InputError
from heedful.progress import ProgressReporter


def run(*arguments: object) -> str:
    return invoke("init", *arguments).output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    own_text.lay_out(tmp_path)
    return tmp_path


def corpora(recipe: Recipe) -> list:
    data = recipe.data
    assert data.valid is not None
    assert data.test is not None
    return [*data.train, data.valid, data.test]


@pytest.mark.parametrize(
    ("arguments", "folder", "task"),
    [
        (["news.en", "news.de"], "en-de", "translation"),
        (["book.txt"], "book-language-model", "language_model"),
        (["books"], "books-language-model", "language_model"),
        (["book.txt", "--task", "masked_lm"], "book-masked-lm", "masked_lm"),
        (["reviews.jsonl", "--task", "language_model", "--source-field", "body"], "reviews-language-model", None),
        (["reviews.tsv"], "reviews-classification", "classification"),
        (["reviews.csv"], "reviews-classification", "classification"),
        (["reviews.jsonl"], "reviews-classification", "classification"),
        (["same.tsv"], "same-classification", "classification"),
        (["scored.tsv"], "scored-regression", "regression"),
        (["pairs.csv"], "en-de", "translation"),
        (["same.tsv", "--source-field", "1", "--target-field", "2", "--out", "x"], "x", "translation"),
    ],
)
def test_each_kind_of_text_becomes_a_recipe_and_the_commands_to_type(
    here: Path, arguments: list[str], folder: str, task: str | None
) -> None:
    told = run(*arguments)
    recipe = load_recipe(folder)
    assert recipe.name == folder
    assert recipe.task == task or (task is None and recipe.task == "language_model")
    assert f"  heedful train {folder} --out {folder}/run" in told.splitlines()[-3]
    assert f"--model {folder}/run" in told.splitlines()[-1]
    assert recipe.train.max_updates % recipe.train.save_every == 0
    assert recipe.optimizer.warmup < recipe.train.max_updates


def test_parts_of_a_text_are_all_of_it(here: Path) -> None:
    run("book.txt")
    recipe = load_recipe("book-language-model")
    parts = ["".join(document.text for document in read_documents(part, recipe.data)) for part in corpora(recipe)]
    assert "".join(parts) == Path("book.txt").read_text(encoding="utf-8")
    assert [round(len(part) / len("".join(parts)), 2) for part in parts] == [0.9, 0.05, 0.05]


@pytest.mark.parametrize("name", ["reviews.tsv", "reviews.csv", "reviews.jsonl"])
def test_each_example_is_in_one_part_with_its_label(here: Path, name: str) -> None:
    told = run(name)
    recipe = load_recipe("reviews-classification")
    assert recipe.data.labels == ("about a man", "other")
    parts = [list(read_labelled(part, recipe.data)) for part in corpora(recipe)]
    expected = [(f'"{text}",\nhe said' if name.endswith("csv") else text, label) for text, label in own_text.REVIEWS]
    assert sorted((example.text, example.label) for part in parts for example in part) == sorted(expected)
    assert [len(part) for part in parts] == [247, 30, 30]
    assert "307 texts: text in " in told
    assert "2 classes: " in told


def test_pairs_of_texts_keep_both(here: Path) -> None:
    assert "texts in '1' and '2', classes in '3'" in run("same.tsv")
    recipe = load_recipe("same-classification")
    first = next(iter(read_labelled(recipe.data.train[0], recipe.data)))
    assert (first.text, first.pair) in own_text.PAIRS


def test_columns_keep_their_names_so_that_tables_like_the_first_can_be_read(here: Path) -> None:
    run("reviews.csv", "--out", "named")
    run("same.tsv", "--out", "numbered")
    named, numbered = (load_recipe(folder).data for folder in ("named", "numbered"))
    for corpus in (*named.train, named.valid, named.test):
        assert corpus
        assert (corpus.source_field, corpus.pair_field, corpus.target_field) == ("Text", None, "Label")
    assert [numbered.train[0].source_field, numbered.train[0].pair_field] == ["1", "2"]
    fields = {"source_field": named.train[0].source_field, "target_field": named.train[0].target_field}
    own = CorpusConfig(source=str(here / "reviews.csv"), **fields)
    assert len(list(read_labelled(own, named))) == len(own_text.REVIEWS)


@pytest.mark.parametrize("name", ["reviews.tsv", "reviews.csv"])
def test_a_table_whose_name_lies_is_read_by_what_it_holds(here: Path, name: str) -> None:
    other = {"reviews.tsv": "lying.csv", "reviews.csv": "lying.tsv"}[name]
    (here / name).rename(other)
    separator = {"reviews.tsv": "tab", "reviews.csv": "comma"}[name]
    assert f"{separator}-separated table" in run(other).splitlines()[0]
    recipe = load_recipe("lying-classification")
    assert recipe.data.labels == ("about a man", "other")
    examples = [example for part in corpora(recipe) for example in read_labelled(part, recipe.data)]
    assert len(examples) == len(own_text.REVIEWS)


def test_lists_beside_text_are_left_alone(here: Path) -> None:
    rows = [{"text": f"some text of number {n}", "label": "ab"[n % 2], "tags": ["x"]} for n in range(101)]
    own_text.write_lines(Path("tagged.jsonl"), [json.dumps(row) for row in rows])
    assert "text in 'text', label in 'label'" in run("tagged.jsonl")


def test_a_rare_class_is_told(here: Path) -> None:
    own_text.write_lines(Path("odd.tsv"), [f"a text {i}\t{i % 2}" for i in range(101)] + ["one more text\tspan"])
    assert "too rare to learn, with fewer than 5 examples: span" in run("odd.tsv")


def test_classes_that_look_alike_are_told(here: Path) -> None:
    labels = ["good", "Good", "GOOD", "very bad", "very  bad", "so"]
    own_text.write_lines(Path("alike.tsv"), [f"a text {i}\t{labels[i % 6]}" for i in range(101)])
    told = run("alike.tsv")
    groups = "'good', 'Good', 'GOOD'; 'very bad', 'very  bad'"
    assert f"differ only in capitals, spaces or number format: {groups}; merge them" in told
    assert "capitals" not in run("reviews.tsv")


def test_a_number_that_is_written_in_several_ways_is_told_as_well(here: Path) -> None:
    labels = ["1", "1.0", "007", "7", "0", "-0.0"]
    own_text.write_lines(Path("numbers.tsv"), [f"a text {i}\t{labels[i % 6]}" for i in range(101)])
    told = run("numbers.tsv", "--task", "classification", "--target-field", "2", "--source-field", "1")
    assert "number format: '1', '1.0'; '0', '-0.0'; merge" in told


def test_equal_texts_with_different_labels_are_told(here: Path) -> None:
    equal = ["an equal text\t0", "an equal text\t1", "an equal text\t1", "another\t1", "another\t0", "a text 7\t1"]
    own_text.write_lines(Path("torn.tsv"), [f"a text {i}\t{i % 2}" for i in range(101)] + equal)
    told = run("torn.tsv")
    assert "  2 texts with contradictory labels, as on lines 10" in told
    assert "different labels" not in run("reviews.tsv")


@pytest.mark.parametrize("ending", [".tsv", ".jsonl"])
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("raters", [True, False])
def test_equal_texts_are_left_out_only_with_equal_labels_and_one_is_shown(
    here: Path, ending: str, task: str, raters: bool
) -> None:
    labels = [(n // 60 if raters else n % 60) % 5 + (0.25 if task == "regression" else 0) for n in range(300)]
    rows = [{"text": f"a house with {n % 60} rooms", "rating": label} for n, label in enumerate(labels)]
    table = ["text\trating", *(f"{row['text']}\t{row['rating']}" for row in rows)]
    own_text.write_lines(Path(f"houses{ending}"), table if ending == ".tsv" else [json.dumps(row) for row in rows])
    fields = ("--task", task, "--source-field", "text", "--target-field", "rating")
    told = run(f"houses{ending}", *fields, "--out", "out")
    parts = [Path(f"out/data/{part}.jsonl").read_text().splitlines() for part in ("train", "valid", "test")]
    assert sum(map(len, parts)) == (300 if raters else 300 - 4 * (len(parts[1]) + len(parts[2])))
    texts = [{json.loads(line)["text"] for line in part} for part in parts]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]
    said = "left out, because their text with the same label is already held out, such as 'a house with "
    assert (said in told) == (not raters)
    assert ("to keep them, give a folder with files train, valid and test" in told) == (not raters)


@pytest.mark.parametrize(("second", "answers"), [("answer", "yes no"), ("remark", "yes,_of_course not_at_all")])
def test_few_answers_may_also_be_texts_to_write(here: Path, second: str, answers: str) -> None:
    few = [answer.replace("_", " ") for answer in answers.split()]
    rows = [f"is number {n} of this list good\t{few[n % 2]}" for n in range(101)]
    own_text.write_lines(Path("asked.tsv"), [f"question\t{second}", *rows])
    other = f"heedful init asked.tsv --task text_to_text --source-field question --target-field {second}"
    assert other in run("asked.tsv").splitlines()[0]
    assert "interpreted as text-to-text data" in run(*other.split()[2:], "--out", "out").splitlines()[0]


def test_ids_that_come_again_are_no_second_reading(here: Path) -> None:
    rows = [f"{5000 + n % 90}\t{n % 2}\tsome text of number {n}" for n in range(301)]
    own_text.write_lines(Path("cited.tsv"), ["#1 ID\tlabel\ttext", *rows])
    assert "ID" not in run("cited.tsv").splitlines()[0].partition("if this is wrong")[2]


def test_a_table_of_word_pairs_below_comments_names_what_scores_them(here: Path) -> None:
    rows = [f"w{n}\tv{n}\t{n / 7:.2f}" for n in range(120)]
    own_text.write_lines(Path("pairs.tsv"), ["# from somewhere", "# Word 1\tWord 2\tHuman", *rows])
    with pytest.raises(InputError, match=r"word pairs with numbers, .* `heedful vectors similarity --help`"):
        run("pairs.tsv")


def test_ids_are_not_taken_for_the_numbers_to_be_learned(here: Path) -> None:
    rows = [f"{number}\tsome text of number {number}\t{number / 7}" for number in range(101)]
    own_text.write_lines(Path("heights.tsv"), ["row\ttext\theight", *rows])
    assert "text in 'text', label in 'height'" in run("heights.tsv", "--task", "regression")
    own_text.write_lines(Path("rows.tsv"), ["row\ttext", *(row.rpartition("\t")[0] for row in rows)])
    with pytest.raises(InputError, match=r"no column clearly contains the numbers .*'row' \(ids, 101 distinct\)"):
        run("rows.tsv", "--task", "regression")


@pytest.mark.parametrize("name", ["row", "score"])
def test_numbers_that_may_be_ids_are_doubted(here: Path, name: str) -> None:
    rows = [f"{number}\tsome text of number {number}" for number in range(101)]
    own_text.write_lines(Path("rows.tsv"), [f"{name}\ttext", *rows])
    told = run("rows.tsv", "--target-field", name)
    assert f"WARNING: all labels in '{name}' are distinct whole numbers" in told
    assert "choose another column with --target-field" in told
    assert "WARNING" not in run("scored.tsv")


def test_a_column_of_ids_has_too_many_classes(here: Path) -> None:
    own_text.write_lines(Path("ids.tsv"), ["id\ttext", *(f"{n}\tsome text of number {n}" for n in range(1003))])
    with pytest.raises(InputError, match=r"'id' has 1,003 distinct labels, .*another column with --target-field"):
        run("ids.tsv", "--task", "classification", "--target-field", "id")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reviews.tsv", [("", None, 0), ("texts", None, 307), ("texts", 307, 307)]),
        ("book.txt", [("lines", None, 307), ("parts", 3, 3)]),
    ],
)
def test_reading_and_writing_tell_how_far_they_are(
    here: Path, reporters: list[ProgressReporter], name: str, expected: list[tuple[str, int | None, int]]
) -> None:
    run(name)
    assert [(reporter.unit, reporter.total, reporter.done) for reporter in reporters] == expected
    assert all(reporter.work.split()[0] in ("looking", "reading", "dividing", "writing") for reporter in reporters)


def test_the_amount_of_text_decides_on_its_size_and_its_pieces(here: Path) -> None:
    run("book.txt")
    small = load_recipe("book-language-model")
    assert (small.tokenizer.kind, small.model.d_model, small.data.max_length) == ("character", 128, 128)
    own_text.write_lines(Path("large.txt"), own_text.ENGLISH * 211)
    run("large.txt")
    large = load_recipe("large-language-model")
    assert (large.tokenizer.kind, large.tokenizer.vocab_size) == ("bpe", 8000)
    assert large.model.d_model * large.train.max_updates > small.model.d_model * small.train.max_updates


def test_chinese_is_read_by_characters(here: Path) -> None:
    rows = [f"房间{chr(0x4E00 + i)}很干净，早餐也不错。\t{i % 2}" for i in range(307)]
    own_text.write_lines(Path("评论.tsv"), rows)
    run("评论.tsv", "--out", "a")
    run("评论.tsv", "--task", "masked_lm", "--out", "b")
    for folder in ("a", "b"):
        recipe = load_recipe(folder)
        assert (recipe.tokenizer.kind, recipe.tokenizer.vocab_size) == ("character", 700)


def test_one_file_of_two_is_read_as_a_text_with_a_hint(here: Path) -> None:
    assert "to train a translator, give the file with the translations as a second argument" in run("news.en")


def test_a_shuffled_translation_is_doubted_and_a_right_one_is_not(here: Path) -> None:
    assert "WARNING" not in run("news.en", "news.de")
    own_text.write_lines(
        Path("mixed.de"), [target for _, target in sorted(own_text.PAIRS, key=lambda pair: pair[1][::-1])]
    )
    told = run("news.en", "mixed.de", "--out", "x")
    assert "WARNING: on lines 1 to 307 the two sides do not seem to be aligned" in told
    assert f"line 77: {own_text.ENGLISH[76][:60]!r} | " in told


def test_a_line_of_millions_is_named_and_changes_nothing(here: Path) -> None:
    run("news.en", "news.de")
    english = [text if number != 100 else "word " * 600_001 for number, text in enumerate(own_text.ENGLISH)]
    own_text.write_lines(Path("long.en"), english)
    told = run("long.en", "news.de", "--out", "x")
    assert "1 pair (0.3%) with more than 2,000 characters, the longest on line 101; left out of training" in told
    before, after = load_recipe("en-de"), load_recipe("x")
    assert (after.model, after.tokenizer, after.train) == (before.model, before.tokenizer, before.train)
    assert after.data.filters == before.data.filters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "nowhere.txt: no such file or folder"),
        (["reviews.tsv", "--task", "ranking"], r"--task ranking: .*Search, summaries and dialogue"),
        (["book.txt", "--task", "translation"], "contains running text without labels or translations; give a second"),
        (["book.txt", "--task", "classification"], r"a \.tsv, \.csv or \.jsonl file with texts and labels"),
        (["book.txt", "--source-field", "text"], r"book\.txt: has no columns"),
        (["reviews.tsv", "reviews.csv"], r"reviews\.tsv: is a table, which contains both sides .* give only the table"),
        (["news.en", "news.de", "--task", "classification"], "two files are read .*: leave out --task; texts and"),
        (["news.en", "news.de", "--task", "parsing"], '--task "parsing": unknown task; choose one of translation,'),
        (["news.en", "news.de", "--valid", "v.en", "--fast"], "--valid needs two files, .* before --fast: --valid SRC"),
        (["news.en", "news.de", "--valid", "v.en"], "--valid needs two values: --valid SRC TGT"),
        (["news.en", "blank.de"], r"^blank\.de: contains only blank lines"),
        (["memory.tmx"], r"memory\.tmx: contains XML or HTML, not running text; extract its texts; save translations"),
        (["news.en", "memory.tmx"], r"memory\.tmx: contains XML or HTML, not one sentence per line; extract"),
        (["memory.tmx", "--task", "translation"], r"memory\.tmx contains XML or HTML without labels or translations"),
        (
            ["reviews.tsv", "--target-field", "stars"],
            "no column is named 'stars'; it has the columns 'review' .text, 3",
        ),
        (["reviews.tsv", "--valid", "a", "b"], "--valid is for translations, but the task is classification"),
        (["book.txt", "--target-language", "de"], "--target-language is for translations"),
        (["talk.jsonl"], "talk\\.jsonl: too few distinct inputs to hold some out for validation and test: 1;"),
        (["faq.tsv"], r"unclear. .*Search, summaries(?s:.*) a translator: .*init faq.tsv --task translation"),
        (["ids.tsv"], r"no column seems to be text: .*'1' \(ids, 23 distinct\)"),
        (["two.tsv"], r"init two.tsv --task classification --source-field 1 --target-field 2(?s:.*)--target-field 3"),
        (["one.tsv"], "all labels in '2' are 'x', but classification needs at least two classes"),
        (["one.tsv", "--task", "classification", "--target-field", "2"], "all labels in '2' are 'x'.* another class$"),
        (["one.tsv", "--task", "ner"], '--task "ner": unknown task; choose one of translation,'),
        (["reviews.tsv", "--task", "dialogue"], "which of them --task dialogue should use is unclear"),
        (["one.tsv", "--task", "tagging"], r"leave --task out, or give a file with a word and its tag"),
        (["one.tsv", "--task", "span_qa"], r"leave --task out, or give a JSON file in SQuAD's format"),
        (["tiny.txt"], r"tiny\.txt: too little text to train on .*: 8 characters"),
        (["empty.tsv"], r"empty\.tsv: has no rows"),
        (["empty.txt"], r"empty\.txt: has no text; check the file"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_way_out(here: Path, arguments: list[str], message: str) -> None:
    own_text.write_lines(here / "talk.jsonl", [json.dumps({"source": ["Hi.", "Hello, how are you?"]})] * 23)
    faq = [f"how does it go number {n}\tit goes like this: {n} times" for n in range(23)]
    own_text.write_lines(here / "faq.tsv", ["question\tanswer", *faq])
    own_text.write_lines(here / "ids.tsv", [f"{n}\t{n + 7}" for n in range(23)])
    own_text.write_lines(here / "two.tsv", [f"some text of number {n}\ta{n % 2}\tb{n % 3}" for n in range(23)])
    own_text.write_lines(here / "one.tsv", [f"some text of number {n}\tx" for n in range(23)])
    own_text.write_lines(here / "tiny.txt", ["a b c d"])
    own_text.write_lines(here / "blank.de", [""] * 307)
    own_text.write_lines(here / "memory.tmx", ['<?xml version="1.0"?>', "<tmx><body>", "</body></tmx>"])
    for name in ("empty.tsv", "empty.txt"):
        (here / name).touch()
    before = sorted(here.iterdir())
    if arguments == ["one.tsv"]:
        arguments = [*arguments, "--task", "classification", "--target-field", "2"]
    with pytest.raises(InputError, match=message):
        run(*arguments)
    assert sorted(here.iterdir()) == before


def test_a_folder_of_objects_is_read_by_the_key_that_is_given(here: Path) -> None:
    shards = here / "shards"
    shards.mkdir()
    for name in ("a.jsonl", "b.JSONL"):
        shards.joinpath(name).write_text("".join(f'{{"text": "line {n} of {name}"}}\n' for n in range(101)))
    run("shards", "--source-field", "text")
    recipe = load_recipe("shards-language-model")
    found = [document.text for part in corpora(recipe) for document in read_documents(part, recipe.data)]
    assert len(found) == 202


def test_a_name_that_is_no_utf8_is_refused_before_anything_is_written(here: Path) -> None:
    name = "caf\udce9.txt"
    try:
        Path(name).write_text("".join(f"some text of line {n}\n" for n in range(1009)))
    except (OSError, UnicodeError):
        pytest.skip("this file system takes UTF-8 alone")
    with pytest.raises(InputError, match="the name is not valid UTF-8; rename the file"):
        run(name, "--out", "out")
    assert not Path("out").exists()


def test_a_label_with_a_character_that_toml_escapes_is_written_so(here: Path) -> None:
    rows = "".join(
        f"a text of number {n} with words\t{'ne' + chr(127) + 'g' if n % 2 else 'pos'}\n" for n in range(101)
    )
    Path("odd.tsv").write_text("text\tlabel\n" + rows)
    run("odd.tsv", "--out", "out")
    assert load_recipe("out").data.labels == ("ne\x7fg", "pos")


def test_a_key_is_refused_where_no_file_of_a_folder_has_any(here: Path) -> None:
    with pytest.raises(InputError, match=r"books: has no columns; --source-field and similar options are for"):
        run("books", "--source-field", "body")


def test_half_a_character_in_a_long_text_of_a_table_is_replaced(here: Path) -> None:
    rows = (f'{{"text": "{"long " * 60}{n} \\ud83d", "label": "{"ab"[n % 2]}"}}\n' for n in range(101))
    Path("odd.jsonl").write_text("".join(rows))
    run("odd.jsonl", "--out", "out", "--bad-utf8", "replace")
    assert load_recipe("out").task == "classification"
