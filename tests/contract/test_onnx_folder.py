"""The onnx embedder, with models that are made here: the vector of a token is its row of a table."""

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from commonplace.adapters.embed import make_embedder, minilm_onnx
from commonplace.adapters.embed.minilm_onnx import _message as message
from commonplace.errors import ConfigurationError
from commonplace.ports import Embedder
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio
WORDS = ["[UNK]", "[CLS]", "query:", "passage:", "ferry", "tide", "bread"]
TABLE = np.eye(len(WORDS), dtype=np.float32)


def make_model(folder: Path, **configs: object) -> Path:
    """Write a model of one operator, which looks tokens up, and its tokenizer."""
    folder.mkdir(parents=True)
    graph = minilm_onnx._Graph({}, folder)
    output = graph.node("Gather", graph.tensor(TABLE), "input_ids")
    ids = message((1, "input_ids"), (2, message((1, message((1, 7))))))
    proto = message(
        *((1, node) for node in graph.nodes),
        (2, "lookup"),
        *((5, tensor) for tensor in graph.tensors),
        (11, ids),
        (12, message((1, output), (2, message((1, message((1, 1))))))),
    )
    opset = message((1, ""), (2, 18))
    (folder / "model.onnx").write_bytes(message((1, 9), (7, proto), (8, opset)))
    numbers = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", None, [("[CLS]", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in ({"config.json": {"hidden_size": len(WORDS)}} | configs).items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
    return folder


def embedder_of(folder: Path) -> Embedder:
    return make_embedder(Settings(embedder="onnx", embedder_model=str(folder)))


def tokens(*words: str) -> np.ndarray:
    return np.isin(WORDS, words).astype(np.float32) / len(words) ** 0.5


async def test_the_mean_of_the_tokens_is_the_default(tmp_path: Path) -> None:
    embedder = embedder_of(make_model(tmp_path / "some-model"))
    assert embedder.dimensions == len(WORDS)
    (one, two), none = await embedder.documents([["ferry tide", "bread"], []])
    assert one == pytest.approx(tokens("[CLS]", "ferry", "tide"))
    assert two == pytest.approx(tokens("[CLS]", "bread"))
    assert none.shape == (0, len(WORDS))
    assert await embedder.query("ferry tide") == pytest.approx(one)


async def test_the_first_token_where_the_model_says_so(tmp_path: Path) -> None:
    pooling = {"1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    embedder = embedder_of(make_model(tmp_path / "some-model", **pooling))
    assert await embedder.query("ferry") == pytest.approx(tokens("[CLS]"))


@pytest.mark.parametrize(
    ("name", "configs"),
    [
        ("multilingual-e5-small", {}),
        (
            "own",
            {
                "config_sentence_transformers.json": {
                    "prompts": {"query": "query: ", "document": "passage: "}
                }
            },
        ),
    ],
)
async def test_prompts_stand_before_texts(
    tmp_path: Path, name: str, configs: dict[str, object]
) -> None:
    embedder = embedder_of(make_model(tmp_path / name, **configs))
    assert await embedder.query("ferry") == pytest.approx(tokens("[CLS]", "query:", "ferry"))
    ((passage,),) = await embedder.documents([["ferry"]])
    assert passage == pytest.approx(tokens("[CLS]", "passage:", "ferry"))


async def test_another_pooling_has_another_stamp(tmp_path: Path) -> None:
    pooling = {"1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    mean = embedder_of(make_model(tmp_path / "a" / "model"))
    same = embedder_of(make_model(tmp_path / "b" / "model"))
    other = embedder_of(make_model(tmp_path / "c" / "model", **pooling))
    assert mean.stamp == same.stamp != other.stamp


async def test_texts_longer_than_the_model_reads_are_cut(tmp_path: Path) -> None:
    configs = {"sentence_bert_config.json": {"max_seq_length": 3}}
    embedder = embedder_of(make_model(tmp_path / "short", **configs))
    assert await embedder.query("ferry tide bread") == pytest.approx(
        tokens("[CLS]", "ferry", "tide")
    )


@pytest.mark.parametrize("lacking", ["model.onnx", "tokenizer.json", "config.json"])
def test_what_is_missing_is_named(tmp_path: Path, lacking: str) -> None:
    folder = make_model(tmp_path / "model")
    (folder / lacking).unlink()
    with pytest.raises(ConfigurationError, match=lacking):
        embedder_of(folder)
