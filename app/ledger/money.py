"""Exact money: whole numbers of a currency's minor unit, 64 bits wide, and never a float.

The number of digits behind a currency's point comes from ISO 4217's own table, as the package `iso4217` ships it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from iso4217 import Currency as Iso4217Currency

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

EXPONENTS: Final[dict[str, int]] = {
    currency.code: currency.exponent
    for currency in Iso4217Currency
    # Metals, funds and testing codes have no minor unit, so they can't be counted and aren't money here.
    if currency.exponent is not None
}
"""Digits behind the point for each currency that Saldo keeps: JPY 0, BRL 2, KWD 3."""

_LONGEST_DECIMAL: Final = 64
"""More characters than any amount of 64 bits takes, in whichever currency."""

_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)


class UnknownCurrencyError(ValueError):
    """The text isn't the upper-case code of a currency with a minor unit."""


class MoneyFormatError(ValueError):
    """The text isn't an amount with exactly the currency's digits behind the point, or it leaves the 64-bit range."""


def fits_int64(number: int) -> bool:
    """Tell whether the number can be stored as a signed 64-bit integer."""
    return INT64_MIN <= number <= INT64_MAX


def exponent_of(currency: str) -> int:
    """Return how many digits stand behind the currency's point; raises UnknownCurrencyError."""
    try:
        return EXPONENTS[currency]
    except KeyError:
        raise UnknownCurrencyError(currency) from None


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount of one currency, counted in its minor unit (centavo, cent, dong)."""

    minor_units: int
    currency: str

    def __neg__(self) -> Self:
        """Return the same amount for the other side of the books."""
        return type(self)(-self.minor_units, self.currency)

    @property
    def decimal(self) -> str:
        """The amount for people: exactly as many digits behind the point as the currency has, no grouping."""
        exponent = exponent_of(self.currency)
        digits = str(abs(self.minor_units)).rjust(exponent + 1, "0")
        sign = "-" if self.minor_units < 0 else ""
        if exponent == 0:
            return sign + digits
        return f"{sign}{digits[:-exponent]}.{digits[-exponent:]}"

    @classmethod
    def parse(cls, text: str, currency: str) -> Self:
        """Read what `decimal` writes; anything else, rounding included, raises MoneyFormatError."""
        exponent = exponent_of(currency)
        # Python refuses to read an integer of more than a few thousand digits, with an error of another kind.
        match = _DECIMAL.fullmatch(text) if len(text) <= _LONGEST_DECIMAL else None
        if match is None or len(match[3] or "") != exponent:
            raise MoneyFormatError(text)
        minor_units = int(match[1] + match[2] + (match[3] or ""))
        if not fits_int64(minor_units):
            raise MoneyFormatError(text)
        return cls(minor_units, currency)

    def allocate(self, weights: Sequence[int]) -> tuple[Self, ...]:
        """Split the amount in proportion to the weights, so that the parts sum exactly to the whole.

        Each part is first rounded towards zero. The minor units that this leaves go one each to the parts that lost the
        most by it, the earliest first among equals: the method of the largest remainder. A negative amount is split as
        its opposite is, and a weight of 0 gets nothing. Raises ValueError where a weight is negative or none is positive.
        """
        whole = sum(weights)
        if whole <= 0 or min(weights) < 0:
            raise ValueError("weights must not be negative, and at least one must be positive")
        size, sign = abs(self.minor_units), -1 if self.minor_units < 0 else 1
        shares = [divmod(size * weight, whole) for weight in weights]
        parts = [rounded for rounded, _ in shares]
        left = size - sum(parts)
        # Sorting is stable, also in reverse, so equal remainders stay in the order of their weights.
        by_loss = sorted(range(len(shares)), key=lambda index: shares[index][1], reverse=True)
        for index in by_loss[:left]:
            parts[index] += 1
        return tuple(type(self)(sign * part, self.currency) for part in parts)
