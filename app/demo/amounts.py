"""The story's money, and how it is written for people and for the API."""

from typing import Final

from app.demo.api import Json
from app.ledger.money import Money

CURRENCY: Final = "BRL"


def reais(minor_units: int) -> Money:
    """Make an amount of the story's only currency."""
    return Money(minor_units, CURRENCY)


def for_people(money: Money) -> str:
    """Write an amount with its currency."""
    return f"{money.decimal} {money.currency}"


def as_input(money: Money) -> Json:
    """Write an amount as the API wants it."""
    return {"minorUnits": str(money.minor_units), "currency": money.currency}
