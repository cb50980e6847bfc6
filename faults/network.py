"""Three machines in network namespaces, on one switch: each can lose its power, its link, or much of what it sends.

All is made in namespaces of its own, and removed at the end: the network of this machine is left alone. Only root can.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from commands import gone, kill

HOSTS = (1, 2, 3)
CABLE = Path(__file__).with_name("cable.py")


class Network:
    """Network of three hosts, each with a shell command that runs on it.

    Args:
        name: The beginning of the names of the namespaces.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.cables: list[subprocess.Popen[bytes]] = []

    def space(self, host: int) -> str:
        """The namespace of a host; 0: of the switch."""
        return f"{self.name}-{host}"

    def make(self) -> None:
        """Make the hosts and the switch.

        Raises:
            OSError: this is not possible here.
        """
        ip("netns", "add", self.space(0))
        ip("-n", self.space(0), "link", "add", "switch", "type", "bridge")
        ip("-n", self.space(0), "link", "set", "switch", "up")
        for host in HOSTS:
            ip("netns", "add", self.space(host))
            ip(*f"link add eth0 netns {self.space(host)} type veth peer name port{host} netns {self.space(0)}".split())
            ip("-n", self.space(host), "link", "set", "lo", "up")
            self.plug_in(host)

    def plug_in(self, host: int) -> None:
        """Join the ends of a cable to a host and to the switch."""
        ip("-n", self.space(0), "link", "set", f"port{host}", "master", "switch", "up")
        ip("-n", self.space(host), "address", "add", f"{address(host)}/24", "dev", "eth0")
        self.link(host, up=True)

    def remove(self) -> None:
        """Kill all that runs on the hosts, and remove them."""
        for host in (*HOSTS, 0):
            kill(self.processes(host))
            gone(self.processes(host))
            subprocess.run(["ip", "netns", "delete", self.space(host)], check=False, capture_output=True)
        for begun in (*self.running.values(), *self.cables):
            begun.wait()
        for cable in self.cables:
            if cable.stdout:
                cable.stdout.close()

    def link(self, host: int, up: bool) -> None:
        """Plug in the cable of a host, or pull it out."""
        ip("-n", self.space(host), "link", "set", "eth0", "up" if up else "down")

    def disturb(self, host: int, seconds: float, loss: float) -> None:
        """Give a host a bad cable, which delays what the host sends, and loses a share of it.

        Raises:
            OSError: this is not possible here.
        """
        ip("-n", self.space(host), "link", "delete", "eth0")
        words = [sys.executable, CABLE, f"cable{host}", f"port{host}", str(seconds), str(loss)]
        cable = subprocess.Popen(["ip", "netns", "exec", self.space(0), *words], stdout=subprocess.PIPE)
        self.cables.append(cable)
        if cable.stdout is None or not cable.stdout.readline():
            raise OSError(f"no cable with delay and loss (exit code {cable.wait()})")
        ip(*f"-n {self.space(0)} link set cable{host} netns {self.space(host)} name eth0".split())
        self.plug_in(host)

    def start(self, host: int, script: str, output: Path, environment: dict[str, str]) -> None:
        """Run a shell script on a host."""
        with output.open("ab") as stream:
            words = ["ip", "netns", "exec", self.space(host), "bash", "-c", script]
            self.running[host] = subprocess.Popen(words, env=environment, stdout=stream, stderr=stream)

    def power_off(self, host: int) -> None:
        """Take a host down: the others get no answer from it, and no word of its end."""
        self.link(host, up=False)
        kill(self.processes(host))
        self.running.pop(host).wait()

    def processes(self, host: int) -> list[int]:
        """The processes of a host."""
        told = subprocess.run(["ip", "netns", "pids", self.space(host)], check=False, capture_output=True, text=True)
        return [int(word) for word in told.stdout.split()]


@contextmanager
def network() -> Iterator[Network]:
    """Make a network, and remove it at the end.

    Raises:
        OSError: this is not possible here.
    """
    made = Network(f"heedful-{os.getpid()}")
    try:
        made.make()
        yield made
    finally:
        made.remove()


def address(host: int) -> str:
    """The address of a host."""
    return f"10.77.0.{host}"


def ip(*words: str) -> None:
    """Call `ip`.

    Raises:
        OSError: it failed.
    """
    call(["ip", *words])


def call(words: Sequence[str]) -> None:
    """Call a program.

    Raises:
        OSError: it is missing or failed.
    """
    if not shutil.which(words[0]):
        raise OSError(f"{words[0]} is missing")
    told = subprocess.run(words, check=False, capture_output=True, text=True)
    if told.returncode:
        raise OSError(f"{' '.join(words)}: {told.stderr.strip()}")
