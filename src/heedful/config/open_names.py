"""Settings whose values are names of parts that packages may add to, such as `model.positions`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful.registry import Registry

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class OpenNames:
    """Fact of a setting: besides the names in its type, it takes those of a registry that installed packages add."""

    registry: Registry[Any]

    def __hash__(self) -> int:
        return hash(self.registry.kind)

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Let pydantic take the added names."""
        from pydantic_core import core_schema

        def added_or(value: Any, validate: Any) -> Any:
            added = isinstance(value, str) and value in self.registry.installed()
            return value if added else validate(value)

        return core_schema.no_info_wrap_validator_function(added_or, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: "GetJsonSchemaHandler") -> dict[str, Any]:
        """List the added names in the JSON Schema, too."""
        schema = handler(core)
        return {**schema, "enum": [*schema.get("enum", ()), *self.registry.installed()]}
