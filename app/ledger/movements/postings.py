"""General postings: any balanced set of legs, such as splits, fees, settlements and currency positions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from app.ledger.errors import AccountNotFound, InvalidInput, Path, Refusal, SameAccount, Unbalanced
from app.ledger.idempotency import fingerprint
from app.ledger.model import Direction, Json, JsonValue
from app.ledger.money import Money
from app.ledger.requests import PostingRequest, RequestedLeg
from app.ledger.rules import (
    refuse_amount,
    refuse_description,
    refuse_instant,
    refuse_key,
    refuse_metadata,
)

BUILT_IN_TYPES: Final = frozenset(
    {
        "transfer",
        "deposit",
        "withdrawal",
        "hold",
        "capture",
        "release",
        "reversal",
        "refund",
        "sweep",
        "opening",
    }
)
"""What the ledger's own movements are called; a general posting that bore such a name would be taken for one."""

TYPE_LIMIT: Final = 32
LEGS_FEWEST: Final = 2
LEGS_MOST: Final = 200

_TYPE_PATTERN: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LegCommand:
    """One side of a general posting, its amount positive; an id that names nothing is None."""

    account_id: UUID | None
    direction: Direction
    amount: Money
    if_sequence: int | None = None
    """Where set, the account must stand at this sequence before the posting."""


@dataclass(frozen=True, slots=True)
class PostTransactionCommand:
    """Book legs over any accounts and currencies, balanced in each currency."""

    key: str
    type: str
    legs: tuple[LegCommand, ...]
    effective_at: datetime | None = None
    description: str | None = None
    metadata: Json | None = None


def post_transaction(
    command: PostTransactionCommand, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Book the legs as they are given, in their order."""
    refusal = (
        refuse_key(command.key)
        or _refuse_type(command.type)
        or _refuse_amounts(command.legs)
        or refuse_instant(command.effective_at)
        or refuse_description(command.description)
        or refuse_metadata(command.metadata)
    )
    if refusal is not None:
        return refusal
    legs = _requested(command.legs)
    if isinstance(legs, Refusal):
        return legs
    refusal = _refuse_imbalance(command.legs)
    if refusal is not None:
        return refusal
    return PostingRequest(
        id=transaction_id,
        type=command.type,
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "postTransaction",
            {
                "type": command.type,
                "legs": [_canonical(leg) for leg in command.legs],
                "effectiveAt": command.effective_at,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=legs,
        description=command.description,
        metadata=command.metadata,
        effective_at=command.effective_at,
    )


def _refuse_type(name: str) -> Refusal | None:
    """Refuse a name that doesn't read as one, or that one of the ledger's own movements has."""
    if len(name) > TYPE_LIMIT or not _TYPE_PATTERN.fullmatch(name):
        return InvalidInput(
            ("type",),
            f"must be at most {TYPE_LIMIT} characters: words of a to z and 0 to 9, joined by _, the first beginning "
            "with a letter",
        )
    if name in BUILT_IN_TYPES:
        return InvalidInput(("type",), "must not be the name of a built-in movement")
    return None


def _refuse_amounts(legs: Sequence[LegCommand]) -> Refusal | None:
    if not LEGS_FEWEST <= len(legs) <= LEGS_MOST:
        return InvalidInput(("legs",), f"must be {LEGS_FEWEST} to {LEGS_MOST}")
    for number, leg in enumerate(legs):
        refusal = refuse_amount(leg.amount, (*_path(number), "amount"))
        if refusal is not None:
            return refusal
    return None


def _requested(legs: Sequence[LegCommand]) -> tuple[RequestedLeg, ...] | Refusal:
    """Sign the amounts; refuse an account that isn't there, or that stands on both sides."""
    requested: list[RequestedLeg] = []
    sides: dict[UUID, Direction] = {}
    for number, leg in enumerate(legs):
        path = _path(number)
        account_path = (*path, "accountId")
        if leg.account_id is None:
            return AccountNotFound(account_path)
        if sides.setdefault(leg.account_id, leg.direction) is not leg.direction:
            return SameAccount(account_path)
        requested.append(
            RequestedLeg(
                account_id=leg.account_id,
                amount=leg.amount if leg.direction is Direction.CREDIT else -leg.amount,
                account_path=account_path,
                amount_path=(*path, "amount", "minorUnits"),
                if_sequence=leg.if_sequence,
            )
        )
    return tuple(requested)


def _refuse_imbalance(legs: Sequence[LegCommand]) -> Refusal | None:
    """Refuse where debits and credits differ, naming the first such currency in the order of the legs."""
    sums: dict[str, dict[Direction, int]] = {}
    for leg in legs:
        sides = sums.setdefault(leg.amount.currency, dict.fromkeys(Direction, 0))
        sides[leg.direction] += leg.amount.minor_units
    for currency, sides in sums.items():
        debits, credits_ = sides[Direction.DEBIT], sides[Direction.CREDIT]
        if debits != credits_:
            return Unbalanced(("legs",), currency=currency, debits=debits, credits=credits_)
    return None


def _canonical(leg: LegCommand) -> JsonValue:
    """Write a leg as JSON for the fingerprint, where what is left out and what is null are one."""
    canonical: dict[str, JsonValue] = {
        "accountId": str(leg.account_id),
        "direction": leg.direction.value,
        "amount": {"minorUnits": leg.amount.minor_units, "currency": leg.amount.currency},
    }
    if leg.if_sequence is not None:
        canonical["ifSequence"] = leg.if_sequence
    return canonical


def _path(number: int) -> Path:
    return ("legs", str(number))
