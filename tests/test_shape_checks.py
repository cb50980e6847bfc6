import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from heedful.architectures import heads
from heedful.nn import attention
from heedful.predictors.speech import SpeechRules
from heedful.search import top_k
from shape_checks import checked, promises_shapes, typechecker

A, B = torch.ones(3, 5), torch.ones(5, 7)


def scaled(x: Float[Tensor, "A B"], y: Float[Tensor, "B C"] | None, factor: float = 2.0) -> Float[Tensor, "A C"]:
    return factor * x if y is None else factor * x @ y


def test_what_fits_passes_and_the_result_is_that_of_the_function():
    assert torch.equal(checked(typechecker)(scaled)(A, B), scaled(A, B))


@pytest.mark.parametrize(
    "arguments",
    [(A, B.T), (A.long(), B), (A[0], B), (A, "B"), (A, B, "2")],
    ids=["dimensions that differ", "another type of numbers", "another rank", "no tensor", "another type"],
)
def test_arguments_that_break_the_promise_are_refused(arguments):
    with pytest.raises(TypeCheckError, match="violates type hint"):
        checked(typechecker)(scaled)(*arguments)


def test_a_result_that_breaks_the_promise_is_refused():
    assert checked(typechecker)(scaled)(A[:, :3], None).shape == (3, 3)

    def squared(x: Float[Tensor, "A B"]) -> Float[Tensor, "A A"]:
        return x

    with pytest.raises(TypeCheckError, match="the size of dimension A is 5"):
        checked(typechecker)(squared)(A)


def test_calls_are_checked_whatever_passed_before():
    results = [A, A, A[:2]]

    def same(x: Float[Tensor, "A B"] | list[Float[Tensor, "A B"]], size: int = 1) -> Float[Tensor, "A B"]:
        return results.pop(0)

    function = checked(typechecker)(same)
    assert function(A) is A
    assert function(A) is A
    with pytest.raises(TypeCheckError, match="the size of dimension A is 2"):
        function(A)
    for arguments in [(A[0],), (A.long(),), (A.tolist(),), ([A, A[0]],), (A, "1")]:
        with pytest.raises(TypeCheckError, match="violates type hint"):
            function(*arguments)


def test_a_function_without_shapes_is_left_to_the_type_checker():
    def number(x: int) -> int:
        return x

    assert not promises_shapes(number)
    with pytest.raises(TypeCheckError, match="violates type hint"):
        checked(typechecker)(number)("1")


@pytest.mark.parametrize(
    "annotation", [Float[Tensor, "A"], list[Float[Tensor, "A"]], Tensor | Float[Tensor, "A"], "Float[Tensor, 'A']"]
)
def test_a_shape_is_found_wherever_it_stands(annotation):
    def function(x):
        return x

    function.__annotations__["x"] = annotation
    assert promises_shapes(function)


def test_the_source_is_imported_with_checks():
    query, key, value = (torch.ones(2, 3, length, 5) for length in (7, 11, 13))
    with pytest.raises(TypeCheckError, match="violates type hint"):
        attention.scaled_dot_product(query, key, value, torch.zeros(1, 1, 1, 11))


@pytest.mark.parametrize("function", [attention.scaled_scores, heads.first, top_k.top, SpeechRules.to])
def test_each_package_of_models_searches_and_predictors_is_checked(function):
    with pytest.raises(TypeCheckError):
        function(torch.ones(3), torch.ones(3))
