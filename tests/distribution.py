"""What a database spread over nodes by library would refuse: statements are parsed by Postgres's own parser, and each must
say which library (or other key) the rows of a distributed table belong to."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pglast import ast, enums, parse_sql

from commonplace.database import postgres

SCRIPT = Path(__file__).parents[1] / "deploy/citus/distribute.sql"
_ALIKE = {"library": "library_id"}  # the same value in another type
_LIBRARY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Distribution(NamedTuple):
    column: str  # whose hash leads to the node
    group: str  # tables whose rows of one key are on one node


@cache
def distributed() -> dict[str, Distribution]:
    """The tables that deploy/citus distributes."""
    tables: dict[str, Distribution] = {}
    call = r"create_distributed_table\('(\w+)', '(\w+)', colocate_with => '(\w+)'\)"
    for table, column, group in re.findall(call, SCRIPT.read_text()):
        tables[table] = Distribution(column, table if group == "none" else tables[group].group)
    return tables


@cache
def reference_tables() -> frozenset[str]:
    return frozenset(re.findall(r"create_reference_table\('(\w+)'\)", SCRIPT.read_text()))


class Problem(NamedTuple):
    refused: bool  # by any such database; else it asks all nodes
    text: str


@dataclass(eq=False)
class Key:
    """The distribution columns that a statement makes equal, and the values they are compared with."""

    table: str
    values: set[str] = field(default_factory=set)
    same: "Key | None" = None

    def root(self) -> "Key":
        return self.same.root() if self.same else self

    def join(self, other: "Key") -> None:
        mine, theirs = self.root(), other.root()
        if mine is not theirs:
            theirs.values |= mine.values
            mine.same = theirs


Columns = dict[str, Key]


@dataclass
class Level:
    """The tables that one SELECT, UPDATE or DELETE can name."""

    outer: "Level | None" = None
    names: dict[str, Columns] = field(default_factory=dict)
    queries: dict[str, Columns] = field(default_factory=dict)  # common table expressions

    def query(self, name: str) -> Columns | None:
        found = self.queries.get(name)
        return found if found is not None or self.outer is None else self.outer.query(name)

    def find(self, column: Any) -> Key | None:
        if isinstance(column, ast.TypeCast | ast.CollateClause):
            return self.find(column.arg)
        if not isinstance(column, ast.ColumnRef):
            return None
        path = [part.sval for part in column.fields if isinstance(part, ast.String)]
        if len(path) == 2:
            if path[0] in self.names:
                return self.names[path[0]].get(path[1])
        elif path:
            for columns in self.names.values():
                if path[0] in columns:
                    return columns[path[0]]
        return self.outer.find(column) if self.outer else None


class Statement:
    """One parsed statement."""

    def __init__(self, text: str) -> None:
        self.keys: list[Key] = []
        self.problems: list[Problem] = []
        self.locks = self.recursive = self.common = False
        self.targets: set[str] = set()  # tables that are written
        self.reads: set[str] = set()  # reference tables that are read
        self._names: list[str] = []
        parsed = parse_sql(self._numbered(text))
        for raw in parsed:
            self._any(raw.stmt, Level())
        self._judge()

    def _numbered(self, text: str) -> str:
        def number(found: re.Match[str]) -> str:
            name = _ALIKE.get(found[1], found[1])
            if name not in self._names:
                self._names.append(name)
            return f"${self._names.index(name) + 1}"

        return re.sub(r"%\((\w+)\)[st]", number, text).replace("%s", "NULL").replace("%%", "%")

    # -- parts of statements

    def _any(self, node: Any, level: Level) -> Columns:
        match node:
            case ast.SelectStmt():
                return self._select(node, level)
            case ast.InsertStmt():
                return self._insert(node, level)
            case ast.UpdateStmt() | ast.DeleteStmt():
                return self._change(node, level)
        for child in _children(node):
            self._any(child, level)
        return {}

    def _with(self, node: Any, level: Level) -> None:
        if node.withClause is None:
            return
        self.recursive |= bool(node.withClause.recursive)
        self.common = True
        for query in node.withClause.ctes:
            columns = self._any(query.ctequery, Level(level))
            if query.aliascolnames:
                names = [name.sval for name in query.aliascolnames]
                columns = dict(zip(names, columns.values(), strict=False))
            level.queries[query.ctename] = columns

    def _select(self, node: Any, outer: Level) -> Columns:
        level = Level(outer)
        self._with(node, level)
        if node.op != enums.SetOperation.SETOP_NONE:
            left, right = self._select(node.larg, level), self._select(node.rarg, level)
            for name in left.keys() & right.keys():
                left[name].join(right[name])
            return left if left.keys() == right.keys() else {}
        for source in node.fromClause or ():
            self._source(source, level)
        self._condition(node.whereClause, level)
        self._condition(node.havingClause, level)
        self.locks |= bool(node.lockingClause)
        self._rest(
            node, level, ("targetList", "sortClause", "groupClause", "valuesLists", "windowClause")
        )
        return self._outputs(node.targetList, level)

    def _outputs(self, targets: Any, level: Level) -> Columns:
        columns: Columns = {}
        for target in targets or ():
            if not isinstance(target.val, ast.ColumnRef):
                continue
            last = target.val.fields[-1]
            if isinstance(last, ast.A_Star):
                alias = target.val.fields[0].sval if len(target.val.fields) == 2 else None
                for name, found in level.names.items():
                    if alias in (None, name):
                        columns |= found
            elif key := level.find(target.val):
                columns[target.name or last.sval] = key
        return columns

    def _source(self, node: Any, level: Level) -> Columns:
        """A table, subquery or join in FROM."""
        match node:
            case ast.RangeVar():
                return self._table(node, level)
            case ast.RangeSubselect():
                columns = self._select(node.subquery, level)
                level.names[node.alias.aliasname] = columns
                return columns
            case ast.JoinExpr():
                left, right = self._source(node.larg, level), self._source(node.rarg, level)
                for name in node.usingClause or ():
                    if name.sval in left and name.sval in right:
                        left[name.sval].join(right[name.sval])
                self._condition(node.quals, level)
                return right | left
        self._any(node, level)
        return {}

    def _table(self, node: Any, level: Level) -> Columns:
        alias = node.alias.aliasname if node.alias else node.relname
        columns = level.query(node.relname)
        if columns is None:
            columns = {}
            if node.relname in distributed():
                self.keys.append(Key(node.relname))
                columns = {distributed()[node.relname].column: self.keys[-1]}
            elif node.relname in reference_tables():
                self.reads.add(node.relname)
        level.names[alias] = columns
        return columns

    def _insert(self, node: Any, outer: Level) -> Columns:
        level, table = Level(outer), node.relation.relname
        self._with(node, level)
        self.targets.add(table)
        chosen = self._any(node.selectStmt, level)
        if table in distributed():
            column = distributed()[table].column
            names = [target.name for target in node.cols or ()]
            if column not in names:
                self.problems.append(Problem(True, f"INSERT INTO {table} without {column}"))
            for key in chosen.values():
                if distributed()[key.table].group != distributed()[table].group:
                    self.problems.append(Problem(True, f"INSERT INTO {table} from other nodes"))
            conflict = node.onConflictClause
            if conflict and conflict.infer:
                unique = [element.name for element in conflict.infer.indexElems or ()]
                if column not in unique:
                    self.problems.append(Problem(True, f"ON CONFLICT of {table} without {column}"))
            if conflict:
                self._assigned(table, conflict.targetList)
        inner = Level(level)
        inner.names[table] = inner.names["excluded"] = {}
        if node.onConflictClause:
            self._rest(node.onConflictClause, inner, ("targetList", "whereClause"))
        return {}

    def _change(self, node: Any, outer: Level) -> Columns:
        level = Level(outer)
        self._with(node, level)
        self.targets.add(node.relation.relname)
        columns = self._table(node.relation, level)
        for source in getattr(node, "fromClause", None) or getattr(node, "usingClause", None) or ():
            self._source(source, level)
        self._condition(node.whereClause, level)
        if isinstance(node, ast.UpdateStmt):
            self._assigned(node.relation.relname, node.targetList)
            self._rest(node, level, ("targetList",))
        return columns if node.returningClause else {}

    def _assigned(self, table: str, targets: Any) -> None:
        column = distributed()[table].column if table in distributed() else None
        if column in [target.name for target in targets or ()]:
            self.problems.append(Problem(True, f"UPDATE of {table}.{column}"))

    def _rest(self, node: Any, level: Level, names: tuple[str, ...]) -> None:
        for name in names:
            for child in _nodes(getattr(node, name, None)):
                self._any(child, level)

    # -- conditions

    def _condition(self, node: Any, level: Level) -> None:
        """Note which keys a condition makes equal. Only what is joined by AND counts."""
        if node is None:
            return
        if isinstance(node, ast.BoolExpr) and node.boolop == enums.BoolExprType.AND_EXPR:
            for part in node.args:
                self._condition(part, level)
            return
        if isinstance(node, ast.A_Expr) and [n.sval for n in node.name] == ["="]:
            if node.kind == enums.A_Expr_Kind.AEXPR_OP:
                pairs = _pairs(node.lexpr, node.rexpr)
                for left, right in pairs:
                    self._equal(left, right, level)
            elif node.kind in (enums.A_Expr_Kind.AEXPR_OP_ANY, enums.A_Expr_Kind.AEXPR_IN):
                key = level.find(node.lexpr)
                if key and not level.find(node.rexpr) and (value := self._value(node.rexpr)):
                    key.root().values.add(value)
        if isinstance(node, ast.SubLink) and node.subLinkType == enums.SubLinkType.ANY_SUBLINK:
            columns = list(self._select(node.subselect, level).values())
            tests = (
                node.testexpr.args if isinstance(node.testexpr, ast.RowExpr) else [node.testexpr]
            )
            for key in filter(None, map(level.find, tests)):
                for other in columns:
                    if distributed()[other.table].group == distributed()[key.table].group:
                        key.join(other)
            return
        self._any(node, level)

    def _equal(self, left: Any, right: Any, level: Level) -> None:
        keys = [key for key in (level.find(left), level.find(right)) if key]
        if len(keys) == 2:
            keys[0].join(keys[1])
        elif keys and (value := self._value(right if level.find(left) else left)):
            keys[0].root().values.add(value)

    def _value(self, node: Any) -> str | None:
        match node:
            case ast.TypeCast() | ast.CollateClause():
                return self._value(node.arg)
            case ast.ParamRef():
                return self._names[node.number - 1]
            case ast.A_Const():
                text = getattr(node.val, "sval", str(node.val))
                return "library_id" if _LIBRARY.fullmatch(text) else text
            case tuple():
                return "a list" if all(self._value(part) for part in node) else None
        return None

    # -- judgement

    def _judge(self) -> None:
        groups = {distributed()[key.table].group for key in self.keys}
        groups |= {distributed()[t].group for t in self.targets if t in distributed() and self.keys}
        roots = {key.root() for key in self.keys}
        if len(groups) > 1:
            self.problems.append(Problem(True, f"joins tables of other nodes: {self._tables()}"))
        elif any(not root.values for root in roots):
            reasons = ["no condition on the key of " + self._tables()]
            never = {
                "a row lock": self.locks,
                "WITH RECURSIVE": self.recursive,
                "WITH": self.common and len(self.keys) > 1,
                "a join that is not by the key": len(roots) > 1,
            }
            reasons += [name for name, there in never.items() if there]
            self.problems.append(Problem(any(never.values()), ", ".join(reasons)))
        elif len(set().union(*(root.values for root in roots))) > 1:
            self.problems.append(Problem(True, f"more than one key in {self._tables()}"))
        if self.keys and self.targets & reference_tables():
            self.problems.append(Problem(True, "changes a reference table by a distributed one"))

    def _tables(self) -> str:
        return ", ".join(sorted({key.table for key in self.keys}))


def _pairs(left: Any, right: Any) -> list[tuple[Any, Any]]:
    if isinstance(left, ast.RowExpr) and isinstance(right, ast.RowExpr):
        return list(zip(left.args, right.args, strict=True))
    return [(left, right)]


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)
    elif isinstance(value, ast.Node):
        yield value


def _children(node: Any) -> Iterator[Any]:
    for part in _nodes(node) if isinstance(node, tuple) else [node]:
        if isinstance(part, ast.Node):
            for name in part.__slots__:
                yield from _nodes(getattr(part, name))


@cache
def problems(text: str) -> tuple[Problem, ...]:
    """What is wrong with a statement as psycopg takes it."""
    return tuple(Statement(text).problems)


# -- statements that ask all nodes, by the function that sends them

EVERY_NODE = {
    # The operator's own commands
    "search_index.postgres.index.PostgresIndex.clear": "restore: all indexes are built again",
    "store.backup._make_room": "restore replaces everything",
    "store.backup._write": "a backup has everything",
    "store.backup._sections": "a backup has everything",
    "store.backup.load": "restore writes everything",
    "store.queues.job_queues.rebuild": "restore: all queues are built again",
    "store.jobs.Jobs.enqueue_embedding": "reindex, of all libraries",
    "store.jobs.Jobs.enqueue_describing": "reindex, of all libraries",
    "store.jobs.Jobs.enqueue_linking": "reindex, of all libraries",
    "store.jobs.Jobs.count_open": "doctor and status, of all libraries",
    "store.jobs.Jobs.counts": "metrics and status, of all libraries",
    "store.jobs.Jobs.running_share": "status, of all libraries",
    "store.sections.Sections.coverage": "status, of all libraries",
    "store.files.source_files.SourceFiles.items_with": "reextract, of all libraries",
    "store.files.source_files.SourceFiles.count_items": "reextract, of all libraries",
    "store.files.source_files.SourceFiles.keys": "backup and check compare all files",
    "store.files.uploads.Uploads.keys": "backup and check compare all files",
    # Housekeeping, which finds by an index what has expired
    "store.events.log.Events.prune": "hourly: events older than 7 days",
    "store.idempotency.IdempotencyKeys.prune": "hourly: keys older than a day",
    "store.jobs.Jobs.prune": "hourly: jobs done a day ago",
    "store.undo.steps.Undo.prune": "hourly: steps older than they are kept",
    "store.versions.Versions.prune": "hourly: versions older than they are kept",
    "store.trash.entries.Trash.expire": "hourly: what was in the trash for 30 days",
    "store.people.oauth.OAuth.tidy": "hourly: secrets of OAuth that expired",
    "store.files.uploads.Uploads.list_awaited": "after a start: uploads that nobody finished",
    "store.files.source_files.SourceFiles.list_unused": "hourly: files that no text needs",
    "store.files.uploads.Uploads.list_disposable": "hourly: uploads that expired",
    # Rare, and by an index
    "store.people.directory.drop_library": "an account is deleted: its names, by the library",
    "store.people.people._forget_tokens": "an account is deleted: its tokens in all libraries",
    "store.sources.leave": "the last library forgets a source: its other addresses",
    "store.disks.drop_saves": "a published item is deleted: saves of it in all libraries",
}
_BELOW = ("database/", "store/rows.py", "thread_pool.py")  # which run statements for others


def _sender() -> str | None:
    """The function of the product that sends a statement; None: a test."""
    frame = sys._getframe(2)
    while frame := frame.f_back:
        _, inside, path = frame.f_code.co_filename.partition("/src/commonplace/")
        if inside and path.startswith(_BELOW):
            continue
        if not inside and "/tests/" not in frame.f_code.co_filename:
            continue
        name = frame.f_code.co_qualname.split(".<locals>")[0]
        return f"{path.removesuffix('.py').replace('/', '.')}.{name}" if inside else None
    return None


def check(text: str) -> None:
    """Fail if a statement of the product is refused, or asks all nodes without a reason."""
    if not (found := problems(text)) or not (sender := _sender()):
        return
    if sender not in EVERY_NODE or any(problem.refused for problem in found):
        pytest.fail(f"{sender}: {'; '.join(problem.text for problem in found)}\n{text}")


def check_insert(table: str, columns: str) -> None:
    if table in distributed() and distributed()[table].column not in columns.split(", "):
        pytest.fail(f"INSERT INTO {table} ({columns}) lacks {distributed()[table].column}")


@contextmanager
def every_statement_checked() -> Iterator[None]:
    """Check all that this process sends to Postgres."""
    translate, insert = postgres._statement, postgres.PostgresTx.insert

    def translated(text: str) -> str:
        check(translate(text))
        return translate(text)

    def inserted(self: Any, table: str, columns: str, rows: Any) -> None:
        check_insert(table, columns)
        insert(self, table, columns, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "_statement", translated)
        patch.setattr(postgres.PostgresTx, "insert", inserted)
        yield
