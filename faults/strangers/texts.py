"""Texts that are made to break a program: random bytes, NULs, separators, endless lines, scripts that join."""

import random
from collections.abc import Callable

SEPARATORS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # what some programs take for the end of a line
JOINING = "\u200d\u200c\u200b\ufeff\u2060\u00ad\ufe0f\U0001f3fd\U000e0067\U000e007f"
MEGABYTE = 10**6  # characters

PARTS: dict[str, Callable[[random.Random], str]] = {
    "letters": lambda rng: "".join(rng.choices("abcdefghij XYZ", k=rng.randint(0, 40))),
    "any character": lambda rng: "".join(chr(any_character(rng)) for _ in range(rng.randint(0, 40))),
    "controls": lambda rng: "".join(map(chr, rng.choices(range(32), k=rng.randint(0, 20)))).replace("\n", ""),
    "separators": lambda rng: "a".join(rng.choices(SEPARATORS, k=rng.randint(1, 9))),
    "right to left": lambda rng: "\u202e" + "".join(rng.choices("שלום עליכם مرحبا \u200f\u202b\u2067", k=20)),
    "combining marks": lambda rng: "e" + "".join(map(chr, rng.choices(range(0x300, 0x370), k=rng.randint(1, 300)))),
    "joined emoji": lambda rng: "".join(rng.choice("👩👨🚀❤🏳🇩🇪") + rng.choice(JOINING) for _ in range(20)),
    "Hangul and Han": lambda rng: "".join(
        map(chr, rng.choices([*range(0x1100, 0x11FF), *range(0x4E00, 0x4F00)], k=20))
    ),
    "spaces": lambda rng: "".join(rng.choices(" \t\u00a0\u2003\u3000\u1680", k=rng.randint(0, 60))),
    "reserved names": lambda rng: "".join(rng.choices(["<pad>", "<unk>", "<eos>", "<0x0A>", "<mask>", "▁", "##"], k=9)),
    "markup": lambda rng: rng.choice(
        ["</script>", "%s%n", "${jndi:x}", "'; DROP TABLE", "../../etc/passwd", "{0}", "$(x)"]
    ),
    "runs": lambda rng: rng.choice("aあ ́😀\u200d0") * rng.randint(1, 3000),
}

ENDLESS: dict[str, str] = {  # lines of a million characters
    "a letter": "a" * MEGABYTE,
    "spaces": " " * MEGABYTE,
    "words": "word " * (MEGABYTE // 5),
    "digits": "0123456789" * (MEGABYTE // 10),
    "Han": "汉" * MEGABYTE,
    "emoji": "😀" * MEGABYTE,
    "joined emoji": "👩\u200d" * (MEGABYTE // 2),
    "combining marks": "e" + "\u0301" * MEGABYTE,
    "right to left": "ש" * MEGABYTE,
    "carriage returns": "\r" * MEGABYTE,
    "line separators": "\u2028" * MEGABYTE,
    "reserved names": "<eos>" * (MEGABYTE // 5),
}


def any_character(rng: random.Random) -> int:
    """The number of any character but a line feed and half a character."""
    number = rng.randrange(0x110000)
    return 0x3F if number == 0x0A or 0xD800 <= number < 0xE000 else number


def line(rng: random.Random) -> str:
    """A line of some parts."""
    return "".join(PARTS[kind](rng) for kind in rng.choices(list(PARTS), k=rng.randint(0, 3)))


def damaged(rng: random.Random) -> bytes:
    """A line of bytes that are no UTF-8: random ones, or a text with one of them changed."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randint(1, 50)).replace(b"\n", b"")
    changed = bytearray(line(rng).encode() + b"\xc3")
    changed[rng.randrange(len(changed))] = rng.choice(b"\x00\x80\xff\xfe\xc0\xed")
    return bytes(changed).replace(b"\n", b"")
