"""What txtai's own server asks for vectors: the same embedding server that other products are given."""

import json
import os
import urllib.request

import numpy as np


def vectors(texts) -> np.ndarray:
    asked = urllib.request.Request(
        os.environ["BENCH_EMBEDDING"] + "/embeddings",
        json.dumps({"input": list(texts)}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked) as answer:
        return np.array([row["embedding"] for row in json.load(answer)["data"]], np.float32)
