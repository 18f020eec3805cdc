import os
from pathlib import Path

from drivers.base import Base
from qdrant_edge import (
    Bm25,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    Fusion,
    MatchValue,
    Modifier,
    PayloadSchemaType,
    Point,
    Prefetch,
    Query,
    QueryRequest,
    SearchParams,
    UpdateOperation,
)
from work import Work


class Driver(Base):
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    durable = "no: mapped memory, flushed at the end"

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.bm25 = work, Bm25()
        breadth = os.environ.get("BENCH_BREADTH")
        self.params = SearchParams(hnsw_ef=int(breadth)) if breadth else None
        place = folder / "shard"
        if place.exists():
            self.shard = EdgeShard.load(str(place))
            return
        place.mkdir()
        self.shard = EdgeShard.create(
            str(place),
            EdgeConfig(
                vectors={"dense": EdgeVectorParams(size=work.dimensions, distance=Distance.Dot)},
                sparse_vectors={"words": EdgeSparseVectorParams(modifier=Modifier.Idf)},
            ),
        )
        self.shard.update(UpdateOperation.create_field_index("part", PayloadSchemaType.Keyword))

    def bulk(self, notes: range) -> None:
        self.shard.update(
            UpdateOperation.upsert_points(
                [
                    Point(
                        n,
                        {
                            "dense": self.work.vectors[n].tolist(),
                            "words": self.bm25.embed_document(self.work.texts[n]),
                        },
                        {"part": Work.group(n), "text": self.work.texts[n]},
                    )
                    for n in notes
                ]
            )
        )

    def settle(self, patience: float) -> None:
        self.shard.optimize()

    def search_text(self, mode, text, vector, group=None):
        only = Filter(must=[FieldCondition(key="part", match=MatchValue(group))]) if group else None
        near = Query.Nearest(vector.tolist(), using="dense") if mode != "keyword" else None
        words = (
            Query.Nearest(self.bm25.embed_query(text), using="words")
            if mode != "semantic"
            else None
        )
        if mode == "hybrid":
            request = QueryRequest(
                limit=10,
                query=Fusion.Rrf(k=60),
                with_payload=True,
                prefetches=[
                    Prefetch(limit=50, query=near, params=self.params, filter=only),
                    Prefetch(limit=50, query=words, filter=only),
                ],
            )
        else:
            request = QueryRequest(
                limit=10,
                query=near or words,
                params=self.params if near else None,
                filter=only,
                with_payload=True,
            )
        return [int(point.id) for point in self.shard.query(request) if point.payload["text"]]

    def get(self, n: int) -> None:
        assert self.shard.retrieve([n], with_payload=True, with_vector=False)[0].payload["text"]

    def delete(self, n: int) -> None:
        self.shard.update(UpdateOperation.delete_points([n]))

    def close(self) -> None:
        self.shard.flush()
        self.shard.close()
