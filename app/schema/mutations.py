"""Mutations: what changes the ledger. The fields of one request run in order, each for itself.

A refusal is data of the payload. Where a field fails with a top-level error, the answer has no data at all, because
payloads are never null; so that this can't hide what fields before it have done, each notes what it did, and the answer
lists it in `extensions.carriedOut`.
"""

from collections.abc import Iterable
from typing import Annotated, TypeVar

import strawberry

from app.ledger.posting import Posted
from app.ledger.service import Opened, PostingAnswer
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.ids import encode_account_id, encode_transaction_id
from app.schema.types.inputs import (
    DepositInput,
    OpenAccountInput,
    TransferBatchInput,
    TransferInput,
)
from app.schema.types.payloads import OpenAccountPayload, PostingPayload, TransferBatchPayload

Input = TypeVar("Input")

_Given = Annotated[Input, strawberry.argument(description="What is asked for.")]


@object_type
class Mutation:
    """What can be done. Several fields in one request run in order and are independent of each other."""

    @strawberry.mutation(
        description="WALLET opens ordinary wallets of the caller's own, OPERATE any account."
    )
    async def open_account(self, info: Info, input: _Given[OpenAccountInput]) -> OpenAccountPayload:
        """Open an account."""
        caller = info.context.caller
        answer = await info.context.services.ledger.open_account(caller, input.to_command(caller))
        if isinstance(answer, Opened):
            _note(info, accountId=encode_account_id(answer.account.id), replayed=answer.replayed)
        return OpenAccountPayload.of(answer)

    @strawberry.mutation(description="WALLET, from an account of one's own.")
    async def transfer(self, info: Info, input: _Given[TransferInput]) -> PostingPayload:
        """Move money."""
        answer = await info.context.services.ledger.transfer(
            info.context.caller, input.to_command()
        )
        _note_postings(info, [answer])
        return PostingPayload.of(answer)

    @strawberry.mutation(description="WALLET, from accounts of one's own.")
    async def transfer_batch(
        self, info: Info, input: _Given[TransferBatchInput]
    ) -> TransferBatchPayload:
        """Move money many times."""
        answer = await info.context.services.ledger.transfer_batch(
            info.context.caller,
            [transfer.to_command() for transfer in input.transfers],
            atomic=bool(input.atomic),
        )
        if isinstance(answer, list):
            _note_postings(info, answer)
        return TransferBatchPayload.of(answer)

    @strawberry.mutation(description="OPERATE.")
    async def deposit(self, info: Info, input: _Given[DepositInput]) -> PostingPayload:
        """Book money that came in."""
        answer = await info.context.services.ledger.deposit(
            info.context.caller, input.to_command(), default_clearing=input.default_clearing
        )
        _note_postings(info, [answer])
        return PostingPayload.of(answer)


def _note_postings(info: Info, answers: Iterable[PostingAnswer]) -> None:
    for answer in answers:
        if isinstance(answer, Posted):
            _note(
                info,
                transactionId=encode_transaction_id(answer.transaction.id),
                replayed=answer.replayed,
            )


def _note(info: Info, **done: object) -> None:
    info.context.carried_out.append({"path": info.path.as_list(), **done})
