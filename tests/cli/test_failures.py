"""Every failure that a user can cause is one readable message on standard error and an exit code."""

import gzip
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli import main
from toy_model import TOY_MODEL

RECIPE = f"""
name = "toy"
[data]
train = [{{source = "train.en", target = "train.de"}}]
valid = {{source = "valid.en", target = "valid.de"}}
[tokenizer]
kind = "word"
vocab_size = 300
{TOY_MODEL}[decode]
max_extra = 3
[train]
max_updates = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of every case, with good and bad files."""
    monkeypatch.chdir(tmp_path)
    for name in ("train", "valid"):
        Path(f"{name}.en").write_text("a cat\nthe dog\nthe red cat\n")
        Path(f"{name}.de").write_text("eine Katze\nder Hund\ndie rote Katze\n")
    Path("short.de").write_text("eine Katze\nder Hund\n")
    Path("bad.en").write_bytes(b"a cat\nthe \xff dog\nthe red cat\n")
    Path("empty.en").write_text("")
    Path("empty.de").write_text("")
    Path("blank.en").write_text("\n\n\n")
    Path("cut.en.gz").write_bytes(gzip.compress(b"a cat\nthe dog\nthe red cat\n")[:-9])
    Path("fake.en.gz").write_text("a cat\n")
    Path("bad.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": "a"}\n')
    Path("torn.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": \n')
    Path("one.tsv").write_text("a cat\teine Katze\nthe dog\n")
    Path("model.pt").write_bytes(b"PK")
    Path("words.txt").write_text(f"cat{' 1' * 16}\ndog 1\n")
    Path("full").mkdir()
    Path("full/precious.txt").write_text("keep me")
    Path("damaged").mkdir()
    Path("damaged/manifest.json").write_text("{")
    Path("ids.txt").write_text("5 999999\n")
    Path("recipe.toml").write_text(RECIPE)
    recipes = {
        "typo": ("max_updates = 2", "max_update = 2"),
        "moved": ("max_updates = 2", "lr = 2.0"),
        "mistyped": ("max_updates = 2", 'max_updates = "many"'),
        "heads": ("heads = 2", "heads = 3"),
        "syntax": ("name =", "name"),
        "choice": ('kind = "word"', 'kind = "words"'),
        "nothing": ('train = [{source = "train.en", target = "train.de"}]', ""),
        "lost": ("train.de", "lost.de"),
        "uneven": ("train.de", "short.de"),
        "bytes": ("train.en", "bad.en"),
        "void": ('"train.en", target = "train.de"', '"empty.en", target = "empty.de"'),
        "blanks": ("train.en", "blank.en"),
        "cut": ("train.en", "cut.en.gz"),
        "fake": ("train.en", "fake.en.gz"),
        "key": ('"train.en", target = "train.de"', '"bad.jsonl"'),
        "torn": ('"train.en", target = "train.de"', '"torn.jsonl"'),
        "column": ('"train.en", target = "train.de"', '"one.tsv"'),
        "small": ("vocab_size = 300", "vocab_size = 7"),
        "vectors": ("d_model = 16", 'd_model = 16\ntie = "none"\nsource_vectors = "words.txt"'),
        "device": ("max_updates = 2", 'max_updates = 2\ndevice = "quantum"'),
        "schedule": ("max_updates = 2", "max_updates = 2\n[optimizer]\nlr = -1.0"),
    }
    for name, (old, new) in recipes.items():
        assert old in RECIPE
        Path(f"{name}.toml").write_text(RECIPE.replace(old, new))
    return tmp_path


CASES = {
    "heedful trane": (2, "trane"),
    "heedful train": (2, "recipe"),
    "heedful train nowhere.toml": (2, "nowhere.toml"),
    "heedful train full": (2, "config.toml"),
    "heedful train typo.toml": (2, "train.max_updates"),
    "heedful train moved.toml": (2, "optimizer.lr"),
    "heedful train mistyped.toml": (2, "max_updates"),
    "heedful train heads.toml": (2, "d_model = 16"),
    "heedful train syntax.toml": (2, "syntax.toml, line 2"),
    "heedful train choice.toml": (2, "wordpiece"),
    "heedful train nothing.toml": (2, "data.train"),
    "heedful train schedule.toml": (2, "optimizer.lr"),
    "heedful train lost.toml --out run": (2, '"lost.de": no such file in '),
    "heedful train uneven.toml --out run": (2, "2"),
    "heedful train bytes.toml --out run": (2, "bad.en, line 2"),
    "heedful train void.toml --out run": (2, "contains no pairs"),
    "heedful train blanks.toml --out run": (2, "empty"),
    "heedful train cut.toml --out run": (2, "file is truncated"),
    "heedful train fake.toml --out run": (2, "not a valid .gz file"),
    "heedful train key.toml --out run": (2, "bad.jsonl, line 2"),
    "heedful train torn.toml --out run": (2, "torn.jsonl, line 2"),
    "heedful train column.toml --out run": (2, "one.tsv, line 2"),
    "heedful train small.toml --out run": (2, "vocab_size"),
    "heedful train vectors.toml --out run": (2, "words.txt, line 2"),
    "heedful train device.toml --out run": (2, "quantum"),
    "heedful train recipe.toml --out full": (2, "is not a heedful run"),
    "heedful train recipe.toml --set train.max_updates": (2, "key=value"),
    "heedful train recipe.toml --set train.speed=9": (2, "train.speed"),
    "heedful train recipe.toml --data nowhere --out run": (
        2,
        "--data nowhere: no such folder; check the path",
    ),
    "heedful config show typo.toml": (2, "max_update"),
    "heedful config check heads.toml": (2, "heads"),
    "heedful info nowhere": (2, "nowhere"),
    "heedful info tiny --vocab many": (2, "--vocab"),
    "heedful translate --precision int4 Hello": (2, "float32 or int8"),
    "heedful translate hello --model nowhere": (2, 'no model "nowhere"'),
    "heedful translate hello --model full": (2, "is not a heedful model"),
    "heedful translate hello --model model.pt": (2, "can run code"),
    f"heedful translate hello --model {'n' * 300}": (1, "File name too long; choose a path that you can read"),
    "heedful translate hello --model train.en": (2, "is a file"),
    "heedful translate hello --model damaged": (2, "manifest.json"),
    "heedful translate hello --input train.en": (2, "--input"),
    "heedful translate hello --beam wide": (2, "beam"),
    "heedful generate hello --model nowhere": (2, 'no model "nowhere"'),
    "heedful generate hello --model full": (2, "is not a heedful model"),
    "heedful generate hello": (2, "--model"),
    "heedful fill '[MASK]' --model nowhere": (2, 'no model "nowhere"'),
    "heedful fill '[MASK]' --model model.pt": (2, "can run code"),
    "heedful fill '[MASK]'": (2, "--model"),
    "heedful fill '[MASK]' --model en-de": (2, "use it with `heedful translate`"),
    "heedful fill '[MASK]' --model en-de --count 0": (2, "--count"),
    "heedful predict hello --model nowhere": (2, 'no model "nowhere"'),
    "heedful predict hello --model damaged": (2, "manifest.json"),
    "heedful predict hello": (2, "--model"),
    "heedful search hello": (2, "--model"),
    "heedful search hello --model nowhere": (2, "--corpus"),
    "heedful predict hello --model en-de": (2, "use it with `heedful translate`"),
    "heedful train recipe.toml --set task=masked_lm": (2, "set tokenizer.mask = true"),
    "heedful train recipe.toml --set task=language_modell": (2, 'did you mean "language_model"'),
    "heedful evaluate": (2, "give a model or --hypotheses"),
    "heedful evaluate --hypotheses train.de": (2, "--reference"),
    "heedful evaluate --hypotheses train.de --reference short.de": (2, "2"),
    "heedful evaluate --hypotheses empty.de --reference empty.de": (2, "no lines"),
    "heedful evaluate --hypotheses train.de --reference train.de --metrics blue": (2, "blue"),
    "heedful evaluate --hypotheses lost.de --reference train.de": (2, "lost.de"),
    "heedful evaluate nowhere --source train.en --reference train.de": (2, "nowhere"),
    "heedful attention hello --model nowhere --out image.png": (2, "nowhere"),
    "heedful attention hello --model nowhere --out image.doc": (2, "image.doc"),
    "heedful export nowhere out": (2, "nowhere"),
    "heedful convert nowhere --out out": (2, 'no model "nowhere"'),
    "heedful convert nowhere --from bert --out out": (2, 'no model "nowhere": no such folder'),
    "heedful convert train.en --out out": (2, "train.en is a file"),
    "heedful convert train.en --from opennmt --out out": (2, "train.en is a file"),
    "heedful convert full --out out": (2, "give its local folder (with config.json for Hugging Face, model.bin"),
    "heedful convert nowhere --to gpt2 --out out": (2, 'no model "nowhere"'),
    "heedful convert nowhere --from bert --to gpt2 --out out": (2, 'no model "nowhere"'),
    "heedful convert en-de --out out": (
        2,
        "to convert it, give --to with one of safetensors, ctranslate2, argos, onnx",
    ),
    "heedful convert en-de --to marian --out marian": (2, 'model.norm = "post", not "pre"'),
    "heedful convert en-de --to gpt2 --out out": (2, 'but this format needs "language_model"'),
    "heedful convert full --from bort --out out": (2, "bort"),
    "heedful scenes en-fr --out scenes": (2, "en-fr"),
    "heedful scenes en-de --out full --train 1 --valid 1 --test 1": (2, "full"),
    "heedful stories fr --out stories": (2, "'fr'"),
    "heedful stories --sentences 9 4 --out stories": (2, "--sentences 9 4"),
    "heedful stories --out full --train 1 --valid 1 --test 1": (2, "full"),
    "heedful stories --facts --out full --train 1 --valid 1 --test 1": (2, "full"),
    "heedful functions --out full --train 1 --valid 1 --test 1": (2, "full"),
    "heedful shapes --out full --train 1 --valid 1 --test 1": (2, "full"),
    "heedful shapes --out out --speak fr": (2, "--speak fr"),
    "heedful shapes --out out --test 1000000": (2, "--test"),
    "heedful tokenizer train lost.en --out t": (2, "lost.en"),
    "heedful tokenizer train train.en --out full": (2, "full"),
    "heedful tokenizer train train.en --out t --vocab-size 3": (2, "vocab"),
    "heedful tokenizer encode nowhere train.en": (2, "nowhere"),
    "heedful tokenizer stats full train.en": (2, "full"),
    "heedful init train.en short.de": (2, "short.de"),
    "heedful init train.en lost.de": (2, "lost.de"),
    "heedful init empty.en empty.de": (2, "no lines"),
}


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("command", CASES)
def test_a_failure_is_one_message_and_an_exit_code(command, folder, monkeypatch, capsys):
    code, words = CASES[command]
    assert run(command, monkeypatch) == code
    out, err = capsys.readouterr()
    assert out == "" or command.startswith("heedful init ")  # whose first line says what the data is used for
    assert words in err
    assert "Traceback" not in err
    assert (folder / "full" / "precious.txt").read_text() == "keep me"
    assert [path.name for path in (folder / "full").iterdir()] == ["precious.txt"]


@pytest.mark.sampled(3)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "info en-de",
        "info",
        "config presets",
        "config schema",
        "config show vaswani-base",
        "runs list .",
        "doctor",
        "plan tiny --gpu h100 --set model.encoder_layers=1 --set model.decoder_layers=1",
    ],
)
def test_a_full_standard_output_is_one_message(words):
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "heedful", *words.split()]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    messages = [line for line in ended.stderr.splitlines() if not line.startswith("measuring: ")]  # on a slow machine
    assert (ended.returncode, messages) == (1, ["heedful: cannot write to standard output: No space left on device"])


def test_the_table_has_at_least_forty_cases():
    assert len(CASES) >= 40
