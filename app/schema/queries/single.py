"""Queries for one object, or for several by their ids."""

import asyncio
from typing import Annotated, Final
from uuid import UUID

import strawberry

from app.ledger.rules import KEY_PATTERN, storable
from app.schema.context import Context, Info
from app.schema.described import object_type
from app.schema.errors import bad_request
from app.schema.ids import (
    AccountId,
    EntryId,
    HoldId,
    NodeId,
    TransactionId,
    WithdrawalId,
    decode_account_id,
    decode_hold_id,
    decode_id,
    decode_transaction_id,
    decode_withdrawal_id,
)
from app.schema.types.nodes import Node
from app.schema.types.objects import Account, Entry, Hold, Transaction, Withdrawal
from app.schema.types.transactions import AccountSummary
from app.schema.types.viewer import Viewer

NODES_LIMIT: Final = 100

_Code = Annotated[str, strawberry.argument(description="The account's code.")]


@object_type
class SingleQueries:
    """What can be asked for by a name of its own."""

    @strawberry.field(
        description="Any object by its id; null where the caller may not see it or it doesn't exist."
    )
    async def node(
        self,
        info: Info,
        id: Annotated[strawberry.ID, strawberry.argument(description="Id of the object.")],
    ) -> Node | None:
        """Read one object."""
        return await _node(info.context, decode_id(id))

    @strawberry.field(
        description=(
            "At most 100 ids; order kept, null where the caller may not see it or it doesn't exist (the two can't be "
            "told apart)."
        )
    )
    async def nodes(
        self,
        info: Info,
        ids: Annotated[list[strawberry.ID], strawberry.argument(description="At most 100.")],
    ) -> list[Node | None]:
        """Read many objects."""
        if len(ids) > NODES_LIMIT:
            raise bad_request(f"At most {NODES_LIMIT} ids may be asked for at once.")
        wanted = [decode_id(text) for text in ids]
        return await asyncio.gather(*(_node(info.context, node_id) for node_id in wanted))

    @strawberry.field(description="Who asks.")
    def viewer(self, info: Info) -> Viewer:
        """Show callers themselves."""
        return Viewer.of(info.context.caller)

    @strawberry.field(description="An account that the caller may read; null where there is none.")
    async def account(
        self,
        info: Info,
        id: Annotated[strawberry.ID, strawberry.argument(description="Id of the account.")],
    ) -> Account | None:
        """Read an account."""
        account_id = decode_account_id(id)
        return None if account_id is None else await _account(info.context, account_id)

    @strawberry.field(
        description="The account with this code, if the caller may read it; null where there is none."
    )
    async def account_by_code(self, info: Info, code: _Code) -> Account | None:
        """Read an account by its code."""
        caller = info.context.caller
        _require_storable(code)
        account = await info.context.reads.once(lambda reader: reader.account_by_code(caller, code))
        return None if account is None else Account.of(account)

    @strawberry.field(
        description="Whom one is about to pay: any caller, any account that has a code and an owner."
    )
    async def payee(self, info: Info, code: _Code) -> AccountSummary | None:
        """Find whom one is about to pay."""
        _ = info.context.caller
        _require_storable(code)
        account = await info.context.reads.once(lambda reader: reader.payee(code))
        return None if account is None else AccountSummary.of_account(account)

    @strawberry.field(
        description="A transaction that the caller may see; null where there is none."
    )
    async def transaction(
        self,
        info: Info,
        id: Annotated[strawberry.ID, strawberry.argument(description="Id of the transaction.")],
    ) -> Transaction | None:
        """Read a transaction."""
        transaction_id = decode_transaction_id(id)
        return None if transaction_id is None else await _transaction(info.context, transaction_id)

    @strawberry.field(
        description="The caller's own key: what became of a request whose answer was lost."
    )
    async def transaction_by_idempotency_key(
        self,
        info: Info,
        idempotency_key: Annotated[
            str, strawberry.argument(description="The key that the request was sent with.")
        ],
    ) -> Transaction | None:
        """Read what became of a request."""
        caller = info.context.caller
        if not KEY_PATTERN.fullmatch(idempotency_key):
            raise bad_request("An idempotency key is 1 to 128 printable ASCII characters.")
        transaction = await info.context.reads.once(
            lambda reader: reader.transaction_by_key(caller, idempotency_key)
        )
        return None if transaction is None else Transaction.of(transaction)

    @strawberry.field(
        description="A hold on an account that the caller may read; null where there is none."
    )
    async def hold(
        self,
        info: Info,
        id: Annotated[strawberry.ID, strawberry.argument(description="Id of the hold.")],
    ) -> Hold | None:
        """Read a hold."""
        hold_id = decode_hold_id(id)
        return None if hold_id is None else await _hold(info.context, hold_id)

    @strawberry.field(
        description="A withdrawal from an account that the caller may read; null where there is none."
    )
    async def withdrawal(
        self,
        info: Info,
        id: Annotated[strawberry.ID, strawberry.argument(description="Id of the withdrawal.")],
    ) -> Withdrawal | None:
        """Read a withdrawal."""
        withdrawal_id = decode_withdrawal_id(id)
        return None if withdrawal_id is None else await _withdrawal(info.context, withdrawal_id)


async def _node(context: Context, node_id: NodeId | None) -> Node | None:
    match node_id:
        case AccountId(account_id):
            return await _account(context, account_id)
        case TransactionId(transaction_id):
            return await _transaction(context, transaction_id)
        case EntryId(account_id, sequence):
            entry = await context.reads.entries.load((account_id, sequence))
            return None if entry is None else Entry.of(entry, Account.of(entry.account))
        case HoldId(hold_id):
            return await _hold(context, hold_id)
        case WithdrawalId(withdrawal_id):
            return await _withdrawal(context, withdrawal_id)
        case None:
            return None


async def _account(context: Context, account_id: UUID) -> Account | None:
    account = await context.reads.accounts.load(account_id)
    return None if account is None else Account.of(account)


async def _transaction(context: Context, transaction_id: UUID) -> Transaction | None:
    transaction = await context.reads.transactions.load(transaction_id)
    return None if transaction is None else Transaction.of(transaction)


async def _hold(context: Context, hold_id: UUID) -> Hold | None:
    return Hold.found(await context.reads.holds.load(hold_id))


async def _withdrawal(context: Context, withdrawal_id: UUID) -> Withdrawal | None:
    return Withdrawal.found(await context.reads.holds.load(withdrawal_id))


def _require_storable(code: str) -> None:
    if not storable(code):
        raise bad_request("A code has neither U+0000 nor lone surrogates.")
