"""The metric of programs: what passes, and that a program that is not trusted can do no harm."""

import os
import re
import socket
import threading
from pathlib import Path

import pytest

from heedful.corpora.functions import function
from heedful.errors import InputError
from heedful.metrics import programs
from heedful.metrics.programs import passing
from heedful.metrics.texts import Texts

REFERENCE = "def f(numbers: list[int]):\n    return sum(number for number in numbers if number > 5)"
CANARY = "canary"  # what hostile programs write to, or delete


def passes(program, reference=REFERENCE):
    return passing(Texts([program], [reference]))[0]


@pytest.mark.parametrize(
    "program",
    [
        REFERENCE,
        "def f(numbers):\n    return sum(n for n in numbers if n >= 6)",
        "def total(values, least=6):\n    t = 0\n    for v in values:\n        if v < least:\n            continue\n"
        "        t += v\n    return t",
        "def big(n):\n    return n > 5\n\ndef f(numbers):\n    return sum(filter(big, numbers))",
        "def f(numbers):\n    numbers.sort()\n    while numbers and numbers[0] <= 5:\n        numbers.pop(0)\n"
        "    return sum(numbers)",
        "def f(n):\n    try:\n        return sum(i for i in n if i > 5)\n    except ValueError:\n        return 0",
    ],
)
def test_other_code_with_the_same_results_passes(program):
    assert passes(program)


@pytest.mark.parametrize(
    "program",
    [
        "def f(numbers):\n    return sum(n for n in numbers if n > 6)",
        "def f(numbers):\n    return sum(n for n in numbers if n >= 5)",
        "def f(numbers):\n    return float(sum(n for n in numbers if n > 5))",
        "def f(numbers):\n    return [sum(n for n in numbers if n > 5)]",
        "def f(numbers):\n    return undefined",
        "def f():\n    return 0",
        "f = 3",
        "def f(numbers) return 1",
        "Return the sum.",
        "",
        "\0",
        "\ud800",
    ],
)
def test_code_with_other_results_or_none_fails(program):
    assert not passes(program)


@pytest.mark.parametrize(
    ("program", "reference"),
    [
        ("def f(x):\n    return sorted(w for w in x.split())", "def f(x: str):\n    return sorted(set(x.split()))"),
        ("def f(x):\n    return x[:3]", "def f(x: list[int]):\n    return x[:4]"),
        ("def f(x):\n    return x[-5:]", "def f(x: list[int]):\n    return x[-4:]"),
        ("def f(x):\n    return x.split(' ')", "def f(x: str):\n    return x.split()"),
        ("def f(x):\n    return x", "def f(x: str):\n    return x.lower()"),
        ("def f(x):\n    return x", "def f(x: str):\n    return x.strip()"),
        ("def f(x):\n    return False", "def f(x: int):\n    return x < -100"),
        ("def f(x):\n    return [float(i) for i in x]", "def f(x: list[int]):\n    return [i for i in x]"),
        ("def f(x):\n    pass", "def f(x: list[int]):\n    x.sort()"),
        ("def f(x):\n    return x == 2", "def f(x: int):\n    return x > 1 and x < 3.5"),
    ],
)
def test_arguments_tell_programs_apart(program, reference):
    assert not passes(program, reference)


@pytest.mark.parametrize(
    ("program", "reference"),
    [
        ("def f(x):\n    return filter(None, x)", "def f(x: list[int]):\n    return (i for i in x if i)"),
        ("def f(x):\n    return sum((i * 0.1 for i in x), 0.0)", "def f(x: list[int]):\n    return 0.1 * sum(x)"),
        ("def f(x):\n    return float('nan')", "def f(x: int):\n    return float('inf') - float('inf')"),
        ("def f(x):\n    return x.values()", "def f(x: dict[str, int]):\n    return x.values()"),
        ("def f(x):\n    print(x)\n    return x", "def f(x: int):\n    return x"),
        ("def f(x):\n    return g(x)\n\ndef g(x):\n    return x", "def f(x: int):\n    return x"),
        ("def f(x):\n    x.sort(reverse=True)\n    x.reverse()", "def f(x: list[int]):\n    x.sort()"),
        ("def f(x: Optional[int]) -> Foo:\n    return x", "def f(x: int) -> Bar:\n    return x"),
    ],
)
def test_equal_results_pass_however_they_are_computed(program, reference):
    assert passes(program, reference)


def test_the_order_of_a_set_is_the_same_in_every_run():
    reference = "def f(x: str):\n    return list(set(x.split()))"
    program = "def f(x):\n    return list({w for w in x.split()})"
    assert len({passes(program, reference) for _ in range(5)}) == 1


def test_an_exception_is_a_result():
    reference = "def f(numbers: list[int]):\n    return max(numbers)"  # of an empty list, a ValueError
    assert passes(reference.replace("max", "(lambda n: sorted(n)[-1] if n else max(n))"), reference)
    assert not passes("def f(numbers):\n    return max(numbers, default=0)", reference)


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        ("int", "x * 2", "x * 3"),
        ("float", "x / 2", "x"),
        ("bool", "not x", "x"),
        ("str", "x.split()", "[x]"),
        ("list[str]", "sorted(x)", "x"),
        ("List[float]", "sum(x)", "0.0"),
        ("set[int]", "len(x)", "0"),
        ("dict[str, int]", "sum(x.values())", "0"),
        ("tuple[int, list[str]]", "x[1] * (x[0] % 3)", "x[1]"),
        ("Dict[str, Tuple[int, bool]]", "[a for a, b in x.values() if b]", "[a for a, b in x.values()]"),
    ],
)
def test_arguments_have_the_annotated_types(annotation, right, wrong):
    reference = f"def f(x: {annotation}):\n    return {right}"
    assert passes(f"def f(x):\n    return {right}", reference)
    assert not passes(f"def f(x):\n    return {wrong}", reference)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("def f(x):\n    return x", 'annotate the parameter "x" with int, float'),
        ("def f(x: Tensor):\n    return x", 'annotate the parameter "x"'),
        ("x = 1", "must define a function"),
        ("import math\ndef f(x: int):\n    return math.sqrt(x)", "must not contain Import"),
        ("def f(x: int)", "expected ':'"),
        ("def f(x: int):\n    break", "'break' outside loop"),
        ("def f(x: int, *, k: int):\n    return x", "parameters that can be passed by position"),
        ("def f(*x: int):\n    return x", "parameters that can be passed by position"),
        ("def f(x: int):\n    return undefined", "raises NameError for all generated arguments"),
        ("y = 1 / 0\ndef f(x: int):\n    return x", "raises ZeroDivisionError for all generated arguments"),
        ("def f(x: int):\n    while True:\n        pass", "takes too much time or memory"),
    ],
)
def test_a_reference_that_cannot_be_tested_is_named(reference, message):
    with pytest.raises(InputError, match=re.escape(message)) as error:
        passes("def f(x):\n    return x", reference)
    assert reference in str(error.value)


def test_a_constant_that_is_off_by_one_fails():
    """Arguments near the constants of a program are frequent, so tests of generated functions are sharp."""
    codes = [function(seed=2, index=index).code for index in range(150)]
    greater = [
        code for code in codes if re.search(r"number > \d+", code) and " and " not in code and " or " not in code
    ]
    changed = [re.sub(r"number > (\d+)", lambda match: f"number > {int(match[1]) + 1}", code) for code in greater]
    assert len(greater) > 5
    assert sum(passing(Texts(changed, greater))) <= len(greater) // 5
    assert all(passing(Texts(greater, greater)))


# Each writes, deletes, spawns or escapes, or tries to reach something that can, and then returns what is right.
HOSTILE = {
    "import": "import os\nos.remove('canary')\ndef f(n):\n    return 0",
    "import from": "from pathlib import Path\nPath('canary').unlink()\ndef f(n):\n    return 0",
    "import call": "def f(n):\n    __import__('os').remove('canary')\n    return 0",
    "open": "def f(n):\n    open('canary', 'w').write('x')\n    return 0",
    "exec": "def f(n):\n    exec('import os')\n    return 0",
    "subclasses": "def f(n):\n    ().__class__.__bases__[0].__subclasses__()\n    return 0",
    "format": "def f(n):\n    '{0.__class__}'.format(n)\n    return 0",
    "format map": "def f(n):\n    '{a.__class__}'.format_map({'a': n})\n    return 0",
    "frame": "def f(n):\n    g = (g.gi_frame.f_back for _ in [1])\n    list(g)\n    return 0",
    "traceback": "def f(n):\n    try:\n        1 / 0\n    except Exception as e:\n        e.args\n    return 0",
    "builtins": "def f(n):\n    __builtins__\n    return 0",
    "getattr": "def f(n):\n    getattr(n, 'app' + 'end')\n    return 0",
    "type": "def f(n):\n    type('A', (), {})\n    return 0",
    "breakpoint": "def f(n):\n    breakpoint()\n    return 0",
    "class": "class A:\n    pass\ndef f(n):\n    return 0",
    "match": "def f(n):\n    match n:\n        case list(__class__=c):\n            pass\n    return 0",
    "fork": "import os\nwhile True:\n    os.fork()\ndef f(n):\n    return 0",
    "asynchronous": "async def g(n):\n    await n\ndef f(n):\n    return 0",
    "keyword": "def f(n):\n    dict(__class__=1)\n    return 0",
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_program_fails_and_changes_nothing(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(CANARY).write_text("alive")
    reference = "def f(n: list[int]):\n    return 0"
    assert not passes(program, reference)
    assert Path(CANARY).read_text() == "alive"
    assert os.listdir() == [CANARY]


@pytest.mark.parametrize(
    "program",
    [
        "def f(n):\n    while True:\n        pass",
        "while True:\n    try:\n        1 / 0\n    except Exception:\n        pass\ndef f(n):\n    return 0",
        "def f(n):\n    return 10**10**10",
        "def f(n):\n    return [0] * 10**11",
        "def f(n):\n    a = 'x'\n    while True:\n        a += a",
        "def f(n):\n    return f(n)",
        "(" * 100_000,
        "-" * 100_000 + "1",
        "def f(n):\n    def g():\n        while True:\n            yield 1\n    return g()",
    ],
    ids=["loop", "loop at import", "power", "memory", "memory in steps", "recursion", "brackets", "signs", "generator"],
)
def test_a_program_without_an_end_is_stopped(program):
    assert not passes(program, "def f(n: list[int]):\n    return 0")


def test_the_process_refuses_what_slips_through(tmp_path):
    """Without the check of its syntax, a program still cannot open files, sockets and processes."""
    script = Path(passing.__code__.co_filename).with_name("untrusted_program.py").read_text(encoding="utf-8")
    open_gate = re.sub(r"    for node in ast.walk\(tree\):\n(        .*\n)+", "", script)
    open_gate = open_gate.replace('{"__builtins__": dict(BUILTINS)}', "{}")
    assert open_gate.count("ast.walk(tree)") == 0
    (tmp_path / "script.py").write_text(open_gate, encoding="utf-8")
    monitor = socket.create_server(("127.0.0.1", 0))
    port = monitor.getsockname()[1]
    connections = []
    threading.Thread(target=lambda: connections.append(monitor.accept()), daemon=True).start()
    canary = tmp_path / CANARY
    canary.write_text("alive")
    reference = "def f(n: int):\n    return 0"
    for attack in (
        f"open({str(canary)!r}, 'w')",
        f"__import__('os').remove({str(canary)!r})",
        f"__import__('socket').create_connection(('127.0.0.1', {port}))",
        "__import__('subprocess').run(['true'])",
        "__import__('ctypes').string_at(0)",
    ):
        program = f"def f(n):\n    {attack}\n    return 0"
        assert not programs.passes(tmp_path / "script.py", str(tmp_path), program, reference), attack
    assert programs.passes(tmp_path / "script.py", str(tmp_path), reference, reference)
    assert canary.read_text() == "alive"
    assert not connections
    monitor.close()
