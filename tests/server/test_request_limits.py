"""A request has a size and a time to arrive in, and nothing is computed for a client that has gone."""

import asyncio
import json
import threading

import pytest

from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from heedful.server.limits import Limits
from served import PAGE, SAMPLE, models

LONG = {"model": "translator", "text": "the old dog " * 97, "beam": 7}
SHORT = {"model": "gpt", "text": "the dog", "target": " sees"}


async def echo(scope, receive, send):
    """An application that gives back what it was sent."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Client:
    """Sends the parts of a request, a message each, and waits; after `leave` it has disconnected."""

    def __init__(self, *parts, path="/", method="POST", whole=True):
        self.parts, self.whole, self.sent, self.left = list(parts), whole, [], asyncio.Event()
        headers = [(b"host", b"127.0.0.1")]
        self.scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        self.asked = 0

    def leave(self):
        self.left.set()

    async def receive(self):
        self.asked += 1
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts) or not self.whole}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)

    async def ask(self, app):
        await app(self.scope, self.receive, self.send)
        return self.sent[0]["status"] if self.sent else None

    @property
    def answer(self):
        return b"".join(message.get("body", b"") for message in self.sent)


def test_a_request_is_handed_on_as_a_whole():
    async def run():
        client = Client(b"one", b"", b" two")
        assert await client.ask(Limits(echo, longest=7)) == 200
        return client.answer

    assert asyncio.run(run()) == b"one two"


def test_a_request_that_is_too_long_is_refused_before_it_is_read():
    async def run():
        client = Client(*[b"1234"] * 101)
        assert await client.ask(Limits(echo, longest=11)) == 413
        return client

    client = asyncio.run(run())
    assert client.asked == 3
    assert "at most 11 bytes" in json.loads(client.answer)["error"]


def test_a_request_that_never_ends_is_refused():
    async def run():
        client = Client(b"half", whole=False)
        assert await client.ask(Limits(echo, patience=0.03)) == 408
        return client.answer

    assert "did not arrive within 0.03 seconds" in json.loads(asyncio.run(run()))["error"]


@pytest.fixture
def watched():
    """A server, an event that is set when a model runs, and how often a block of one ran."""
    engine, running, ran = Engine(models()), threading.Event(), []

    def note(*_):
        ran.append(1)
        if len(ran) == 3:
            running.set()

    engine.model("translator").loaded.model.decoder.blocks[0].register_forward_hook(note)
    return application(inspector_routes(engine, PAGE, SAMPLE)), running, ran


async def until(event, task):
    """Wait for an event while a task goes on."""
    while not event.is_set():
        assert not task.done(), task
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("/api/v1/traces", LONG),
        ("/api/v1/sweeps", {"model": "translator"}),
        ("/api/v1/costs", {"model": "translator", "off": [{"block": "dec.0.self", "number": 1}]}),
    ],
)
def test_what_is_computed_for_a_client_that_leaves_is_stopped(watched, path, question):
    app, running, ran = watched

    async def run():
        leaving = Client(json.dumps(question).encode(), path=path)
        asked = asyncio.create_task(leaving.ask(app))
        await until(running, asked)
        leaving.leave()
        await asked
        at_most = len(ran) + 2  # what ran while this was going on
        assert await Client(json.dumps(SHORT).encode(), path="/api/v1/traces").ask(app) == 201
        assert len(ran) <= at_most
        return leaving.sent

    assert all(message["type"] == "http.response.start" or not message["body"] for message in asyncio.run(run()))


def test_what_waits_for_its_turn_is_dropped_when_its_client_leaves(watched):
    app, running, ran = watched
    ask = json.dumps(LONG).encode()

    async def run():
        first, *others = (Client(ask, path="/api/v1/traces") for _ in range(5))
        tasks = [asyncio.create_task(client.ask(app)) for client in (first, *others)]
        await until(running, tasks[0])
        for client in (*others, first):
            client.leave()
        await asyncio.gather(*tasks)
        at_most = len(ran) + 2
        assert await Client(json.dumps(SHORT).encode(), path="/api/v1/traces").ask(app) == 201
        assert len(ran) <= at_most
        return [client.sent for client in (first, *others)]

    assert asyncio.run(run()) == [[]] * 5


def test_whoever_stays_gets_the_answer_although_others_leave(watched):
    app, running, _ = watched
    ask = json.dumps({**LONG, "text": "the old dog sees the station ."}).encode()

    async def run():
        leaving, staying = Client(ask, path="/api/v1/traces"), Client(ask, path="/api/v1/traces")
        tasks = [asyncio.create_task(client.ask(app)) for client in (leaving, staying)]
        await until(running, tasks[0])
        leaving.leave()
        return (await asyncio.gather(*tasks))[1]

    assert asyncio.run(run()) == 201
