"""A training of three hosts, of which one loses its power and comes back, freezes, or has a bad link.

Each host runs the shell loop of docs/how-to/clusters.md in a network namespace of its own. Every run must end with exit
code 0 on all hosts, and with the log and the weights of a run without faults; a rank that stops must end the others
within `parallel.timeout_minutes` and 10 s more.
"""

import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import tally
import toy
from commands import LONGEST, Command, alive
from network import HOSTS, Network, address, network

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "clusters.md"
TIMEOUT = 15.0  # seconds that hosts wait for one that does not answer
BAD = (0.2, 0.01)  # seconds of latency, and share of packets that are lost
Fault = Callable[["Job"], None]


class Job:
    """Training on all hosts of a network, each with the loop of the page.

    Args:
        hosts: The network.
        folder: The folder of the data, which all hosts share.
        name: The name of the run.
        updates: The number of updates.
    """

    def __init__(self, hosts: Network, folder: Path, name: str, updates: int) -> None:
        self.hosts, self.folder, self.run, self.updates = hosts, folder, folder / name, updates
        for host in HOSTS:
            self.start(host)

    def start(self, host: int) -> None:
        """Start the loop of one host."""
        output, environment = self.folder / f"{self.run.name}-{host}.txt", toy.environment()
        paths = f"{Path(sys.executable).parent}:{environment['PATH']}"
        more = {"PATH": paths, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
        self.hosts.start(host, loop(host, self.folder, self.run, self.updates), output, environment | more)

    def wait_for_updates(self) -> None:
        """Wait until the run has logged some updates more than now."""
        log = self.run / "log.jsonl"
        wanted = (log.stat().st_size if log.exists() else 0) + 400
        end = time.monotonic() + LONGEST
        while not (log.exists() and log.stat().st_size >= wanted) and time.monotonic() < end:
            time.sleep(0.005)

    def trainer(self, host: int) -> int:
        """The process that trains on a host."""
        [found] = [pid for pid in self.hosts.processes(host) if "RANK" in environment_of(pid)]
        return found

    def finish(self) -> None:
        """Wait until all hosts are done.

        Raises:
            AssertionError: a host hangs or fails.
        """
        end = time.monotonic() + LONGEST
        for host, begun in self.hosts.running.items():
            while begun.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            said = (self.folder / f"{self.run.name}-{host}.txt").read_text(encoding="utf-8")
            assert begun.poll() == 0, f"host {host}: exit code {begun.poll()}\n{said[-3000:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on three hosts, with one fault in each trial."""
    asked = tally.options(__doc__, len(FAULTS), arguments)
    found = tally.Tally(__file__, asked)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_task(folder)
        for number, (kind, fault) in enumerate(list(FAULTS.items())[: max(1, asked.count)]):
            if missing := impossible(fault):
                found.faults[f"trials skipped: {kind} ({missing})"] += 1
                continue
            with found.trial(kind), network() as hosts:
                attack(hosts, folder, f"run-{number}", fault)
                found.faults[kind] += 1
    return found.conclude()


def write_task(folder: Path) -> None:
    """Write data and recipe."""
    toy.write_pairs(folder)
    times = {"max_updates": 61, "save_every": 7, "validate_every": 31, "log_every": 1, "accumulate": 3}
    toy.write_recipe(folder, train=times, parallel={"timeout_minutes": TIMEOUT / 60})


def whole(folder: Path, updates: int) -> tuple[str, bytes]:
    """What a run of three processes without faults becomes; it is trained once."""
    run = folder / f"whole-{updates}"
    if not (run / "result.json").exists():
        patient = "parallel.timeout_minutes=10.0"  # nothing is disturbed here, and a busy machine may start one late
        words = ["train", str(folder), "--out", str(run), "--set", f"train.max_updates={updates}", "--set", patient]
        begun = Command(words, run.with_suffix(".txt"), 3)
        assert begun.follow() == 0, begun.said()
    return toy.fingerprint(run)


def attack(hosts: Network, folder: Path, run: str, fault: Fault) -> None:
    """Train a run with a fault, and compare it with the one that met none.

    Raises:
        AssertionError: a host hangs or fails, or the run is another.
    """
    expected = whole(folder, updates_of(fault))
    if fault is bad_link:
        for host in HOSTS:
            hosts.disturb(host, *BAD)
    job = Job(hosts, folder, run, updates_of(fault))
    fault(job)
    job.finish()
    assert toy.fingerprint(job.run) == expected, f"{run} differs"


def updates_of(fault: Fault) -> int:
    """The number of updates of a trial: few, where each takes seconds."""
    return 11 if fault is bad_link else 61


def power_off(job: Job, host: int, pause: float) -> None:
    """Take a host down in the middle of training, and start it again after a pause in seconds."""
    job.wait_for_updates()
    job.hosts.power_off(host)
    time.sleep(pause)
    job.hosts.link(host, up=True)
    job.start(host)


def cut_off(job: Job) -> None:
    """Pull out the cable of a host for 30 seconds."""
    job.wait_for_updates()
    job.hosts.link(3, up=False)
    time.sleep(30)
    job.hosts.link(3, up=True)


def freeze(job: Job) -> None:
    """Stop one rank; the others must end in time. Then it goes on.

    Raises:
        AssertionError: they do not.
    """
    job.wait_for_updates()
    trainers = [job.trainer(host) for host in HOSTS]
    os.kill(trainers[1], signal.SIGSTOP)
    time.sleep(TIMEOUT + 10)
    left = [pid for pid in (trainers[0], trainers[2]) if alive(pid)]
    os.kill(trainers[1], signal.SIGCONT)
    assert not left, f"processes {left} go on without the one that was stopped"


def bad_link(_: Job) -> None:
    """Do nothing more: each host sends with 200 ms latency and 1 % loss from the start."""


FAULTS: dict[str, Fault] = {
    **{
        f"host {host} without power, back after {pause} s": partial(power_off, host=host, pause=pause)
        for pause in (3, 0, 30)
        for host in HOSTS
    },
    "host 3 without a link for 30 s": cut_off,
    "one rank stopped": freeze,
    "200 ms latency and 1 % loss": bad_link,
}


def impossible(fault: Fault) -> str:
    """The reason why a trial cannot be made here; empty if it can."""
    try:
        with network() as hosts:
            if fault is bad_link:
                hosts.disturb(HOSTS[0], *BAD)
    except OSError as error:
        return str(error)
    return ""


def loop(host: int, folder: Path, run: Path, updates: int) -> str:
    """The loop of the page, for one of the hosts."""
    [found] = re.findall(r"```bash\n(until .+?done)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    words = {
        "ADDRESS": address(host),
        "FIRST": "1" if host == 1 else "0",
        "HOST:": f"{address(1)}:",
        "RECIPE --data DATA": f"{shlex.quote(str(folder))} --set train.max_updates={updates}",
        "RUN": shlex.quote(str(run)),
        "sleep 10": "sleep 1",
    }
    for word, value in words.items():
        found = found.replace(word, value)
    return found


def environment_of(pid: int) -> dict[str, str]:
    """The environment of a process; empty if it has ended."""
    try:
        told = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value for name, _, value in (entry.partition("=") for entry in told.split("\0"))}


if __name__ == "__main__":
    sys.exit(main())
