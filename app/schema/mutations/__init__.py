"""Mutations: what changes the ledger. The fields of one request run in order, each for itself.

A refusal is data of the payload. Where a field fails with a top-level error, the answer has no data at all, because
payloads are never null; and where something below a payload fails, such as a balance that the caller may not read, what was
done is null there. So that this can't hide what was done, each field notes it, and an answer that has errors lists it in
`extensions.carriedOut`.
"""

from app.schema.described import object_type
from app.schema.mutations.accounts import AccountMutations
from app.schema.mutations.holds import HoldMutations
from app.schema.mutations.postings import PostingMutations
from app.schema.mutations.transfers import TransferMutations

__all__ = ["Mutation"]


@object_type
class Mutation(AccountMutations, TransferMutations, HoldMutations, PostingMutations):
    """What can be done. Several fields in one request run in order and are independent of each other."""
