"""docs/benchmarks.md and its plots, wholly from a result: no figure is typed by hand."""

from collections.abc import Callable
from math import log
from pathlib import Path

from . import plot

MODES = ("semantic", "keyword", "hybrid")
READING = Path(__file__).with_name("reading.md")
Cell = Callable[[dict], str]


def write(results: dict, docs: Path) -> None:
    for name, text in pages(results).items():
        (docs / name).write_text(text)


def pages(results: dict) -> dict[str, str]:
    """By their place under docs/."""
    kinds = ("ours", "engine", "product")
    results = results | {"peers": dict(sorted(results["peers"].items(), key=lambda entry: (kinds.index(entry[1]["kind"]), entry[0].lower())))}
    counts = sorted({int(count) for peer in results["peers"].values() for count in peer["runs"]})
    made, largest = {}, counts[-1]
    parts = [_head(results), _who(results)]
    for count in counts:
        parts += [f"## {count:,} notes", *_of(results, count)]
    for mode in MODES:
        rows = sorted(((name, results["peers"][name]["kind"], run[mode]["p50"]) for name, run in _runs(results, largest)
                       if "p50" in run.get(mode, {})), key=lambda row: row[2])
        if rows:
            made[f"pictures/bench-{mode}.svg"] = plot.bars(f"{mode.capitalize()} search, {largest:,} notes, p50 in ms", rows)
            parts.append(f"![{mode} search, p50](pictures/bench-{mode}.svg)")
    parts += [_exponents(results, counts), *_quality(results), *_grown(results), _targets(results, largest), READING.read_text().strip()]
    made["benchmarks.md"] = "\n\n".join(part for part in parts if part) + "\n"
    return made


def _head(results: dict) -> str:
    m = results["machine"]
    return f"""# Benchmarks

Made by `make bench` from `benchmarks/results/last.json`: Commonplace and what one might pick instead, at the same work on one
machine. {m['date']}, revision {m['revision']}, {m['cores']} cores, {m['memory_gib']} GiB, {m['system']}, Python {m['python']};
load before the run: {m['load_before']}. What single parts were measured to cost while they were built is in [measured](measured.md).

Notes are pieces of 180 words of the text and source of installed Python packages, their vectors those of the `static` embedder
(256 dimensions): injected into engines, served on loopback to products. Questions are runs of six words out of the notes. A narrow
scope is one of 200 groups. Times are in ms, p50 / p95, as the caller waits; *cpu* is processor time of all the peer's processes a
call, one client. A dash: it does not do that."""


def _who(results: dict) -> str:
    lines = ["## Who was measured", "", "| | version | reached by | install, s | install, MB | remark |", "|---|---|---|---|---|---|"]
    for name, peer in results["peers"].items():
        told = peer["install"]
        first, *_ = told.get("packages", ["this revision"])
        over = next((run["over"] for run in peer["runs"].values() if "over" in run), "–")
        failed = "; ".join(f"{int(count):,} notes: {_line(run['failed'])}" for count, run in peer["runs"].items() if "failed" in run)
        left = "; ".join(f"{int(count):,} notes left out: {run['left_out']}" for count, run in peer["runs"].items() if "left_out" in run)
        short = "; ".join(f"of {int(count):,} notes {run['kept']} were there when time was up, figures are for those"
                          for count, run in peer["runs"].items() if "failed" not in run and run.get("kept", int(count)) < int(count))
        said = "; ".join(filter(None, [peer["remark"], _line(told.get("failed", "")), short, failed, left]))
        lines.append(f"| {name} | {first.partition('==')[2] or first} | {over} | {_figure(told.get('seconds'))} | "
                     f"{_figure(told.get('mb'))} | {said} |")
    lines += ["", "Installing is without a cache of wheels, beyond numpy and psutil, and depends on the way to the index."]
    return "\n".join(lines)


def _of(results: dict, count: int) -> list[str]:
    search = {mode: _times(mode) for mode in MODES} | {f"{mode}, cpu": _part(mode, "cpu_ms") for mode in MODES}
    narrow = {mode: _times(f"{mode}_scoped") for mode in MODES} | {
        "recall@10": lambda run: _figure(run.get("recall"), 3), "within the scope": lambda run: _figure(run.get("recall_scoped"), 3)}
    many = {f"{mode}, 16 clients": _part(f"{mode}_16", "calls_per_s") for mode in MODES}
    alone = {f"{mode}, 1 client": lambda run, mode=mode: _figure(1000 / run[mode]["p50"] if run.get(mode, {}).get("p50") else None) for mode in MODES}
    writing = {"add": _times("add"), "add, cpu": _part("add", "cpu_ms"), "bulk, notes/s": _part("bulk", "per_s"),
               "bulk, cpu ms a note": _part("bulk", "cpu_ms"), "get": _times("get"), "delete": _times("delete"),
               "deleted, yet found": lambda run: str(run.get("deleted_still_found", "–"))}
    keeping = {"start, s": lambda run: _figure(run.get("start_s")), "restart and first answer, s": lambda run: _figure(run.get("restart_s")),
               "memory, MB": lambda run: _figure(run.get("memory_mb")), "disk, MB": lambda run: _figure(run.get("disk_mb"))}
    return [_table(results, count, title, cells) for title, cells in (
        ("Search", search), ("Search in a narrow scope, and recall against exact", narrow), ("Calls a second", alone | many),
        ("Writing", writing), ("Keeping", keeping))]


def _runs(results: dict, count: int) -> list[tuple[str, dict]]:
    found = ((name, peer["runs"].get(str(count), {})) for name, peer in results["peers"].items())
    return [(name, run) for name, run in found if "memory_mb" in run]


def _table(results: dict, count: int, title: str, cells: dict[str, Cell]) -> str:
    lines = [f"### {title}, {count:,} notes", "", "| | " + " | ".join(cells) + " |", "|---" * (len(cells) + 1) + "|"]
    for name, run in _runs(results, count):
        row = [cell(run) for cell in cells.values()]
        if any(figure != "–" for figure in row):
            shown = f"**{name}**" if results["peers"][name]["kind"] == "ours" else name
            lines.append(f"| {shown} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def _times(call: str) -> Cell:
    return lambda run: f"{_figure(run[call]['p50'])} / {_figure(run[call]['p95'])}" if "p50" in run.get(call, {}) else "–"


def _part(call: str, what: str) -> Cell:
    return lambda run: _figure(run.get(call, {}).get(what))


def _figure(value: float | None, places: int | None = None) -> str:
    if value is None:
        return "–"
    if places is not None:
        return f"{value:.{places}f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:300]


def exponent(points: list[tuple[float, float]]) -> float | None:
    """b of cost = a x notes^b, by least squares on the logarithms."""
    if len(points) < 2:
        return None
    xs, ys = [log(x) for x, _ in points], [log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def _exponents(results: dict, counts: list[int]) -> str:
    lines = ["## How cost grows with the number of notes", "",
             "The exponent b of p50 = a x notes^b: 0 is no growth, 1 is as fast as the notes.", "",
             "| | " + " | ".join(MODES) + " |", "|---" * (len(MODES) + 1) + "|"]
    for name, peer in results["peers"].items():
        fits = []
        for mode in MODES:
            runs = ((count, peer["runs"].get(str(count), {})) for count in counts)
            fits.append(exponent([(count, run[mode]["p50"]) for count, run in runs
                                  if "p50" in run.get(mode, {}) and run.get("kept") == count]))
        if any(fit is not None for fit in fits):
            lines.append(f"| {name} | " + " | ".join(_figure(fit, 2) for fit in fits) + " |")
    return "\n".join(lines)


def _quality(results: dict) -> list[str]:
    parts = []
    for name, judged in results.get("quality", {}).items():
        lines = [f"### {name}: {judged['documents']:,} documents, {judged['queries']:,} questions", "",
                 "| | mode | nDCG@10 | recall@10 | MRR@10 |", "|---|---|---|---|---|"]
        for peer, modes in judged["rows"].items():
            if "failed" in modes:
                lines.append(f"| {peer} | failed: {_line(modes['failed'])} | – | – | – |")
                continue
            lines += [f"| {peer} | {mode} | " + " | ".join(f"{modes[mode][m]:.3f}" for m in ("ndcg@10", "recall@10", "mrr@10")) + " |"
                      for mode in MODES if mode in modes]
        parts.append("\n".join(lines))
    return ["## Retrieval quality\n\nThe same `static` vectors for all; keyword and hybrid are each one's own. Ours is what "
            "`commonplace eval` says, which embeds titles and headings with the text.", *parts] if parts else []


def _grown(results: dict) -> list[str]:
    if "growth" not in results:
        return ["## A million sections\n\nNot a part of this run: `python -m benchmarks.side_by_side --growth 1000000`."]
    lines = ["## Many sections in one store", "", "| | sections | added, a second | first answer, s | memory, MB | disk, MB | scope | "
             + " | ".join(MODES) + " |", "|---" * (7 + len(MODES)) + "|"]
    for engine, run in results["growth"].items():
        if "failed" in run:
            lines.append(f"| {engine} | failed: {_line(run['failed'])} |" + " – |" * 8)
        for scope, modes in run.get("scopes", {}).items():
            lines.append(f"| {engine} | {run['sections']:,} | " + " | ".join(
                _figure(run[key]) for key in ("per_s", "first_answer_s", "memory_mb", "disk_mb")) + f" | {scope} | "
                + " | ".join(_times(mode)(modes) for mode in MODES) + " |")
    return ["\n".join(lines)]


def _targets(results: dict, count: int) -> str:
    lines = [f"## How far from the targets, {count:,} notes and fewer", "",
             "Against products: ours over MCP should be 5 x faster than the fastest of them. Against engines: ours should take no",
             "more than 2 x the fastest. Below, how many times as fast as the fastest other each of ours is (p50); below 1 it is slower.",
             "A peer that was not given as many notes is compared at its largest common number.", "",
             "| call | notes | ours | the fastest other | times as fast | target | met |", "|---|---|---|---|---|---|---|"]
    for call in (*MODES, "add", "get", "delete"):
        for ours, kind, target in (("Commonplace over MCP", "product", 5.0), ("Commonplace, store on SQLite", "engine", 0.5)):
            found = _closest(results, call, ours, kind)
            if found:
                notes, mine, other, theirs = found
                ratio = theirs / mine
                lines.append(f"| {call} | {notes:,} | {ours} | {other} | {_figure(ratio)} | {target:g} | {'yes' if ratio >= target else 'no'} |")
    return "\n".join(lines)


def _closest(results: dict, call: str, ours: str, kind: str) -> tuple[int, float, str, float] | None:
    counts = sorted({int(count) for peer in results["peers"].values() for count in peer["runs"]}, reverse=True)
    for count in counts:
        runs = {name: run[call]["p50"] for name, run in _runs(results, count) if "p50" in run.get(call, {})}
        others = {name: p50 for name, p50 in runs.items() if results["peers"][name]["kind"] == kind}
        if ours in runs and others:
            best = min(others, key=lambda name: others[name])
            return count, runs[ours], best, others[best]
    return None
