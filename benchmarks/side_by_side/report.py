"""docs/lab/benchmarks.md and its plots, wholly from a result: no figure is typed by hand."""

import json
from collections.abc import Callable
from math import log
from pathlib import Path

from . import plot, verdict
from .figures import MODES, called, figure, line, mark, runs
from .peers import ABSENT

HERE = Path(__file__).parent
READING = HERE / "reading.md"
MENDED = HERE.parent / "results" / "mended.json"
RESTLESS = 0.03  # of a core: what disturbs the others
Cell = Callable[[dict], str]


def write(results: dict, docs: Path) -> None:
    for name, text in pages(results).items():
        (docs / name).write_text(text)


def pages(results: dict) -> dict[str, str]:
    """By their place under docs/."""
    kinds = ("ours", "engine", "product")
    results = results | {
        "peers": dict(
            sorted(
                results["peers"].items(),
                key=lambda entry: (kinds.index(entry[1]["kind"]), entry[0].lower()),
            )
        )
    }
    counts = sorted(
        {
            int(count)
            for peer in results["peers"].values()
            for count, run in peer["runs"].items()
            if "memory_mb" in run
        }
    )
    parts, made = [_head(results), _who(results), _absent(), _when(results)], {}
    for count in counts:
        parts += [f"## {count:,} notes", *_of(results, count)]
    parts.append("## Scaling and throughput")
    for mode in MODES:
        for name, title, drawn in (*_grows(results, counts, mode), *_serves(results, counts, mode)):
            made[f"pictures/{name}.svg"] = drawn
            parts.append(f"![{title}](../pictures/{name}.svg)")
    mended = json.loads(MENDED.read_text()) if MENDED.exists() else []
    parts += [
        _exponents(results, counts),
        *_quality(results),
        *_grown(results),
        verdict.targets(results),
        verdict.limits(results, counts),
        verdict.mended(mended),
        READING.read_text().strip(),
    ]
    made["lab/benchmarks.md"] = "\n\n".join(part for part in parts if part) + "\n"
    return made


def _head(results: dict) -> str:
    m = results["machine"]
    return f"""# Benchmarks

`make bench` writes this page from `benchmarks/results/last.json`. It compares Commonplace with alternatives that do the same
work on one machine: {m["cores"]} cores, {m["memory_gib"]} GiB, {m["system"]}, Python {m["python"]}. Rows that are measured together
are interleaved. Some rows are measured again without the others, so each has its own date, revision and load (below).
[Measurements](measured.md) has the cost of single components.

The notes are pieces of 180 words from the text and source of installed Python packages. Their vectors come from the `static`
embedder (256 dimensions): they are injected into engines and served over loopback to products. Queries are runs of six words from
the notes; each asks for ten hits. Keyword search matches any of the words. Commonplace also scores neighbouring words and parts of
identifiers; stemming and stop words are each product's own. A narrow scope is one of 200 groups. Times are in ms, p50 / p95, as
the caller sees them. *cpu* is the processor time per call of all processes of the peer, with one client and without the embedding
server. A dash means that the peer does not support the operation or that there was no time for it. A row with fewer notes than
requested says so; † marks code that was not committed."""


def _who(results: dict) -> str:
    lines = [
        "## Systems",
        "",
        "| | version | reached by | a search brings | on disk when answered | install, s | install, MB | remark |",
        "|---" * 8 + "|",
    ]
    for name, peer in results["peers"].items():
        told = peer["install"]
        first, *_ = told.get("packages", ["this revision"])
        said: dict = next((run for run in peer["runs"].values() if "over" in run), {})
        lines.append(
            f"| {name} | {first.partition('==')[2] or first} | "
            + " | ".join(said.get(key, "–") for key in ("over", "answers", "durable"))
            + f" | {figure(told.get('seconds'))} | {figure(told.get('mb'))} | {peer['remark']} |"
        )
    lines += [
        "",
        "Packages are installed without a wheel cache, in addition to numpy and psutil; times depend on the network. *On disk*: whether a",
        "write is flushed to disk (`fsync`) before it is answered, as seen in the system calls of the process.",
    ]
    return "\n".join(lines)


def _absent() -> str:
    return "\n".join(["Not measured:", "", *(f"- {name}: {why}." for name, why in ABSENT.items())])


def _when(results: dict) -> str:
    lines = [
        "## Dates and revisions",
        "",
        "| | notes | when | revision | load before | what is missing |",
        "|---|---|---|---|---|---|",
    ]
    for name, peer in results["peers"].items():
        for count, run in sorted(peer["runs"].items(), key=lambda entry: int(entry[0])):
            when = run.get("measured", {})
            kept = (
                f"{run['kept']:,} notes were there when time was up"
                if run.get("kept", int(count)) < int(count)
                else ""
            )
            left = f"no time for: {'; '.join(map(called, run['left']))}" if "left" in run else ""
            restless = (
                f"{run['busy_at_rest']:.0%} of a core busy while others were asked"
                if run.get("busy_at_rest", 0.0) > RESTLESS
                else ""
            )
            missing = "; ".join(
                filter(
                    None,
                    [
                        kept,
                        left,
                        restless,
                        run.get("late"),
                        run.get("left_out"),
                        line(run.get("failed", "")),
                    ],
                )
            )
            lines.append(
                f"| {name} | {int(count):,} | {when.get('date', '–')} | {when.get('revision', '–')}{'†' if when.get('dirty') else ''} | "
                f"{when.get('load', '–')} | {missing} |"
            )
    return "\n".join(lines)


def _of(results: dict, count: int) -> list[str]:
    search = {mode: _times(mode) for mode in MODES} | {
        f"{mode}, cpu": _part(mode, "cpu_ms") for mode in MODES
    }
    narrow = {mode: _times(f"{mode}_scoped") for mode in MODES} | {
        "recall@10": lambda run: figure(run.get("recall"), 3),
        "within the scope": lambda run: figure(run.get("recall_scoped"), 3),
    }
    many = {f"{mode}, 16 clients": _part(f"{mode}_16", "calls_per_s") for mode in MODES}
    alone = {
        f"{mode}, 1 client": lambda run, mode=mode: figure(
            1000 / run[mode]["p50"] if run.get(mode, {}).get("p50") else None
        )
        for mode in MODES
    }
    writing = {
        "add": _times("add"),
        "add, cpu": _part("add", "cpu_ms"),
        "bulk, notes/s": _part("bulk", "per_s"),
        "bulk, cpu ms a note": _part("bulk", "cpu_ms"),
        "get": _times("get"),
        "delete": _times("delete"),
        "deleted, yet found": lambda run: str(run.get("deleted_still_found", "–")),
        "on disk when answered": lambda run: run.get("durable", "–").partition(":")[0],
    }
    keeping = {
        "start, s": lambda run: figure(run.get("start_s")),
        "restart and first answer, s": lambda run: figure(run.get("restart_s")),
        "memory, MB": lambda run: figure(run.get("memory_mb")),
        "disk, MB": lambda run: figure(run.get("disk_mb")),
    }
    return [
        _table(results, count, title, cells)
        for title, cells in (
            ("Search", search),
            ("Search in a narrow scope, and recall against exact", narrow),
            ("Calls a second", alone | many),
            ("Writing", writing),
            ("Storage", keeping),
        )
    ]


def _table(results: dict, count: int, title: str, cells: dict[str, Cell]) -> str:
    lines = [
        f"### {title}, {count:,} notes",
        "",
        "| | " + " | ".join(cells) + " |",
        "|---" * (len(cells) + 1) + "|",
    ]
    for name, run in runs(results, count):
        row = [cell(run) for cell in cells.values()]
        if any(cell not in ("–", "yes", "no", "not looked at") for cell in row):
            shown = f"**{name}**" if results["peers"][name]["kind"] == "ours" else name
            lines.append(f"| {shown}{mark(run, count)} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _times(call: str) -> Cell:
    return lambda run: (
        f"{figure(run[call]['p50'])} / {figure(run[call]['p95'])}"
        if "p50" in run.get(call, {})
        else "–"
    )


def _part(call: str, what: str) -> Cell:
    return lambda run: figure(run.get(call, {}).get(what))


def _points(results: dict, counts: list[int], name: str, mode: str) -> list[tuple[int, float]]:
    """Where it had all the notes."""
    found = ((count, results["peers"][name]["runs"].get(str(count), {})) for count in counts)
    return [
        (count, run[mode]["p50"])
        for count, run in found
        if "p50" in run.get(mode, {}) and run.get("kept") == count
    ]


def _grows(results: dict, counts: list[int], mode: str) -> list[tuple[str, str, str]]:
    rows = [
        (name, peer["kind"], points)
        for name, peer in results["peers"].items()
        if (points := _points(results, counts, name, mode))
    ]
    title = f"{mode.capitalize()} search: p50 in ms over the number of notes"
    return [(f"bench-{mode}", title, plot.lines(title, rows))] if rows else []


def _serves(results: dict, counts: list[int], mode: str) -> list[tuple[str, str, str]]:
    """At the largest number of notes that the whole product was given."""
    ours = [
        count
        for count in counts
        if "calls_per_s"
        in results["peers"]
        .get("Commonplace over MCP", {})
        .get("runs", {})
        .get(str(count), {})
        .get(f"{mode}_16", {})
    ]
    if not ours:
        return []
    rows = [
        (name, results["peers"][name]["kind"], run[f"{mode}_16"]["calls_per_s"])
        for name, run in runs(results, ours[-1])
        if "calls_per_s" in run.get(f"{mode}_16", {})
    ]
    title = f"{mode.capitalize()} search: calls a second with 16 clients, {ours[-1]:,} notes"
    return [(f"bench-{mode}-16", title, plot.bars(title, sorted(rows, key=lambda row: -row[2])))]


def exponent(points: list[tuple[int, float]]) -> float | None:
    """b of cost = a x notes^b, by least squares on the logarithms."""
    if len(points) < 2:
        return None
    xs, ys = [log(x) for x, _ in points], [log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mean_x) ** 2 for x in xs
    )


def _exponents(results: dict, counts: list[int]) -> str:
    lines = [
        "### Growth of cost with the number of notes",
        "",
        "The exponent b of p50 = a x notes^b: 0 means constant, 1 means linear.",
        "",
        "| | " + " | ".join(MODES) + " |",
        "|---" * (len(MODES) + 1) + "|",
    ]
    for name in results["peers"]:
        fits = [exponent(_points(results, counts, name, mode)) for mode in MODES]
        if any(fit is not None for fit in fits):
            lines.append(f"| {name} | " + " | ".join(figure(fit, 2) for fit in fits) + " |")
    return "\n".join(lines)


def _quality(results: dict) -> list[str]:
    parts = []
    for name, judged in results.get("quality", {}).items():
        lines = [
            f"### {name}: {judged['documents']:,} documents, {judged['queries']:,} questions",
            "",
            "| | mode | nDCG@10 | recall@10 | MRR@10 |",
            "|---|---|---|---|---|",
        ]
        for peer, modes in judged["rows"].items():
            if "failed" in modes:
                lines.append(f"| {peer} | failed: {line(modes['failed'])} | – | – | – |")
                continue
            lines += [
                f"| {peer} | {mode} | "
                + " | ".join(f"{modes[mode][m]:.3f}" for m in ("ndcg@10", "recall@10", "mrr@10"))
                + " |"
                for mode in MODES
                if mode in modes
            ]
        parts.append("\n".join(lines))
    return (
        [
            "## Retrieval quality\n\nAll systems use the same `static` vectors; keyword and hybrid scoring are their own. "
            "Commonplace is measured by `commonplace eval`, which embeds titles and headings with the text.",
            *parts,
        ]
        if parts
        else []
    )


def _grown(results: dict) -> list[str]:
    if "growth" not in results:
        return ['## A million sections\n\nNot measured yet: `make bench BENCH="--parts growth"`.']
    lines = [
        "## Many sections in one store",
        "",
        "Items have twenty sections each. Texts and vectors repeat, each vector with a little noise; twenty or more items are written at a",
        "time. *First answer*: from the start of a process to the result of a hybrid search, with the index file of an earlier process, and",
        "without it, when every row is read. Memory is that of all processes after the searches; cpu includes the database server.",
        "",
        "| | sections | added, a second | in the last tenth | cpu ms a section | first answer, s | of it our processor | every row read, s | "
        "memory, MB | disk, MB |",
        "|---" * 10 + "|",
    ]
    scopes = [
        "| | sections | scope | " + " | ".join(f"{mode} | {mode}, cpu" for mode in MODES) + " |",
        "|---" * (3 + 2 * len(MODES)) + "|",
    ]
    for engine, run in results["growth"].items():
        shown = f"{engine}{mark(run, run.get('sections', 0))}"
        if "failed" in run:
            lines.append(f"| {shown} | failed: {line(run['failed'])} |" + " – |" * 8)
            continue
        built = run["built"]
        lines.append(
            f"| {shown} | {run['sections']:,} | "
            + " | ".join(figure(built.get(key)) for key in ("per_s", "per_s_last_tenth", "cpu_ms"))
            + " | "
            + " | ".join(
                figure(run.get(key))
                for key in (
                    "first_answer_s",
                    "first_answer_cpu_s",
                    "all_read_s",
                    "memory_mb",
                    "disk_mb",
                )
            )
            + " |"
        )
        scopes += [
            f"| {shown} | {run['sections']:,} | {scope} | "
            + " | ".join(
                f"{_times(mode)(modes)} | {_part(mode, 'cpu_ms')(modes)}" for mode in MODES
            )
            + " |"
            for scope, modes in run["scopes"].items()
        ]
    short = [
        f"{engine} was to hold {run['asked_for']:,}; at the rate of the last tenth that takes "
        f"{figure(run['asked_for'] / run['built']['per_s_last_tenth'] / 60)} minutes."
        for engine, run in results["growth"].items()
        if "built" in run and run["built"]["sections"] < run["asked_for"]
    ]
    when = "; ".join(
        f"{engine}: built {run['built']['measured']['date']} at load {run['built']['measured']['load']}, asked "
        f"{run['measured']['date']} at load {run['measured']['load']}, revision {run['measured']['revision']}"
        for engine, run in results["growth"].items()
        if "built" in run
    )
    return ["\n".join(lines), "\n".join(scopes), " ".join([*short, f"When: {when}."])]
