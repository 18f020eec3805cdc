"""How figures are written, and which runs count."""

MODES = ("semantic", "keyword", "hybrid")


def runs(results: dict, count: int) -> list[tuple[str, dict]]:
    found = ((name, peer["runs"].get(str(count), {})) for name, peer in results["peers"].items())
    return [(name, run) for name, run in found if "memory_mb" in run]


def mark(run: dict, count: int) -> str:
    few = f" ({run['kept']:,} notes)" if run.get("kept", count) < count else ""
    return few + ("†" if run.get("measured", {}).get("dirty") else "")


def figure(value: float | None, places: int | None = None) -> str:
    if value is None:
        return "–"
    if places is not None:
        return f"{value:.{places}f}"
    return (
        f"{value:,.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2f}"
        if value >= 0.1
        else f"{value:.3f}"
    )


def called(kind: str) -> str:
    return kind.replace("_scoped", ", narrow scope").replace("_16", ", 16 clients")


def line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:300]
