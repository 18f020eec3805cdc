"""`make torture`: every part in turn, a table, and exit code 0 only when everything held."""

import argparse
import secrets
import signal
import sys
import time

from torture import (
    calls,
    damage,
    faults,
    files,
    kills,
    outages,
    patterns,
    properties,
    sockets,
    twins,
)
from torture.harness import Part, Plan, print_table, run_part

PARTS: tuple[Part, ...] = (
    kills.PART,
    faults.PART,
    files.PART,
    calls.PART,
    twins.PART,
    sockets.PART,
    outages.PART,
    damage.PART,
    patterns.PART,
    properties.PART,
)
MINUTES = 20.0
LONG_OUTAGE = 600.0


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="make torture", description=__doc__)
    options.add_argument("--hours", type=float, help="run for hours instead of 20 minutes")
    options.add_argument("--minutes", type=float, help="run for less than 20 minutes")
    options.add_argument("--seed", type=int, help="seed of the first round; the next ones count up")
    options.add_argument(
        "--rounds", type=int, help="rounds of each part, to replay one or to try a few"
    )
    options.add_argument(
        "--only", help="parts, separated by commas: " + ", ".join(part.name for part in PARTS)
    )
    return options.parse_args()


def make_plan(options: argparse.Namespace) -> Plan:
    minutes = options.hours * 60 if options.hours else options.minutes or MINUTES
    return Plan(
        seed=secrets.randbelow(1_000_000_000) if options.seed is None else options.seed,
        scale=minutes / MINUTES,
        minutes=minutes,
        rounds=options.rounds,
        outage_seconds=LONG_OUTAGE if options.hours else 60.0 * min(1.0, minutes / MINUTES),
    )


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with everything cleaned up
    options = read_options()
    wanted = options.only.split(",") if options.only else [part.name for part in PARTS]
    unknown = sorted(set(wanted) - {part.name for part in PARTS})
    if unknown:
        names = ", ".join(part.name for part in PARTS)
        sys.exit(f"There is no part {unknown[0]!r}. Choose from: {names}.")
    plan = make_plan(options)
    parts = [part for part in PARTS if part.name in wanted]
    print(f"Seed {plan.seed}, {plan.minutes:g} minutes: {', '.join(wanted)}", flush=True)
    outcomes = []
    end = time.monotonic() + plan.minutes * 60
    for number, part in enumerate(parts):
        print(f"{time.strftime('%H:%M:%S')} {part.name}", flush=True)
        # What earlier parts have left over goes to the later ones.
        left, shares = end - time.monotonic(), sum(each.share for each in parts[number:])
        outcomes.append(run_part(part, plan, left * part.share / shares))
    print()
    print_table(outcomes)
    failures = sum(len(outcome.failures) for outcome in outcomes)
    print(f"\n{failures} failures." if failures else "\nEverything held.")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
