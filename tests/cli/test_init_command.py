"""`heedful init`: two files become a recipe and its text; nothing is overwritten."""

import gzip
from pathlib import Path

import pytest
from invocation import invoke

from heedful.cli.init_text import language_in
from heedful.config.load import load_recipe
from heedful.data.readers.corpus import read_pairs
from heedful.errors import InputError
from heedful.progress import ProgressReporter

ENGLISH = [f"the {number} cats sleep" for number in range(101)]
GERMAN = [f"die {number} Katzen schlafen" for number in range(101)]


def run(*arguments: object) -> str:
    return invoke("init", *arguments).output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("corpus.en", ENGLISH)
    write("corpus.de", GERMAN)
    return tmp_path


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def lines(path: Path | str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").split("\n")[:-1]


def test_two_files_become_a_recipe_and_its_text(here: Path) -> None:
    told = run("corpus.en", "corpus.de")
    recipe = load_recipe("en-de")
    assert (recipe.name, recipe.data.source_language, recipe.data.target_language) == ("en-de", "en", "de")
    assert recipe.data.valid is not None
    assert recipe.data.test is not None
    parts = [
        list(read_pairs(corpus, recipe.data)) for corpus in (*recipe.data.train, recipe.data.valid, recipe.data.test)
    ]
    assert [len(pairs) for pairs in parts] == [91, 5, 5]
    assert sorted((pair.source, pair.target) for pairs in parts for pair in pairs) == sorted(
        zip(ENGLISH, GERMAN, strict=True)
    )
    assert "101 sentence pairs" in told
    assert told.splitlines()[-3:] == [
        "  heedful train en-de --out en-de/run",
        "  heedful evaluate en-de/run",
        "  heedful translate --model en-de/run 'Some text.'",
    ]


def test_the_originals_stay_and_a_second_call_overwrites_nothing(here: Path) -> None:
    run("corpus.en", "corpus.de")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"en-de/config\.toml already exists .* choose another folder with --out"):
        run("corpus.en", "corpus.de")
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before
    assert lines("corpus.en") == ENGLISH


def test_a_folder_with_other_data_is_left_alone(here: Path) -> None:
    Path("other/data").mkdir(parents=True)
    with pytest.raises(InputError, match="other/data already exists"):
        run("corpus.en", "corpus.de", "--out", "other")
    assert list(Path("other").rglob("*")) == [Path("other/data")]


def test_given_text_is_used_where_it_lies(here: Path) -> None:
    write("v.en", ENGLISH[:3])
    write("v.de", GERMAN[:3])
    run("corpus.en", "corpus.de", "--out", "a/b", "--valid", "v.en", "v.de")
    data = load_recipe("a/b").data
    assert data.valid is not None
    assert (data.valid.source, data.train[0].source) == ("../../v.en", "data/train.en")
    assert sorted(path.name for path in Path("a/b/data").iterdir()) == ["test.de", "test.en", "train.de", "train.en"]
    assert len(lines("a/b/data/train.en")) == 96


def test_nothing_is_copied_where_all_is_given(here: Path) -> None:
    for part, lines_of_part in (("valid", slice(0, 3)), ("test", slice(3, 7))):
        write(f"{part}.en", ENGLISH[lines_of_part])
        write(f"{part}.de", GERMAN[lines_of_part])
    run("corpus.en", "corpus.de", "--valid", "valid.en", "valid.de", "--test", "test.en", "test.de")
    assert [path.name for path in Path("en-de").iterdir()] == ["config.toml"]
    assert load_recipe("en-de").data.train[0].target == "../corpus.de"


def test_a_recipe_below_a_link_finds_its_text(here: Path) -> None:
    (here / "far/deep").mkdir(parents=True)
    (here / "scratch").symlink_to(here / "far/deep")
    for name in ("valid", "test"):
        write(f"{name}.en", [f"{name} {line}" for line in ENGLISH])
        write(f"{name}.de", [f"{name} {line}" for line in GERMAN])
    parts = ("--valid", "valid.en", "valid.de", "--test", "test.en", "test.de")
    run("corpus.en", "corpus.de", *parts, "--out", "scratch/new")
    assert invoke("config", "check", "scratch/new").exit_code == 0


def test_languages_come_from_options_names_or_scripts(here: Path) -> None:
    with gzip.open("train.lc.en.gz", "wt") as file:
        file.writelines(f"{line}\n" for line in ENGLISH)
    write("chinese.txt", [f"第{number}只猫在睡觉。" for number in range(101)])
    told = run("train.lc.en.gz", "chinese.txt", "--out", "x")
    assert "zh  Han script, characters per line: median 9" in told
    assert load_recipe("x").data.target_language == "zh"
    assert load_recipe("x").tokenizer.joint is False
    run("corpus.en", "corpus.de", "--source-language", "eng", "--target-language", "ger")
    assert sorted(path.name for path in Path("eng-ger/data").iterdir())[0] == "test.eng"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source-language", "de"], "both languages are de; give --source-language and --target-language"),
        (["--source-language", "../x"], r'--source-language: "../x" is not an ISO 639 language code'),
        (["--source-language", "en-../x"], r'--source-language: "en-../x" is not an ISO 639 language code'),
        (
            ["--target-language", "chinese"],
            r'--target-language: "chinese" is not an ISO 639 language code; did you mean "zh"\?',
        ),
        (["--target-language", "xx"], '--target-language: "xx" is not an ISO 639 language code'),
        (
            ["--valid", "corpus.en", "other.de"],
            r"corpus.en is given twice; .* must not be training text",
        ),
        (["--test", "linked.en", "other.de"], "corpus.en and linked.en are the same file"),
        (["--valid", "other.de", "other.de"], "other.de is given twice"),
        (["--valid", "other.de", "copied.de"], "other.de, copied.de: both sides are identical on every line"),
        (["--valid", "other.de", "nowhere.de"], r"nowhere.de: no such file"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(here: Path, arguments: list[str], message: str) -> None:
    write("other.de", GERMAN[:7])
    write("copied.de", GERMAN[:7])
    Path("linked.en").symlink_to("corpus.en")
    before = sorted(path.name for path in here.iterdir())
    with pytest.raises(InputError, match=message):
        run("corpus.en", "corpus.de", *arguments)
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize("other", ["corpus.en", "linked.en", "copied.en"])
def test_a_text_is_not_its_own_translation(here: Path, other: str) -> None:
    write("copied.en", ENGLISH)
    Path("linked.en").symlink_to("corpus.en")
    with pytest.raises(InputError, match=rf"(corpus\.en(, | and ))?{other}:? .*(the same|identical|given twice)"):
        run("corpus.en", other, "--target-language", "de")
    assert not Path("en-de").exists()


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("news.de", "de"),
        ("news.de.gz", "de"),
        ("german-reviews.en.txt", "en"),
        ("news-de.txt", "de"),
        ("zh_TW.txt", "zh_TW"),
        ("train.zh-Hant", "zh-Hant"),
        ("train.zh-tw.gz", "zh-tw"),
        ("kitchen.txt", None),
        ("en.kitchen.txt", None),
        ("news.en.old", None),
        ("train.lc", None),
        ("notes.md", None),
        ("english", None),
    ],
)
def test_a_language_is_a_whole_code_at_the_end_of_a_name(name: str, language: str | None) -> None:
    assert language_in(name) == language


@pytest.mark.parametrize("header", ["id,german,english", "id,Deutsch,English"])
def test_the_columns_of_a_table_are_told_and_name_the_languages(here: Path, header: str) -> None:
    write("tab.csv", [header, *(f"{n},{a},{b}" for n, (a, b) in enumerate(zip(GERMAN, ENGLISH, strict=True)))])
    _, source, target = header.split(",")
    told = run("tab.csv", "--task", "translation")
    assert (
        f"source: column '{source}'; target: column '{target}'; if this is wrong, set --source-field and "
        "--target-field\n" in told
    )
    assert f"source language: de (from the name {source}); if this is wrong, set --source-language" in told
    data = load_recipe("de-en").data
    assert (data.source_language, data.target_language) == ("de", "en")
    assert "column" not in run("corpus.en", "corpus.de")


def test_guesses_of_languages_are_told_with_the_option_that_corrects_them(here: Path) -> None:
    write("kitchen.txt", [f"第{number}只猫在睡觉。" for number in range(101)])
    told = run("corpus.en", "kitchen.txt")
    assert "source language: en (from the file extension of corpus.en); if this is wrong, set --source-language" in told
    assert "target language: zh (from its Han script); if this is wrong, set --target-language" in told
    write("attic.txt", GERMAN)
    told = run("corpus.en", "attic.txt", "--source-language", "eng")
    assert "source language" not in told
    assert "target language: tgt (not recognised from the name or the script of the text); if this is wrong" in told
    assert load_recipe("eng-tgt").data.target_language == "tgt"


def test_reading_and_writing_tell_how_far_they_are(here: Path, reporters: list[ProgressReporter]) -> None:
    run("corpus.en", "corpus.de")
    assert [(reporter.work, reporter.unit, reporter.total, reporter.done) for reporter in reporters] == [
        ("reading corpus.en", "pairs", None, 101),
        ("comparing both sides", "", None, 0),
        ("writing en-de", "pairs", 101, 101),
    ]


def test_the_time_of_training_is_left_to_training(here: Path) -> None:
    assert "training prints an estimate of its time as soon as it starts" in run("corpus.en", "corpus.de")


def test_files_of_unequal_length_are_refused(here: Path) -> None:
    write("short.de", GERMAN[:-3])
    with pytest.raises(InputError, match=r"corpus\.en has 101 lines, but short\.de has 98"):
        run("corpus.en", "short.de")


def test_too_little_text_is_refused(here: Path) -> None:
    write("few.en", ENGLISH[:19])
    write("few.de", GERMAN[:19])
    with pytest.raises(InputError, match=r"few\.en: too few distinct inputs to hold some out .*: 19;"):
        run("few.en", "few.de")
    assert not Path("en-de").exists()


def test_bad_utf8_is_an_error_or_skipped_on_both_sides(here: Path) -> None:
    Path("corpus.en").write_bytes(Path("corpus.en").read_bytes().replace(b"the 50 cats", b"the \xff cats"))
    with pytest.raises(InputError, match=r"corpus\.en, line 51, .*`heedful init --bad-utf8 skip`"):
        run("corpus.en", "corpus.de")
    assert "100 sentence pairs" in run("corpus.en", "corpus.de", "--bad-utf8", "skip")
    assert all("50" not in line for path in Path("en-de/data").iterdir() for line in lines(path))


def test_oddities_are_told(here: Path) -> None:
    write("odd.en", [*ENGLISH, *ENGLISH[:7], "", "same"])
    write("odd.de", [*GERMAN, *GERMAN[:7], "leer", "same"])
    told = run("odd.en", "odd.de")
    assert "  7 pairs (6.4%) repeating an earlier pair" in told
    assert "  1 pair (0.9%) with an empty side" in told
    assert "  1 pair (0.9%) with identical sides" in told
    assert "fewer than 10,000 pairs" in told


def test_a_place_that_cannot_be_written_is_named(here: Path) -> None:
    with pytest.raises(InputError, match=r"--out corpus\.en/x: corpus\.en is a file; give a folder"):
        run("corpus.en", "corpus.de", "--out", "corpus.en/x")
