"""One file that holds a look, and lets a browser do nothing but show it."""

import base64
import gzip
import hashlib
import json
import re
from io import BytesIO

import numpy as np
import pytest
from safetensors.numpy import load

from heedful.errors import InputError
from heedful.inspector.look import Question, look
from heedful.inspector.overview import overview
from heedful.inspector.page import Page
from subjects import TEXT, translator

SCRIPT, STYLE = "\nconst a = '<';\n", "\nbody { margin: 0 }\n"
PAGE = Page(
    f'<!doctype html><html><head><style rel="x">{STYLE}</style>'
    f'<script type="module" crossorigin>{SCRIPT}</script></head><body></body></html>'
)


def held(html):
    """The parts of a page, unpacked."""
    found = re.findall(r'<script type="application/gzip" data-part="([^"]*)">([^<]*)</script>', html)
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in found}


def sha256(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def test_only_what_was_built_may_run():
    policy = dict(part.split(" ", 1) for part in PAGE.policy.split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == sha256(SCRIPT)
    assert policy["style-src"] == sha256(STYLE)
    assert policy["connect-src"] == "'self'"


def test_a_page_without_scripts_may_run_none():
    assert "script-src 'none'" in Page("<html></html>").policy


def test_a_file_holds_the_overview_all_weights_and_one_head_exactly():
    seen = look(translator(), Question(text=TEXT))
    described = json.loads(json.dumps(overview(seen)))
    parts = held(PAGE.holding({"model": {"name": "m"}} | overview(seen), seen.trace, ("dec.1.cross", 1)))
    assert json.loads(parts["overview"]) == {"model": {"name": "m"}, **described}
    exact = load(parts["dec.1.cross 1"])
    assert {name: tuple(x.shape) for name, x in exact.items()}["dec.1.cross.q"][0] == 1
    for name, values in exact.items():
        assert np.array_equal(values[0], seen.trace[name].values[min(1, len(seen.trace[name].values) - 1)])
    attention = load(parts["attention"])
    assert set(attention) == {name for name in seen.trace if name.endswith(".attn")}
    assert all(values.dtype == np.uint8 for values in attention.values())


def test_a_file_asks_nobody_for_anything():
    seen = look(translator(), Question(text=TEXT))
    html = PAGE.holding(overview(seen), seen.trace, ("dec.1.cross", 0))
    [policy] = re.findall(r'<head><meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    assert "connect-src" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"\b(src|href)=", html)


def test_what_somebody_wrote_never_leaves_its_part():
    nasty = "</script><script>alert(1)</script> <!-- \u2028 dog"
    seen = look(translator(), Question(text=nasty))
    html = PAGE.holding(overview(seen), seen.trace, ("dec.1.cross", 0))
    assert html.count("<script") == html.count("</script>") == 4
    assert "alert" not in html
    assert json.loads(held(html)["overview"])["question"]["text"] == nasty


def test_a_head_that_is_not_there_is_refused():
    seen = look(translator(), Question(text=TEXT))
    for head in (("dec.7.cross", 0), ("dec.1.cross", 2)):
        with pytest.raises(InputError, match=r"dec\.[17]\.cross"):
            PAGE.holding(overview(seen), seen.trace, head)


def test_a_page_that_was_not_built_is_asked_for(tmp_path):
    with pytest.raises(InputError, match="run `make page`"):
        Page.built(tmp_path / "index.html")
    (tmp_path / "index.html").write_text("<html>é</html>", encoding="utf-8")
    assert Page.built(tmp_path / "index.html").html == "<html>é</html>"


def test_the_same_look_makes_the_same_file():
    seen = look(translator(), Question(text=TEXT))
    files = [PAGE.holding(overview(seen), seen.trace, ("dec.1.cross", 0)) for _ in range(2)]
    assert files[0] == files[1]
    assert BytesIO(files[0].encode()).getbuffer().nbytes < 100_000
