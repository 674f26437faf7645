"""Somebody spends more than there is, and somebody uses a key twice."""

from app.demo.amounts import as_input, reais
from app.demo.api import Json
from app.demo.cast import PEOPLE, Cast, Story
from app.demo.documents import TRANSFER


async def try_to_cheat(story: Story, cast: Cast) -> bool:
    """Send two requests that must be refused; tells whether both were, for the right reason."""
    ana, bruno, carla = cast.people
    screen = story.screen
    overdraft = story.transfer(carla, ana, sum(PEOPLE.values()) + 1, "overdraft")
    answer = await story.api.execute(carla.token, TRANSFER, {"input": overdraft})
    missing = _refusal(answer, "INSUFFICIENT_FUNDS")
    if missing is not None:
        screen.say(
            f"Carla spends {missing['required']['decimal']}: [yellow]{missing['code']}[/], "
            f"she has {missing['available']['decimal']}, {missing['shortfall']['decimal']} short"
        )
    first = story.transfer(ana, bruno, 100, "twice")
    await story.book(ana, TRANSFER, first, ana.token)
    answer = await story.api.execute(
        ana.token, TRANSFER, {"input": {**first, "amount": as_input(reais(10_000))}}
    )
    conflict = _refusal(answer, "IDEMPOTENCY_CONFLICT")
    if conflict is not None:
        screen.say(
            f"Ana uses a key again for another amount: [yellow]{conflict['code']}[/], "
            f"differing: {', '.join(conflict['differingFields'])}"
        )
    if missing is None or conflict is None:
        screen.say("[bold red]One of them was not refused.[/]")
    return missing is not None and conflict is not None


def _refusal(answer: Json, code: str) -> Json | None:
    """Find the refusal with this code in an answer that has booked nothing."""
    refusals: list[Json] = answer["userErrors"]
    if answer["transaction"] is not None:
        return None
    return next((each for each in refusals if each["code"] == code), None)
