"""Sweeps: all that a striped account has is gathered in its first stripe; nobody's balance changes."""

from dataclasses import dataclass
from uuid import UUID

from app.ledger.errors import AccountNotFound, Refusal
from app.ledger.idempotency import fingerprint
from app.ledger.requests import LEDGER_CALLER, Gather, PostingRequest
from app.ledger.rules import refuse_key


@dataclass(frozen=True, slots=True)
class SweepCommand:
    """Gather a striped account's money; an id that names nothing is None."""

    key: str
    account_id: UUID | None


def sweep(command: SweepCommand, caller: str, transaction_id: UUID) -> PostingRequest | Refusal:
    """Gather the account's money; the legs follow from what each stripe has, and so are found under the locks."""
    refusal = refuse_key(command.key)
    if refusal is not None:
        return refusal
    if command.account_id is None:
        return AccountNotFound(("accountId",))
    return _gathering(command.account_id, command.key, caller, transaction_id)


def sweep_by_itself(account_id: UUID, key: str, transaction_id: UUID) -> PostingRequest:
    """Gather the account's money because it is time to, and not because anybody asked."""
    return _gathering(account_id, key, LEDGER_CALLER, transaction_id)


def _gathering(account_id: UUID, key: str, caller: str, transaction_id: UUID) -> PostingRequest:
    return PostingRequest(
        id=transaction_id,
        type="sweep",
        caller=caller,
        key=key,
        fingerprint=fingerprint("sweepAccount", {"accountId": account_id}),
        legs=(),
        terms=Gather(account_id=account_id, path=("accountId",)),
    )
