"""Money: exact whole numbers with the digits of their currency, in one written form and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.money import (
    EXPONENTS,
    INT64_MAX,
    INT64_MIN,
    Money,
    MoneyFormatError,
    UnknownCurrencyError,
    exponent_of,
    fits_int64,
)


@pytest.mark.parametrize(
    ("minor_units", "currency", "written"),
    [
        (1, "JPY", "1"),
        (80, "JPY", "80"),
        (-1_000, "VND", "-1000"),
        (0, "KRW", "0"),
        (1, "USD", "0.01"),
        (10, "USD", "0.10"),
        (100, "BRL", "1.00"),
        (-5, "EUR", "-0.05"),
        (-500, "EUR", "-5.00"),
        (0, "EUR", "0.00"),
        (1_234, "KWD", "1.234"),
        (-1, "BHD", "-0.001"),
        (INT64_MAX, "JPY", "9223372036854775807"),
        (INT64_MAX, "USD", "92233720368547758.07"),
        (INT64_MIN, "KWD", "-9223372036854775.808"),
        (2**53 + 1, "USD", "90071992547409.93"),
    ],
)
def test_an_amount_is_written_with_the_digits_of_its_currency(
    minor_units: int, currency: str, written: str
) -> None:
    assert Money(minor_units, currency).decimal == written
    assert Money.parse(written, currency) == Money(minor_units, currency)


@given(st.integers(INT64_MIN, INT64_MAX), st.sampled_from(sorted(EXPONENTS)))
def test_what_is_written_is_read_again(minor_units: int, currency: str) -> None:
    money = Money(minor_units, currency)

    assert Money.parse(money.decimal, currency) == money


@pytest.mark.parametrize(
    "text",
    [
        # Of another locale, where the meaning of a separator would have to be guessed.
        "1.234,56",
        "1,234.56",
        "1 234,56",
        "1\u202f234,56",
        "1'234.56",
        "1,50",
        # Other digits and signs.
        "\u0661\u0662\u0663.\u0660\u0660",
        "\uff11.\uff10\uff10",
        "\u22121.00",
        "+1.00",
        "--1.00",
        "(1.00)",
        # More or fewer digits than the currency has: never rounded, never filled up.
        "1",
        "1.5",
        "1.500",
        "1.",
        ".50",
        "-.50",
        # Other spellings of a number.
        "01.00",
        "00.00",
        "1e2",
        "1_0.00",
        "0x1.00",
        "NaN",
        "Infinity",
        "$1.00",
        "1.00 EUR",
        " 1.00",
        "1.00 ",
        "1.00\n",
        "1\n.00",
        "",
        "-",
        # Out of range by one.
        "92233720368547758.08",
        "-92233720368547758.09",
        "9" * 400 + ".00",
    ],
)
def test_every_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(MoneyFormatError):
        Money.parse(text, "EUR")


@pytest.mark.parametrize(
    ("text", "currency"),
    [("0.1", "JPY"), ("80.00", "JPY"), ("1.2345", "KWD"), ("1.23", "KWD"), ("1.000", "USD")],
)
def test_digits_of_another_currency_are_refused(text: str, currency: str) -> None:
    with pytest.raises(MoneyFormatError):
        Money.parse(text, currency)


@pytest.mark.parametrize(
    "currency",
    ["usd", "Usd", "USD ", " USD", "XXX", "XTS", "XAU", "840", "US", "USDT", "", "U\u0405D"],
)
def test_what_is_no_currency_with_a_minor_unit_is_refused(currency: str) -> None:
    with pytest.raises(UnknownCurrencyError):
        exponent_of(currency)
    with pytest.raises(UnknownCurrencyError):
        Money.parse("1", currency)
    with pytest.raises(UnknownCurrencyError):
        _ = Money(1, currency).decimal


@pytest.mark.parametrize(
    ("currency", "exponent"),
    [("JPY", 0), ("VND", 0), ("KRW", 0), ("USD", 2), ("BRL", 2), ("KWD", 3), ("BHD", 3)],
)
def test_digits_come_from_the_currency(currency: str, exponent: int) -> None:
    assert exponent_of(currency) == exponent


@pytest.mark.parametrize(
    ("number", "fits"),
    [(INT64_MAX, True), (INT64_MAX + 1, False), (INT64_MIN, True), (INT64_MIN - 1, False)],
)
def test_the_range_is_that_of_a_signed_64_bit_integer(number: int, *, fits: bool) -> None:
    assert fits_int64(number) is fits
