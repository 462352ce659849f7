"""A study: data, a policy and a ledger. It answers questions, and spends before it reads.

    study = discreet.open("study.toml")
    plan = study.where("age >= 65").by("county").ask(people=Count(), age=Mean("age")).plan(epsilon="0.1")
    answer = plan.release()

The ledger lies beside the policy (`study.ledger`) unless the caller names another place. It is made when the study is
first opened, with the policy's total ε, and from then on that total stands: a policy that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from discreet import views
from discreet.ask.policy import Policy
from discreet.ask.query import Moment, Query
from discreet.ask.questions import Askable, Asked, PlanTerms, build
from discreet.ask.reportfile import ReportFile, refuse_names
from discreet.ask.scope import check_schema
from discreet.ask.siblings import siblings
from discreet.ask.sql import parse
from discreet.engines.base import Engine, Schema
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.files.writer import Kept, kept_files, kept_source
from discreet.ledger.ledger import Ledger
from discreet.ledger.refusals import foreign
from discreet.parameters import LARGEST, UNIT, Epsilon, exact, exact_confidence, exact_count, exact_epsilon, quote
from discreet.release.design import Line
from discreet.release.discovery import Discovered, discovery, policy_with, recorded
from discreet.release.mechanism import public_count
from discreet.release.plan import REPORTS, Plan, plan_of
from discreet.release.split import by_number, of_everybody

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan


class Study(Askable[Plan]):
    """Data behind a policy and a budget."""

    siblings: tuple[str, ...] = ()
    """Other policies in the folder of this one over the same data: each has a budget of its own."""

    def __init__(
        self, policy: Policy, *, ledger: str | PathLike[str] | Ledger, name: str = "study", file: Path | None = None
    ) -> None:
        self.name, self._file = name, file
        self.ledger = ledger if isinstance(ledger, Ledger) else _ledger(ledger, name, policy)
        total = self.ledger.total(name)
        if total != _total(policy.epsilon):
            raise InvalidParameter(
                f"epsilon of the policy must be {total}, what the ledger was made with, got {policy.epsilon}; "
                "a total stands for ever"
            )
        _refuse_another_promise(policy, self.ledger.promise(name))
        self.discovered = recorded(self.ledger, name, policy)
        self.policy = policy_with(policy, self.discovered)

    @cached_property
    def engine(self) -> Engine:
        """Where the rows are."""
        from discreet.engines.choose import engine_under

        return engine_under(self.policy)

    @cached_property
    def schema(self) -> Schema:
        """Names and types of the columns, which the policy fits."""
        found = self.engine.schema()
        check_schema(self.policy, found)
        return found

    @property
    def version(self) -> str:
        """The version of the data now: what the policy declares, or a hash of the content under the ledger's key."""
        self.engine.check()
        return self.policy.version or self.ledger.keyed(self.engine.version())

    @property
    def kept(self) -> Kept:
        """What no output may replace or join: the data, the policy, files of keys and maps, the ledger, its anchor."""
        folder = self.policy.folder or Path()
        columns = self.policy.columns.values()
        keys = [one.keys_from.partition("#")[0] for one in columns if one.keys_from]
        public = [folder / name for name in (*keys, *(one.map_from for one in columns if one.map_from))]
        files = [*public, *([] if self._file is None else [self._file]), *self.ledger.files]
        return kept_source(self.policy.source, self.policy.folder) + kept_files(files)

    @property
    def spent(self) -> Fraction:
        """The ε that was spent so far, exactly."""
        return self.ledger.spent(self.name)

    @property
    def remaining(self) -> Fraction:
        """The ε that is left of the total, exactly."""
        return self.ledger.remaining(self.name)

    def discover(self, *columns: str, epsilon: Epsilon) -> Discovered:
        """The keys of these columns that may be told, at (ε, δ); a study makes one discovery, free when asked again."""
        self.discovered = discovery(self, columns, epsilon)
        self.policy = policy_with(self.policy, self.discovered)
        return self.discovered

    def sql(self, text: str, **terms: Unpack[PlanTerms]) -> Plan:
        """The plan of a question in SQL: what it will cost and how near it will be. Nothing is read, nothing is spent.

        Give `epsilon=`, what it may cost, or `within=`, how near it must be; the rest of `PlanTerms` as wanted.
        """
        return self._plan(parse(text, self.policy, self.schema), **terms)

    def report(self, tables: Mapping[str, str], **terms: Any) -> ReportPlan:
        """The plan of a whole report: tables by name, each a question in SQL, that are measured together.

        Give `epsilon=`, what all tables may cost together, or `within=`, how near each number must be, for all tables
        or by table; `weights=` by table, how much its errors weigh; `confidence=`, `simultaneous=`, `size=`, the rows
        of a group for which errors of means are shown; `title=`; `integers=True` for counts that are whole; `rows=`,
        the name of a file of synthetic rows that is saved with the tables.

        All tables agree with each other. Nothing is read, nothing is spent.
        """
        from discreet.release.reports.planner import report_plan

        if not isinstance(tables, Mapping):
            raise InvalidParameter('tables must be given by name, as in {"by_county": "SELECT …"}')
        refuse_names(tables)
        _ = self.schema  # what is wrong with the data is wrong with no table
        return report_plan(self, {name: self._parsed(name, text) for name, text in tables.items()}, **terms)

    def _parsed(self, name: str, text: str) -> Query:
        """The question of a table; what is refused says which."""
        try:
            return parse(text, self.policy, self.schema)
        except (InvalidParameter, QueryRefused) as error:
            raise type(error)(f"{name}: {error}") from None

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError("a study is not copied or stored; open its study.toml where it is needed")

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        policy = self.policy
        shared = f" · same data as {', '.join(self.siblings)}: releases add up" if self.siblings else ""
        return (
            f"Study({self.name!r}: {len(policy.columns)} columns declared · ε {float(self.remaining):.4g} of "
            f"{float(policy.epsilon):.4g} left · {policy.neighbors} · unit {one_line(policy.unit)}{shared})"
        )

    def _plan_of(self, asked: Asked[Plan], terms: PlanTerms) -> Plan:
        query = build(self.policy, self.schema, where=asked.conditions, by=asked.columns, ask=dict(asked.questions))
        return self._plan(query, **terms)

    def _plan(
        self,
        query: Query,
        *,
        epsilon: Any = None,
        within: Any = None,
        confidence: Any = "0.95",
        simultaneous: bool = False,
        weights: Mapping[str, Any] | None = None,
        size: Any = None,
    ) -> Plan:
        if (epsilon is None) == (within is None):
            raise InvalidParameter("a plan takes either epsilon or within: what it may cost, or how near it must be")
        if not isinstance(simultaneous, bool):
            raise InvalidParameter(f"simultaneous must be True or False, got {quote(simultaneous)}")
        more: dict[str, Any] = {
            "confidence": exact_confidence(confidence),
            "simultaneous": simultaneous,
            "weights": weights,
            "size": None if size is None else exact_count("size", size),
        }
        if within is not None:
            plan = plan_within(self, query, within=within, **more)
        else:
            plan = plan_of(self, query, epsilon=exact_epsilon(epsilon), **more)
        return _reported(plan.checked())


def open(path: str | PathLike[str], *, ledger: str | PathLike[str] | Ledger | None = None) -> Study:
    """The study that a policy file declares; `repr` names other studies of the same data in its folder."""
    place = Path(path)
    policy = Policy.load(place)
    where = place.with_suffix(".ledger") if ledger is None else ledger
    study = Study(policy, ledger=where, name=place.stem, file=place)
    study.siblings = siblings(place, policy.source)
    return study


def report(path: str | PathLike[str], *, ledger: str | PathLike[str] | Ledger | None = None) -> ReportPlan:
    """The plan of the report that a file declares: its study and its tables. Nothing is read, nothing is spent."""
    file = ReportFile.load(Path(path))
    study = open(file.study, ledger=ledger)
    try:
        return study.report(file.tables, **file.terms)
    except BaseException:
        if not isinstance(ledger, Ledger):  # else it is the caller's
            study.close()
        raise


def _ledger(where: str | PathLike[str], name: str, policy: Policy) -> Ledger:
    """The ledger of a study, made if there was never one here; of several processes at once, one makes it."""
    text = str(where)
    if "://" not in text and not Path(text).exists() and not Path(f"{text}.anchor").exists():
        with suppress(InvalidParameter):  # it is there by now
            Ledger.open(where, new=True).close()
    ledger = Ledger.open(where)
    try:
        if not ledger.studies():
            ledger.create(name, _total(policy.epsilon), promise=policy.promise)
        elif name not in ledger.studies():
            raise foreign(name)
    except BaseException as failure:
        if not isinstance(failure, InvalidParameter) or name not in ledger.studies():  # else another has created it
            ledger.close()
            raise
    return ledger


def _refuse_another_promise(policy: Policy, promise: Mapping[str, Any] | None) -> None:
    """Refuse a policy under which what was spent so far would mean something else."""
    if promise is None:
        raise InvalidParameter(
            "the study must be created with a promise to have a policy, and this one was created for arrays alone: "
            "use another study, of ledger.create(name, total, promise=policy.promise)"
        )
    changed = [f"{name} = {quote(promise[name])}" for name in promise if promise[name] != policy.promise[name]]
    if changed:
        raise InvalidParameter(
            f"the policy must promise what the ledger was made with: {', '.join(changed)}; set it back, or name a new "
            "ledger, which is a new budget: what both spend on the same people adds up"
        )


def _total(epsilon: Fraction) -> Fraction:
    """A total as the ledger counts it."""
    return epsilon // UNIT * UNIT  # rounds down: never more than was promised


def plan_within(study: Study, query: Query, *, within: Any, **more: Any) -> Plan:
    """The plan with the least ε whose errors are all at most so large, or those of the columns that are named."""
    size = more.pop("size")
    common = None if isinstance(within, Mapping) else exact("within", within)
    targets = by_number(query, "within", within) if common is None else {}
    if common is None and not targets:
        raise InvalidParameter("within must name a column at least")

    def aimed(plan: Plan) -> list[Line]:
        return [line for line in plan.lines if common is not None or line.name in targets]

    def at(units: int) -> Plan:
        return plan_of(study, query, epsilon=units * UNIT, size=size, **more)

    low, high = 0, int(LARGEST / UNIT)
    sharpest = at(high)
    for line in aimed(sharpest):
        if line.reach is None and not line.sized:
            what = sharpest.titles()[line.name]
            raise InvalidParameter(f"within works for what has a known error; {what} has none: give epsilon")
    size = size or _public_size(study, query, {line.name for line in aimed(sharpest)})
    if any(line.reach is None for line in aimed(at(high))):
        raise InvalidParameter(
            "within needs size=, the number of rows with a value that a group has at least: it is private here"
        )

    def near(units: int) -> bool:
        lines = aimed(at(units))
        return all(line.reach is not None and line.reach <= (common or targets[line.name]) for line in lines)

    if not near(high):
        raise InvalidParameter(f"within must be larger, got {quote(within)}: no ε gives that here")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if near(middle) else (middle, high)
    return at(high)


def _reported(plan: Plan) -> Plan:
    """The plan, answered from a report that has its table, if there is one."""
    if not plan.cost or not plan.study.ledger.requests(plan.study.name, REPORTS):
        return plan
    from discreet.release.reports.earlier import reported

    found = reported(plan)
    return plan if found is None else replace(plan, reported=found, cells=found.plan.lines[0].cells)


def _public_size(study: Study, query: Query, names: Collection[str]) -> int | None:
    """The number of units, where it is public, everybody is asked and has what these numbers are of."""
    dropped = any(name in names and isinstance(one, Moment) and one.missing is None for name, one in query.aggregates)
    if dropped or not (study.engine.public_size and of_everybody(study.policy, query)):
        return None
    return max(1, public_count(study.engine.units(study.policy.unit_column)))
