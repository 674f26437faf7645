"""Transfers: money moves from one wallet to another."""

from dataclasses import dataclass
from uuid import UUID

from app.ledger.errors import AccountNotFound, Refusal, SameAccount
from app.ledger.idempotency import fingerprint
from app.ledger.model import Json
from app.ledger.money import Money
from app.ledger.requests import PostingRequest, RequestedLeg
from app.ledger.rules import refuse_amount, refuse_description, refuse_key, refuse_metadata


@dataclass(frozen=True, slots=True)
class TransferCommand:
    """Move money from an account of the caller's to any other wallet; an id that names nothing is None."""

    key: str
    from_account_id: UUID | None
    to_account_id: UUID | None
    amount: Money
    description: str | None = None
    metadata: Json | None = None


def transfer(
    command: TransferCommand, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Debit the sender, who must own the account, and credit the receiver.

    Both must be accounts that grow with credits: debiting an ASSET would raise it, and pay somebody out of nothing.
    """
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_description(command.description)
        or refuse_metadata(command.metadata)
    )
    if refusal is not None:
        return refusal
    if command.from_account_id is None:
        return AccountNotFound(("fromAccountId",))
    if command.to_account_id is None:
        return AccountNotFound(("toAccountId",))
    if command.from_account_id == command.to_account_id:
        return SameAccount(("toAccountId",))
    amount, amount_path = command.amount, ("amount", "minorUnits")
    return PostingRequest(
        id=transaction_id,
        type="transfer",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "transfer",
            {
                "fromAccountId": command.from_account_id,
                "toAccountId": command.to_account_id,
                "amount": amount,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=(
            RequestedLeg(
                account_id=command.from_account_id,
                amount=Money(-amount.minor_units, amount.currency),
                account_path=("fromAccountId",),
                amount_path=amount_path,
                owner=caller,
                credit_normal=True,
            ),
            RequestedLeg(
                account_id=command.to_account_id,
                amount=amount,
                account_path=("toAccountId",),
                amount_path=amount_path,
                credit_normal=True,
            ),
        ),
        description=command.description,
        metadata=command.metadata,
    )
