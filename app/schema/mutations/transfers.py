"""Money that comes in, and that goes from wallet to wallet."""

import strawberry

from app.schema.context import Info
from app.schema.described import object_type
from app.schema.mutations.arguments import Given
from app.schema.mutations.notes import note_postings, posting_payload
from app.schema.types.inputs.transfers import DepositInput, TransferBatchInput, TransferInput
from app.schema.types.payloads import PostingPayload, TransferBatchPayload


@object_type
class TransferMutations:
    """What brings money to wallets."""

    @strawberry.mutation(description="WALLET, from an account of one's own.")
    async def transfer(self, info: Info, input: Given[TransferInput]) -> PostingPayload:
        """Move money."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return posting_payload(info, await ledger.transfer(caller, input.to_command()))

    @strawberry.mutation(description="WALLET, from accounts of one's own.")
    async def transfer_batch(
        self, info: Info, input: Given[TransferBatchInput]
    ) -> TransferBatchPayload:
        """Move money many times."""
        answer = await info.context.services.ledger.transfer_batch(
            info.context.caller,
            [transfer.to_command() for transfer in input.transfers],
            atomic=bool(input.atomic),
        )
        if isinstance(answer, list):
            note_postings(info, answer)
        return TransferBatchPayload.of(answer)

    @strawberry.mutation(description="OPERATE.")
    async def deposit(self, info: Info, input: Given[DepositInput]) -> PostingPayload:
        """Book money that came in."""
        answer = await info.context.services.ledger.deposit(
            info.context.caller, input.to_command(), default_clearing=input.default_clearing
        )
        return posting_payload(info, answer)
