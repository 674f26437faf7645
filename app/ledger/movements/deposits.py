"""Deposits: money comes in from outside, against the account that stands for the bank."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.ledger.errors import AccountNotFound, Refusal, SameAccount
from app.ledger.idempotency import fingerprint
from app.ledger.model import Json
from app.ledger.money import Money
from app.ledger.requests import PostingRequest, RequestedLeg
from app.ledger.rules import (
    refuse_amount,
    refuse_description,
    refuse_external_reference,
    refuse_instant,
    refuse_key,
    refuse_metadata,
)


@dataclass(frozen=True, slots=True)
class DepositCommand:
    """Book money that came in from outside; an id that names nothing is None."""

    key: str
    account_id: UUID | None
    clearing_account_id: UUID | None
    amount: Money
    external_reference: str | None = None
    effective_at: datetime | None = None
    description: str | None = None
    metadata: Json | None = None


def refuse_deposit(command: DepositCommand) -> Refusal | None:
    """Judge what a deposit says of itself, all but the clearing account."""
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_external_reference(command.external_reference)
        or refuse_instant(command.effective_at)
        or refuse_description(command.description)
        or refuse_metadata(command.metadata)
    )
    if refusal is None and command.account_id is None:
        return AccountNotFound(("accountId",))
    return refusal


def deposit(command: DepositCommand, caller: str, transaction_id: UUID) -> PostingRequest | Refusal:
    """Debit the clearing account, which stands for the bank, and credit the account that receives."""
    refusal = refuse_deposit(command)
    if refusal is not None:
        return refusal
    if command.account_id is None:
        return AccountNotFound(("accountId",))
    if command.clearing_account_id is None:
        return AccountNotFound(("clearingAccountId",))
    if command.account_id == command.clearing_account_id:
        return SameAccount(("clearingAccountId",))
    amount, amount_path = command.amount, ("amount", "minorUnits")
    return PostingRequest(
        id=transaction_id,
        type="deposit",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "deposit",
            {
                "accountId": command.account_id,
                "clearingAccountId": command.clearing_account_id,
                "amount": amount,
                "externalReference": command.external_reference,
                "effectiveAt": command.effective_at,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=(
            RequestedLeg(
                account_id=command.clearing_account_id,
                amount=Money(-amount.minor_units, amount.currency),
                account_path=("clearingAccountId",),
                amount_path=amount_path,
            ),
            RequestedLeg(
                account_id=command.account_id,
                amount=amount,
                account_path=("accountId",),
                amount_path=amount_path,
            ),
        ),
        description=command.description,
        external_reference=command.external_reference,
        metadata=command.metadata,
        effective_at=command.effective_at,
    )
