"""A study: data, a policy and a ledger. It answers questions, and spends before it reads.

    study = discreet.open("study.toml")
    plan = study.where("age >= 65").by("county").ask(people=Count(), age=Mean("age")).plan(epsilon="0.1")
    answer = plan.release()

The ledger lies beside the policy (`study.ledger`) unless another place is named: by the caller, the environment or the
policy (`ledger.place`). A file is made when the study is first opened, with the policy's total ε, and from then on that
total stands: a policy that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from os import PathLike, fspath
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from discreet import views
from discreet.ask.policy import Policy
from discreet.ask.query import Query
from discreet.ask.questions import Askable, Asked, PlanTerms, build
from discreet.ask.reportfile import ReportFile, refuse_names
from discreet.ask.scope import check_schema
from discreet.ask.siblings import siblings
from discreet.ask.sql import parse
from discreet.engines.base import Engine, Schema
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.files.writer import Kept, kept_files, kept_source
from discreet.ledger.ledger import Ledger
from discreet.ledger.place import Place, place_of
from discreet.ledger.refusals import foreign, refuse_another_promise
from discreet.parameters import UNIT, Epsilon, exact_confidence, exact_count, exact_epsilon, quote
from discreet.release.discovery import Discovered, discovery, policy_with, recorded
from discreet.release.notebook.frame import Framed
from discreet.release.notebook.throwaway import MEMORY, throwaway
from discreet.release.plan import REPORTS, Plan, plan_of
from discreet.release.split import plan_within

if TYPE_CHECKING:
    from discreet.release.profiles.profile import Profile
    from discreet.release.reports.plan import ReportPlan


class Study(Framed, Askable[Plan]):
    """Data behind a policy and a budget.

    `open` and `from_frame` make one. `ledger` is where spends are written: a path, an address, a Ledger, or "memory",
    a throwaway that forgets them when it is closed or Python ends; `name` is what the ledger calls the study.

    Examples
    --------
    >>> import discreet, pandas
    >>> people = pandas.DataFrame({"town": ["Ash", "Elm"] * 500, "age": range(1000)})
    >>> study = discreet.Study.from_frame(people, epsilon=1, bounds={"age": (0, 120)}, keys={"town": ["Ash", "Elm"]})
    >>> plan = study.groupby("town").agg(people="count", age=("age", "mean")).plan(epsilon="0.5")
    >>> [row.town for row in plan.release()]
    ['Ash', 'Elm']

    See docs/studies.md.

    """

    siblings: tuple[str, ...] = ()
    """Other policies in the folder of this one over the same data: each has a budget of its own."""
    _forget: Callable[[], object] = staticmethod(lambda: None)

    def __init__(
        self,
        policy: Policy,
        *,
        ledger: str | PathLike[str] | Place | Ledger,
        name: str = "study",
        file: Path | None = None,
    ) -> None:
        self.name, self._file = name, file
        self.forgets = isinstance(ledger, str) and ledger == MEMORY
        """Whether nothing remembers what is spent, once this is closed."""
        if self.forgets:
            ledger, self._forget = throwaway(self)
        place = ledger if isinstance(ledger, Place | Ledger) else Place(where=fspath(ledger), anchor=None)
        self.ledger = place if isinstance(place, Ledger) else _ledger(place, name, policy)
        total = self.ledger.total(name)
        if total != _total(policy.epsilon):
            raise InvalidParameter(
                f"epsilon of the policy must be {total}, what the ledger was made with, got {policy.epsilon}; "
                "a total stands for ever"
            )
        refuse_another_promise(policy.promise, self.ledger.promise(name))
        self.policy = policy
        self.discovered: Discovered | None = None
        self._recall_discovery()

    @cached_property
    def engine(self) -> Engine:
        """Where the rows are."""
        from discreet.engines.choose import engine_under

        return engine_under(self.policy)

    @cached_property
    def schema(self) -> Schema:
        """Names and types of the columns, which the policy fits."""
        columns = self.engine.schema()
        check_schema(self.policy, columns)
        return columns

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
        keys = [column.keys_from.partition("#")[0] for column in columns if column.keys_from]
        public = [folder / name for name in (*keys, *(column.map_from for column in columns if column.map_from))]
        files = [*public, *([] if self._file is None else [self._file]), *self.ledger.files]
        return kept_source(self.policy.source, self.policy.folder) + kept_files(files)

    @property
    def file_name(self) -> str:
        """What the policy's file is called, without its ending."""
        return self.name if self._file is None else self._file.stem

    @property
    def spent(self) -> Fraction:
        """The ε that was spent so far, exactly."""
        return self.ledger.spent(self.name)

    @property
    def remaining(self) -> Fraction:
        """The ε that is left of the total, exactly."""
        return self.ledger.remaining(self.name)

    def discover(self, *columns: str, epsilon: Epsilon, analyst: str | None = None) -> Discovered:
        """The keys of these columns that may be told, at (ε, δ); a study makes one discovery, free when asked again.

        An `analyst` pays of their share.
        """
        self.discovered = discovery(self, columns, epsilon, analyst)
        self.policy = policy_with(self.policy, self.discovered)
        return self.discovered

    def profile(self, columns: Sequence[str] | None = None, *, epsilon: Epsilon) -> Profile:
        """Where the values of these columns lie, and bounds to propose, from noisy histograms; charged like a question.

        Without names, of all numbers that have no bounds. The name of the unit's column asks how many rows units have.
        The policy stays as it is. Asked again about the same data it is free.
        """
        from discreet.release.profiles.plan import profile_plan

        return profile_plan(self, columns, epsilon).release()

    def _recall_discovery(self) -> None:
        """Take the keys of the discovery that the ledger has, which another process may have made."""
        if self.discovered is None:
            self.discovered = recorded(self.ledger, self.name, self.policy)
            self.policy = policy_with(self.policy, self.discovered)

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

    def card(self) -> Any:
        """What is claimed of this study, to be published: `to_json`, `to_yaml`, `to_html`, `save`. It is free."""
        return views.card(self)

    def close(self) -> None:
        """Close the ledger; one in memory is forgotten."""
        self.ledger.close()
        self._forget()

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
            f"{float(policy.epsilon):.4g} left · {policy.neighbors} · unit {one_line(policy.unit)}{shared}"
            f"{self.forgetful})"
        )

    @property
    def forgetful(self) -> str:
        """What is said of a ledger in memory; nothing of any other."""
        return " · ledger in memory: it forgets what was spent" if self.forgets else ""

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


def open(
    path: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | Ledger | None = None,
    anchor: str | PathLike[str] | None = None,
) -> Study:
    """The study that a policy file declares; `repr` names other studies of the same data in its folder.

    `ledger` is a file or a `postgresql://` address, and `anchor` its anchor. Without them the environment decides
    (`DISCREET_LEDGER`, `DISCREET_ANCHOR`), then `ledger` and `anchor` of the policy, then the place beside it.
    """
    file = Path(path)
    policy = Policy.load(file)
    declared = {name: getattr(policy, name) for name in ("ledger", "anchor", "study")}
    place = ledger if isinstance(ledger, Ledger) else place_of(file, declared, ledger=ledger, anchor=anchor)
    study = Study(policy, ledger=place, name=policy.study or file.stem, file=file)
    study.siblings = siblings(file, policy.source)
    return study


def report(
    path: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | Ledger | None = None,
    anchor: str | PathLike[str] | None = None,
) -> ReportPlan:
    """The plan of the report that a file declares: its study and its tables. Nothing is read, nothing is spent."""
    file = ReportFile.load(Path(path))
    study = open(file.study, ledger=ledger, anchor=anchor)
    try:
        return study.report(file.tables, **file.terms)
    except BaseException:
        if not isinstance(ledger, Ledger):  # else it is the caller's
            study.close()
        raise


def create(policy: Policy, place: Place) -> None:
    """Give a new study its total in the ledger of a place, which is made if there is none."""
    new = place.is_new or (place.is_server and place.anchor is not None and not lexists(place.anchor))
    with Ledger.open(place.where, anchor=place.anchor, new=new) as ledger:
        ledger.create(place.study or "", _total(policy.epsilon), promise=policy.promise)


def _ledger(place: Place, name: str, policy: Policy) -> Ledger:
    """The ledger of a study; a file is made if there was never one here, by one of several processes at once."""
    place.refuse_missing_anchor()
    if place.is_new:
        place.refuse_second_budget()
        with suppress(InvalidParameter):  # it is there by now
            Ledger.open(place.where, anchor=place.anchor, new=True).close()
    ledger = Ledger.open(place.where, anchor=place.anchor)
    try:
        if not ledger.studies() and not place.is_server:
            ledger.create(name, _total(policy.epsilon), promise=policy.promise)
        elif name not in ledger.studies():
            raise foreign(name)
    except BaseException as failure:
        if not isinstance(failure, InvalidParameter) or name not in ledger.studies():  # else another has created it
            ledger.close()
            raise
    return ledger


def _total(epsilon: Fraction) -> Fraction:
    """A total as the ledger counts it."""
    return epsilon // UNIT * UNIT  # rounds down: never more than was promised


def _reported(plan: Plan) -> Plan:
    """The plan, answered from a report that has its table, if there is one."""
    if not plan.cost or not plan.study.ledger.requests(plan.study.name, REPORTS):
        return plan
    from discreet.release.reports.earlier import reported

    report = reported(plan)
    return plan if report is None else replace(plan, reported=report, cells=report.plan.lines[0].cells)
