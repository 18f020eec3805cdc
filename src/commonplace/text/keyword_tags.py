"""Tags and type of a task, by the words of its description and their forms."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import Stemmer

from commonplace.text.query_terms import for_embedding

MOST_TAGS = 50
_WORD = re.compile(r"[^\W_]+")

DOMAINS = {
    "frontend": "ui ux component react vue css layout responsive",
    "backend": "api server endpoint route middleware database",
    "database": "sql postgres mongodb redis migration schema",
    "devops": "deploy docker kubernetes ci cd terraform",
    "testing": "test pytest jest e2e integration mock",
    "security": "auth permission role encryption vulnerability",
    "performance": "optimize cache lazy memoize bundle profil",
}
TYPES = {  # where a title has words of several, the first of these
    "bug": "fix bug issue error broken crash",
    "refactor": "refactor clean reorganize simplify",
    "research": "research investigate explore spike poc",
    "chore": "update upgrade bump dependency config",
    "feature": "add implement create build new",
}
# Forms that a stemmer does not bring together, and short for something that has a long form.
_ALSO = {
    "security": "oauth oauth2 authn authz authenticate authentication authorize authorise "
    "authorization authorisation",
    "performance": "optimise optimisation",
    "database": "postgresql",
    "frontend": "uis",
    "backend": "apis",
    "devops": "k8s",
    "refactor": "cleanup reorganise",
    "chore": "configure configuration",
    "bug": "hotfix bugfix",
}
# Words whose stem is that of a keyword, and which mean something else.
_OTHERS = frozenset(
    {
        "response",
        "responses",
        "respond",
        "responded",
        "responsible",
        "responsibility",
        "depend",
        "depends",
        "depended",
        "depending",
    }
)
TECHNOLOGIES = {
    "frontend": "react vue svelte angular css scss sass tailwind tailwindcss html htmx nextjs "
    "nuxt vite remix astro solidjs",
    "backend": "fastapi django flask starlette express nestjs rails spring laravel graphql grpc "
    "nginx uvicorn celery",
    "database": "sql postgres postgresql mysql mariadb sqlite mongodb redis cassandra dynamodb "
    "surrealdb elasticsearch "
    "sqlalchemy alembic prisma pgvector clickhouse duckdb neo4j",
    "devops": "docker kubernetes k8s terraform ansible helm jenkins aws gcp azure pulumi argocd "
    "podman prometheus grafana",
    "testing": "pytest jest playwright cypress selenium hypothesis vitest mocha junit",
    "security": "oauth oauth2 jwt keycloak vault saml openid oidc auth0 argon2 webauthn tls",
}


def words_of(text: str) -> list[str]:
    return _WORD.findall(for_embedding(text).lower())


def tags(
    title: str,
    content: str,
    technologies: Sequence[str],
    explicit: Sequence[str],
    project: Iterable[str],
) -> tuple[str, ...]:
    """Return explicit tags, then domains of the words and technologies, then tags of the project
    that the text names."""
    said = words_of(f"{title} {content}")
    tools = words_of(" ".join(technologies)) + ["".join(words_of(name)) for name in technologies]
    named = _matches(DOMAINS, said + tools) | {
        domain for domain, names in TECHNOLOGIES.items() if {*tools} & {*names.split()}
    }
    stems = set(_stems(tuple(said)))
    of_project = [
        tag for tag in project if (own := set(_stems(tuple(words_of(tag))))) and own <= stems
    ]
    seen: dict[str, str] = {}
    for tag in [*explicit, *(domain for domain in DOMAINS if domain in named), *of_project]:
        seen.setdefault(tag.casefold(), tag)
    return tuple(seen.values())[: max(MOST_TAGS, len(explicit))]


def task_type(title: str, content: str) -> str | None:
    """Return the type that the title's first word names, else its others, else the content."""
    in_title = words_of(title)
    for said in (in_title[:1], in_title):
        if found := _matches(TYPES, said):
            return next(name for name in TYPES if name in found)
    said = [one for one in words_of(content) if one not in _OTHERS]
    counts = Counter(_stems(tuple(said)))
    found_often = {
        name: sum(counts[stem] for stem in _keywords(keywords)) for name, keywords in TYPES.items()
    }
    best = max(TYPES, key=lambda name: found_often[name])
    return best if found_often[best] else None


def common_tags(tag_lists: Iterable[Sequence[str]], least: int = 2) -> list[str]:
    """Tags that several have, the commonest first."""
    return [
        tag
        for tag, count in Counter(tag for tag_list in tag_lists for tag in tag_list).most_common()
        if count >= least
    ]


def _matches(table: Mapping[str, str], said: Sequence[str]) -> set[str]:
    plain = {one for one in said if one not in _OTHERS}
    stems = set(_stems(tuple(plain)))
    return {
        name
        for name, keywords in table.items()
        if plain & {*_ALSO.get(name, "").split()} or stems & _keywords(keywords)
    }


@lru_cache(maxsize=256)
def _keywords(keywords: str) -> frozenset[str]:
    return frozenset(_stems(tuple(keywords.split())))


def _stems(said: tuple[str, ...]) -> list[str]:
    # Not shared between threads: a stemmer has state, and creating one takes microseconds.
    stems: list[str] = Stemmer.Stemmer("english", 0).stemWords(list(said))
    return stems
