"""HTML page of the inspector: one file, for the server and for export as a standalone file.

The page is built from `web/` with `make page`, and is included in wheels.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from heedful.errors import InputError
from heedful.inspector.capture.trace import Trace
from heedful.inspector.overview import Json

BUILT = Path(str(files("heedful"))) / "inspector" / "page" / "index.html"
INLINE = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)
NONE = "'none'"
CONNECT = "connect-src 'self'"  # left out of an exported file, which has no server
CLOSED = (f"base-uri {NONE}", f"form-action {NONE}")
STATE = re.compile(r"(enc|dec)\.\d+\.(hidden|\w+_gate)")
EXACT = ("q", "k", "v", "score", "bias", "attn", "z")


@dataclass(frozen=True)
class Page:
    """HTML page of the inspector, with its Content-Security-Policy and export to a standalone file."""

    html: str

    @classmethod
    def built(cls, path: Path = BUILT) -> "Page":
        """Read the inspector page that `make page` built.

        Raises:
            InputError: the page was not built.
        """
        try:
            return cls(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                f"{path} is not there: this is a source tree whose page was not built; run `make page`, which needs "
                "Node.js 20 or newer, or install heedful from a wheel"
            ) from error

    @property
    def policy(self) -> str:
        """Content-Security-Policy that allows only the page's own scripts, styles, data images and server."""
        hashes: dict[str, list[str]] = {"script": [], "style": []}
        for kind, text in INLINE.findall(self.html):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        allowed = [f"{kind}-src {' '.join(found or [NONE])}" for kind, found in hashes.items()]
        return "; ".join([f"default-src {NONE}", *allowed, CONNECT, "img-src data:", *CLOSED])

    def holding(self, shown: Json, trace: Trace, head: tuple[str, int] | None) -> str:
        """Build a standalone HTML page with the data of a look, which needs no server.

        All attention weights are stored in one byte each, states and gates of recurrent layers in two; one head has all
        its tensors in float32.

        Args:
            shown: overview of the look, see `heedful.inspector.overview`, with the facts of the model as "model".
            trace: trace of the look.
            head: attention sublayer such as "dec.1.cross", and number of a head in the sublayer; None for a trace
                without attention.

        Raises:
            InputError: there is no such attention sublayer or head.
        """
        parts = {} if head is None else attention_parts(trace, *head)
        if states := [name for name in trace if STATE.fullmatch(name)]:
            parts["states"] = packed(trace.only(states).encoded(dict.fromkeys(states, "f16")))
        parts |= {"overview": packed([json.dumps(shown, ensure_ascii=False).encode()])}
        held = "".join(
            f'<script type="application/gzip" data-part="{name}">{text}</script>' for name, text in parts.items()
        )
        policy = self.policy.replace(f"{CONNECT}; ", "")
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        return self.html.replace("<head>", f"<head>{meta}", 1).replace("</body>", f"{held}</body>", 1)


def attention_parts(trace: Trace, block: str, number: int) -> dict[str, str]:
    """Pack the attention weights of all heads, and all tensors of one head, for a standalone page.

    Raises:
        InputError: there is no such attention sublayer or head.
    """
    blocks = [name.removesuffix(".attn") for name in trace if name.endswith(".attn")]
    if block not in blocks:
        there = f"there are {', '.join(blocks)}" if blocks else "this model has no attention sublayers"
        raise InputError(f"there is no block {block} whose heads look at anything; {there}")
    attention = trace.only(["*.attn"])
    exact = [name for place in EXACT if (name := f"{block}.{place}") in trace]
    return {
        "attention": packed(attention.encoded(dict.fromkeys(attention, "sqrt_u8"))),
        f"{block} {number}": packed(trace.only(exact, number).encoded()),
    }


def packed(parts: Iterable[bytes | memoryview]) -> str:
    """Compress bytes with gzip and encode them as base64 text, to embed in an HTML page."""
    return base64.b64encode(gzip.compress(b"".join(parts), mtime=0)).decode()
