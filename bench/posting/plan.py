"""What is measured, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of it there is."""

    wallets: int
    seconds: int
    """How long each contestant runs in each round."""
    rounds: int


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way of posting; every contestant is measured once in every round."""

    name: str
    measure: Callable[[], float]
    """Runs it for the plan's seconds and returns how many movements a second were booked."""
    leg_pairs: int = 1
    """How many transfers' worth of legs a movement has: one less than it has legs, which is 1 for a transfer itself."""
    bounded: bool = False
    """Whether it is a kind of movement, whose cost has a bound; others are there to compare with."""
