"""Test a Python program that a model wrote; `heedful.metrics.programs` runs this file in a separate process.

The program is not trusted. It may contain only what a function of numbers, texts and collections needs: no imports, no
double underscores, no files. Should something slip through, an audit hook ends the process at the first event that
pure computation does not raise, and the operating system limits its processor time, memory and files. Only the standard
library is imported, without site-packages, because hundreds of programs are tested.

Reads a JSON object with "program" and "reference" from standard input. Writes READY once the reference has been run,
and then whether the program passes, as true or false; or else what is wrong with the reference.
"""

import __future__

import ast
import builtins
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType
from typing import Any, NoReturn

READY = "ready "
TESTS = 100
SECONDS, MEMORY = 4, 1 << 28  # of processor time, for reference and program together; in bytes
MAX_NUMBER = 1000  # larger constants of a program are not used as arguments: they may be iterated over

NAMES = (
    "abs all any bool chr dict divmod enumerate filter float frozenset int isinstance iter len list map max min next "
    "ord pow range repr reversed round set slice sorted str sum tuple zip ArithmeticError AssertionError Exception "
    "IndexError KeyError LookupError StopIteration TypeError ValueError ZeroDivisionError"
)
BUILTINS = {name: getattr(builtins, name) for name in NAMES.split()} | {"print": lambda *_, **__: None}
TYPES = (str, list, dict, set, tuple, int, float)
# The placeholders of `str.format` can read any attribute.
METHODS = {name for each in TYPES for name in dir(each) if not name.startswith("_")} - {"format", "format_map"}
NODES = (
    *(ast.expr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.comprehension),
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.keyword, ast.Return, ast.Expr, ast.Assign),
    *(ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Global, ast.Nonlocal, ast.For, ast.While, ast.If, ast.Pass),
    *(ast.Break, ast.Continue, ast.Raise, ast.Try, ast.ExceptHandler, ast.Assert),
)
LETTERS, OTHER_SIGNS = "abcdefghijklmnopqrstuvwxyz", "ABCXYZ0123456789.,!'-"
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


class Rejection(Exception):
    """Raised if a program contains something that is not allowed, or has no function that can be tested."""


def main() -> None:
    task = json.load(sys.stdin)
    limit_resources()
    try:
        reference = parsed(task["reference"])
        function = last_function(reference)
        arguments = [generated_arguments(reference) for _ in range(2)]  # equal, but a program may change its own
        code = compiled(reference)
    except Exception as error:
        write_and_exit(str(error))
    sys.addaudithook(lambda event, _: None if event in ("compile", "exec") else os._exit(1))
    expected = outcomes(code, function.name, arguments[0])
    if all(isinstance(each, Failure) for each in expected):
        write_and_exit(f"it raises {expected[0]} for all generated arguments")
    sys.stdout.write(READY)
    sys.stdout.flush()
    try:
        program = parsed(task["program"])
        names = [node.name for node in program.body if isinstance(node, ast.FunctionDef)]
        name = function.name if function.name in names else last_function(program).name
        results = outcomes(compiled(program), name, arguments[1])
    except Exception:
        results = []
    write_and_exit(json.dumps(results == expected))


def write_and_exit(text: str) -> NoReturn:
    sys.stdout.write(text)
    sys.stdout.flush()
    os._exit(0)  # a normal exit would trigger the audit hook


def limit_resources() -> None:
    """Limit processor time, memory and files, where the operating system can: Windows cannot, macOS only partly."""
    try:
        import resource
    except ImportError:
        return
    for name, value in {"CPU": SECONDS, "AS": MEMORY, "FSIZE": 0, "NPROC": 0, "CORE": 0}.items():
        with suppress(AttributeError, ValueError, OSError):
            limit = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(limit)[1]
            lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (lower, lower))


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
    return tree


def compiled(tree: ast.Module) -> CodeType:
    """Compile a program; annotations are not evaluated, because they may name types that are not allowed."""
    return compile(tree, "program", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names in the fields of a node, such as the name of a function; a constant has none."""
    for _, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        yield from (each for each in values if isinstance(each, str) and not isinstance(node, ast.Constant))


def last_function(tree: ast.Module) -> ast.FunctionDef:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not functions:
        raise Rejection("a program that is tested must define a function")
    return functions[-1]


class Failure(str):
    """The type of an exception, as the outcome of a call."""


def outcomes(code: CodeType, name: str, arguments: list[list[Any]]) -> list[Any]:
    """Return the results of a program's function in a form that can be compared, or the types of exceptions."""
    namespace: dict[str, Any] = {"__builtins__": dict(BUILTINS)}
    try:
        exec(code, namespace)
    except Exception as error:
        return [Failure(type(error).__name__)]
    return [outcome(namespace.get(name, ""), values) for values in arguments]


def outcome(function: Callable[..., Any], values: list[Any]) -> Any:
    """Call a function; if it returns None, the outcome is what it has made of its arguments."""
    try:
        result = function(*values)
        return comparable(values if result is None else result)
    except Exception as error:
        return Failure(type(error).__name__)


def comparable(value: Any) -> Any:
    """Return a copy of a result with the types of all values, in which floats are rounded, and NaN equals NaN."""
    kind = type(value).__name__
    if isinstance(value, float):
        return kind, f"{round(value, 9) + 0.0:.12g}"  # -0.0 becomes 0.0
    if isinstance(value, (Iterator, *VIEWS)):
        return "iterator", [comparable(each) for each in value]
    if isinstance(value, (list, tuple)):
        return kind, [comparable(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return kind, sorted((comparable(each) for each in value), key=repr)
    if isinstance(value, dict):
        return kind, sorted(((comparable(key), comparable(each)) for key, each in value.items()), key=repr)
    return kind, value


def generated_arguments(reference: ast.Module) -> list[list[Any]]:
    """Generate arguments for the last function of a program from the annotations of its parameters.

    Numbers and texts near the constants of the program are frequent, because its results may change there.
    """
    parameters = last_function(reference).args
    if parameters.kwonlyargs or parameters.vararg or parameters.kwarg:
        raise Rejection("the last function must have only parameters that can be passed by position")
    generator = Generator([node.value for node in ast.walk(reference) if isinstance(node, ast.Constant)])
    arguments = [*parameters.posonlyargs, *parameters.args]
    return [[generator.value(each.annotation, each.arg) for each in arguments] for _ in range(TESTS)]


class Generator:
    """Generator of arguments; it draws the same ones for the same program."""

    def __init__(self, constants: list[Any]) -> None:
        self._random = random.Random(0)
        self._numbers = [value for value in constants if type(value) in (int, float) and abs(value) <= MAX_NUMBER]
        self._texts = [value for value in constants if isinstance(value, str) and value]
        self._simple: dict[str, Callable[[], Any]] = {
            "int": lambda: int(self.number()),
            "float": lambda: self.number() + self._random.choice((-0.5, 0.0, 0.0, 0.25)),
            "bool": lambda: self.chance(0.5),
            "str": self.text,
        }

    def value(self, annotation: ast.expr | None, parameter: str) -> Any:
        """Generate a value of an annotated type, such as list[int]."""
        match annotation:
            case ast.Name(id=name) if name in self._simple:
                return self._simple[name]()
            case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=items)):
                return tuple(self.value(item, parameter) for item in items)
            case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[_, _] as items)):
                return dict(self.several(lambda: tuple(self.value(item, parameter) for item in items)))
            case ast.Subscript(value=ast.Name(id="list" | "List" | "set" | "Set" as name), slice=item):
                values = self.several(lambda: self.value(item, parameter))
                return values if name.lower() == "list" else set(values)
        raise Rejection(
            f'annotate the parameter "{parameter}" with int, float, bool, str, list[...], set[...], dict[..., ...] or '
            "tuple[..., ...], so that arguments can be generated"
        )

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def several(self, draw: Callable[[], Any]) -> list[Any]:
        """Draw some values, of which some are repeated."""
        values: list[Any] = []
        for _ in range(self._random.choice((0, 1, 2, 3, 4, 6, 9, 16))):
            values.append(self._random.choice(values) if values and self.chance(0.2) else draw())
        return values

    def number(self) -> float:
        if self._numbers and self.chance(0.4):
            return self._random.choice((1, 1, -1)) * self._random.choice(self._numbers) + self._random.randint(-1, 1)
        distance = 20 if self.chance(0.9) else 300
        return self._random.randint(-distance, distance)

    def text(self) -> str:
        spaces = (" ", " ", " ", "  ") if self.chance(0.2) else (" ",)
        words = self.several(self.word)
        text = "".join(word + self._random.choice(spaces) for word in words)
        return text if self.chance(0.1) else text.strip()

    def word(self) -> str:
        signs = LETTERS if self.chance(0.8) else LETTERS + OTHER_SIGNS
        letters = "".join(self._random.choice(signs) for _ in range(self._random.randint(1, 8)))
        if not self._texts or self.chance(0.5):
            return letters
        cut = self._random.choice((0, len(letters), self._random.randint(0, len(letters))))
        return letters[:cut] + self._random.choice(self._texts) + letters[cut:]


if __name__ == "__main__":
    main()
