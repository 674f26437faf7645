"""Decorators that take a GraphQL type's description from the docstring of its class, so that each is written once."""

import inspect
from collections.abc import Mapping
from enum import EnumMeta
from typing import Any, TypeVar, dataclass_transform

import strawberry
from strawberry.types.enum import StrawberryEnumDefinition
from strawberry.types.field import StrawberryField, field

T = TypeVar("T")
EnumT = TypeVar("EnumT", bound=EnumMeta)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, StrawberryField))
def object_type(cls: type[T]) -> type[T]:
    """Make an object type of a class."""
    return strawberry.type(cls, description=inspect.getdoc(cls))


@dataclass_transform(kw_only_default=True, field_specifiers=(field, StrawberryField))
def interface_type(cls: type[T]) -> type[T]:
    """Make an interface of a class."""
    return strawberry.interface(cls, description=inspect.getdoc(cls))


@dataclass_transform(kw_only_default=True, field_specifiers=(field, StrawberryField))
def input_type(cls: type[T]) -> type[T]:
    """Make an input object type of a class."""
    return strawberry.input(cls, description=inspect.getdoc(cls))


def enum_type(
    cls: EnumT, description: str, members: Mapping[str, str], *, name: str | None = None
) -> EnumT:
    """Make a GraphQL enum of an enumeration that knows no GraphQL; `members` describes each of its members by name."""
    strawberry.enum(cls, name=name, description=description)
    definition: Any = cls.__strawberry_definition__  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(definition, StrawberryEnumDefinition):
        raise TypeError(cls)
    for member in definition.values:
        member.description = members[member.name]
    return cls


def given(value: T | None) -> T | None:
    """Read an optional argument: left out counts as null."""
    return None if value is strawberry.UNSET else value
