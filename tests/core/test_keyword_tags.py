"""Tags and task types come from whole words and their forms."""

from dataclasses import replace

import pytest

from commonplace.model import Item
from commonplace.model.tags import choose_tags, derive_tags
from commonplace.text.keyword_tags import common_tags, tags, task_type

# The contract's words, written down a second time.
DOMAINS = {
    "frontend": "ui ux component react vue css layout responsive",
    "backend": "api server endpoint route middleware database",
    "database": "sql postgres mongodb redis migration schema",
    "devops": "deploy docker kubernetes ci cd terraform",
    "testing": "test pytest jest e2e integration mock",
    "security": "auth permission role encryption vulnerability",
    "performance": "optimize cache lazy memoize bundle profil",
}
TYPES = {
    "bug": "fix bug issue error broken crash",
    "refactor": "refactor clean reorganize simplify",
    "research": "research investigate explore spike poc",
    "chore": "update upgrade bump dependency config",
    "feature": "add implement create build new",
}

ITEM = Item("id", "library", "public", "content", "task", "text", "Title")


def tagged(
    title: str,
    content: str = "",
    technologies: tuple[str, ...] = (),
    project: tuple[str, ...] = (),
) -> list[str]:
    return tags(title, content, technologies, project)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_keyword_names_its_domain(domain: str) -> None:
    assert [
        word for word in DOMAINS[domain].split() if domain not in tagged(f"The {word} thing")
    ] == []


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Handle callback and build the guide", "frontend"),  # ui in build and guide
        ("The latest contest", "testing"),
        ("Capital city therapist", "backend"),
        ("Special precision", "devops"),  # ci in special
        ("Parole and enrolment", "security"),
        ("The author wrote", "security"),  # shares a stem with authorization
        ("A quick response", "frontend"),  # shares a stem with responsive
        ("Rapid placement", "backend"),
    ],
)
def test_parts_of_words_name_nothing(text: str, domain: str) -> None:
    assert domain not in tagged(text)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Profiling the importer", "performance"),
        ("We profiled it", "performance"),
        ("Caching profiles", "performance"),
        ("Migrating tables", "database"),
        ("Deployment of v2", "devops"),
        ("Encrypted at rest", "security"),
        ("Implement GitHub OAuth callback", "security"),
        ("Authentication service", "security"),
        ("Write more tests", "testing"),
        ("New API endpoints", "backend"),
        ("CI/CD", "devops"),
        ("renderUIComponent crashes", "frontend"),
    ],
)
def test_forms_of_a_word_name_its_domain(text: str, domain: str) -> None:
    assert domain in tagged(text)


def test_technologies_name_domains() -> None:
    assert tagged("Callback", technologies=("python", "fastapi")) == ["backend"]
    assert tagged("Callback", technologies=("Next.js", "PostgreSQL")) == ["frontend", "database"]


def test_of_the_projects_tags_those_that_the_text_names() -> None:
    assert tagged("Send invoices by mail", project=("invoice", "gdpr", "mail-gateway", "Mail")) == [
        "invoice",
        "Mail",
    ]
    assert common_tags([("a", "b"), ("a",), ("a", "c"), ("c",)]) == ["a", "c"]


@pytest.mark.parametrize(
    ("content", "domains"),
    [
        ("The server restarts. Nobody knows why. Perhaps the cache is full.", ["backend"]),
        ("It restarts. Nobody knows why. The cache is full, so empty the cache.", ["performance"]),
        ("It restarts. Nobody tests it. There are no tests of `test_cache` and `test_cache`.", []),
        ("- Empty the cache\n- Restart the server\n", ["performance"]),
        ("It restarts.\n\n```sh\ndocker restart\ndocker ps\n```\n", []),
        ("# Docker\n\nIt restarts. See the schema.", []),
    ],
)
def test_the_content_names_domains_first_or_twice(content: str, domains: list[str]) -> None:
    assert tagged("Nightly restarts", content) == domains


def test_what_begins_with_profil_is_about_performance() -> None:
    assert tagged("Profilierung", "") == ["performance"]


def test_automatic_tags_stand_behind_chosen_ones_and_stay_away_once_removed() -> None:
    item = replace(ITEM, tags=("login", "Backend"))
    item = replace(item, **derive_tags(item, ["backend", "testing", "gdpr", "GDPR"]))
    assert item.tags == ("login", "Backend", "testing", "gdpr")
    assert item.own_tags == ("login", "Backend")
    item = replace(item, **choose_tags(item, ["login", "testing"]))
    assert item.own_tags == ("login", "testing")
    item = replace(item, **derive_tags(item, ["gdpr", "frontend"]))
    assert item.tags == ("login", "testing", "frontend")
    item = replace(item, **derive_tags(item, []))
    assert item.tags == ("login", "testing")
    assert replace(item, **choose_tags(item, ["gdpr"])).own_tags == ("gdpr",)


@pytest.mark.parametrize("kind", TYPES)
def test_every_keyword_names_its_task_type(kind: str) -> None:
    assert [word for word in TYPES[kind].split() if task_type(f"{word} it", "") != kind] == []


@pytest.mark.parametrize(
    ("title", "content", "kind"),
    [
        ("Implement GitHub OAuth callback", "5. Issue session token", "feature"),
        ("The build is broken", "", "bug"),
        ("Add tests for broken logins", "", "feature"),
        ("Login page", "Crashes with an error; fix it and create a test", "bug"),
        ("Bumping dependencies", "", "chore"),
        ("Newspaper building", "", "feature"),  # a form of build; news is not new
        ("Address book", "The bookkeeper renewed", None),
        ("Address book", "Names and streets. We may add numbers, adding towns.", None),
        ("Address book", "Names and streets. Add numbers, then add towns.", "feature"),
    ],
)
def test_the_title_decides_the_type(title: str, content: str, kind: str | None) -> None:
    assert task_type(title, content) == kind
