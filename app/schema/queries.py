"""Queries: what there is, as far as the caller may see it. What isn't the caller's looks exactly like what isn't."""

import asyncio
from typing import Annotated, Final

import strawberry

from app.ledger.rules import KEY_PATTERN, storable
from app.schema.context import Context, Info
from app.schema.described import object_type
from app.schema.errors import bad_request
from app.schema.ids import AccountId, EntryId, NodeId, TransactionId, decode_id
from app.schema.types.accounts import Account, Entry
from app.schema.types.nodes import Node
from app.schema.types.transactions import AccountSummary, Transaction
from app.schema.types.viewer import Viewer

NODES_LIMIT: Final = 100

_Code = Annotated[str, strawberry.argument(description="The account's code.")]


@object_type
class Query:
    """What can be asked."""

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
        node_id = decode_id(id)
        return await _account(info.context, node_id) if isinstance(node_id, AccountId) else None

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
        node_id = decode_id(id)
        return (
            await _transaction(info.context, node_id)
            if isinstance(node_id, TransactionId)
            else None
        )

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


async def _node(context: Context, node_id: NodeId | None) -> Node | None:
    match node_id:
        case AccountId():
            return await _account(context, node_id)
        case TransactionId():
            return await _transaction(context, node_id)
        case EntryId(account_id, sequence):
            entry = await context.reads.entries.load((account_id, sequence))
            return None if entry is None else Entry.of(entry, Account.of(entry.account))
        case None:
            return None


async def _account(context: Context, node_id: AccountId) -> Account | None:
    account = await context.reads.accounts.load(node_id.account_id)
    return None if account is None else Account.of(account)


async def _transaction(context: Context, node_id: TransactionId) -> Transaction | None:
    transaction = await context.reads.transactions.load(node_id.transaction_id)
    return None if transaction is None else Transaction.of(transaction)


def _require_storable(code: str) -> None:
    if not storable(code):
        raise bad_request("A code has neither U+0000 nor lone surrogates.")
