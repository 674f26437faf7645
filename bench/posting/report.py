"""The table: medians, ratios to the best peer, and what a movement costs beside a transfer."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from bench.machine import describe_machine
from bench.posting.contestants import IN_FLIGHT, STORED_FUNCTIONS, TRANSFER
from bench.posting.plan import Contestant, Plan

COST_MOST: Final = 2.5
"""How many times a transfer any kind of movement may cost, for each pair of legs."""


def print_report(
    plan: Plan, contestants: Sequence[Contestant], rates: Mapping[str, Sequence[float]]
) -> None:
    """Print the table, as it stands in docs/benchmarks.md, and whether every kind of movement keeps within its bound."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    costs = {
        each.name: medians[TRANSFER] / (medians[each.name] * each.leg_pairs) for each in contestants
    }
    peer = max(medians[name] for name in STORED_FUNCTIONS)
    print(f"\n{describe_machine()}")
    print(
        f"PostgreSQL 18, durable; medians of {plan.rounds} rounds of {plan.seconds} s, {plan.wallets:,} wallets, "
        f"{IN_FLIGHT} requests of ours in flight\n"
    )
    print(
        "| way of posting | movements/s | against the stored function | leg pairs"
        " | cost per leg pair against a transfer |"
    )
    print("| --- | ---: | ---: | ---: | ---: |")
    for each in contestants:
        rate, cost = medians[each.name], costs[each.name]
        print(
            f"| {each.name} | {rate:,.0f} | {rate / peer:.2f} | {each.leg_pairs} | {_judged(each, cost)} |"
        )
    over = [each.name for each in contestants if each.bounded and costs[each.name] > COST_MOST]
    verdict = f"broken by: {'; '.join(over)}" if over else "kept by all"
    print(
        f"\nNo kind of movement (≤) may cost more than {COST_MOST} times a transfer per leg pair: {verdict}."
    )


def _judged(contestant: Contestant, cost: float) -> str:
    """Write a cost, with its bound where it has one."""
    if not contestant.bounded:
        return f"{cost:.2f}"
    sign = "≤" if cost <= COST_MOST else "**>**"
    return f"{cost:.2f} {sign} {COST_MOST}"
