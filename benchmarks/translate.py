"""`heedful translate` against a bare script with the same weights: python benchmarks/translate.py MODEL TEXT [--help]

MODEL is a translator of heedful, TEXT has a sentence per line. The command takes turns with the script
peers/ctranslate2_translate.py, which runs in the environment that peers/environments.sh makes. Measured are the seconds
of a process that translates a long file, from start to exit; the seconds of a line alone in a running process; and the
seconds and memory of a process that translates a single line.
"""

import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import record
from rich.console import Console

import heedful
from heedful.data.readers.files import read_lines

HERE = Path(__file__).parent
ALONE = 200
COMPUTE_TYPES = {"float32": "float32", "int8": "int8_float32"}
ONE_BY_ONE = """
import statistics, sys, time, heedful
model, source, beam, precision, count = sys.argv[1:]
translator = heedful.load(model, engine="ctranslate2", precision=precision).with_options(beam=int(beam))
seconds = []
for line in open(source, encoding="utf-8").read().splitlines()[: int(count)]:
    start = time.perf_counter()
    translator.translate(line)
    seconds.append(time.perf_counter() - start)
print(statistics.median(seconds))
"""


def run(command: list[str], text: str = "") -> tuple[float, str]:
    """Run a command; return its seconds and its output."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output, _ = process.communicate(text.encode())
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return seconds, output.decode()


def peak_memory(command: list[str], text: str = "") -> float:
    """Run a command from a process that has no other child, and return its peak memory in MB."""
    code = (
        "import resource, subprocess, sys; "
        "quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}; "
        "subprocess.run(sys.argv[1:], stdin=sys.stdin, check=True, **quiet); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    return float(run([sys.executable, "-S", "-c", code, *command], text)[1])


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--precisions", nargs="+", choices=COMPUTE_TYPES, default=list(COMPUTE_TYPES))
    parser.add_argument("--peers", type=Path, default=Path("build/peers"))
    options = parser.parse_args()
    console = Console(width=120)
    facts = record.machine(options.threads) | {"model": Path(options.model).name, "lines": options.lines}
    console.print(facts)
    command, script = str(Path(sys.executable).with_name("heedful")), str(HERE / "peers" / "ctranslate2_translate.py")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, single, output = folder / "source.txt", folder / "single.txt", folder / "output.txt"
        source.write_text("".join(f"{line}\n" for line in islice(read_lines(options.text), options.lines)))
        single.write_text("Where is the train station?\n")
        for precision in options.precisions:
            peer, kind = folder / precision, COMPUTE_TYPES[precision]
            heedful.export(options.model, peer, to="ctranslate2", precision=precision.replace("int8", kind))
            ours = [command, "translate", "--model", options.model, "--precision", precision, "--engine", "ctranslate2"]
            run(ours, "Once.")  # converts the model
            for beam in options.beams:
                measured: dict[str, list[float]] = {}

                def add(name: str, value: float, measured: dict[str, list[float]] = measured) -> None:
                    measured.setdefault(name, []).append(value)

                settings = [str(beam), precision, str(ALONE)]
                for _ in range(options.rounds):
                    arguments = ["--beam", str(beam), "--input", str(source), "--output", str(output), "--force"]
                    bare = [str(options.peers / "ctranslate2" / "bin" / "python"), script, str(peer)]
                    add("heedful s", run([*ours, *arguments, "--no-literals"])[0])
                    add("script s", run([*bare, str(source), str(output), str(beam), kind, "0"])[0])
                    add("heedful, literals, s", run([*ours, *arguments])[0])
                    one = [sys.executable, "-c", ONE_BY_ONE, options.model, str(source), *settings]
                    add("heedful alone s", float(run(one)[1]))
                    add("script alone s", float(run([*bare, str(source), str(output), str(beam), kind, str(ALONE)])[1]))
                    first = [*bare, str(single), str(output), str(beam), kind, "0"]
                    add("heedful start s", run([*ours, "--beam", str(beam)], "Where is the train station?\n")[0])
                    add("script start s", run(first)[0])
                    add("heedful start MB", peak_memory([*ours, "--beam", str(beam)], "Where is the train station?\n"))
                    add("script start MB", peak_memory(first))
                medians = {name: statistics.median(values) for name, values in measured.items()}
                console.print(f"{precision}, beam {beam}")
                for name in ("s", "alone s", "start s", "start MB"):
                    mine, other = medians[f"heedful {name}"], medians[f"script {name}"]
                    console.print(
                        f"  {name:10} heedful {mine:9.4f}  script {other:9.4f}  script / heedful {other / mine:.2f}"
                    )
                console.print(f"  with literals {medians['heedful, literals, s']:.2f} s")
                record.append(__file__, facts | {"precision": precision, "beam": beam, "results": measured})


if __name__ == "__main__":
    main()
