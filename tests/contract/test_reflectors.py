"""What reads memories out of notes: the rules on this machine, and a language model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.adapters.chat.anthropic import AnthropicModel
from commonplace.adapters.reflect.by_model import ModelReflector
from commonplace.adapters.reflect.rules import reflect
from commonplace.errors import TransformFailed
from commonplace.model import Proposal
from commonplace.settings import Settings
from tests.messages_service import MessagesService
from tests.stub_service import KEY, running

pytestmark = pytest.mark.anyio

CALL = """# Planning call

[10:02] Alice: We decided to use Postgres instead of MySQL. Because the whole team knows it.
[10:03] Bob: I'll write the migration script by Friday.
[10:04] Alice: What if we cached the results in Redis?
[10:05] Bob: We haven't decided on the queue yet.

## Action items
- [ ] Bump the driver to 3.2
- [x] Tell the operators about it
- Check the nightly backups

Decision: drop support for Python 3.9

Deploying works like this:
1. Tag the release.
2. Run the smoke tests.
3. Push to production.

Redis: the connection pool broke when there were more than 50 workers, so the limit was
raised at night. Never set the pool below max_workers * 2.
"""


CHAT = """user: I'm Nour, a nurse in Aarhus, and I work 32 hours a week, can you make me a plan?
Here is what I tried:
```python
weeks = 12

assistant: You should run 5 km on Mondays. We decided to rest on Sundays. TODO: buy shoes.

**User:** I've set a goal to run 10 km by 1 June, but I'm not sure how. Always answer in Danish units.

assistant: Never skip the warm-up. I will remind Nour in 3 days.

user: Thanks! That makes sense. We decided to keep the old bike. How far is 26 miles?
"""


def by_title(found: list[Proposal]) -> dict[str, Proposal]:
    return {proposal.title: proposal for proposal in found}


CALL_OF_TWO = "Alice: We take Postgres. It is known.\nAlice: Bye."

SNIPPETS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "reflections.jsonl")
    .read_text()
    .splitlines()
]


class TestLocal:
    @pytest.mark.parametrize(
        ("name", "least", "most"),
        [
            ("first", 0.9, 0),
            ("second", 0.85, 0),
            ("third", 0.85, 0),
            ("fourth", 0.8, 1),
            ("fifth", 0.55, 1),
        ],
    )
    def test_what_short_notes_hold_is_found_and_called_by_its_kind(
        self, name: str, least: float, most: int
    ) -> None:
        """Snippets of many walks of life, none of which the rules were written with; docs/lab/retrieval.md tells how they did."""
        wanted = right = extra = 0
        for snippet in SNIPPETS:
            if snippet["set"] == name:
                found = reflect(snippet["text"], 12)
                wanted += len(snippet["expected"])
                right += sum(
                    any(
                        p.kind == kind and words.lower() in f"{p.title} {p.content}".lower()
                        for p in found
                    )
                    for kind, words in snippet["expected"]
                )
                extra += max(0, len(found) - len(snippet["expected"]))
        assert right / wanted >= least and extra <= most

    def test_talk_is_mostly_left_alone(self) -> None:
        talk = [snippet["text"] for snippet in SNIPPETS if snippet["set"] == "talk"]
        assert sum(len(reflect(text, 12)) for text in talk) <= 2

    def test_a_call_is_read_as_a_person_reads_it(self) -> None:
        found = by_title(reflect(CALL, 50))
        kinds = {title: proposal.kind for title, proposal in found.items()}
        assert kinds["Use Postgres instead of MySQL"] == "decision"
        assert kinds["I'll write the migration script by Friday"] == "task"
        assert kinds["What if we cached the results in Redis?"] == "idea"
        assert kinds["Bump the driver to 3.2"] == "task"
        assert kinds["Check the nightly backups"] == "task"
        assert kinds["Drop support for Python 3.9"] == "decision"
        assert kinds["Deploying works like this"] == "procedure"
        assert kinds["Never set the pool below max_workers * 2"] == "pattern"
        assert not any("Tell the operators" in title for title in kinds)  # it is done

    def test_reasons_stay_with_what_they_are_reasons_for(self) -> None:
        decision = by_title(reflect(CALL, 50))["Use Postgres instead of MySQL"]
        assert (
            decision.content
            == "We decided to use Postgres instead of MySQL. Because the whole team knows it."
        )
        assert decision.confidence > 0.85

    def test_what_is_open_is_no_decision(self) -> None:
        for text in (
            "We haven't decided on the queue yet.",
            "Should we go with Kafka or stay with Postgres?",
            "It is still to be decided whether we use gRPC.",
            "Before we decided to move, prices rose.",
        ):
            assert all(proposal.kind != "decision" for proposal in reflect(text, 10)), text

    def test_steps_are_one_procedure(self) -> None:
        steps = by_title(reflect(CALL, 50))["Deploying works like this"]
        assert [quote.text for quote in steps.quotes] == [
            "Tag the release.",
            "Run the smoke tests.",
            "Push to production.",
        ]

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("It turns out that the index needs 4 GB of memory.", "claim"),
            ("The API allows 100 requests per minute.", "claim"),
            ("The import stalled because the disk was full.", "episode"),
            ("Make sure to close the session before the transaction ends.", "pattern"),
            ("The plan is to ship the adapter in March.", "plan"),
            ("To rotate the keys, run the rotate command on the primary.", "procedure"),
            ("Maybe we could shard by tenant.", "idea"),
            ("TODO: write the release notes", "task"),
            ("We agreed that releases happen on Tuesdays.", "decision"),
        ],
    )
    def test_cues(self, text: str, kind: str) -> None:
        assert [proposal.kind for proposal in reflect(text, 10)] == [kind]

    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("Decision: use Postgres.", ["decision"]),
            ("- [ ] write docs\n- [x] call Bob", ["task"]),
            ("Action items:\n- write docs\n- none", ["task"]),
            ("We agreed.", []),
        ],
    )
    def test_two_words_are_enough_where_it_is_said_what_they_are(
        self, text: str, kinds: list[str]
    ) -> None:
        assert [proposal.kind for proposal in reflect(text, 10)] == kinds

    def test_agenda_lines_are_the_topic_of_what_is_below_them(self) -> None:
        minutes = """## Present
* Ada will be late

## Agenda
* Archive the old mirror [#812](https://example.org/812)
  * No objections
    from those present
  * Bo will write
    to the hosts
* Pick a logo [#7](https://example.org/7)
"""
        found = reflect(minutes, 10)
        assert [(one.kind, one.content) for one in found] == [
            ("decision", "Archive the old mirror: No objections from those present"),
            ("task", "Archive the old mirror: Bo will write to the hosts"),
        ]
        assert [quote.text[:13] for quote in found[1].quotes] == ["Bo will write", "Archive the o"]

    @pytest.mark.parametrize(
        "text",
        [
            "This week was quiet, and the approved list of hosts hangs on the wall.",
            "He showed how to make sure of it.",
            "It needs to be repaired.",
            "No update this week.",
        ],
    )
    def test_cues_in_passing_and_sentences_that_need_others_bring_nothing(self, text: str) -> None:
        assert reflect(text, 10) == []

    def test_a_sentence_that_needs_the_one_before_carries_it(self) -> None:
        [found] = reflect("The mirror in Oslo is old. It needs to be replaced by June.", 10)
        assert found.content == "The mirror in Oslo is old. It needs to be replaced by June."

    def test_who_it_is_may_stand_in_the_sentence_before(self) -> None:
        [found] = reflect("* Ines drew the new floor plan. Paul will check her figures.", 10)
        assert found.kind == "task"
        assert found.content == "Ines drew the new floor plan. Paul will check her figures."

    def test_of_a_conversation_only_what_the_user_says_counts(self) -> None:
        found = reflect(CHAT, 10)
        assert [(one.kind, one.content) for one in found] == [
            ("claim", "I'm Nour, a nurse in Aarhus, and I work 32 hours a week"),
            ("plan", "I've set a goal to run 10 km by 1 June"),
            ("pattern", "Always answer in Danish units."),
            ("decision", "We decided to keep the old bike."),
        ]
        for one in found:
            for quote in one.quotes:
                assert CHAT[quote.start : quote.end] == quote.text

    def test_small_talk_teaches_nothing(self) -> None:
        assert (
            reflect("Hi! How are you? We went for a walk. The weather was nice.\n\nBye.", 10) == []
        )

    def test_said_twice_is_one_candidate_with_both_places(self) -> None:
        [found] = reflect("We decided to use Rust.\n\nLater:\n\nWe decided to use Rust.", 10)
        assert len(found.quotes) == 2

    def test_the_surest_come_first_and_no_more_than_asked_for(self) -> None:
        found = reflect(CALL, 3)
        assert len(found) == 3
        assert found == reflect(CALL, 50)[:3]
        assert [one.confidence for one in found] == sorted(
            (one.confidence for one in found), reverse=True
        )

    @given(
        st.text(alphabet=st.sampled_from("We decided to. :-*[]x\n#1aI'll TODO?!。é"), max_size=400)
    )
    def test_quotes_are_the_text_itself(self, text: str) -> None:
        for proposal in reflect(text, 50):
            assert 0 <= proposal.confidence <= 1
            assert proposal.title.strip()
            assert proposal.content.strip()
            assert proposal.quotes
            for quote in proposal.quotes:
                assert text[quote.start : quote.end] == quote.text


class TestModel:
    @pytest.fixture
    def service(self) -> Iterator[MessagesService]:
        with running(MessagesService()) as ready:
            yield ready

    async def ask(
        self, service: MessagesService, says: Any, limit: int = 12, text: str = CALL_OF_TWO
    ) -> list[Proposal]:
        service.says = says
        settings = Settings(model="anthropic", model_key=KEY, model_url=service.url)
        model = AnthropicModel(settings, pauses=(0.01,), timeout=2.0)
        try:
            return await ModelReflector(model).reflect("Call", text, limit)
        finally:
            await model.close()

    async def test_it_quotes_the_text_and_not_the_model(self, service: MessagesService) -> None:
        [found] = await self.ask(
            service,
            {
                "memories": [
                    {
                        "kind": "decision",
                        "title": "Use Postgres",
                        "content": "The team takes Postgres, which it knows.",
                        "confidence": 1.4,
                        "reason": "chosen",
                        "sentences": [1, 0, 99, -1],
                    },
                    {
                        "kind": "claim",
                        "title": "Invented",
                        "content": "Not in the text.",
                        "confidence": 0.9,
                        "reason": "",
                        "sentences": [],
                    },
                ]
            },
        )
        assert (found.kind, found.title, found.confidence) == ("decision", "Use Postgres", 1.0)
        assert [quote.text for quote in found.quotes] == ["We take Postgres.", "It is known."]
        assert "[0] Alice: We take Postgres." in service.material

    async def test_not_more_than_asked_for_and_the_surest_first(
        self, service: MessagesService
    ) -> None:
        memories = [
            {
                "kind": "claim",
                "title": f"T{n}",
                "content": "c",
                "confidence": n / 10,
                "reason": "",
                "sentences": [0],
            }
            for n in range(5)
        ]
        assert [one.title for one in await self.ask(service, {"memories": memories}, limit=2)] == [
            "T4",
            "T3",
        ]

    async def test_it_reads_only_what_the_user_said(self, service: MessagesService) -> None:
        await self.ask(service, {"memories": []}, text=CHAT)
        assert "We decided to keep the old bike." in service.material
        assert "warm-up" not in service.material

    async def test_an_answer_of_another_shape_is_a_failure(self, service: MessagesService) -> None:
        service.text = '{"other": 1}'
        with pytest.raises(TransformFailed, match="unexpected answer"):
            await self.ask(service, {"memories": []})
