"""The schema as a document: committed, described throughout, and with no number that a client could round."""

from pathlib import Path
from typing import Any, cast

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    get_named_type,
)

from app.schema import build_schema

SCHEMA = build_schema()
COMMITTED = Path(__file__).parents[2] / "app" / "schema" / "schema.graphql"


def named(type_: object) -> str:
    return cast("GraphQLNamedType", get_named_type(cast("Any", type_))).name


def test_the_committed_schema_is_the_one_that_is_served() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == SCHEMA.as_str() + "\n", (
        "run `python -m app.schema > app/schema/schema.graphql`"
    )


def test_everything_is_described() -> None:
    missing: list[str] = []
    for name, type_ in SCHEMA.core.type_map.items():
        if name.startswith("__"):
            continue
        if not type_.description:
            missing.append(name)
        if isinstance(type_, GraphQLEnumType):
            missing += [f"{name}.{v}" for v, value in type_.values.items() if not value.description]
        if isinstance(type_, GraphQLInputObjectType):
            missing += [f"{name}.{f}" for f, field in type_.fields.items() if not field.description]
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for field_name, field in type_.fields.items():
                if not field.description:
                    missing.append(f"{name}.{field_name}")
                missing += [
                    f"{name}.{field_name}({argument})"
                    for argument, definition in field.args.items()
                    if not definition.description
                ]
    assert missing == []


def test_g01_no_amount_sequence_or_count_is_an_int_or_a_float() -> None:
    allowed = {"OpenAccountInput.stripes"}
    small: set[str] = set()
    for name, type_ in SCHEMA.core.type_map.items():
        if name.startswith("__"):
            continue
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
            small |= {
                f"{name}.{field_name}"
                for field_name, field in type_.fields.items()
                if named(field.type) in {"Int", "Float"}
            }
    assert small == allowed


def test_f02_whatever_bears_a_balance_bears_its_number() -> None:
    for name in ("Balance", "Entry"):
        type_ = SCHEMA.core.type_map[name]
        assert isinstance(type_, GraphQLObjectType)
        assert named(type_.fields["sequence"].type) == "BigInt"
