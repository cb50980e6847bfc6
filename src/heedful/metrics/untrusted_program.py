"""Test a Python program that a model wrote; `heedful.metrics.programs` runs this file as a process of its own.

The program is not trusted. It may contain only what a function of numbers, texts and collections needs: no imports, no
double underscores, no files. Should something slip through, an audit hook ends the process at the first event that
computing does not cause, and the operating system limits its processor time, memory and files. Only the standard
library is imported, without site-packages, because hundreds of programs are tested.

Reads a JSON object with "program" and "reference" from standard input. Writes true or false, or an object with an
"error" in the reference.
"""

import ast
import builtins
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

TESTS = 100
SECONDS, MEMORY = 2, 1 << 30  # of processor time; in bytes

NAMES = (
    "abs all any bool chr dict divmod enumerate filter float frozenset int isinstance iter len list map max min next "
    "ord pow range repr reversed round set slice sorted str sum tuple zip ArithmeticError AssertionError Exception "
    "IndexError KeyError LookupError StopIteration TypeError ValueError ZeroDivisionError"
)
BUILTINS = {name: getattr(builtins, name) for name in NAMES.split()}
TYPES = (str, list, dict, set, tuple, int, float)
# The placeholders of `str.format` can read any attribute.
METHODS = {name for each in TYPES for name in dir(each) if not name.startswith("_")} - {"format", "format_map"}
NODES = (
    *(ast.expr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.comprehension),
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.keyword, ast.Return, ast.Expr, ast.Assign),
    *(ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Global, ast.Nonlocal, ast.For, ast.While, ast.If, ast.Pass),
    *(ast.Break, ast.Continue, ast.Raise, ast.Try, ast.ExceptHandler, ast.Assert),
)


class Rejection(Exception):
    """Raised if a program contains something that is not allowed, or has no function that can be tested."""


def main() -> None:
    task = json.load(sys.stdin)
    limit_resources()
    try:
        reference = parsed(task["reference"])
        arguments = [generated_arguments(reference) for _ in range(2)]  # equal, but a program may change its own
    except (Rejection, SyntaxError) as error:
        write({"error": str(error)})
        return
    try:
        program = parsed(task["program"])
    except (Rejection, SyntaxError, ValueError):
        write(False)
        return
    calls = [
        (compile(tree, "program", "exec"), last_function(tree).name, values)
        for tree, values in zip((reference, program), arguments, strict=True)
    ]
    sys.addaudithook(lambda event, _: None if event == "exec" else os._exit(1))
    expected, results = (outcomes(*call) for call in calls)
    write(results == expected)
    os._exit(0)  # the end of the interpreter is such an event, too


def write(answer: object) -> None:
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()


def limit_resources() -> None:
    """Limit processor time, memory and files, where the operating system can (Windows cannot)."""
    try:
        import resource
    except ImportError:
        return
    for limit, value in {"CPU": SECONDS, "AS": MEMORY, "FSIZE": 0, "NPROC": 0, "CORE": 0}.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (value, value))


def parsed(program: str) -> ast.Module:
    """Parse a program, and check that it contains only what is allowed."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if not isinstance(node, NODES) or isinstance(node, ast.Await):
            raise Rejection(f"a program that is tested must not contain {type(node).__name__}")
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise Rejection(f'a program that is tested must not use the attribute "{node.attr}"')
        if any("__" in name for name in names_in(node)):
            raise Rejection("a program that is tested must not use names with double underscores")
    last_function(tree)
    return tree


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names in the fields of a node, such as the name of a function; a constant has none."""
    for _, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        yield from (each for each in values if isinstance(each, str) and not isinstance(node, ast.Constant))


def last_function(tree: ast.Module) -> ast.FunctionDef:
    """Return the last function of a program, which is called; others may help it."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        raise Rejection("a program that is tested must define a function")
    return functions[-1]


def outcomes(code: CodeType, name: str, arguments: list[list[Any]]) -> list[tuple[str, Any]]:
    """Return the type and the value of each result of a program's function; of an exception, only its type."""
    try:
        namespace: dict[str, Any] = {"__builtins__": dict(BUILTINS)}
        exec(code, namespace)
        return [outcome(namespace[name], values) for values in arguments]
    except Exception as error:
        return [(type(error).__name__, None)]


def outcome(function: Callable[..., Any], values: list[Any]) -> tuple[str, Any]:
    try:
        result = function(*values)
        return type(result).__name__, list(result) if isinstance(result, Iterator) else result
    except Exception as error:
        return type(error).__name__, None


def generated_arguments(reference: ast.Module) -> list[list[Any]]:
    """Generate arguments for the last function of a program from the annotations of its parameters.

    Numbers and texts near the constants of the program are frequent, because its results may change there.
    """
    constants = [node.value for node in ast.walk(reference) if isinstance(node, ast.Constant)]
    generator = Generator(constants)
    parameters = last_function(reference).args
    arguments = [*parameters.posonlyargs, *parameters.args]
    return [[generator.value(each.annotation, each.arg) for each in arguments] for _ in range(TESTS)]


class Generator:
    """Generator of arguments; it draws the same ones for the same program."""

    def __init__(self, constants: list[Any]) -> None:
        self._random = random.Random(0)
        self._numbers = [value for value in constants if type(value) is int]
        self._texts = [value for value in constants if isinstance(value, str) and value]
        self._simple: dict[str, Callable[[], Any]] = {
            "int": self.number,
            "float": lambda: self.number() / self._random.choice((1, 2, 4)),
            "bool": lambda: self._random.random() < 0.5,
            "str": lambda: " ".join(self.word() for _ in self.several()),
        }

    def value(self, annotation: ast.expr | None, parameter: str) -> Any:
        """Generate a value of an annotated type, such as list[int]."""
        match annotation:
            case ast.Name(id=name) if name in self._simple:
                return self._simple[name]()
            case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=items)):
                return tuple(self.value(item, parameter) for item in items)
            case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[_, _] as items)):
                return dict([self.value(item, parameter) for item in items] for _ in self.several())
            case ast.Subscript(value=ast.Name(id="list" | "List" | "set" | "Set" as name), slice=item):
                values = [self.value(item, parameter) for _ in self.several()]
                return values if name.lower() == "list" else set(values)
        raise Rejection(
            f'annotate the parameter "{parameter}" with int, float, bool, str, list[...], set[...], dict[..., ...] or '
            "tuple[..., ...], so that arguments can be generated"
        )

    def several(self) -> range:
        return range(self._random.choice((0, 1, 2, 3, 4, 6, 8)))

    def number(self) -> int:
        near = self._random.random() < 0.4
        centre, distance = (self._random.choice(self._numbers), 1) if near and self._numbers else (0, 20)
        return centre + self._random.randint(-distance, distance)

    def word(self) -> str:
        letters = "".join(self._random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(self._random.randint(1, 8)))
        if not self._texts or self._random.random() < 0.5:
            return letters
        text = self._random.choice(self._texts)
        cut = self._random.choice((0, len(letters), self._random.randint(0, len(letters))))
        return letters[:cut] + text + letters[cut:]


if __name__ == "__main__":
    main()
