"""What the figures amount to: how far from the targets, how far from what this machine can do at all, and what was mended."""

from statistics import median

from .figures import MODES, called, figure, line, mark, runs

MCP, REST, LIBRARY, STORE = (
    "Commonplace over MCP",
    "Commonplace over REST",
    "Commonplace as a library",
    "Commonplace, store on SQLite",
)
FASTER = {"product": 5.0, "engine": 0.5}
ENOUGH = 0.97  # recall@10 of an engine that is compared as one that finds what there is


def targets(results: dict) -> str:
    lines = [
        "## Targets",
        "",
        "Commonplace should be 5 times as fast as the fastest product that is reached the same way (MCP, REST or library), and take at most",
        "twice the time of the fastest engine. Semantic search is also compared with the fastest engine whose recall@10 is at least",
        f"{ENOUGH}. The ratio is Commonplace's speed divided by the other's, at the largest number of notes that both were given (a row with",
        "fewer notes says so): by p50, or by calls or notes per second; below 1, Commonplace is slower. For interleaved rows it is the",
        "median of the rounds; *apart* marks rows that were not interleaved, whose ratio includes changes in the machine's speed. *Nobody*",
        "marks a target that a bare server or the embedder alone cannot meet here.",
        "",
        "| call | notes | ours | fastest other | ratio | target | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for call, what in (
        *((mode, "p50") for mode in MODES),
        *((f"{mode}_scoped", "p50") for mode in MODES),
        *((f"{mode}_16", "calls_per_s") for mode in MODES),
        ("add", "p50"),
        ("bulk", "per_s"),
        ("get", "p50"),
        ("delete", "p50"),
    ):
        approximate = not call.startswith("keyword") and call.startswith(MODES)
        for ours, kind, reached, recall in (
            (MCP, "product", "MCP", 0.0),
            (REST, "product", "REST", 0.0),
            (LIBRARY, "product", "library", 0.0),
            (STORE, "engine", "library", 0.0),
            *([(STORE, "engine", "library", ENOUGH)] if approximate else []),
        ):
            if found := _closest(results, call, what, ours, kind, reached, recall):
                count, name, ratio, in_turns = found
                told = called(call) + (f", recall from {recall} on" if recall else "")
                theirs = results["peers"][name]["runs"][str(count)]
                met = (
                    "yes"
                    if ratio >= FASTER[kind]
                    else "nobody"
                    if _beyond(results, call, theirs, reached)
                    else "no"
                )
                lines.append(
                    f"| {told} | {count:,} | {ours}{mark(results['peers'][ours]['runs'][str(count)], count)} | "
                    f"{name}{mark(theirs, count)} | {figure(ratio)}{'' if in_turns else ', apart'} | {FASTER[kind]:g} | {met} |"
                )
    return "\n".join(lines)


def _closest(
    results: dict, call: str, what: str, ours: str, kind: str, reached: str, recall: float
) -> tuple[int, str, float, bool] | None:
    counts = sorted(
        {int(count) for peer in results["peers"].values() for count in peer["runs"]}, reverse=True
    )
    for count in counts:
        found = {name: run for name, run in runs(results, count) if run.get(call, {}).get(what)}
        others = [
            name
            for name, run in found.items()
            if results["peers"][name]["kind"] == kind
            and run["over"] == reached
            and run.get("recall", 0.0) >= recall
        ]
        if ours in found and others:
            ratio, in_turns, name = min(
                (*_times(found[ours], found[name], call, what), name) for name in others
            )
            return count, name, ratio, in_turns
    return None


def _times(ours: dict, theirs: dict, call: str, what: str) -> tuple[float, bool]:
    """As fast, and whether round by round: rows that took turns were measured at the same moment."""
    same = ours.get("measured") == theirs.get("measured")
    pairs = [
        pair
        for pair in zip(ours[call].get("rounds", ()), theirs[call].get("rounds", ()), strict=False)
        if same and all(pair)
    ]
    each = [mine / other for mine, other in pairs or [(ours[call][what], theirs[call][what])]]
    return median(each) ** (-1 if what == "p50" else 1), bool(pairs)


def _beyond(results: dict, call: str, theirs: dict, reached: str) -> bool:
    """Whether five times as fast as a product on a wire is faster than what every call or note takes at least."""
    if "limits" not in results or reached == "library":
        return False
    hello, alone = results["limits"]["calls"], results["limits"]["embedder"]
    if call == "bulk":
        return FASTER["product"] * theirs["bulk"]["per_s"] > alone["per_s"]
    if call.endswith("_16"):
        return FASTER["product"] * theirs[call]["calls_per_s"] > hello["calls_per_s"]
    return theirs[call]["p50"] / FASTER["product"] < hello["p50"] + (
        alone["alone_ms"] if call == "add" else 0.0
    )


def limits(results: dict, counts: list[int]) -> str:
    if "limits" not in results:
        return ""
    found, when = results["limits"], results["limits"]["measured"]
    rate, width = found["memory"]["gb_per_s"], found["memory"]["bytes_a_vector"]
    hello, alone = found["calls"], found["embedder"]
    lines = [
        "## Lower bounds on this machine",
        "",
        "Work that no implementation can avoid, measured the same way: one pass over the stored vectors (16 bits per number; memory is read",
        f"at {figure(rate)} GB/s), a bare Starlette server that parses and writes a line of JSON, and the embedder alone.",
        f"Measured {when['date']} at load {when['load']}.",
        "",
        "| what | notes | ours | bound | ratio |",
        "|---|---|---|---|---|",
    ]
    for count in counts:
        rows = dict(runs(results, count))
        store, mcp, wires = (
            rows.get(STORE, {}),
            rows.get(MCP, {}),
            {"MCP": rows.get(MCP, {}), "REST": rows.get(REST, {})},
        )
        pairs = [
            (
                "semantic search of the store, p50 ms; one pass over the vectors",
                store.get("semantic", {}).get("p50"),
                1000 * count * width / (rate * 1e9),
            ),
            *(
                (f"{call} over {wire}, p50 ms; hello", row.get(call, {}).get("p50"), hello["p50"])
                for wire, row in wires.items()
                for call in ("get", *MODES)
            ),
            *(
                (
                    f"get over {wire}, cpu ms; hello",
                    row.get("get", {}).get("cpu_ms"),
                    hello["cpu_ms"],
                )
                for wire, row in wires.items()
            ),
            (
                "one note over MCP, p50 ms; embedding it",
                mcp.get("add", {}).get("p50"),
                alone["alone_ms"],
            ),
            (
                "many notes at once, cpu ms a note; embedding them",
                mcp.get("bulk", {}).get("cpu_ms"),
                alone["cpu_ms"],
            ),
        ]
        lines += [
            f"| {what} | {count:,} | {figure(ours)} | {figure(limit)} | {figure(ours / limit)} |"
            for what, ours, limit in pairs
            if ours
        ]
        served = mcp.get("keyword_16", {}).get("calls_per_s")
        if served:
            lines.append(
                f"| keyword over MCP, calls a second with 16 clients; hello | {count:,} | {figure(served)} | {figure(hello['calls_per_s'])} | "
                f"{figure(hello['calls_per_s'] / served)} |"
            )
    return "\n".join(lines)


def mended(changes: list[dict]) -> str:
    """`changes`: what was changed, what was measured, before, after, and the revision."""
    if not changes:
        return ""
    lines = [
        "## Improvements",
        "",
        "Each change, with the same measurement before and after it.",
        "",
        "| change | measured | before | after | ratio | revision |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line(change['change'])} | {line(change['measured'])} | {figure(change['before'])} | {figure(change['after'])} | "
        f"{figure(max(change['before'], change['after']) / min(change['before'], change['after']))} | {change['revision']} |"
        for change in changes
    ]
    return "\n".join(lines)
