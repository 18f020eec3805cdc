"""Tags and task types come from whole words and their forms."""

import pytest

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


def tagged(
    title: str,
    content: str = "",
    technologies: tuple[str, ...] = (),
    explicit: tuple[str, ...] = (),
    project: tuple[str, ...] = (),
) -> tuple[str, ...]:
    return tags(title, content, technologies, explicit, project)


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


def test_technologies_name_domains_and_explicit_tags_come_first() -> None:
    assert tagged(
        "Callback", technologies=("python", "fastapi"), explicit=("login", "Backend")
    ) == ("login", "Backend")
    assert tagged("Callback", technologies=("Next.js", "PostgreSQL")) == ("frontend", "database")


def test_of_the_projects_tags_those_that_the_text_names() -> None:
    assert tagged("Send invoices by mail", project=("invoice", "gdpr", "mail-gateway", "Mail")) == (
        "invoice",
        "Mail",
    )
    assert common_tags([("a", "b"), ("a",), ("a", "c"), ("c",)]) == ["a", "c"]


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
    ],
)
def test_the_title_decides_the_type(title: str, content: str, kind: str | None) -> None:
    assert task_type(title, content) == kind
