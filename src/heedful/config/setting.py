"""Facts about a recipe's fields: range, description, other names, and whether a resumed run may change them.

A setting is one field of a dataclass. Its type contains the range and, as a `Setting`, the other facts; the docstring
below it is its description. These determine the JSON Schema, the reference page, the help of options, and how values
and resumed runs are checked.
"""

import ast
import inspect
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from heedful.registry import Registry

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Natural = Annotated[int, Ge(0)]
Count = Annotated[int, Ge(1)]
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Ge(0), Le(1)]
PositiveShare = Annotated[float, Gt(0), Le(1)]
Rate = Annotated[float, Ge(0), Lt(1)]


@dataclass(frozen=True)
class Fixed:
    """Rule that a resumed run cannot change a setting; messages give the `reason`, a clause that follows "because"."""

    reason: str


ResumeRule = Literal["free", "length", "ask"] | Fixed


@dataclass(frozen=True)
class Setting:
    """Facts about a setting beyond its type, default, range and description.

    Attributes:
        aliases: Names of the setting in other toolkits, for which error messages suggest the setting.
        values: Mapping from the names that its values have in other toolkits and papers to the names in heedful.
        former: Names of the setting in older versions of heedful, which saved recipes may contain.
        resume: Whether a resumed run may change the value. "free": yes; "length": yes, unless the learning rate
            decays towards the end of the run; "ask": only if the user allows it; `Fixed`: no. None: the rule of the
            table that contains the setting, or "ask" at the top level of a recipe.
        per_machine: True if the processes of one run may have different values.
    """

    aliases: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    former: tuple[str, ...] = ()
    resume: ResumeRule | None = None
    per_machine: bool = False


class SeparatelyValidated:
    """Marker of a table that is validated separately, because its class depends on one of its values."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Make pydantic accept any value."""
        del source, handler
        from pydantic_core.core_schema import any_schema

        return any_schema()


@dataclass(frozen=True)
class OpenNames:
    """Marker of a setting that takes the names in its type, and names that installed packages add to a registry."""

    registry: Registry[Any]

    def __hash__(self) -> int:
        return hash(self.registry.kind)

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Make pydantic accept the added names."""
        from pydantic_core import core_schema

        def added_or(value: Any, validate: Any) -> Any:
            added = isinstance(value, str) and value in self.registry.installed()
            return value if added else validate(value)

        return core_schema.no_info_wrap_validator_function(added_or, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: "GetJsonSchemaHandler") -> dict[str, Any]:
        """List the added names in the JSON Schema as well."""
        schema = handler(core)
        return {**schema, "enum": [*schema.get("enum", ()), *self.registry.installed()]}


class FormerValues:
    """Mapping from former names of a setting's values, which older recipes contain, to the current names."""

    def __init__(self, **current: str) -> None:
        self.current = current

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Make pydantic replace a former name with the current one."""
        from pydantic_core import core_schema

        def renamed(value: Any) -> Any:
            return self.current.get(value, value) if isinstance(value, str) else value

        return core_schema.no_info_before_validator_function(renamed, handler(source))


PLAIN = Setting()
BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def bare(hint: Any) -> Any:
    """Return the type in an `Annotated`, or the type itself."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def setting_in(hint: Any) -> Setting:
    """Return the `Setting` in the type of a field, or an empty one if there is none, as in a custom class."""
    return next((fact for fact in getattr(hint, "__metadata__", ()) if isinstance(fact, Setting)), PLAIN)


def bounds(hint: Any) -> dict[str, float]:
    """Return the bounds of the numbers in a type, with keys "ge", "gt", "le" and "lt"."""
    limits: dict[str, Any] = {}
    for fact in getattr(hint, "__metadata__", ()):
        if isinstance(fact, Ge | Gt | Le | Lt):
            limits |= asdict(fact)
    for part in get_args(hint):
        limits |= bounds(part)
    return limits


def range_text(limits: Mapping[str, float]) -> str:
    """Format the bounds of a number, such as "at least 1" or "from 0 to 1". Without bounds, the text is empty."""
    if limits.keys() == {"ge", "le"}:
        return f"from {limits['ge']:,} to {limits['le']:,}"
    return " and ".join(f"{BOUNDS[name]} {limit:,}" for name, limit in limits.items())


def descriptions(table: type) -> dict[str, str]:
    """Return the description of each field of a dataclass: the docstring below it, in the class or in a base class."""
    texts: dict[str, str] = {}
    for kind in reversed(table.__mro__):
        if is_dataclass(kind):
            texts |= _docstrings(kind.__module__).get(kind.__name__, {})
    return texts


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below the fields of each class of a module; return {} if its source cannot be read."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):  # for example, the class was typed at a prompt
        return {}
    texts: dict[str, dict[str, str]] = {}
    for kind in ast.walk(tree):
        if isinstance(kind, ast.ClassDef):
            texts[kind.name] = {}
            for statement, after in pairwise(kind.body):
                match statement, after:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        texts[kind.name][name] = " ".join(text.split())
    return texts
