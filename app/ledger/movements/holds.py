"""Holds: money is set aside in the account's own held child, and leaves it by capture, void or expiry.

A hold of purpose WITHDRAWAL is placed and settled by `withdrawals`, with the legs that are made here; by the commands of
this module it isn't found.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.ledger.errors import (
    AccountNotFound,
    CaptureExceedsHold,
    CurrencyMismatch,
    HoldNotFound,
    Path,
    Refusal,
    SameAccount,
)
from app.ledger.idempotency import fingerprint
from app.ledger.model import AccountPurpose, HoldPurpose, HoldStatus, Json
from app.ledger.money import Money
from app.ledger.requests import LEDGER_CALLER, CloseHold, PlaceHold, PostingRequest, RequestedLeg
from app.ledger.rules import (
    AMOUNT_PATH,
    refuse_amount,
    refuse_description,
    refuse_instant,
    refuse_key,
    refuse_metadata,
)

_HOLD_PATH: Path = ("holdId",)


@dataclass(frozen=True, slots=True)
class HeldMoney:
    """What never changes of a hold, so that it may be read before anything is locked."""

    hold_id: UUID
    account_id: UUID
    purpose: HoldPurpose
    currency: str
    amount: int
    """Positive, minor units."""
    stripes: tuple[tuple[UUID, int], ...]
    """Where the account is striped: how much each stripe gave, positive; they sum to the amount."""

    @property
    def money(self) -> Money:
        """All that was set aside."""
        return Money(self.amount, self.currency)

    def answers_to(self, hold_id: UUID | None, purpose: HoldPurpose) -> bool:
        """Tell whether this is the hold that a command for this purpose names."""
        return self.hold_id == hold_id and self.purpose is purpose


@dataclass(frozen=True, slots=True)
class PlaceHoldCommand:
    """Set money aside; an id that names nothing is None."""

    key: str
    account_id: UUID | None
    amount: Money
    expires_at: datetime | None = None
    description: str | None = None
    metadata: Json | None = None


@dataclass(frozen=True, slots=True)
class CaptureHoldCommand:
    """Pay somebody from a hold, once, and release what that leaves; ids that name nothing are None."""

    key: str
    hold_id: UUID | None
    to_account_id: UUID | None
    amount: Money | None = None
    """All that is held where None."""
    description: str | None = None


@dataclass(frozen=True, slots=True)
class VoidHoldCommand:
    """Release all of a hold; an id that names nothing is None."""

    key: str
    hold_id: UUID | None


def place_hold(
    command: PlaceHoldCommand,
    caller: str,
    transaction_id: UUID,
    hold_id: UUID,
    *,
    owner: str | None,
) -> PostingRequest | Refusal:
    """Move the amount into the account's held child; `owner` is who must own the account, None where anybody may."""
    refusal = (
        refuse_key(command.key)
        or refuse_amount(command.amount)
        or refuse_instant(command.expires_at, ("expiresAt",))
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
            "placeHold",
            {
                "accountId": command.account_id,
                "amount": command.amount,
                "expiresAt": command.expires_at,
                "description": command.description,
                "metadata": command.metadata,
            },
        ),
        legs=legs_that_set_aside(command.account_id, command.amount, owner),
        terms=PlaceHold(
            hold_id=hold_id,
            account_id=command.account_id,
            purpose=HoldPurpose.HOLD,
            amount=command.amount.minor_units,
            expires_at=command.expires_at,
        ),
        description=command.description,
        metadata=command.metadata,
    )


def capture_hold(
    command: CaptureHoldCommand, held: HeldMoney | None, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Pay the amount from the held child, and give the account back what is left, all in one transaction.

    `held` is None where there is no such hold. To leave the amount out and to name all that is held are one request.
    """
    refusal = (
        refuse_key(command.key)
        or (None if command.amount is None else refuse_amount(command.amount))
        or refuse_description(command.description)
    )
    if refusal is not None:
        return refusal
    if held is None or not held.answers_to(command.hold_id, HoldPurpose.HOLD):
        return HoldNotFound(_HOLD_PATH)
    if command.to_account_id is None:
        return AccountNotFound(("toAccountId",))
    amount = held.money if command.amount is None else command.amount
    refusal = _refuse_capture(held, command.to_account_id, amount)
    if refusal is not None:
        return refusal
    paid = (
        leg_out_of_hold(held, _HOLD_PATH, AMOUNT_PATH),
        RequestedLeg(
            account_id=command.to_account_id,
            amount=amount,
            account_path=("toAccountId",),
            amount_path=AMOUNT_PATH,
        ),
    )
    left = held.amount - amount.minor_units
    return PostingRequest(
        id=transaction_id,
        type="capture",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint(
            "captureHold",
            {
                "holdId": held.hold_id,
                "toAccountId": command.to_account_id,
                "amount": amount,
                "description": command.description,
            },
        ),
        legs=paid if left == 0 else (*paid, _leg_that_gives_back(held, left, _HOLD_PATH)),
        terms=CloseHold(
            hold_id=held.hold_id,
            purpose=HoldPurpose.HOLD,
            path=_HOLD_PATH,
            status=HoldStatus.CAPTURED,
            captured=amount.minor_units,
        ),
        description=command.description,
    )


def void_hold(
    command: VoidHoldCommand, held: HeldMoney | None, caller: str, transaction_id: UUID
) -> PostingRequest | Refusal:
    """Give all that is held back to its account; `held` is None where there is no such hold."""
    refusal = refuse_key(command.key)
    if refusal is not None:
        return refusal
    if held is None or not held.answers_to(command.hold_id, HoldPurpose.HOLD):
        return HoldNotFound(_HOLD_PATH)
    return PostingRequest(
        id=transaction_id,
        type="release",
        caller=caller,
        key=command.key,
        fingerprint=fingerprint("voidHold", {"holdId": held.hold_id}),
        legs=legs_that_release(held, _HOLD_PATH),
        terms=CloseHold(
            hold_id=held.hold_id,
            purpose=HoldPurpose.HOLD,
            path=_HOLD_PATH,
            status=HoldStatus.VOIDED,
            captured=0,
        ),
    )


def expire_hold(held: HeldMoney, transaction_id: UUID) -> PostingRequest:
    """Give all that is held back because its time is over.

    The key follows from the hold, so whoever finds it due, and however often, books this once.
    """
    return PostingRequest(
        id=transaction_id,
        type="release",
        caller=LEDGER_CALLER,
        key=f"expire {held.hold_id}",
        fingerprint=fingerprint("expireHold", {"holdId": held.hold_id}),
        legs=legs_that_release(held, _HOLD_PATH),
        terms=CloseHold(
            hold_id=held.hold_id,
            purpose=held.purpose,
            path=_HOLD_PATH,
            status=HoldStatus.EXPIRED,
            captured=0,
        ),
    )


def legs_that_set_aside(
    account_id: UUID, amount: Money, owner: str | None
) -> tuple[RequestedLeg, ...]:
    """Move an amount from what an account has available into its held child.

    The account must grow with credits: debiting an ASSET would raise it, and set money aside that isn't there.
    """
    return (
        RequestedLeg(
            account_id=account_id,
            amount=-amount,
            account_path=("accountId",),
            amount_path=AMOUNT_PATH,
            owner=owner,
            credit_normal=True,
        ),
        RequestedLeg(
            account_id=account_id,
            amount=amount,
            account_path=("accountId",),
            amount_path=AMOUNT_PATH,
            owner=owner,
            credit_normal=True,
            purpose=AccountPurpose.HELD,
        ),
    )


def legs_that_release(held: HeldMoney, path: Path) -> tuple[RequestedLeg, ...]:
    """Move all that is held back to where it came from, which a frozen account may see happen; `path` names the hold."""
    return (
        leg_out_of_hold(held, path, path, releases=True),
        _leg_that_gives_back(held, held.amount, path),
    )


def leg_out_of_hold(
    held: HeldMoney, path: Path, amount_path: Path, *, releases: bool = False
) -> RequestedLeg:
    """Take all that is held out of the held child; `path` names the hold."""
    return RequestedLeg(
        account_id=held.account_id,
        amount=-held.money,
        account_path=path,
        amount_path=amount_path,
        purpose=AccountPurpose.HELD,
        releases=releases,
    )


def _leg_that_gives_back(held: HeldMoney, minor_units: int, path: Path) -> RequestedLeg:
    """Give some of what is held, or all of it, back to the account, to its stripes in the order in which they gave."""
    stripes: list[tuple[UUID, int]] = []
    left = minor_units
    for stripe_id, gave in held.stripes:
        if left == 0:
            break
        back = min(gave, left)
        stripes.append((stripe_id, back))
        left -= back
    return RequestedLeg(
        account_id=held.account_id,
        amount=Money(minor_units, held.currency),
        account_path=path,
        amount_path=path,
        releases=True,
        stripes=tuple(stripes),
    )


def _refuse_capture(held: HeldMoney, to_account_id: UUID, amount: Money) -> Refusal | None:
    if to_account_id == held.account_id:
        return SameAccount(("toAccountId",))
    if amount.currency != held.currency:
        return CurrencyMismatch(
            ("amount", "currency"), account_currency=held.currency, currency=amount.currency
        )
    if amount.minor_units > held.amount:
        return CaptureExceedsHold(AMOUNT_PATH, currency=held.currency, held=held.amount)
    return None
