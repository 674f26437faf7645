"""What mutations answer: what was done, straight from the ledger's answer and without reading it again, or why not."""

from typing import assert_never

import strawberry

from app.ledger import model
from app.ledger.administration import Opened
from app.ledger.answers import HoldAnswer, HoldPosted, PostingAnswer
from app.ledger.errors import Path
from app.ledger.posting.decision import NotAttempted, Posted, Refused
from app.schema.described import object_type
from app.schema.types.objects import Account, Entry, Hold, Transaction, Withdrawal
from app.schema.types.user_errors import UserError, user_error

_REPLAYED = "True where an earlier request with this key did it, and this is what it answered."
_USER_ERRORS = "Why nothing was done; empty where it was."


@object_type
class OpenAccountPayload:
    """The account that was opened, or why none was."""

    account: Account | None = strawberry.field(description="Null where the request was refused.")
    replayed: bool = strawberry.field(description=_REPLAYED)
    user_errors: list[UserError] = strawberry.field(description=_USER_ERRORS)

    @classmethod
    def of(cls, answer: Opened | Refused) -> "OpenAccountPayload":
        """Show what became of the request."""
        match answer:
            case Opened(account, replayed):
                return cls(account=Account.of(account), replayed=replayed, user_errors=[])
            case Refused(refusal):
                return cls(account=None, replayed=False, user_errors=[user_error(refusal)])


@object_type
class SetAccountStatusPayload:
    """The account as it is now, or why it stayed as it was."""

    account: Account | None = strawberry.field(description="Null where the request was refused.")
    user_errors: list[UserError] = strawberry.field(description=_USER_ERRORS)

    @classmethod
    def of(cls, answer: model.Account | Refused) -> "SetAccountStatusPayload":
        """Show what became of the request."""
        if isinstance(answer, Refused):
            return cls(account=None, user_errors=[user_error(answer.refusal)])
        return cls(account=Account.of(answer), user_errors=[])


@object_type
class PostingPayload:
    """What every posting answers.

    `entries` are the lines on accounts the caller may read, each with the balance right after it, and are the same on a
    replay.
    """

    transaction: Transaction | None = strawberry.field(
        description="Null where the request was refused."
    )
    entries: list[Entry] = strawberry.field(
        description="The lines on accounts that the caller may read."
    )
    replayed: bool = strawberry.field(description=_REPLAYED)
    user_errors: list[UserError] = strawberry.field(description=_USER_ERRORS)

    @classmethod
    def of(cls, answer: PostingAnswer, *, below: Path = ("input",)) -> "PostingPayload":
        """Show what became of the posting; `below` is where in the arguments it stands."""
        match answer:
            case Posted(transaction, entries, replayed):
                return cls(
                    transaction=Transaction.of(transaction),
                    entries=[
                        Entry.of(entry, Account.of(entry.account), transaction) for entry in entries
                    ],
                    replayed=replayed,
                    user_errors=[],
                )
            case Refused(refusal):
                return cls(
                    transaction=None,
                    entries=[],
                    replayed=False,
                    user_errors=[user_error(refusal, below=below)],
                )
            case NotAttempted():
                return cls(transaction=None, entries=[], replayed=False, user_errors=[])
            case _:
                assert_never(answer)


@object_type
class TransferBatchPayload:
    """What became of each transfer of a batch."""

    results: list[PostingPayload] = strawberry.field(
        description=(
            "One for each transfer, in order. Where atomic is true and one is refused, no transfer is made and the "
            "others say so with no userErrors and no transaction."
        )
    )
    user_errors: list[UserError] = strawberry.field(
        description="Why the batch as a whole was refused; empty where it wasn't."
    )

    @classmethod
    def of(cls, answer: Refused | list[PostingAnswer]) -> "TransferBatchPayload":
        """Show what became of the batch."""
        if isinstance(answer, Refused):
            return cls(results=[], user_errors=[user_error(answer.refusal)])
        return cls(
            results=[
                PostingPayload.of(result, below=("input", "transfers", str(index)))
                for index, result in enumerate(answer)
            ],
            user_errors=[],
        )


@object_type
class HoldPayload:
    """The hold as it stands now, and the transaction that the request booked, or why nothing was done."""

    hold: Hold | None = strawberry.field(description="Null where the request was refused.")
    transaction: Transaction | None = strawberry.field(
        description="Null where the request was refused."
    )
    replayed: bool = strawberry.field(description=_REPLAYED)
    user_errors: list[UserError] = strawberry.field(description=_USER_ERRORS)

    @classmethod
    def of(cls, answer: HoldAnswer) -> "HoldPayload":
        """Show what became of the request."""
        match answer:
            case HoldPosted(hold, transaction, replayed):
                return cls(
                    hold=Hold.of(hold),
                    transaction=Transaction.of(transaction),
                    replayed=replayed,
                    user_errors=[],
                )
            case Refused(refusal):
                return cls(
                    hold=None,
                    transaction=None,
                    replayed=False,
                    user_errors=[user_error(refusal)],
                )


@object_type
class WithdrawPayload:
    """The withdrawal as it stands now, or why nothing was done."""

    withdrawal: Withdrawal | None = strawberry.field(
        description="Null where the request was refused."
    )
    replayed: bool = strawberry.field(description=_REPLAYED)
    user_errors: list[UserError] = strawberry.field(description=_USER_ERRORS)

    @classmethod
    def of(cls, answer: HoldAnswer) -> "WithdrawPayload":
        """Show what became of the request."""
        match answer:
            case HoldPosted(hold, _, replayed):
                return cls(withdrawal=Withdrawal.of(hold), replayed=replayed, user_errors=[])
            case Refused(refusal):
                return cls(withdrawal=None, replayed=False, user_errors=[user_error(refusal)])
