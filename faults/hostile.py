"""What strangers send: hostile model folders, pickles in disguise and fuzzed texts. None runs code, hangs or crashes.

    python faults/hostile.py --count 10000

`--count` is the number of fuzzed texts; there are a fiftieth as many model folders, every pickle is tried on several
commands, and lines of a million characters come last.
"""

import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import tally
import toy
from strangers import folders, pickles, texts, trials

from heedful.config.load import recipe_to_dict, to_toml
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.training import train_tokenizer

Kind = Literal["bpe", "unigram", "wordpiece", "word", "character", "byte"]
LOSSLESS: tuple[Kind, ...] = ("bpe", "unigram", "wordpiece", "word", "character", "byte")
TOGETHER = 200  # lines of a file that is translated or trained on
SENTENCE = "the old dog sees aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ."


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, and print the counts."""
    asked = tally.options(__doc__, 10_000, arguments)
    found = tally.Tally(__file__, asked)
    rng = random.Random(asked.seed)
    with TemporaryDirectory() as name, trials.Server() as server:
        folder = Path(name) / "work"
        folder.mkdir()
        prepare(folder)
        send_folders(found, server, folder, rng)
        send_pickles(found, server, folder, rng)
        send_texts(found, server, folder, rng)
    return found.conclude()


def prepare(folder: Path) -> None:
    """Write a sound model, a recipe and a text, beside which what strangers send will lie."""
    folders.write_translator(folder / "model")
    toy.write_pairs(folder)
    (folder / "recipe.toml").write_text(to_toml(recipe_to_dict(toy.recipe(folder))), encoding="utf-8")
    (folder / "text").write_text("w1 w2\nw3\n", encoding="utf-8")


def send_folders(found: tally.Tally, server: trials.Server, folder: Path, rng: random.Random) -> None:
    """Translate with hostile model folders: each works or is refused in one message."""
    for name, change in folders.drawn(max(1, found.asked.count // 50), rng).items():
        place = folder / "hostile"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / "model", place)
        change(place)
        with found.trial(name):
            server.heedful(folder, "translate", SENTENCE, "--model", "hostile").check()
        found.faults["hostile model folders"] += 1


def send_pickles(found: tally.Tally, server: trials.Server, folder: Path, rng: random.Random) -> None:
    """Give every pickle to every command that reads files: none is unpickled, so that there is no canary."""
    every = [(name, command) for name in pickles.DISGUISES for command in pickles.COMMANDS]
    for name, command in rng.sample(every, min(len(every), 2 * found.asked.count)):
        remove(folder / name)
        pickles.DISGUISES[name](folder / name)
        with found.trial(command.format(name)):
            server.heedful(folder, *command.format(name).split()).check((0, 2))
            assert not any(folder.parent.glob(f"**/{pickles.CANARY}")), "the pickle was run"
        found.faults["pickles in disguise"] += 1


def send_texts(found: tally.Tally, server: trials.Server, folder: Path, rng: random.Random) -> None:
    """Train tokenizers on fuzzed texts, encode and decode them, translate them, and train a model on them."""
    count = found.asked.count
    for begin in range(0, count, TOGETHER):
        lines = [texts.line(rng) for _ in range(min(TOGETHER, count - begin))]
        with found.trial(f"texts from {begin} on: round trip"):
            check_round_trip(lines, rng.choice(LOSSLESS))
        text = "".join(f"{line}\n" for line in lines)
        with found.trial(f"texts from {begin} on: translation"):
            check_translation(server, folder, text.encode())
        with found.trial(f"texts from {begin} on: training"):
            check_training(server, folder, lines, rng)
        found.faults["fuzzed texts"] += len(lines)
    for kind in rng.sample(list(texts.ENDLESS), min(len(texts.ENDLESS), count)):
        with found.trial(f"a line of a million characters: {kind}"):
            check_round_trip([texts.ENDLESS[kind]], "byte")
            check_translation(server, folder, f"a dog\n{texts.ENDLESS[kind]}\na dog\n".encode())
        found.faults["lines of a million characters"] += 1


def check_round_trip(lines: list[str], kind: Kind) -> None:
    """Check that a tokenizer gives back every text, and refuses half a character."""
    config = TokenizerConfig(kind=kind, vocab_size=400)
    tokenizer = train_tokenizer([*lines, "a"], config)
    for line, ids in zip(lines, tokenizer.encode_batch(lines), strict=True):
        assert tokenizer.decode(ids) == line, repr(line[:100])
    try:
        tokenizer.encode(f"{lines[0][:50]}\ud83d")
    except InputError:
        return
    raise AssertionError("half a character was encoded")


def check_translation(server: trials.Server, folder: Path, text: bytes) -> None:
    """Check that there is one line of output for each line of input."""
    (folder / "fuzzed").write_bytes(text)
    server.heedful(
        folder, "translate", "--input", "fuzzed", "--output", "out", "--model", "model", "--beam", "1"
    ).check((0,))
    assert (folder / "out").read_bytes().count(b"\n") == text.count(b"\n")


def check_training(server: trials.Server, folder: Path, lines: list[str], rng: random.Random) -> None:
    """Check that a model is trained on the texts, some of which are no UTF-8, or that the recipe is refused."""
    sides = [[line.encode() for line in lines], [line.encode() for line in reversed(lines)]]
    for side in sides:
        side[rng.randrange(len(side))] = texts.damaged(rng)
        side.append(b"w1 w2 w3")
    for name, side in zip(("train.src", "train.tgt"), sides, strict=True):
        (folder / name).write_bytes(b"".join(line + b"\n" for line in side))
    remove(folder / "fuzzed-run")
    changes = ("data.bad_utf8=replace", "train.max_updates=2", "tokenizer.kind=byte", "tokenizer.vocab_size=300")
    options = [option for change in (*changes, "tokenizer.byte_fallback=true") for option in ("--set", change)]
    server.heedful(folder, "train", "recipe.toml", "--out", "fuzzed-run", *options).check((0,))


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
