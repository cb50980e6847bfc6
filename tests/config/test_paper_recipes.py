"""The recipes of papers: their settings are those that the papers print, and they run on text of the same form."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.corpora.scenes import split
from heedful.data.catalogue import public_sets
from heedful.predictors import Translator

RECIPES = Path(__file__).parents[2] / "recipes"
# "Attention Is All You Need": table 3, first and last row, and sections 5.1 to 6.1. A dropout of 0.1 for the big model
# from English to French is in section 6.1.
COLUMNS = "file               N  d_model  d_ff   h  d_k  P_drop  eps_ls   steps  vocabulary  averaged  beam  alpha"
TABLE = """
wmt14-en-de/config.toml    6      512  2048   8   64     0.1     0.1  100000       37000         5     4    0.6
wmt14-en-de/big.toml       6     1024  4096  16   64     0.3     0.1  300000       37000        20     4    0.6
wmt14-en-fr/config.toml    6      512  2048   8   64     0.1     0.1  100000       32000         5     4    0.6
wmt14-en-fr/big.toml       6     1024  4096  16   64     0.1     0.1  300000       32000        20     4    0.6
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
NAMES = [row[0] for row in ROWS] + ["iwslt14-de-en/config.toml"]
TINY = {
    "tokenizer.vocab_size": 300,
    "model.d_model": 16,
    "model.d_ff": 16,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "train.batch_tokens": 256,
    "train.max_updates": 2,
    "train.validate_every": 2,
    "train.save_every": 1,
    "train.average_last": 2,
    "optimizer.warmup": 1,
    "decode.max_extra": 3,
}


def values(recipe: Recipe) -> list[float]:
    """The values of a recipe in the order of the columns of the table."""
    model, train, decode = recipe.model, recipe.train, recipe.decode
    return [
        model.encoder_layers,
        model.d_model,
        model.d_ff,
        model.heads,
        model.d_model // model.heads,
        model.dropout,
        train.label_smoothing,
        train.max_updates,
        recipe.tokenizer.vocab_size,
        train.average_last,
        decode.beam,
        decode.alpha,
    ]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_recipe_of_wmt_has_the_values_of_the_paper(row: list[str]) -> None:
    assert len(COLUMNS.split()) == len(row)
    recipe = load_recipe(RECIPES / row[0])
    assert values(recipe) == [float(value) for value in row[1:]]
    model, optimizer = recipe.model, recipe.optimizer
    assert (model.decoder_layers, model.norm, model.positions, model.tie) == (6, "post", "sinusoidal", "all")
    assert (optimizer.name, optimizer.betas, optimizer.eps, optimizer.schedule) == ("adam", (0.9, 0.98), 1e-9, "noam")
    assert (optimizer.warmup, recipe.decode.extra, recipe.decode.penalty) == (4000, 50, "gnmt")
    assert recipe.train.batch_tokens * recipe.train.accumulate == 32_768  # about 25,000 tokens without padding


def test_the_recipe_of_iwslt_has_the_values_of_fairseq() -> None:
    recipe = load_recipe(RECIPES / "iwslt14-de-en")
    model, optimizer, train = recipe.model, recipe.optimizer, recipe.train
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff, model.heads) == (6, 6, 512, 1024, 4)
    assert (model.norm, model.positions, model.dropout, train.label_smoothing) == ("post", "sinusoidal", 0.3, 0.1)
    assert (optimizer.name, optimizer.lr, optimizer.betas) == ("adam", 5e-4, (0.9, 0.98))
    assert (optimizer.schedule, optimizer.warmup, optimizer.weight_decay) == ("inverse_sqrt", 4000, 1e-4)
    assert (recipe.tokenizer.vocab_size, train.batch_tokens, recipe.decode.beam) == (10_000, 4096, 5)


def test_the_training_data_of_wmt_is_as_large_as_in_the_paper() -> None:
    for name, millions in {"wmt14-en-de": (4.5, 4.6), "wmt14-en-fr": (36, 41)}.items():
        corpora = load_recipe(RECIPES / name).data.train
        files = public_sets()[name].files
        pairs = sum(files[corpus.source.removeprefix(f"{name}/")].lines or 0 for corpus in corpora)
        assert millions[0] * 1e6 < pairs < millions[1] * 1e6


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_talks(folder: Path, parts: dict) -> None:
    """Write text in the files of the data set iwslt14: training talks with tags, and five test sets."""
    assert set(public_sets()["iwslt14"].files) >= {"train.tags.de-en.de.gz", "TEDX.dev2012.en.gz"}
    for language, side in {"de": "target", "en": "source"}.items():
        texts = {part: [getattr(pair, side).text for pair in pairs] for part, pairs in parts.items()}
        talk = [
            f"<url>http://talk</url>\n<title>A Talk</title>\n<talkid>1</talkid>\n{text}\n" for text in texts["train"]
        ]
        write(folder / f"train.tags.de-en.{language}.gz", "".join(talk))
        for test in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"):
            write(folder / f"{test}.{language}.gz", "".join(f"{text}\n" for text in texts["test"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_of_a_paper_runs_from_its_files_to_translations(name: str, tmp_path: Path) -> None:
    parts = split("en-de", train=1000, valid=10, test=10, seed=1)
    recipe = load_recipe(RECIPES / name)
    if name.startswith("iwslt14"):
        write_talks(tmp_path / "iwslt14", parts)
        script = RECIPES / "iwslt14-de-en/prepare.py"
        subprocess.run([sys.executable, script, tmp_path / "iwslt14"], check=True)
    else:
        count = len(recipe.data.train)
        pairs = [*(parts["train"][number::count] for number in range(count)), parts["valid"], parts["test"]]
        for corpus, part in zip([*recipe.data.train, recipe.data.valid, recipe.data.test], pairs, strict=True):
            write(tmp_path / corpus.source, "".join(f"{pair.source.text}\n" for pair in part))
            write(tmp_path / str(corpus.target), "".join(f"{pair.target.text}\n" for pair in part))
    run = heedful.train(RECIPES / name, tmp_path / "run", tmp_path, TINY)
    assert run.update == 2
    assert run.scores["loss"] > 0
    assert len(heedful.load(run.folder, "cpu", as_=Translator).translate(["A man walks."])) == 1


def test_talks_are_split_as_in_the_script_of_fairseq(tmp_path: Path) -> None:
    write_talks(tmp_path / "iwslt14", split("en-de", train=46, valid=1, test=3, seed=1))
    script = RECIPES / "iwslt14-de-en/prepare.py"
    subprocess.run([sys.executable, script, tmp_path / "iwslt14"], check=True)
    texts = {
        part: gzip.decompress((tmp_path / f"iwslt14/{part}.en.gz").read_bytes()).decode().splitlines()
        for part in ("train", "valid", "test")
    }
    assert {part: len(lines) for part, lines in texts.items()} == {"train": 88, "valid": 4, "test": 15}  # 46 titles
    assert "a talk" in texts["train"]
    assert not any("<" in line or line != line.lower() for lines in texts.values() for line in lines)


def test_talks_that_are_not_there_are_named_with_the_command_that_downloads_them(tmp_path: Path) -> None:
    script = RECIPES / "iwslt14-de-en/prepare.py"
    result = subprocess.run([sys.executable, script, tmp_path / "iwslt14"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert f"heedful data iwslt14 --out {tmp_path}" in result.stderr
