"""A conservative proof that matching a regular expression takes linear time, over the tree that `re` parses it to.

What "proven" means. From each place where a match may begin, the backtracking matcher takes at most a constant number of paths
(`MOST_PATHS`, and as many again in each assertion and atomic group), and each path reads every character once. Where the
pattern is searched for, every character is read from at most a constant number of such places. Both constants depend on
the pattern alone. The proof knows these reasons and no others:

- A choice (an alternative, or going on with a repeat) is decided by the next character. Otherwise its outcomes are counted
  as paths, which is only allowed for repeats of at most `LARGEST_COUNT`.
- One unbounded repeat may be left anywhere (`.*?x`) if what follows it has bounded length.
- A run (the characters of an unbounded repeat that something fallible follows) is read from few places: before it, the
  pattern needs a character that is not of the run, or it begins with a look-behind, `\\b` or `^` that excludes the run.

Patterns that are linear for other reasons are not proven. Character sets are compared on `SAMPLE` and on the ends of all
ranges of the pattern, not on all of Unicode. Back references are never proven.
"""

import re
import re._constants as sre
import re._parser as parser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf, prod

LARGEST_COUNT = 200  # {m,n} with a larger n counts as unbounded
MOST_PATHS = 5_000

SAMPLE = frozenset(
    map(
        chr,
        [
            *range(0x180),
            *range(0x2B0, 0x400),
            *range(0x2000, 0x20D0),
            *range(0x2100, 0x2190),
            *range(0x3000, 0x3060),
            0x410,
            0x5D0,
            0x660,
            0x966,
            0xE01,
            0xE31,
            0x1100,
            0x1680,
            0x4E00,
            0xAC00,
            0xD800,
            0xE000,
            0xF900,
            0xFF10,
            0xFF21,
            0xFFFF,
            0x10000,
            0x1D7CE,
            0x1F600,
            0x20000,
            0xE0100,
            0x10FFFF,
        ],
    )
)
Chars = frozenset[str]
NONE: Chars = frozenset()


class NotProven(Exception):
    """Why a pattern is not proven linear."""


# -- The tree: what `re` parses, without what does not matter here


@dataclass(frozen=True)
class One:
    """One character of a set."""

    chars: Chars


@dataclass(frozen=True)
class Row:
    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Choice:
    branches: tuple["Node", ...]


@dataclass(frozen=True)
class Repeat:
    least: int
    most: float
    body: "Node"
    possessive: bool


@dataclass(frozen=True)
class Look:
    """An assertion; `excludes`: the characters that it forbids before this place."""

    inside: "Node"
    excludes: Chars = NONE


Node = One | Row | Choice | Repeat | Look
EMPTY = Row(())
WORD = frozenset(c for c in SAMPLE if c.isalnum() or c == "_")
_CATEGORIES = {
    sre.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    sre.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
    sre.CATEGORY_DIGIT: str.isdecimal,
    sre.CATEGORY_NOT_DIGIT: lambda c: not c.isdecimal(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
}


def _tree(parsed: Iterable[tuple[object, object]], flags: int, sample: Chars) -> Node:
    return Row(tuple(_node(op, value, flags, sample) for op, value in parsed))


def _node(op: object, value: object, flags: int, sample: Chars) -> Node:
    if op is sre.LITERAL:
        return One(_set([(op, value)], flags, sample))
    if op is sre.NOT_LITERAL:
        return One(sample - _set([(sre.LITERAL, value)], flags, sample))
    if op is sre.ANY:
        return One(sample if flags & re.DOTALL else sample - {"\n"})
    if op is sre.IN:
        return One(_set(value, flags, sample))
    if op is sre.BRANCH:
        return Choice(tuple(_tree(branch, flags, sample) for branch in value[1]))
    if op is sre.SUBPATTERN:
        _, added, removed, inside = value
        return _tree(inside, (flags | added) & ~removed, sample)
    if op is sre.GROUPREF_EXISTS:  # takes one of the two ways: counted as if it could take both
        return Choice(tuple(_tree(branch or (), flags, sample) for branch in value[1:]))
    if op is sre.ATOMIC_GROUP:
        return Repeat(1, 1, _tree(value, flags, sample), possessive=True)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        least, most, body = value
        return Repeat(
            int(least),
            inf if most is sre.MAXREPEAT or most > LARGEST_COUNT else int(most),
            _tree(body, flags, sample),
            op is sre.POSSESSIVE_REPEAT,
        )
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        direction, inside = value
        node = _tree(inside, flags, sample)
        if direction > 0:
            return Look(node)
        single = (
            node.parts[0].chars if len(node.parts) == 1 and isinstance(node.parts[0], One) else NONE
        )
        return Look(EMPTY, single if op is sre.ASSERT_NOT else sample - single if single else NONE)
    if op is sre.AT:
        if value is sre.AT_BEGINNING_STRING or (
            value is sre.AT_BEGINNING and not flags & re.MULTILINE
        ):
            return Look(EMPTY, sample)
        if value is sre.AT_BEGINNING:
            return Look(EMPTY, sample - {"\n"})
        return Look(EMPTY, WORD_BOUNDARY if value is sre.AT_BOUNDARY else NONE)
    raise NotProven(f"{op} is not supported")


WORD_BOUNDARY: Chars = frozenset(
    {"\\b"}
)  # stands for: a word character, where a word character follows


def _set(items: Iterable[tuple[object, object]], flags: int, sample: Chars) -> Chars:
    items = list(items)
    negated = items[0][0] is sre.NEGATE
    found: set[str] = set()
    for op, value in items[negated:]:
        if op is sre.LITERAL:
            found |= _cased({chr(value)}, flags)
        elif op is sre.RANGE:
            low, high = map(chr, value)
            found |= _cased({c for c in sample if low <= c <= high}, flags)
        elif op is sre.CATEGORY:
            found |= {c for c in sample if _CATEGORIES[value](c)}
        else:
            raise NotProven(f"{op} in a set is not supported")
    return frozenset(sample - found if negated else found)


def _cased(chars: set[str], flags: int) -> set[str]:
    if not flags & re.IGNORECASE:
        return chars
    return (
        chars
        | {form for c in chars for form in (c.lower(), c.upper()) if len(form) == 1}
        | ({"ſ"} if chars & {"s", "S"} else set())
        | ({"\u212a"} if chars & {"k", "K"} else set())
    )


def _mentioned(parsed: object) -> Iterator[int]:
    """Every code point that the pattern names, as a character or as the end of a range."""
    if (
        isinstance(parsed, tuple)
        and len(parsed) == 2
        and parsed[0] in (sre.LITERAL, sre.NOT_LITERAL, sre.RANGE)
    ):
        yield from parsed[1] if isinstance(parsed[1], tuple) else (parsed[1],)
    elif isinstance(parsed, (list, tuple, parser.SubPattern)):
        for part in parsed:
            yield from _mentioned(part)


# -- What the tree says


def _nullable(node: Node) -> bool:
    match node:
        case One():
            return False
        case Row(parts):
            return all(map(_nullable, parts))
        case Choice(branches):
            return any(map(_nullable, branches))
        case Repeat(least, _, body):
            return least == 0 or _nullable(body)
        case Look():
            return True


def _first(node: Node) -> Chars:
    match node:
        case One(chars):
            return chars
        case Row(parts):
            found = NONE
            for part in parts:
                found |= _first(part)
                if not _nullable(part):
                    break
            return found
        case Choice(branches):
            return NONE.union(*map(_first, branches))
        case Repeat(_, _, body):
            return _first(body)
        case Look():
            return NONE


def _longest(node: Node) -> float:
    match node:
        case One():
            return 1
        case Row(parts):
            return sum(map(_longest, parts))
        case Choice(branches):
            return max(map(_longest, branches), default=0)
        case Repeat(_, most, body):
            return most * _longest(body) if _longest(body) else 0
        case Look(inside):
            return _longest(inside)


def _alphabet(node: Node) -> Chars:
    match node:
        case One(chars):
            return chars
        case Row(parts) | Choice(parts):
            return NONE.union(*map(_alphabet, parts))
        case Repeat(_, _, body):
            return _alphabet(body)
        case Look():
            return NONE


@dataclass(frozen=True)
class _After:
    """What may follow a part of the pattern."""

    first: Chars = NONE
    longest: float = 0
    fallible: bool = False  # a match may still fail there

    def before(self, node: Node) -> "_After":
        """What follows whatever stands before `node`."""
        first = _first(node) | (self.first if _nullable(node) else NONE)
        return _After(
            first,
            self.longest + _longest(node),
            self.fallible or not _nullable(node) or _asserts(node),
        )


def _asserts(node: Node) -> bool:
    match node:
        case Look():
            return True
        case Row(parts) | Choice(parts):
            return any(map(_asserts, parts))
        case Repeat(_, _, body):
            return _asserts(body)
        case One():
            return False


class _Walk:
    """Counts paths, and gathers the runs that a search could read again and again, with what must match before each."""

    def __init__(self) -> None:
        self.runs: list[tuple[Chars, tuple[Node, ...]]] = []

    def paths(
        self, node: Node, after: _After, before: tuple[Node, ...] = (), *, in_loop: bool = False
    ) -> int:
        match node:
            case One():
                return 1
            case Row(parts):
                counts = []
                for place in reversed(range(len(parts))):
                    counts.append(
                        self.paths(parts[place], after, (*before, *parts[:place]), in_loop=in_loop)
                    )
                    after = after.before(parts[place])
                return _few(prod(counts))
            case Choice(branches):
                counts = [self.paths(branch, after, before, in_loop=in_loop) for branch in branches]
                leads = [_leading(branch, after) for branch in branches]
                return _few(
                    max(
                        sum(
                            count
                            for other, count in zip(leads, counts, strict=True)
                            if not _apart(lead, other)
                        )
                        for lead in leads
                    )
                )
            case Look(inside):
                if _longest(inside) == inf:
                    if in_loop:
                        raise NotProven("an unbounded look-ahead at every step of a repeat")
                    self.runs.append((_alphabet(inside), before))
                return min(1, self.paths(inside, _After(fallible=True), before, in_loop=in_loop))
            case Repeat(least, most, body, possessive):
                if most == 1 and possessive:  # an atomic group: once left, it is not entered again
                    return min(1, self.paths(body, _After(fallible=True), before, in_loop=in_loop))
                if most == inf:
                    return self._unbounded(node, after, before, in_loop=in_loop)
                within = (
                    _After(_first(body) | after.first, after.longest + _longest(node), True)
                    if most > 1
                    else after
                )
                paths = self.paths(body, within, before, in_loop=in_loop or most > 1)
                if paths == 1 and (possessive or not _first(body) & after.first):
                    return 1
                return _few(sum(paths**count for count in range(least, int(most) + 1)))

    def _unbounded(
        self, node: Repeat, after: _After, before: tuple[Node, ...], *, in_loop: bool
    ) -> int:
        first = _first(node.body)
        if _nullable(node.body):
            raise NotProven("an unbounded repeat of something that may be empty")
        if self.paths(node.body, _After(first | after.first, inf, True), before, in_loop=True) > 1:
            raise NotProven("an unbounded repeat of something that can match in several ways")
        if first & after.first and not node.possessive and (after.longest == inf or in_loop):
            raise NotProven(
                "an unbounded repeat that may be left anywhere, and what follows is unbounded"
            )
        if after.fallible or node.least > LARGEST_COUNT:
            self.runs.append((_alphabet(node.body), before))
        return 1


def _few(paths: int) -> int:
    if paths > MOST_PATHS:
        raise NotProven(f"more than {MOST_PATHS} ways to match from one place")
    return paths


def _leading(node: Node, after: _After) -> list[Chars]:
    """What the first characters must be, as far as that is one set for each place."""
    match node:
        case One(chars):
            return [chars]
        case Row(parts):
            found: list[Chars] = []
            for place, part in enumerate(parts):
                if not isinstance(part, One | Look | Row):
                    rest = after.before(Row(parts[place:]))
                    return (
                        [*found, rest.first]
                        if not _nullable(Row(parts[place:])) or rest.first
                        else found
                    )
                found += _leading(part, _After())
            return found
        case _:
            return [after.before(node).first]


def _apart(one: list[Chars], other: list[Chars]) -> bool:
    return any(not a & b for a, b in zip(one, other, strict=False))


def _escapes(node: Node, run: Chars) -> bool:
    """Whether matching this needs a character that is not of the run."""
    match node:
        case One(chars):
            return not chars & run
        case Row(parts):
            return any(_escapes(part, run) for part in parts)
        case Choice(branches):
            return all(_escapes(branch, run) for branch in branches)
        case Repeat(least, _, body):
            return least > 0 and _escapes(body, run)
        case Look():
            return False


def _lookaheads_after_loops(node: Node) -> bool:
    """Whether an unbounded look-ahead may be tried anew at each step back out of an unbounded repeat."""
    if not isinstance(node, Row):
        return False
    loose = False
    for part in node.parts:
        if loose and isinstance(part, Look) and _longest(part) == inf:
            return True
        loose = loose or (
            _longest(part) == inf
            and not isinstance(part, Look)
            and not (isinstance(part, Repeat) and part.possessive)
        )
        if any(_lookaheads_after_loops(inner) for inner in _inner(part)):
            return True
    return False


def _inner(node: Node) -> tuple[Node, ...]:
    match node:
        case Row():
            return (node,)
        case Choice(branches):
            return branches
        case Repeat(_, _, body) | Look(body):
            return (body,)
        case One():
            return ()


def prove(pattern: str | bytes, flags: int = 0, *, anchored: bool = False) -> None:
    """Raise `NotProven` unless matching is linear; `anchored`: only `match` and `fullmatch` are called."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    parsed = parser.parse(text, flags & ~(re.UNICODE if isinstance(pattern, bytes) else 0))
    near = {
        chr(min(max(code + by, 0), 0x10FFFF)) for code in _mentioned(parsed) for by in (-1, 0, 1)
    }
    tree = _tree(parsed, parsed.state.flags, SAMPLE | near)
    for branch in _alternatives(tree):
        if _lookaheads_after_loops(branch):
            raise NotProven("an unbounded look-ahead after an unbounded repeat")
        walk = _Walk()
        walk.paths(branch, _After())
        if not anchored:
            _prove_searched(branch, walk.runs)


def _alternatives(tree: Node) -> list[Node]:
    while isinstance(tree, Row) and len(tree.parts) == 1:
        tree = tree.parts[0]
    return (
        [leaf for branch in tree.branches for leaf in _alternatives(branch)]
        if isinstance(tree, Choice)
        else [tree]
    )


def _prove_searched(branch: Node, runs: Iterable[tuple[Chars, tuple[Node, ...]]]) -> None:
    first, excluded = _first(branch), NONE
    for part in branch.parts if isinstance(branch, Row) else ():
        if not isinstance(part, Look):
            break
        excluded |= part.excludes
    if excluded >= WORD_BOUNDARY and first <= WORD:
        excluded |= WORD
    for run, before in runs:
        if not run <= excluded and not any(_escapes(part, run) for part in before):
            raise NotProven(
                f"a run is read from each of its places ({''.join(sorted(run - excluded))[:8]!r})"
            )
