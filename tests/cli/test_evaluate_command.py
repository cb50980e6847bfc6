"""`heedful evaluate`: the same figures as the library, for files and models, and one message for each mistake."""

import json
from dataclasses import asdict, replace
from functools import partial

import pytest
import torch
from invocation import invoke
from speechless import make_speechless

from heedful import load
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import write_model
from heedful.config.schema import (
    CorpusConfig,
    DataConfig,
    DecodeConfig,
    FilterConfig,
    ModelConfig,
    Recipe,
    TokenizerConfig,
)
from heedful.errors import InputError
from heedful.metrics import Scoring, paired_bootstrap, score
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

SOURCE = ["the old dog sees the station .", "", "two women read a book .", "the cat sleeps .", "a red ball ."]
TARGET = ["der alte Hund sieht den Bahnhof .", "", "zwei Frauen lesen ein Buch .", "die Katze schläft .", "Ball ."]
OTHER = ["der Hund sieht den alten Bahnhof .", "ja .", "zwei Frauen lesen Bücher .", "die Katze .", "ein Ball ."]

VOCABULARY = TokenizerConfig(vocab_size=307)

FILES = ["--hypotheses", "other", "--reference", "target"]

run = partial(invoke, "evaluate")


def write_texts(folder):
    for name, lines in {"source": SOURCE, "target": TARGET, "other": OTHER, "short": TARGET[:3], "empty": []}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def place(tmp_path):
    """A folder with texts."""
    write_texts(tmp_path)
    return tmp_path


def make_model(folder, data, max_extra=3, vocabulary=VOCABULARY, **shape):
    config = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1, **shape)
    tokenizer = train_tokenizer(SOURCE + TARGET, vocabulary)
    recipe = Recipe(data=data, model=config, decode=DecodeConfig(beam=2, max_extra=max_extra))
    torch.manual_seed(max_extra)
    model = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(model))
    return folder


DATA = DataConfig(target_language="zh", test=CorpusConfig(source="source", target="target"))


@pytest.fixture
def model(place):
    """A model that knows nothing, whose recipe names a test set."""
    return make_model(place / "model", replace(DATA, root=str(place)))


def test_text_gets_a_line_for_each_metric_with_its_signature(place):
    result = run("--hypotheses", place / "other", "--reference", place / "target", "--language", "de")
    found = score(OTHER, [TARGET], Scoring(language="de"))
    assert result.stdout.splitlines() == [f"{s.name:5}  {s.value:6.2f}  {s.signature}" for s in found]
    assert result.stderr == ""


def test_json_has_all_digits(place):
    options = ["--hypotheses", place / "other", "--reference", place / "target", "--reference", place / "source"]
    result = json.loads(run(*options, "--metrics", "ter,chrf", "--tokenised", "--json").stdout)
    found = score(OTHER, [TARGET, SOURCE], Scoring(metrics=("ter", "chrf", "tokenised-bleu")))
    assert result == {
        "system": str(place / "other"),
        "references": [str(place / "target"), str(place / "source")],
        "sentences": 5,
        "scores": [vars(entry) for entry in found],
    }


def test_a_model_translates_the_test_set_of_its_recipe(place, model):
    output = place / "output"
    result = json.loads(run(model, "--output", output, "--json", "--device", "cpu").stdout)
    lines = output.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert lines == load(model, "cpu").translate(SOURCE)
    assert result["scores"] == [vars(s) for s in score(lines, [TARGET], Scoring(language="zh"))]
    assert "tok:zh" in result["scores"][0]["signature"]


def test_files_and_options_come_before_the_recipe(place, model):
    output = place / "output"
    files = ["--source", place / "other", "--reference", place / "source"]
    options = ["--beam", 1, "--output", output, "--language", "de", "--json"]
    result = json.loads(run(model, *files, *options).stdout)
    translator = load(model, "cpu")
    translator.config = replace(translator.config, beam=1)
    lines = translator.translate(OTHER)
    assert output.read_text(encoding="utf-8").removesuffix("\n").split("\n") == lines
    assert result["scores"] == [vars(s) for s in score(lines, [SOURCE], Scoring(language="de"))]


def test_data_moves_the_recipes_paths(place):
    model = make_model(place / "model", replace(DATA, root=str(place / "gone")))
    with pytest.raises(InputError, match="gone, which does not exist here; give --data"):
        run(model)
    assert run(model, "--data", place).stdout == run(make_model(place / "b", replace(DATA, root=str(place)))).stdout


def test_a_baseline_text_is_compared_by_bootstrap(place):
    options = ["--hypotheses", place / "other", "--against", place / "source", "--reference", place / "target"]
    result = json.loads(run(*options, "--json").stdout)
    expected = paired_bootstrap(SOURCE, OTHER, [TARGET])
    assert result["baseline"] == str(place / "source")
    assert [entry["p_value"] for entry in result["comparisons"]] == [c.p_value for c in expected]
    assert [entry["system"] for entry in result["comparisons"]] == [vars(c.system) for c in expected]
    told = run(*options)
    assert " are unreliable; use at least 100" in told.stderr
    heading, first, *_ = told.stdout.splitlines()
    assert heading.split() == [str(place / "source"), "(baseline)", str(place / "other"), "p-value", "signature"]
    assert first.split()[:5] == [
        "BLEU",
        f"{expected[0].baseline.value:.2f}",
        f"({expected[0].baseline.mean:.2f}",
        "±",
        f"{expected[0].baseline.interval:.2f})",
    ]
    assert first.index(f"{expected[0].system.value:6.2f} (") == heading.index(str(place / "other"))


def test_a_verdict_says_which_system_is_better_and_whether_that_is_more_than_chance(tmp_path):
    wanted = [f"the old dog {number} sleeps near the house" for number in range(101)]
    texts = {"target": wanted, "good": wanted, "bad": [line[::-1] for line in wanted]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines))
    good, bad = tmp_path / "good", tmp_path / "bad"
    options = ["--reference", tmp_path / "target", "--metrics", "bleu,ter", "--language", "en", "--hypotheses"]
    for system, baseline in ((good, bad), (bad, good)):
        bleu, ter = run(*options, system, "--against", baseline).stdout.splitlines()[-2:]
        assert bleu.startswith(f"BLEU: {good} is better than {bad} by ")
        assert bleu.endswith("; the difference is statistically significant (p = 0.0020 < 0.05)")
        assert ter.startswith(f"TER: {good} is better than {bad} by ")
    assert run(*options, bad, "--against", bad).stdout.endswith(f"\nTER: {bad} and {bad} are equal\n")


def test_a_baseline_model_translates_the_same_source(place, model):
    other = make_model(place / "second", replace(DATA, root=str(place)), max_extra=5)
    result = json.loads(run(model, "--against", other, "--metrics", "chrf", "--json").stdout)
    systems = [load(folder, "cpu").translate(SOURCE) for folder in (other, model)]
    [expected] = paired_bootstrap(systems[0], systems[1], [TARGET], Scoring(metrics=("chrf",), language="zh"))
    assert result["comparisons"] == [asdict(expected)]


def test_tokenised_text_is_pointed_out(tmp_path):
    (tmp_path / "text").write_text("ein Hund .\n" * 101)
    options = ["--hypotheses", tmp_path / "text", "--reference", tmp_path / "text"]
    assert "the text looks tokenised; --tokenised" in run(*options).stderr
    assert run(*options, "--tokenised").stderr == ""


def test_source_lines_that_were_cut_are_counted(place):
    settings = {"positions": "learned", "max_positions": 31}
    data = replace(DATA, root=str(place), filters=FilterConfig(max_tokens=23))
    model = make_model(place / "model", data, **settings)
    (place / "source").write_text("\n".join([*SOURCE[:4], "x " * 37]) + "\n")
    assert "1 of 5 lines was truncated (line " in run(model).stderr


def test_translations_that_are_empty_are_counted(place, model):
    mute = make_speechless(model, place / "mute")
    assert f"heedful: {mute}: 4 of 4 translations were empty; a model that" in run(mute).stderr


@pytest.mark.parametrize("metrics", ["BLEU", "bleu", " Bleu "])
def test_a_metric_is_known_in_any_case(place, metrics):
    options = ["--hypotheses", place / "other", "--reference", place / "target", "--language", "de"]
    assert run(*options, "--metrics", metrics).stdout.startswith("BLEU ")


def test_a_text_that_cannot_be_cut_into_words_is_told(place):
    (place / "chinese").write_text("我们在河边吃鱼。\n两只小狗在跑。\n", encoding="utf-8")
    options = ["--hypotheses", place / "chinese", "--reference", place / "chinese", "--metrics", "bleu"]
    told = "heedful: the references: most letters are CJK, which tok:13a does not split into words; set language zh"
    assert run(*options).stderr.startswith(told)
    assert run(*options, "--language", "zh").stderr == ""


def test_every_line_and_every_step_is_told(place, model, reporters):
    other = make_model(place / "second", replace(DATA, root=str(place)), max_extra=5)
    run(model, "--against", other, "--metrics", "chrf")
    found = [(reporter.work, reporter.total, reporter.done) for reporter in reporters]
    assert found == [
        (f"translating with {other}", 5, 5),
        (f"translating with {model}", 5, 5),
        ("comparing by paired bootstrap", None, 0),
    ]


def test_the_test_set_of_a_recipe_is_not_overwritten(place, model):
    with pytest.raises(InputError, match="would be overwritten"):
        run(model, "--output", place / "target", "--force")
    assert (place / "target").read_text(encoding="utf-8").splitlines() == TARGET


MISTAKES = {
    '"Chinese" is not an ISO 639 language code; did you mean "zh"?': [*FILES, "--language", "Chinese"],
    '"xx" is not an ISO 639 language code': [*FILES, "--language", "xx"],
    "give a model or --hypotheses FILE": [],
    "give a model or --hypotheses FILE, not both": ["en-de", "--hypotheses", "other"],
    "--source needs --reference": ["en-de", "--source", "source"],
    "--hypotheses needs --reference": ["--hypotheses", "other"],
    "--reference needs --source": ["en-de", "--reference", "target"],
    "--data locates the recipe's test set": ["en-de", "--source", "source", "--reference", "target", "--data", "."],
    "--output saves": ["--hypotheses", "other", "--reference", "target", "--output", "new"],
    "--source-field is for tables, but a translator": [*FILES, "--source-field", "1"],
    "--beam is for models, but": ["--hypotheses", "other", "--reference", "target", "--beam", "3"],
    "an existing folder": ["en-de", "--output", "nowhere/new"],
    "target has 5 lines, but short has 3": ["--hypotheses", "short", "--reference", "target"],
    "short has 3 lines, but other has 5": ["--hypotheses", "other", "--reference", "short"],
    "source has 5 lines, but short has 3": ["model", "--source", "source", "--reference", "short"],
    "empty: no lines": ["--hypotheses", "other", "--reference", "empty"],
    "nothing: no such file": ["--hypotheses", "nothing", "--reference", "target"],
    'unknown metric "meteor"': ["--hypotheses", "other", "--reference", "target", "--metrics", "bleu,meteor"],
    "--against nothing: no such file of translations": [
        "--hypotheses",
        "other",
        "--reference",
        "target",
        "--against",
        "nothing",
    ],
    'no model "nothing"': ["nothing"],
    "has no data.test": ["untested"],
    "but short has 3": ["--hypotheses", "other", "--reference", "target", "--against", "short"],
    'unknown device "abacus"; use auto, cpu': ["model", "--device", "abacus"],
}


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """A folder with texts and two models, for commands that write nothing."""
    folder = tmp_path_factory.mktemp("furnished")
    write_texts(folder)
    make_model(folder / "model", replace(DATA, root=str(folder)))
    make_model(folder / "untested", DataConfig())
    return folder


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_one_message(furnished, monkeypatch, message):
    monkeypatch.chdir(furnished)
    with pytest.raises(InputError) as caught:
        run(*MISTAKES[message])
    assert message in str(caught.value)
    assert not (furnished / "new").exists()


def test_text_that_the_vocabulary_lacks_is_reported(place):
    model = make_model(place / "model", DATA, vocabulary=TokenizerConfig(kind="word", byte_fallback=False))
    (place / "new").write_text("".join(f"neu{number} ist\n" for number in range(5)))
    told = run(model, "--source", place / "source", "--reference", place / "new").stderr
    assert f"% of the tokens of {place / 'new'} are not in the vocabulary (<unk>); " in told
    told = run(model, "--source", place / "new", "--reference", place / "target").stderr
    assert f"% of the tokens of {place / 'new'} are not in the vocabulary (<unk>); " in told
    assert "<unk>" not in run(model, "--source", place / "source", "--reference", place / "target").stderr


def test_text_in_lower_case_is_scored_with_and_without_case(place):
    for name, lines in {"lower": TARGET, "target": TARGET, "other": OTHER}.items():
        text = "".join(f"{line}\n" for line in lines) * 4
        (place / name).write_text(text.lower() if name == "lower" else text)
    files = ["--hypotheses", place / "lower", "--reference", place / "target", "--language", "de"]
    result = run(*files)
    names = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert names == ["BLEU", "chrF2", "TER", "BLEU (lower-cased)", "chrF2 (lower-cased)"]
    assert "contain no capital letters, but the references do" in result.stderr
    compared = json.loads(run(*files, "--against", place / "other", "--json").stdout)["comparisons"]
    assert [found["name"] for found in compared][-2:] == ["BLEU (lower-cased)", "chrF2 (lower-cased)"]
    assert "case:lc" in compared[-1]["signature"]
    assert "lower-cased" not in run("--hypotheses", place / "other", *files[2:]).stdout


def test_a_model_of_lower_cased_text_is_scored_with_and_without_case(place):
    model = make_model(place / "model", replace(DATA, root=str(place)), vocabulary=TokenizerConfig(lowercase=True))
    result = run(model, "--language", "de", "--metrics", "bleu")
    assert [line.split("  ")[0] for line in result.stdout.splitlines()] == ["BLEU", "BLEU (lower-cased)"]
    assert f"the outputs of {model} contain no capital letters, but the references do" in result.stderr


def test_a_model_of_compatible_characters_is_scored_in_its_form(place):
    vocabulary = TokenizerConfig(normalization="nfkc")
    model = make_model(place / "model", replace(DATA, root=str(place)), vocabulary=vocabulary)
    (place / "target").write_text("".join(f"{line}\u2026\n" for line in TARGET))
    assert all("|form:nfkc" in line for line in run(model).stdout.splitlines())
