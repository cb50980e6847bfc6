"""Whatever is asked, the answer is no failure of the server: odd values in odd places, from a fixed seed."""

import json
import random

import pytest
from starlette.testclient import TestClient

import subjects
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from served import PAGE, SAMPLE, models

QUESTIONS = 300
LINE = f"{subjects.TEXT}\tthe old dog .\tder Hund .\tden Bahnhof .\tpair"
VALUES = [
    *(None, True, False, 0, 1, -1, 7, 10**30, -(10**30), 0.5, -0.0, 1e308, [], {}, "", " ", "\n"),
    *(
        "dog",
        "the [MASK] dog",
        "<mask>",
        "<unk>",
        "\0",
        "\u200b",
        "\u2028",
        "\ud800",
        "\U0010ffff",
        "\u202e",
        "😀" * 7,
        "a" * 999,
    ),
    *(
        "*",
        "[",
        "]",
        "../..",
        "%00",
        "translator",
        "gpt",
        "bert",
        "classes",
        "silent",
        "even",
        "dec.0.cross",
        "dec.*.self",
        "src",
    ),
    *(["dog"], [LINE], [LINE, "x\t" * 4], [["a"]], {"a": 1}, [{"block": "dec.0.self", "number": 1}]),
    *([{"block": "*", "number": 0}], [{"block": "dec.0.cross", "number": -1}], [{"block": "", "number": 10**9}]),
]
FIELDS = [
    "model",
    "text",
    "target",
    "reference",
    "prefix",
    "beam",
    "alpha",
    "off",
    "way",
    "lines",
    "head",
    "kind",
    "\ud800",
]
PATHS = [
    "traces",
    "traces/{id}/without",
    "costs",
    "sweeps",
    "probes/bias",
    "models/translator/heads",
    "models/{odd}/heads",
]
READ = [
    "traces/{id}/tensors?names={odd}&head={odd}&stored={odd}",
    "traces/{id}/attribution?place={odd}&token={odd}",
    "traces/{id}/export.html?block={odd}&head={odd}",
    "traces/{id}/neighbours?line={odd}&place={odd}&count={odd}",
    "models/{odd}/development",
    "traces/{odd}",
    "{odd}",
]
ODD = [
    "",
    "0",
    "1",
    "-1",
    "999999999",
    "9" * 5000,
    "1.5",
    "nan",
    "*",
    "[",
    "[!",
    "**.attn",
    "src",
    "tgt",
    "%00",
    "%ff",
    "%ED%A0%80",
    "²",
    "a&a=1",
]
RAW = [
    b"",
    b"null",
    b"[" * 99_999,
    b'{"a":' * 9_999,
    b"\xff\xfe{",
    b"\xed\xa0\x80",
    b"1" * 99_999,
    b'{"text": 1e999}',
    b'"' * 7,
]
HEADERS = {
    "Host": ["[", "[::1", "127.0.0.1:x", "127.0.0.1:99999999", "\xbd", "a" * 9999, "127.0.0.1@[", "]"],
    "Origin": ["http://[", "[", "http://[::1", "null", "", "http://127.0.0.1:x", "\xbd//"],
    "Cookie": ["=", ";", "a@b=1", 'heedful="\\400"', "heedful=\x01", "heedful"],
    "Content-Length": ["0", "7"],
    "Content-Type": ["text/plain; charset=x", "multipart/form-data"],
    "Accept-Encoding": ["*;q=x"],
}


@pytest.fixture(scope="module")
def server():
    app = application(inspector_routes(Engine(models()), PAGE, SAMPLE))
    return TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def look(server):
    return server.post("/api/v1/traces", json={"model": "translator", "text": "the old dog"}).json()["id"]


def odd_question(chance):
    """A question with good values for most fields, odd ones for some, and now and then an odd field."""
    good = {"model": chance.choice(list(models_by_name)), "text": "the old dog"} if chance.random() < 0.7 else {}
    return good | {name: chance.choice(VALUES) for name in chance.sample(FIELDS, chance.randint(0, 3))}


models_by_name = ("translator", "gpt", "bert", "classes")


def test_odd_questions_are_answered_or_refused(server, look):
    chance = random.Random(1)
    for _ in range(QUESTIONS):
        path, question = chance.choice(PATHS), odd_question(chance)
        content = json.dumps(question).encode() if chance.random() < 0.9 else chance.choice(RAW)
        answer = server.post("/api/v1/" + path.format(id=look, odd=chance.choice(ODD)), content=content)
        assert answer.status_code < 500, (path, question, answer.text)
        if answer.status_code in (400, 413):
            assert answer.json()["error"]


def test_odd_addresses_are_answered_or_refused(server, look):
    chance = random.Random(1)
    for _ in range(QUESTIONS):
        path = chance.choice(READ).replace("{id}", look)
        while "{odd}" in path:
            path = path.replace("{odd}", chance.choice(ODD), 1)
        answer = server.request(chance.choice(["GET", "GET", "HEAD", "POST", "PUT"]), "/api/v1/" + path)
        assert answer.status_code < 500, path


@pytest.mark.parametrize("token", [None, "right"])
def test_odd_headers_are_answered_or_refused(token):
    app = application(inspector_routes(Engine(models()), PAGE, SAMPLE), token)
    server = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
    for name, values in HEADERS.items():
        for value in values:
            for path in ("/", "/api/v1/models", "/?token=%ff", "//x/?token=right"):
                answer = server.get(path, headers={name: value.encode("latin-1")}, follow_redirects=False)
                assert answer.status_code < 500, (name, value, path)
