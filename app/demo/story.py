"""What happens in the demo: wallets are opened and funded, money moves in every way that there is, somebody tries to cheat."""

import secrets
from collections.abc import Sequence
from typing import Final

from app.demo.api import Api
from app.demo.cast import PEOPLE, Cast, Issue, Story, open_accounts
from app.demo.cheating import try_to_cheat
from app.demo.crowd import deposit_all, transfer_all
from app.demo.market import hold, refund, split
from app.demo.proofs import Statement, prove, read_statement
from app.demo.screen import Screen
from app.demo.watching import Seen, watching

TRANSFERS: Final = 200
CONCURRENCY: Final = 40


async def play(api: Api, screen: Screen, issue: Issue) -> bool:
    """Play the story; tells whether every proof holds. Raises ServerTroubleError."""
    await api.check_served()
    story = Story(api, screen, issue, secrets.token_hex(4))
    await api.check_known(story.token("demo", ["WALLET"]))
    screen.act("Three people and three merchants open wallets")
    cast = await open_accounts(story)
    async with watching(story, cast) as seen:
        seen.shown = (cast.bakery,)
        screen.act("Money comes in")
        await deposit_all(story, cast)
        screen.act(f"{TRANSFERS} transfers at once, some of them sent twice")
        await _play_crowd(story, cast, seen)
        screen.act("Money is set aside, and a part of it is spent")
        captured_id = await hold(story, cast, seen)
        screen.act("One payment, three sellers, a fee, and no cent lost")
        split_id = await split(story, cast, seen)
        screen.act("Some of it goes back")
        await refund(story, cast, seen, captured_id)
        screen.act("Two requests that must be refused")
        seen.shown = ()
        refusals_right = await try_to_cheat(story, cast)
        statements = await _catch_up(story, cast, seen)
    screen.act("The proof, from the API alone")
    screen.say(
        f"Booked were {TRANSFERS} transfers, {len(cast.people)} deposits, a hold, its capture, a split, a refund, and the "
        "first request of the key that was used twice."
    )
    proofs = prove(
        statements,
        deposited=sum(PEOPLE.values()),
        acknowledged=story.acknowledged,
        split_id=split_id,
        live=[seen.lines[wallet.account_id] for wallet in cast.everybody],
    )
    screen.show_balances(
        {
            wallet.name: statement.balance_shown
            for wallet, statement in zip(cast.everybody, statements, strict=True)
        }
    )
    screen.show_proofs(proofs)
    return refusals_right and all(proof.holds for proof in proofs)


async def _play_crowd(story: Story, cast: Cast, seen: Seen) -> None:
    with story.screen.moving():
        replays = await transfer_all(story, cast, transfers=TRANSFERS, at_once=CONCURRENCY)
        await _catch_up(story, cast, seen)
    story.screen.say(
        f"{replays} were sent again under their old keys, each answered with the first booking; "
        f"{story.api.retries} because the network or the server asked for it."
    )


async def _catch_up(story: Story, cast: Cast, seen: Seen) -> Sequence[Statement]:
    """Read all histories, and give the subscribers time to see as much."""
    statements = [
        await read_statement(story.api, wallet.token, wallet.account_id)
        for wallet in cast.everybody
    ]
    await seen.wait_for_entries(
        {
            wallet.account_id: len(statement.lines)
            for wallet, statement in zip(cast.everybody, statements, strict=True)
        }
    )
    return statements
