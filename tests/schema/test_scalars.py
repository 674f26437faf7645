"""Scalars: what each of them reads, and that it refuses every other spelling."""

from datetime import UTC, datetime
from typing import Any

import pytest
from graphql import GraphQLError, GraphQLScalarType, parse_value

from app.schema import build_schema

SCHEMA = build_schema().core


def scalar(name: str) -> GraphQLScalarType:
    found = SCHEMA.type_map[name]
    assert isinstance(found, GraphQLScalarType)
    return found


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("0", 0),
        ("-1", -1),
        ("-0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        (0, 0),
        (2**53 - 1, 2**53 - 1),
        (-(2**53) + 1, -(2**53) + 1),
    ],
    ids=repr,
)
def test_big_int_reads_strings_and_safe_numbers(given: object, read: int) -> None:
    assert scalar("BigInt").parse_value(given) == read


@pytest.mark.parametrize(
    "given",
    [
        *(
            "",
            " 1",
            "1 ",
            "+1",
            "--1",
            "01",
            "-01",
            "1.0",
            "1e3",
            "0x1",
            "1_000",
            "1,000",
            "\u0663",
            "\uff11",
        ),
        *(
            "NaN",
            "Infinity",
            "9223372036854775808",
            "-9223372036854775809",
            pytest.param("9" * 5_000, id="5000 digits"),
        ),
        *(1.0, 0.1, float("nan"), 1e300, True, False, None, [], {}),
        *(2**53, -(2**53), 9_007_199_254_740_993),
    ],
    ids=repr,
)
def test_big_int_refuses_what_isn_t_exact(given: object) -> None:
    with pytest.raises(GraphQLError):
        scalar("BigInt").parse_value(given)


@pytest.mark.parametrize(
    ("name", "literal", "read"),
    [
        ("BigInt", "100", 100),
        ("BigInt", '"9007199254740993"', 9_007_199_254_740_993),
        ("CurrencyCode", '"BRL"', "BRL"),
        ("JSON", '{a: [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}),
    ],
    ids=repr,
)
def test_literals_are_read_like_values(name: str, literal: str, read: object) -> None:
    assert scalar(name).parse_literal(parse_value(literal)) == read


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        *(("BigInt", text) for text in ("9007199254740993", "1.0", "1e3", "true", "ABC", "null")),
        pytest.param("BigInt", "1" * 5_000, id="5000 digits"),
        *(("CurrencyCode", text) for text in ("BRL", "1", '"brl"')),
        *(("JSON", text) for text in ("{a: WORD}", "1e999", "9223372036854775808")),
        pytest.param("JSON", "1" * 5_000, id="5000 digits of JSON"),
        *(("DateTime", text) for text in ("2026", '"2026-01-01"')),
    ],
    ids=repr,
)
def test_literals_that_spell_something_else_are_refused(name: str, literal: str) -> None:
    with pytest.raises(GraphQLError):
        scalar(name).parse_literal(parse_value(literal))


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31t12:00:00.5z", datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456-03:00", datetime(2026, 1, 31, 15, 0, 0, 123_456, tzinfo=UTC)),
    ],
    ids=repr,
)
def test_date_time_reads_rfc_3339(given: str, read: datetime) -> None:
    assert scalar("DateTime").parse_value(given) == read


@pytest.mark.parametrize(
    "given",
    [
        *("2026", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "20260131T120000Z"),
        *("2026-01-31T12:00:00.1234567Z", "2026-02-30T12:00:00Z", "2026-01-31T12:00:60Z"),
        *("2026-01-31T12:00:00+0300", "2026-01-31T12:00:00+25:00", "2026-W05-6T12:00:00Z"),
        *(
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "\u0662\u0660\u0662\u0666-01-31T12:00:00Z",
        ),
        *(0, 1.5, None, True),
    ],
    ids=repr,
)
def test_date_time_refuses_the_rest(given: object) -> None:
    with pytest.raises(GraphQLError):
        scalar("DateTime").parse_value(given)


def test_date_time_is_written_in_utc_with_microseconds() -> None:
    instant = datetime.fromisoformat("2026-01-31T12:00:00-03:00")
    assert scalar("DateTime").serialize(instant) == "2026-01-31T15:00:00.000000Z"


@pytest.mark.parametrize("given", ["1,5", "1.234,56", "1e3", "NaN", "", "\u0661", 1, 1.5, None])
def test_decimal_refuses_what_isn_t_one(given: Any) -> None:
    with pytest.raises(GraphQLError):
        scalar("Decimal").parse_value(given)
