"""Withdrawals: money is held on its way to a bank, and leaves when the bank confirms or comes back when that fails.

A withdrawal is a hold of purpose WITHDRAWAL and has the hold's id.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from app.ledger.errors import AccountNotFound, InvalidInput, Path, Refusal, WithdrawalNotFound
from app.ledger.idempotency import Fingerprint, fingerprint
from app.ledger.model import HoldPurpose, HoldStatus, Json
from app.ledger.money import Money
from app.ledger.movements.holds import (
    HeldMoney,
    leg_out_of_hold,
    legs_that_release,
    legs_that_set_aside,
)
from app.ledger.requests import CloseHold, PlaceHold, PostingRequest, RequestedLeg
from app.ledger.rules import (
    refuse_amount,
    refuse_description,
    refuse_external_reference,
    refuse_key,
    refuse_metadata,
)

_WITHDRAWAL_PATH: Path = ("withdrawalId",)


class SettlementOutcome(StrEnum):
    """What the bank says of a withdrawal."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class WithdrawCommand:
    """Send money of the caller's to a bank; an id that names nothing is None."""

    key: str
    account_id: UUID | None
    amount: Money
    external_reference: str | None = None
    description: str | None = None
    metadata: Json | None = None


@dataclass(frozen=True, slots=True)
class SettleWithdrawalCommand:
    """Book what the bank says; an id that names nothing is None."""

    key: str
    withdrawal_id: UUID | None
    outcome: SettlementOutcome
    external_reference: str | None = None
    failure_reason: str | None = None


def withdraw(
    command: WithdrawCommand, caller: str, transaction_id: UUID, hold_id: UUID
) -> PostingRequest | Refusal:
    """Set the amount aside, in an account that the caller must own, until the bank has spoken."""
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_external_reference(command.external_reference)
        or refuse_description(command.description)
        or refuse_metadata(command.metadata)
    )
    if refusal is not None:
        return refusal
    if command.account_id is None:
        return AccountNotFound(("accountId",))
    return PostingRequest(
        id=transaction_id,
        type="hold",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "withdraw",
            {
                "accountId": command.account_id,
                "amount": command.amount,
                "externalReference": command.external_reference,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=legs_that_set_aside(command.account_id, command.amount, caller),
        terms=PlaceHold(
            hold_id=hold_id,
            account_id=command.account_id,
            purpose=HoldPurpose.WITHDRAWAL,
            amount=command.amount.minor_units,
            expires_at=None,
        ),
        description=command.description,
        external_reference=command.external_reference,
        metadata=command.metadata,
    )


def settle_withdrawal(
    command: SettleWithdrawalCommand,
    held: HeldMoney | None,
    clearing_account_id: UUID | None,
    caller: str,
    transaction_id: UUID,
) -> PostingRequest | Refusal:
    """Pay what is held to the clearing account, which stands for the bank, or give it back to its account.

    `held` is None where there is no such withdrawal. The clearing account is the platform's own of the withdrawal's
    currency and so no part of what is asked; a withdrawal that failed needs none.
    """
    refusal = (
        refuse_key(command.key)
        or refuse_external_reference(command.external_reference)
        or _refuse_failure_reason(command)
    )
    if refusal is not None:
        return refusal
    if held is None or not held.answers_to(command.withdrawal_id, HoldPurpose.WITHDRAWAL):
        return WithdrawalNotFound(_WITHDRAWAL_PATH)
    completed = command.outcome is SettlementOutcome.COMPLETED
    if not completed:
        legs = legs_that_release(held, _WITHDRAWAL_PATH)
    elif clearing_account_id is None:
        return AccountNotFound(("clearingAccountId",))
    else:
        legs = _legs_that_pay_out(held, clearing_account_id)
    return PostingRequest(
        id=transaction_id,
        type="withdrawal" if completed else "release",
        caller=caller,
        key=command.key,
        fingerprint=_settlement_fingerprint(command),
        legs=legs,
        terms=CloseHold(
            hold_id=held.hold_id,
            purpose=HoldPurpose.WITHDRAWAL,
            path=_WITHDRAWAL_PATH,
            status=HoldStatus.CAPTURED if completed else HoldStatus.VOIDED,
            captured=held.amount if completed else 0,
            external_reference=command.external_reference,
            failure_reason=command.failure_reason,
        ),
        external_reference=command.external_reference,
    )


def _legs_that_pay_out(held: HeldMoney, clearing_account_id: UUID) -> tuple[RequestedLeg, ...]:
    return (
        leg_out_of_hold(held, _WITHDRAWAL_PATH, _WITHDRAWAL_PATH),
        RequestedLeg(
            account_id=clearing_account_id,
            amount=held.money,
            account_path=_WITHDRAWAL_PATH,
            amount_path=_WITHDRAWAL_PATH,
        ),
    )


def _settlement_fingerprint(command: SettleWithdrawalCommand) -> Fingerprint:
    return fingerprint(
        "settleWithdrawal",
        {
            "withdrawalId": command.withdrawal_id,
            "outcome": command.outcome,
            "externalReference": command.external_reference,
            "failureReason": command.failure_reason,
        },
    )


def _refuse_failure_reason(command: SettleWithdrawalCommand) -> Refusal | None:
    path = ("failureReason",)
    if command.failure_reason is not None and command.outcome is SettlementOutcome.COMPLETED:
        return InvalidInput(path, "must be left out unless the outcome is FAILED")
    return refuse_description(command.failure_reason, path)
