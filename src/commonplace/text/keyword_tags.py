"""Tags and type of a task, by the words of its description and their forms."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import Stemmer

from commonplace.text import prose
from commonplace.text.query_terms import for_embedding

_PROFIL = "profil"  # a keyword that is the beginning of words
_WORD, _SPELLED = re.compile(r"[^\W_]+"), re.compile(r"\w+")  # parts of identifiers, whole ones

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
_KEYWORDS = frozenset(
    chain.from_iterable(map(str.split, chain(DOMAINS.values(), TYPES.values(), _ALSO.values())))
)
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
    title: str, content: str, technologies: Sequence[str], project: Iterable[str]
) -> list[str]:
    """Return domains of the words and technologies, then tags of the project that the text
    names."""
    in_title, in_content = words_of(title), _telling(content)
    tools = words_of(" ".join(technologies)) + ["".join(words_of(name)) for name in technologies]
    named = _matches(DOMAINS, [*in_title, *filter(_is_keyword, in_content), *tools]) | {
        domain for domain, names in TECHNOLOGIES.items() if {*tools} & {*names.split()}
    }
    stems = set(_stems((*in_title, *in_content)))
    of_project = [
        tag for tag in project if (own := set(_stems(tuple(words_of(tag))))) and own <= stems
    ]
    return [domain for domain in DOMAINS if domain in named] + of_project


def task_type(title: str, content: str) -> str | None:
    """Return the type that the title's first word names, else its others, else the content."""
    in_title = words_of(title)
    for said in (in_title[:1], in_title, list(filter(_is_keyword, _telling(content)))):
        if found := _matches(TYPES, said):
            return next(name for name in TYPES if name in found)
    return None


def _telling(content: str) -> list[str]:
    """Return the words of the first sentence, and those said twice."""
    found = list(prose.running(content)) or prose.sentences(content)
    said = [_SPELLED.findall(sentence.lower()) for sentence in found]
    counts = Counter(chain.from_iterable(said))
    return [*chain(*said[:1]), *(word for word, count in counts.items() if count > 1)]


def _is_keyword(word: str) -> bool:
    """Whether it is spelled as in the lists: other forms tell little unless a title has them."""
    return word in _KEYWORDS or word.startswith(_PROFIL)


def common_tags(tag_lists: Iterable[Sequence[str]], least: int = 2) -> list[str]:
    """Tags that several have, the commonest first."""
    return [
        tag
        for tag, count in Counter(tag for tag_list in tag_lists for tag in tag_list).most_common()
        if count >= least
    ]


def _matches(table: Mapping[str, str], said: Sequence[str]) -> set[str]:
    plain = {one for one in said if one not in _OTHERS}
    stems = {*_stems(tuple(plain)), *(_PROFIL for one in plain if one.startswith(_PROFIL))}
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
