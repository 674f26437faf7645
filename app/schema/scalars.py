"""The scalars of the API: each reads exactly one spelling of a value and refuses every other, and writes what it reads.

Only `BigInt` reads two, because clients hold small numbers as numbers: a decimal string, or a whole number that a client
which keeps numbers as doubles can't have rounded.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NewType, cast

import strawberry
from graphql import (
    BooleanValueNode,
    FloatValueNode,
    GraphQLError,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    StringValueNode,
    ValueNode,
    VariableNode,
)
from strawberry.types.scalar import ScalarDefinition

from app.ledger.money import EXPONENTS, fits_int64

BigInt = NewType("BigInt", int)
CurrencyCode = NewType("CurrencyCode", str)
DecimalText = NewType("DecimalText", str)
Instant = NewType("Instant", datetime)
JsonValue = NewType("JsonValue", object)

_EXACT_IN_A_DOUBLE: Final = 2**53 - 1
_INT64_CHARACTERS: Final = 20

_WHOLE_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_RFC_3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


def _parse_big_int(value: object) -> BigInt:
    # A boolean is an int to Python.
    if type(value) is int:
        if abs(value) > _EXACT_IN_A_DOUBLE:
            raise GraphQLError(
                "A BigInt beyond 2^53 - 1 must be written as a string, since numbers may have been rounded on their way."
            )
        return BigInt(value)
    if (
        isinstance(value, str)
        and len(value) <= _INT64_CHARACTERS
        and _WHOLE_NUMBER.fullmatch(value)
        and fits_int64(int(value))
    ):
        return BigInt(int(value))
    raise GraphQLError('A BigInt is a decimal string of a 64-bit whole number, such as "100000".')


def _parse_currency_code(value: object) -> CurrencyCode:
    if isinstance(value, str) and value in EXPONENTS:
        return CurrencyCode(value)
    raise GraphQLError(
        "A CurrencyCode is the upper-case ISO 4217 code of a currency that has a minor unit, such as "
        '"BRL".'
    )


def _parse_decimal(value: object) -> DecimalText:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return DecimalText(value)
    raise GraphQLError('A Decimal is a decimal string, such as "1000.00".')


def _parse_instant(value: object) -> Instant:
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            return Instant(datetime.fromisoformat(value.upper()).astimezone(UTC))
        except (ValueError, OverflowError):
            pass
    raise GraphQLError(
        "A DateTime is an RFC 3339 instant with an offset and at most six digits of a second, such as "
        '"2030-01-31T12:00:00Z".'
    )


def _write_instant(value: datetime) -> str:
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _parse_json(value: object) -> JsonValue:
    return JsonValue(value)


def _json_literal(node: ValueNode, variables: Mapping[str, Any]) -> object:
    match node:
        case NullValueNode():
            return None
        case StringValueNode() | BooleanValueNode():
            return node.value
        case IntValueNode() | FloatValueNode():
            return _json_number(node.value, int if isinstance(node, IntValueNode) else float)
        case ListValueNode():
            return [_json_literal(item, variables) for item in node.values]
        case ObjectValueNode():
            return {
                field.name.value: _json_literal(field.value, variables) for field in node.fields
            }
        case VariableNode() if node.name.value in variables:
            return variables[node.name.value]
        case _:
            raise GraphQLError("A JSON literal holds JSON values only.", node)


def _json_number(text: str, kind: Callable[[str], int | float]) -> int | float:
    try:
        number = kind(text)
    except ValueError:
        number = float("inf")
    if not (fits_int64(number) if isinstance(number, int) else abs(number) < float("inf")):
        raise GraphQLError("A number in JSON must be finite and have at most 64 bits.")
    return number


def _text_literal(parse: Callable[[object], object], *, numbers: bool = False) -> Any:
    """Read a literal as the value that it spells; an enum's bare word is no string."""

    def parse_literal(node: ValueNode, _variables: Mapping[str, Any] | None = None) -> object:
        if isinstance(node, StringValueNode):
            return parse(node.value)
        if numbers and isinstance(node, IntValueNode) and len(node.value) <= _INT64_CHARACTERS:
            return parse(int(node.value))
        return parse(None)

    return parse_literal


SCALARS: Final = cast(
    "Mapping[object, ScalarDefinition]",
    {
        BigInt: strawberry.scalar(
            name="BigInt",
            description=(
                "A whole number that can exceed 32 bits, always written as a decimal string, such as "
                '"100000": money in minor units, sequences.\nInput also accepts a JSON integer whose size is at most '
                '2^53 - 1; floats, exponents, signs other than a leading "-", spaces and non-ASCII digits are '
                "refused. Range of a signed 64-bit integer."
            ),
            serialize=str,
            parse_value=_parse_big_int,
            parse_literal=_text_literal(_parse_big_int, numbers=True),
        ),
        CurrencyCode: strawberry.scalar(
            name="CurrencyCode",
            description="ISO 4217 alphabetic code, upper case.",
            specified_by_url="https://www.iso.org/iso-4217-currency-codes.html",
            parse_value=_parse_currency_code,
            parse_literal=_text_literal(_parse_currency_code),
        ),
        DecimalText: strawberry.scalar(
            name="Decimal",
            description=(
                "A decimal string with exactly as many digits after the point as its currency has "
                '("1000.00" BRL, "1000" VND, "1.000" KWD).'
            ),
            parse_value=_parse_decimal,
            parse_literal=_text_literal(_parse_decimal),
        ),
        Instant: strawberry.scalar(
            name="DateTime",
            description="An instant, RFC 3339 with an offset; answered in UTC with microseconds.",
            specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
            serialize=_write_instant,
            parse_value=_parse_instant,
            parse_literal=_text_literal(_parse_instant),
        ),
        JsonValue: strawberry.scalar(
            name="JSON",
            description="Any JSON value. Where it is an input it is an object of at most 4 KiB once encoded.",
            specified_by_url="https://www.rfc-editor.org/rfc/rfc8259",
            parse_value=_parse_json,
            parse_literal=lambda node, variables=None: _parse_json(
                _json_literal(node, variables or {})
            ),
        ),
    },
)
"""The GraphQL scalar of each Python type that stands for one."""
