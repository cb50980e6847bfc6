"""The command `heedful` for readers in a hurry: training ends after a few updates on little text, and a server once it
was looked at.

`python hasty.py SOCKET` has loaded torch before anybody asks, and forks for each command. What the tests put on PATH as
`heedful` is `ASK`: it hands over arguments, folder and streams, so that the commands of a page work as they stand.
Under the name `session` it is a Python session, which runs what it is sent, and imports heedful anew.
"""

import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
import types
import webbrowser
from urllib.request import urlopen

from heedful.cli import main

LOADED = (
    "torch",
    "torch._dynamo",
    "matplotlib.pyplot",
    "sacrebleu",
    "heedful.checkpoint",
    "heedful.inspector.page",
    "heedful.server.inspector.routes",
    "heedful.training.loop",
)
READY = "ready\n"
SESSION = "session"
END = "\0\n"  # what a session says after each block that worked
SHORT = {
    "train.max_updates": 4,
    "train.validate_every": 4,
    "train.save_every": 2,
    "train.average_last": 1,
    "train.threads": 1,
    "optimizer.warmup": 1,
}
CHANGES = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
ADDED = {
    "train": CHANGES,
    "compare": [*CHANGES, "--updates", "4"],
    "scenes": ["--train", "3000", "--valid", "53", "--test", "53"],
}
ASK = """#!{python} -IS
import json, os, socket, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
asked = {{"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    socket.send_fds(connection, [json.dumps(asked).encode() + b"\\n"], [0, 1, 2])
    sys.exit(int(connection.recv(3) or 1))
"""


def serve(address: str) -> None:
    """Answer at a socket, each command in a process of its own."""
    for name in LOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        sys.stdout.write(READY)
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            with connection:
                if os.fork() == 0:
                    answer(connection)


def answer(connection: socket.socket) -> None:
    """Become the command that is asked for; the last that is heard of it is its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not message.endswith(b"\n"):
        message += connection.recv(1 << 16)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The streams of this process know whether those of the server could be sought.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    asked = json.loads(message)
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[:0] = asked["environment"].get("PYTHONPATH", "").split(os.pathsep)
    name, *arguments = asked["words"]
    code = session() if name == SESSION else command(arguments)
    sys.stdout.flush()
    connection.sendall(str(code).encode())
    os._exit(code)


def command(arguments: list[str]) -> int:
    """Run a command to its exit code."""
    name = arguments[0] if arguments else ""
    live = name == "inspect" and "--out" not in arguments
    sys.argv = ["heedful", *arguments, *ADDED.get(name, []), *["--port", "0"] * live]
    webbrowser.open = look_and_leave
    try:
        main()
    except SystemExit as end:
        interrupted = live and end.code == 128 + signal.SIGINT  # as a user ends it
        return end.code if isinstance(end.code, int) and not interrupted else 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def session() -> int:
    """Run blocks of Python, one after the other in the same names, until there are no more or one fails."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "heedful"]:
        del sys.modules[name]  # so that each block has to import what it uses
    sys.path.insert(0, "")
    sys.modules["__main__"] = types.ModuleType("__main__")
    for line in sys.stdin:
        name, code = json.loads(line)
        try:
            exec(compile(code, name, "exec"), vars(sys.modules["__main__"]))
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            return 1
        sys.stdout.write(END)
        sys.stdout.flush()
    return 0


def look_and_leave(address: str, new: int = 0, autoraise: bool = True) -> bool:
    """Stand in for a browser: ask for the page, then end the server as a user does."""

    def visit() -> None:
        with urlopen(address.partition("#")[0]) as page:
            sys.stdout.write(f"the page has {len(page.read())} bytes\n")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=visit).start()
    return True


if __name__ == "__main__":
    serve(sys.argv[1])
