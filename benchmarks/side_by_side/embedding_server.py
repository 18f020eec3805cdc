"""The `static` embedder behind the address that products know how to ask: POST /v1/embeddings, as OpenAI has it.

python -m benchmarks.side_by_side.embedding_server PORT
"""

import base64
import sys

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.settings import Settings


def make_app() -> Starlette:
    embedder = StaticEmbedder(Settings())

    async def embeddings(request: Request) -> JSONResponse:
        asked = await request.json()
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = (await embedder.documents([texts]))[0].astype(np.float32)
        if (more := int(asked.get("dimensions") or 0) - vectors.shape[1]) > 0:
            vectors = np.pad(vectors, ((0, 0), (0, more)))  # zeros change no cosine
        as_text = asked.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": n,
                "embedding": base64.b64encode(v.tobytes()).decode() if as_text else v.tolist(),
            }
            for n, v in enumerate(vectors)
        ]
        used = sum(map(len, texts)) // 4
        return JSONResponse(
            {
                "object": "list",
                "data": data,
                "model": asked.get("model", "static"),
                "usage": {"prompt_tokens": used, "total_tokens": used},
            }
        )

    async def models(request: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": [{"id": "static", "object": "model"}]})

    return Starlette(
        routes=[Route("/v1/embeddings", embeddings, methods=["POST"]), Route("/v1/models", models)]
    )


if __name__ == "__main__":
    uvicorn.run(make_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
