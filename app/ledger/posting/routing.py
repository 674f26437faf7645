"""Which rows a leg moves: an account's own, its held child, one or several of its stripes, or none that keeps a balance."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from app.ledger.children import held_child_id, stripe_ids
from app.ledger.errors import (
    AccountClosed,
    AccountFrozen,
    AccountNotFound,
    InvalidInput,
    Path,
    Refusal,
)
from app.ledger.model import Account, AccountPurpose, AccountStatus, BalanceTracking
from app.ledger.posting.changes import Changes, Line
from app.ledger.posting.standing import LockedAccount, Standing
from app.ledger.requests import Gather, RequestedLeg
from app.ledger.stamps import stamp_of, stamp_on_stripe


@dataclass(frozen=True, slots=True)
class Step:
    """A line together with the place in the request where its amount comes from."""

    line: Line
    amount_path: Path


@dataclass(slots=True)
class Books:
    """The rows as one request finds and moves them, on top of what the batch has changed before it."""

    standing: Standing
    changes: Changes
    moved: dict[UUID, tuple[int, int]] = field(default_factory=dict[UUID, tuple[int, int]])
    opened: dict[UUID, LockedAccount] = field(default_factory=dict[UUID, LockedAccount])
    numbers: dict[UUID, int] = field(default_factory=dict[UUID, int])

    def main_account(self, account_id: UUID) -> Account | None:
        """Find an account as it stands, whether its own row is locked or only stripes of it are."""
        row = self.standing.rows.get(account_id)
        if row is not None:
            return row.account
        striped = self.standing.striped.get(account_id)
        if striped is None:
            return None
        # Its status is kept on each stripe, so that a posting need not lock the parent to know it.
        stripes = self._stripes(striped)
        return replace(striped, status=stripes[0].account.status) if stripes else None

    def standing_of(self, row_id: UUID) -> tuple[int, int]:
        """Return a row's balance and sequence, as this request or an earlier one has left them."""
        return self.moved.get(row_id) or self._before_request(row_id)

    def ends_with(self, line: Line) -> int:
        """Return what the line's account has after this request; a striped one in all."""
        if line.row.purpose is not AccountPurpose.STRIPE:
            return self.standing_of(line.row.id)[0]
        return sum(self.standing_of(each.account.id)[0] for each in self._stripes(line.main))

    def began_with(self, line: Line) -> int:
        """Return what the line's account had before this request; a striped one in all."""
        if line.row.purpose is not AccountPurpose.STRIPE:
            return self._before_request(line.row.id)[0]
        return sum(self._before_request(each.account.id)[0] for each in self._stripes(line.main))

    def route(self, leg: RequestedLeg) -> list[Step]:
        """Move the rows of a leg, whose account is one that the request may name, and return the lines of that."""
        row = self.standing.rows.get(leg.account_id)
        amount, path = leg.amount.minor_units, leg.amount_path
        if leg.purpose is AccountPurpose.HELD:
            main = self.main_account(leg.account_id)
            if main is None:
                raise LookupError("a leg was routed whose account is not there")
            return [self._step(self._held_child(main), main, amount, path)]
        if row is not None and not row.account.hot:
            return [self._step(row, row.account, amount, path)]
        main = self.main_account(leg.account_id)
        if main is None:
            raise LookupError("a leg was routed whose account is not there")
        if main.tracking is BalanceTracking.DERIVED:
            return [Step(self._derived_line(main, amount), path)]
        return [self._step(stripe, main, share, path) for stripe, share in self._shares(main, leg)]

    def gather(self, terms: Gather) -> list[Step] | Refusal:
        """Move all that the stripes of an account have into the first of them."""
        main = self.main_account(terms.account_id)
        if main is None or main.purpose is not AccountPurpose.MAIN:
            return AccountNotFound(terms.path)
        match main.status:
            case AccountStatus.FROZEN:
                return AccountFrozen(terms.path)
            case AccountStatus.CLOSED:
                return AccountClosed(terms.path)
            case AccountStatus.ACTIVE:
                pass
        if main.tracking is not BalanceTracking.STRIPED:
            return InvalidInput(terms.path, "must be a STRIPED account")
        first, *others = self._stripes(main)
        filled = [
            (stripe, balance)
            for stripe in others
            if (balance := self.standing_of(stripe.account.id)[0]) != 0
        ]
        total = sum(balance for _, balance in filled)
        if not filled:
            return InvalidInput(terms.path, "must have money outside its first stripe")
        steps = [self._step(stripe, main, -balance, terms.path) for stripe, balance in filled]
        # Where an account may be negative, its other stripes may cancel each other out.
        return [*steps, self._step(first, main, total, terms.path)] if total else steps

    def _step(self, row: LockedAccount, main: Account, amount: int, path: Path) -> Step:
        row_id = row.account.id
        balance, last = self.standing_of(row_id)
        if row.stripe is None:
            sequence = last + 1
        else:
            base, number = self.standing.stamp_base, self._next_number(main)
            sequence = stamp_on_stripe(last, base, number, row.stripe)
        self.moved[row_id] = balance + amount, sequence
        return Step(Line(row.account, main, sequence, amount, balance + amount), path)

    def _derived_line(self, main: Account, amount: int) -> Line:
        stamp = stamp_of(self.standing.stamp_base, self._next_number(main))
        return Line(main, main, stamp, amount, None)

    def _next_number(self, main: Account) -> int:
        """Count the lines that this batch has on a hot account."""
        number = self.numbers.get(main.id, self.changes.numbers.get(main.id, 0))
        self.numbers[main.id] = number + 1
        return number

    def _held_child(self, main: Account) -> LockedAccount:
        """Find the child that holds what is set aside, or open it: nobody else can, while the parent is locked."""
        child_id = held_child_id(main.id)
        found = (
            self.standing.rows.get(child_id)
            or self.changes.opened.get(child_id)
            or self.opened.get(child_id)
        )
        if found is None:
            child = replace(
                main,
                id=child_id,
                parent_id=main.id,
                purpose=AccountPurpose.HELD,
                code=None,
                owner=None,
                status=AccountStatus.ACTIVE,
                allow_negative=False,
                tracking=BalanceTracking.TRACKED,
                metadata=None,
                stripes=None,
            )
            found = LockedAccount(child, balance=0, sequence=0, posted_at=None)
            self.opened[child_id] = found
        return found

    def _before_request(self, row_id: UUID) -> tuple[int, int]:
        moved = self.changes.moved.get(row_id)
        if moved is not None:
            return moved
        row = self.standing.rows.get(row_id)
        return (0, 0) if row is None else (row.balance, row.sequence)

    def _stripes(self, main: Account) -> list[LockedAccount]:
        """Return those stripes of a striped account that are locked, in the order of their numbers."""
        rows = self.standing.rows
        return [rows[each] for each in stripe_ids(main.id, main.stripes or 0) if each in rows]

    def _shares(self, main: Account, leg: RequestedLeg) -> list[tuple[LockedAccount, int]]:
        """Spread a leg over the stripes of its account; amounts are signed as the leg's."""
        if leg.stripes:
            return [
                (self.standing.rows[row_id], main.from_normal_side(share))
                for row_id, share in leg.stripes
            ]
        amount = leg.amount.minor_units
        fullest_first = sorted(self._stripes(main), key=lambda each: -self._has(main, each))
        if main.from_normal_side(amount) > 0:
            return [(fullest_first[-1], amount)]
        if main.allow_negative:
            return [(fullest_first[0], amount)]
        return self._draw(main, fullest_first, -main.from_normal_side(amount))

    def _draw(
        self, main: Account, fullest_first: Sequence[LockedAccount], needed: int
    ) -> list[tuple[LockedAccount, int]]:
        """Take from the fullest stripes first, so that few are touched; what is missing overdraws the last of them."""
        shares: list[tuple[LockedAccount, int]] = []
        for stripe in fullest_first:
            share = min(needed, self._has(main, stripe))
            if share <= 0:
                break
            shares.append((stripe, main.from_normal_side(-share)))
            needed -= share
        if needed > 0:
            stripe, share = shares.pop() if shares else (fullest_first[0], 0)
            shares.append((stripe, share + main.from_normal_side(-needed)))
        return shares

    def _has(self, main: Account, stripe: LockedAccount) -> int:
        return main.from_normal_side(self.standing_of(stripe.account.id)[0])
