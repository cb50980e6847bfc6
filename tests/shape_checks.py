"""Checks of the shapes that a function promises, with each argument looked at once a call.

jaxtyping's own decorator looks at the arguments before a call, and once more together with the result; that takes three
times as long. In its place stands `checked`, under which a function that promises no shape is left to the type checker
alone. What is refused stays the same, and by an error of the same kind, which is a TypeError. A check looks at types,
shapes and a few plain values only, and so arguments and results that are the same in all of these are checked once.
"""

import sys
from collections.abc import Callable, Collection, Hashable
from functools import wraps
from inspect import isclass, isfunction
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, install_import_hook

typechecker = beartype(conf=BeartypeConf(violation_type=TypeCheckError))
_decorate: Callable[..., Any] = jaxtyping.jaxtyped
_one_call = _decorate("context")  # in which a letter stands for one size


def check_shapes(modules: list[str]) -> None:
    """Let what is imported from these modules from now on be checked at each call."""
    jaxtyping.jaxtyped = checked
    install_import_hook(modules, "shape_checks.typechecker")


def checked(typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make the decorator that the import hook puts on each function and class."""

    def decorate(subject: Any) -> Any:
        if not isfunction(subject):
            return _decorate(subject, typechecker=typechecker)
        found = typechecker(subject)
        return in_one_context(found, subject) if promises_shapes(subject) else found

    return decorate


def in_one_context(function: Callable[..., Any], unchecked: Callable[..., Any]) -> Callable[..., Any]:
    """Let all shapes that a function is checked for in a call agree."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (torch := sys.modules.get("torch")) and torch.compiler.is_exporting():
            return unchecked(*args, **kwargs)  # sizes are symbols, and no integers
        arguments = (*map(seen_by_checks, args), *kwargs, *map(seen_by_checks, kwargs.values()))
        if arguments in passed:
            result = unchecked(*args, **kwargs)
            if (arguments, seen_by_checks(result)) in passed:
                return result
            results.append(result)
            with _one_call:
                with_that_result(*args, **kwargs)
        else:
            with _one_call:
                result = function(*args, **kwargs)
        passed.update((arguments, (arguments, seen_by_checks(result))))
        return result

    @wraps(unchecked)
    def last_result(*args: Any, **kwargs: Any) -> Any:
        return results.pop()

    results: list[Any] = []
    with_that_result = typechecker(last_result)
    passed: set[Hashable] = set()  # arguments, and pairs of arguments and a result, that kept the promises
    return call


def seen_by_checks(value: Any) -> Hashable:
    """What a check looks at: equal for two values only if both keep a promise, or neither does."""
    kind = type(value)
    if (shape := getattr(value, "shape", None)) is not None and (dtype := getattr(value, "dtype", None)) is not None:
        return kind, dtype, shape
    if value is None or kind in (bool, int, str):
        return kind, value
    if isinstance(value, tuple | list) and len(value) < 9:
        return kind, *map(seen_by_checks, value)
    return object() if isinstance(value, Collection) else kind  # of whose elements any may break a promise


def promises_shapes(function: Callable[..., Any]) -> bool:
    """True if an annotation holds a shape."""
    return any(map(_holds_shape, function.__annotations__.values()))


def _holds_shape(annotation: Any) -> bool:
    """True of Float[Tensor, "B T"], of anything made of such, and of a string that may become such."""
    if isinstance(annotation, str):
        return "Tensor" in annotation
    if isclass(annotation) and issubclass(annotation, AbstractArray):
        return True
    return any(map(_holds_shape, get_args(annotation)))
