"""A study: data, a policy and a ledger. It answers questions, and spends ε before it reads the
data.

The ledger is beside the policy (`study.ledger`) unless the caller, the environment or the policy
names another (`ledger.place`). The first spend creates its file, with the policy's total ε and
promise (`release.budget`). From then on they are fixed: a policy with others is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from os import PathLike, fspath
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from discreet import views
from discreet.ask.expression import Schema
from discreet.ask.policy import Policy
from discreet.ask.query import Query
from discreet.ask.questions import Askable, Asked, PlanTerms, build
from discreet.ask.reportfile import ReportFile, refuse_names
from discreet.ask.scope import check_schema
from discreet.ask.siblings import siblings
from discreet.ask.sql import parse
from discreet.engines.base import Engine
from discreet.errors import InvalidParameter, QueryRefused, of_source, one_line
from discreet.files.writer import Kept, kept_files, kept_source
from discreet.ledger.ledger import Ledger
from discreet.ledger.place import Place, place_of
from discreet.parameters import Epsilon, Number, exact_confidence, exact_count, exact_epsilon, quote
from discreet.release.budget import Budget, register
from discreet.release.discovery import Discovered, discovery, policy_with, recorded
from discreet.release.notebook.frame import MEMORY, Framed, throwaway
from discreet.release.plan import REPORTS, Plan, plan_of
from discreet.release.split import plan_within
from discreet.release.work import MOST_TEXT, refuse_more

if TYPE_CHECKING:
    from discreet.release.profiles.profile import Profile
    from discreet.release.reports.plan import ReportPlan


class Study(Framed, Askable[Plan]):
    """Data with a policy and a privacy budget. `discreet.open` and `Study.from_frame` create a
    study.

    Parameters
    ----------
    policy : Policy
        The declaration of the data.
    ledger : path, address, Ledger or "memory"
        Where spends are recorded; "memory" is lost when the study is closed or Python ends.
    name, file
        The name of the study in the ledger; the file of the policy, if there is one.

    Examples
    --------
    >>> import discreet, pandas
    >>> people = pandas.DataFrame({"town": ["Ash", "Elm"] * 500, "age": range(1000)})
    >>> study = discreet.Study.from_frame(
    ...     people, epsilon=1, bounds={"age": (0, 120)}, keys={"town": ["Ash", "Elm"]}
    ... )
    >>> plan = study.groupby("town").agg(people="count", age=("age", "mean")).plan(epsilon="0.5")
    >>> [row.town for row in plan.release()]
    ['Ash', 'Elm']

    """

    siblings: tuple[str, ...] = ()
    """Other policies in the same folder over the same data: each has its own budget."""
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
        """Whether the record of spends is lost when the study is closed."""
        if self.forgets:
            ledger, self._forget = throwaway(self)
        place = (
            ledger
            if isinstance(ledger, Place | Ledger)
            else Place(where=fspath(ledger), anchor=None)
        )
        self.budget = Budget(place, name, policy)
        self.policy = policy
        self.discovered: Discovered | None = None
        self._recall_discovery()

    @property
    def ledger(self) -> Ledger:
        """The ledger.

        If there is none yet, it is created, with the total and the promise of the policy.
        """
        return self.budget.made()

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self.budget = self.budget.over(ledger)

    @cached_property
    def engine(self) -> Engine:
        """The engine that reads the rows."""
        from discreet.engines.choose import engine_under

        return engine_under(self.policy)

    @cached_property
    def schema(self) -> Schema:
        """The names and types of the columns, checked against the policy."""
        columns = self.engine.schema()
        with of_source():
            check_schema(self.policy, columns)
        return columns

    @property
    def version(self) -> str:
        """The current version of the data: declared in the policy, or a hash of the content under
        the ledger's key.

        The columns and types of the source are compared first, also if the version is declared.
        """
        if self.policy.version is not None or self.budget.known() is None:
            self.engine.check()  # a source that is refused creates no ledger
        if self.policy.version is not None:
            return self.policy.version
        return self.ledger.keyed(self.engine.version(self.ledger.keyed("salt")))

    @property
    def kept(self) -> Kept:
        """Files that no output may overwrite: the data, the policy, its keys and maps, the ledger
        and its anchor.
        """
        folder = self.policy.folder or Path()
        columns = self.policy.columns.values()
        keys = [column.keys_from.partition("#")[0] for column in columns if column.keys_from]
        public = [
            folder / name
            for name in (*keys, *(column.map_from for column in columns if column.map_from))
        ]
        files = [*public, *([] if self._file is None else [self._file]), *self.budget.files]
        return kept_source(self.policy.source, self.policy.folder) + kept_files(files)

    @property
    def file_name(self) -> str:
        """The name of the policy's file, without its ending."""
        return self.name if self._file is None else self._file.stem

    @property
    def spent(self) -> Fraction:
        """The exact ε that was spent so far."""
        return self.budget.spent

    @property
    def remaining(self) -> Fraction:
        """The exact ε that is left of the total."""
        return self.budget.remaining

    def discover(self, *columns: str, epsilon: Epsilon, analyst: str | None = None) -> Discovered:
        """Discover the keys of columns at (ε, δ). A study makes one discovery; asked again, it is
        free.

        Parameters
        ----------
        *columns : text
            Columns that the policy declares with keys = "discover".
        epsilon, analyst
            The ε to spend (δ comes from the policy), and the analyst whose share pays, if any.

        Returns
        -------
        Discovered
            The keys that may be released, by column. Questions of this study use them from now on.

        """
        self.discovered = discovery(self, columns, epsilon, analyst)
        self.policy = policy_with(self.policy, self.discovered)
        return self.discovered

    def profile(self, columns: Sequence[str] | None = None, *, epsilon: Epsilon) -> Profile:
        """Profile columns with noisy histograms, and propose bounds. Asked again about the same
        data, it is free.

        Parameters
        ----------
        columns : list of text, optional
            By default all numbers without bounds. The unit's column asks for the number of rows per
            unit.
        epsilon : number or text
            The ε to spend, shared equally by the columns.

        Returns
        -------
        Profile
            Where the values lie, and lines for the policy, which is not changed.

        """
        from discreet.release.profiles.plan import profile_plan

        return profile_plan(self, columns, epsilon).release()

    def _recall_discovery(self) -> None:
        """Use the keys of the discovery in the ledger, which another process may have made."""
        if self.discovered is None:
            self.discovered = recorded(self.budget.known(), self.name, self.policy)
            self.policy = policy_with(self.policy, self.discovered)

    def sql(self, text: str, **terms: Unpack[PlanTerms]) -> Plan:
        """Plan a question in SQL. No data is read, nothing is spent.

        Parameters
        ----------
        text : text
            A SELECT of counts, sums, means and other statistics.
        **terms
            `epsilon=`, what it may cost, or `within=`, the error that it may have; and optionally
            `confidence=`, `simultaneous=`, `weights=` by column, and `size=`, the rows of a group
            for which errors are shown.

        Returns
        -------
        Plan
            The cost and the errors of the answer; `release` computes it.

        """
        return self._plan(parse(text, self.policy, self.schema), **terms)

    def report(self, tables: Mapping[str, str], **terms: Any) -> ReportPlan:
        """Plan a report: tables that are measured together and agree. No data is read, nothing is
        spent.

        Parameters
        ----------
        tables : dict
            A question in SQL for each name of a table.
        **terms
            `epsilon=`, the cost of all tables, or `within=`, the error of each number, for all
            tables or by table; and optionally `weights=` by table, `confidence=`, `simultaneous=`,
            `size=`, the rows of a group for which errors are shown, `title=`, `integers=True` for
            integer counts, `rows=`, the name of a synthetic file.

        Returns
        -------
        ReportPlan
            The cost and the errors of all tables; `release` computes them.

        """
        from discreet.release.reports.planner import report_plan

        if not isinstance(tables, Mapping):
            raise InvalidParameter('tables must be given by name, as in {"by_county": "SELECT …"}')
        refuse_names(tables)
        refuse_more(
            "the tables of a report",
            sum(map(len, map(str, tables.values()))),
            MOST_TEXT,
            "characters",
        )
        _ = self.schema  # an error in the data is not the error of a table
        return report_plan(
            self, {name: self._parsed(name, text) for name, text in tables.items()}, **terms
        )

    def _parsed(self, name: str, text: str) -> Query:
        """The question of a table; an error names the table."""
        try:
            return parse(text, self.policy, self.schema)
        except (InvalidParameter, QueryRefused) as error:
            raise type(error)(f"{name}: {error}") from None

    def card(self) -> Any:
        """The privacy claim of this study, for publication: `to_json`, `to_yaml`, `to_html`,
        `save`. It is free.
        """
        return views.card(self)

    def close(self) -> None:
        """Close the ledger; a ledger in memory is removed."""
        self.budget.close()
        self._forget()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(
            "a study cannot be copied or pickled: open its study.toml where you need it"
        )

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        policy = self.policy
        shared = (
            f" · same data as {', '.join(self.siblings)}: releases add up" if self.siblings else ""
        )
        return (
            f"Study({self.name!r}: {len(policy.columns)} columns declared · ε"
            f" {float(self.remaining):.4g} of {float(policy.epsilon):.4g} left · {policy.neighbors}"
            f" · unit {one_line(policy.unit)}{shared}{self.forgetful})"
        )

    @property
    def forgetful(self) -> str:
        """A warning about a ledger in memory; empty for any other ledger."""
        return " · ledger in memory: it forgets what was spent" if self.forgets else ""

    def _plan_of(self, asked: Asked[Plan], terms: PlanTerms) -> Plan:
        query = build(
            self.policy,
            self.schema,
            where=asked.conditions,
            by=asked.columns,
            ask=dict(asked.questions),
        )
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
            raise InvalidParameter(
                "a plan takes either epsilon, what it may cost, or within, the error it may have"
            )
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
        plan = plan.checked()
        ledger = self.budget.known()
        if not plan.cost or ledger is None or not ledger.requests(self.name, REPORTS):
            return plan
        from discreet.release.reports.earlier import reported

        report = reported(plan)  # an earlier report that contains the table
        return (
            plan
            if report is None
            else replace(plan, reported=report, cells=report.plan.lines[0].cells)
        )


def open(
    path: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | Ledger | None = None,
    anchor: str | PathLike[str] | None = None,
    time_limit: Number | None = None,
) -> Study:
    """Open the study that a policy file declares.

    Parameters
    ----------
    path : path
        The policy, such as study.toml.
    ledger : path, address or Ledger, optional
        A file or a `postgresql://` address. By default, DISCREET_LEDGER in the environment, then
        `ledger` in the policy, then a file beside it.
    anchor : path, optional
        The anchor of the ledger. By default, DISCREET_ANCHOR, then `anchor` in the policy, then a
        file beside it.
    time_limit : number, optional
        The most seconds that a question may take at the source. By default, `time_limit` in the
        policy, then 600.

    Returns
    -------
    Study
        To be closed, or used in a `with` statement. Its `repr` names other studies of the same data
        in the folder.

    Examples
    --------
    >>> with discreet.open("study.toml") as study:  # doctest: +SKIP
    ...     answer = study.sql("SELECT count(*) FROM visits", epsilon="0.1").release()

    """
    file = Path(path)
    policy = Policy.load(file)
    if time_limit is not None:
        policy = policy.with_time_limit(time_limit)
    declared = {name: getattr(policy, name) for name in ("ledger", "anchor", "study")}
    place = (
        ledger
        if isinstance(ledger, Ledger)
        else place_of(file, declared, ledger=ledger, anchor=anchor)
    )
    study = Study(policy, ledger=place, name=policy.study or file.stem, file=file)
    study.siblings = siblings(file, policy.source)
    return study


def report(
    path: str | PathLike[str],
    *,
    ledger: str | PathLike[str] | Ledger | None = None,
    anchor: str | PathLike[str] | None = None,
    time_limit: Number | None = None,
) -> ReportPlan:
    """Plan the report that a file declares, with its study and its tables.

    No data is read, nothing is spent.
    """
    file = ReportFile.load(Path(path))
    study = open(file.study, ledger=ledger, anchor=anchor, time_limit=time_limit)
    try:
        return study.report(file.tables, **file.terms)
    except BaseException:
        if not isinstance(ledger, Ledger):  # else it belongs to the caller
            study.close()
        raise


def create(policy: Policy, place: Place) -> bool:
    """Create a study with its total in a ledger, which is created if there is none; whether it was
    corrected.
    """
    new = place.is_new or (
        place.is_server and place.anchor is not None and not lexists(place.anchor)
    )
    return register(policy, place, new=new)
