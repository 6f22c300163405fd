"""One case of the bench, in a process of its own (`python -m tutelage.bench.worker`)."""

from typing import Any

from tutelage._config import configure
from tutelage._plain import plain
from tutelage.bench.cases import get
from tutelage.bench.contest import OURS, Contest
from tutelage.bench.first import first_call
from tutelage.bench.process import answer, tell, was_asked
from tutelage.bench.timing import Disagreement, Plan, checked, interleaved, spread


def measure(case: str, plan: Plan) -> None:
    """All contests and tables of a case; what there is so far is answered after each."""
    chosen = get(case)
    found: dict[str, Any] = {"title": chosen.title, "contests": []}
    for contest in chosen.contests(plan.quick):
        found["contests"].append(held(case, contest, plan))
        answer(plain(found))
    answer(plain(found | dict(chosen.tables(plan.quick))))


def held(case: str, contest: Contest, plan: Plan) -> dict[str, Any]:
    """A contest: who agrees, then how long each takes. Where somebody does not agree, nothing is timed."""
    tell(f"{case}: {contest.name}")
    about = {
        "name": contest.name,
        "unit": contest.unit,
        "agreement": contest.agreement,
        "tolerance": contest.tolerance,
        "goals": dict(contest.goals),
        "headline": contest.headline,
        "left_out": {entry.name: entry.missing for entry in contest.entries if entry.missing},
    }
    try:
        about["apart"] = checked(contest)
    except Disagreement as error:
        tell(f"{case}: {contest.name}: not timed: {error}")
        return about | {"refused": str(error)}
    taken = interleaved(contest.present, plan)
    work = {entry.name: entry.work for entry in contest.present}
    about["times"] = {name: spread(seconds) | {"work": work[name]} for name, seconds in taken.items()}
    if contest.limit is not None:
        limit = contest.limit
        about["limit"] = {"name": limit.name, "seconds": limit.seconds(), "goal": limit.goal}
    return about | _first(case, contest, plan)


def _first(case: str, contest: Contest, plan: Plan) -> dict[str, Any]:
    """First calls of tutelage and of those it is compared with."""
    if not contest.first:
        return {}
    there = [entry.name for entry in contest.present if entry.name in (OURS, *contest.first)]
    calls = {name: first_call(case, contest.name, name, plan.quick) for name in there}
    return {"first": calls, "first_goals": dict(contest.first)}


def main(case: str, quick: bool, repeat: int, patience: float) -> None:
    configure()  # double precision, for the arrays of all
    measure(case, Plan(quick, repeat, patience))


if __name__ == "__main__":
    main(**was_asked())
