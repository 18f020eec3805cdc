"""Questions answered without a language model, with the embedders `local` and `static`.

On xquad_en: questions whose first cited sentence contains an answer, and those of which one of
three does; then, of the questions of the other sets asked of the same library, those that are
refused. On docs_rag and chats: questions whose first citation lies in a relevant document, of
those that are answered, and how many are. Nothing was measured before.
"""

import json
from dataclasses import replace

from benchmarks.quality.retrieval import EMBEDDERS, data, remembering_app
from commonplace.core.transfer.evaluation import Evaluation, read_set
from commonplace.model import CitedAnswer, no_advance

SET, OTHERS, DOCUMENTS = "xquad_en", ("docs_rag", "code_rag", "cranfield", "chats"), 2
Row = tuple[str, str, str]


async def figures() -> list[Row]:
    rows = []
    for embedder in EMBEDDERS:
        rows += await _answers(embedder)
        for name in ("docs_rag", "chats"):
            rows += await _documents(name, embedder)
    return rows


async def _answers(embedder: str) -> list[Row]:
    judged = read_set(data() / SET)
    lines = (data() / SET / "answers.jsonl").read_text().splitlines()
    answers = {row["_id"]: row["answers"] for row in map(json.loads, lines)}
    async with remembering_app(embedder) as (services, caller):
        await Evaluation(services, caller).add(judged.documents, no_advance)
        while await services.worker.run_once():
            pass

        async def ask(question: str) -> CitedAnswer:
            return await services.ask.ask(caller, question[:2_000])

        first, three = 0, 0
        for query in judged.queries:
            said = [sentence.text.lower() for sentence in (await ask(query.text)).sentences]
            right = [any(answer.lower() in each for answer in answers[query.id]) for each in said]
            first, three = first + any(right[:1]), three + any(right)
        asked = len(judged.queries)
        rows = [
            (f"{SET}, {embedder}: first sentence", "", f"{first / asked:.1%} of {asked}"),
            (f"{SET}, {embedder}: one of three", "", f"{three / asked:.1%} of {asked}"),
        ]
        for other in OTHERS:
            queries = read_set(data() / other).queries
            refused = [(await ask(query.text)).weak for query in queries]
            told = f"{sum(refused) / len(refused):.1%} of {len(refused)}"
            rows.append((f"{SET}, {embedder}: refused, asked for {other}", "", told))
    return rows


async def _documents(name: str, embedder: str) -> list[Row]:
    judged = read_set(data() / name)
    async with remembering_app(embedder) as (services, caller):
        evaluation = Evaluation(services, caller)
        folders = await evaluation.add(judged.documents, no_advance)
        while await services.worker.run_once():
            pass
        relevant, answered = 0, 0
        for query in judged.queries:
            asking = caller
            if query.group is not None:
                asking = replace(caller, folders=frozenset({folders[query.group]}))
            answer = await services.ask.ask(asking, query.text[:2_000])
            if answer.citations:
                answered += 1
                document = evaluation._documents[answer.citations[0].passage.item_id]
                relevant += judged.judgements[query.id].get(document, 0) > 0
        told = f"{relevant / max(1, answered):.1%} of {answered} of {len(judged.queries)}"
        return [(f"{name}, {embedder}: first citation", "", told)]
