"""Size and first paint of an exported inspection beside BertViz: python benchmarks/inspector.py [--help]

An untrained base model (6 + 6 layers, 8 heads) reads and writes as many tokens as are asked for. Both systems
draw its attention weights from the same trace: heedful as the file that `heedful inspect --out` writes, BertViz as the
HTML that it returns, with the three scripts that it takes from a CDN served from a folder (peers/environments.sh).
First paint is the time from opening the file to the first frame in which the drawing is complete, the median of three.
Needs Chromium.
"""

import shutil
import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import record
import torch
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.table import Table

from heedful.architectures import EncoderDecoder
from heedful.checkpoint import LoadedModel
from heedful.config.schema import DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.inspector.look import Inspection, Question, look
from heedful.inspector.page import Page as Built
from heedful.inspector.page import View
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

ROUNDS = 3
CDN = {
    "require.min.js": "requirejs/require.js",
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def base_look(tokens: int) -> tuple[Inspection, LoadedModel]:
    """Inspect an untrained base model on a sentence and a translation of `tokens` tokens each."""
    torch.manual_seed(1)
    tokenizer = train_tokenizer(["a"], TokenizerConfig(vocab_size=300))
    pair = TokenizerPair(tokenizer, tokenizer)
    recipe = Recipe(model=ModelConfig(), decode=DecodeConfig(beam=5, max_extra=0))
    network = EncoderDecoder(recipe.model, len(tokenizer), len(tokenizer)).eval()
    model = LoadedModel(recipe, network, pair, Path("base"))
    text = "a"
    while len(tokenizer.encode(text)) < tokens - 1:
        text += " a"
    seen = look(model.use(), Question(text=text))
    return seen, model


def heedful(seen: Inspection, model: LoadedModel) -> str:
    """Make the HTML that `heedful inspect --out` writes."""
    return View("base", model, seen, Built.built()).html


def bertviz(view: str) -> Callable[[Inspection, LoadedModel], str]:
    """Make a function that draws a view of BertViz from heedful's tensors."""

    def made(seen: Inspection, model: LoadedModel) -> str:
        del model
        peer = import_module("bertviz")

        lines = seen.trace.lines
        return getattr(peer, view)(
            encoder_attention=layers(seen, "enc.*.self.attn"),
            decoder_attention=layers(seen, "dec.*.self.attn"),
            cross_attention=layers(seen, "dec.*.cross.attn"),
            encoder_tokens=lines["src"].read.labels,
            decoder_tokens=lines["tgt"].read.labels,
            html_action="return",
        ).data

    return made


def layers(seen: Inspection, names: str) -> list[torch.Tensor]:
    """Return the attention weights of each layer in BertViz's shape, (1 H T S)."""
    return [torch.from_numpy(found.values)[None] for found in seen.trace.only([names]).values()]


SYSTEMS: dict[str, tuple[Callable[[Inspection, LoadedModel], str], str, str]] = {
    # function that makes the file, part of the address that shows attention, selector of an element of the drawing
    "heedful, all heads and one in full": (heedful, "#/attention", "main .field canvas"),
    "BertViz head view": (bertviz("head_view"), "", "svg line"),
    "BertViz model view": (bertviz("model_view"), "", "svg line"),
}
PAINTED = """selector => new Promise(done => {
    const look = () => document.querySelector(selector)
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
        : setTimeout(look, 5);
    look();
})"""


def opened(browser: Browser, path: Path, address: str, drawn: str, web: Path) -> dict[str, float]:
    """Open a file once in the browser; measure the time to first paint, and count elements and requests."""
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/*.min.js", lambda route: route.fulfill(path=web / CDN[route.request.url.rpartition("/")[2]]))
    page.set_default_timeout(180_000)
    page.goto(path.as_uri() + address, wait_until="commit")
    found = {
        "first paint, ms": page.evaluate(PAINTED, drawn),
        "elements": page.evaluate("document.querySelectorAll('*').length"),
        "requests": len(asked) - 1,
    }
    page.close()
    return found


def measure(browser: Browser, folder: Path, tokens: int, web: Path) -> dict[str, dict[str, float]]:
    """Measure every system on the same trace, three times in turn."""
    seen, model = base_look(tokens)
    paths = {}
    for name, (make, _, _) in SYSTEMS.items():
        paths[name] = folder / f"{name.replace(' ', '-').replace(',', '')}-{tokens}.html"
        paths[name].write_text(make(seen, model), encoding="utf-8")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SYSTEMS}
    for _ in range(ROUNDS):
        for name, (_, address, drawn) in SYSTEMS.items():
            found[name].append(opened(browser, paths[name], address, drawn, web))
    return {
        name: {"file, MB": paths[name].stat().st_size / 1e6}
        | {key: statistics.median(one[key] for one in several) for key in several[0]}
        for name, several in found.items()
    }


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[20, 60, 120])
    parser.add_argument("--peers", type=Path, default=Path("build/peers"))
    options = parser.parse_args()
    sys.path.append(str(options.peers / "bertviz"))
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    facts = record.machine(options.threads)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        facts["browser"] = browser.version
        results = {
            tokens: measure(browser, Path(folder), tokens, options.peers / "bertviz-web/node_modules")
            for tokens in options.tokens
        }
    for tokens, found in results.items():
        shown = Table("system", *next(iter(found.values())), title=f"{tokens} tokens")
        for name, values in found.items():
            shown.add_row(
                name, *(f"{value:,.2f}" if key == "file, MB" else f"{value:,.0f}" for key, value in values.items())
            )
        Console(width=120).print(shown)
    record.append(__file__, facts | {"tokens": results})


if __name__ == "__main__":
    main()
