"""The numbers of a hot account's entries: they order its history and, unlike sequences, are given out without locking it.

A stamp is made of three parts. Its base comes from a database sequence, once for each database transaction that writes to
hot accounts. The number counts a transaction's entries on the account, in the order of their legs. The stripe is the child's
number, so that no two entries of one account ever bear the same stamp.

Stamps are not in order of commit: a transaction that took its base early may end late. A base is settled once nothing with
it or a lower one can appear any more; a history shows only what is settled, so that whoever goes on from a place in it
misses nothing that turns up before that place.
"""

from typing import Final

_STRIPE_BITS: Final = 8
_NUMBER_BITS: Final = 16
_BASE_SHIFT: Final = _STRIPE_BITS + _NUMBER_BITS


def stamp_of(base: int, number: int) -> int:
    """Return the stamp of a batch's nth entry (from 0) on an account that nobody locks.

    Raises OverflowError where the batch has more entries on one account than a base has room for.
    """
    if number >= 1 << _NUMBER_BITS:
        raise OverflowError("a batch has too many entries on one hot account")
    return base << _BASE_SHIFT | number << _STRIPE_BITS


def stamp_on_stripe(last: int, base: int, number: int, stripe: int) -> int:
    """Return the stamp of a batch's nth entry on a striped account, above the `last` of its stripe (0 where there is none).

    A base is taken under the stripe's lock, so stamps ascend along the stripe by themselves. Only a standby that was promoted
    without the last of the log gives a base again; then the stripe goes on from where it stands. Raises OverflowError.
    """
    return max(stamp_of(base, number) | stripe, last + (1 << _STRIPE_BITS))


def first_unsettled(settled_base: int) -> int:
    """Return the lowest stamp that may still be given out when all bases up to this one are settled."""
    return (settled_base + 1) << _BASE_SHIFT
