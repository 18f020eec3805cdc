"""Plain words: phrases that people did not understand stay out of what they read.

Each was replaced by a standard term. The files are those whose texts people see: the web app,
messages, the help of the command line, and the documentation.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/commonplace"
WEB = SOURCE / "interfaces/web"
PAGES = [
    *sorted(WEB.glob("templates/*.html")),
    *sorted(WEB.glob("static/*.js")),
    *sorted(WEB.glob("pages/*.py")),
    WEB / "app.py",
    WEB / "live.py",
    WEB / "request.py",
]
COMMAND_LINE = [ROOT / "tests/goldens/help.txt", *sorted(SOURCE.glob("interfaces/cli/*.py"))]
MESSAGES = [
    file
    for folder in ("model", "text", "database", "store", "adapters", "core", "interfaces/actions")
    for file in sorted((SOURCE / folder).rglob("*.py"))
]
DOCS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/how-to/*.md")),
    *sorted(ROOT.glob("docs/reference/*.md")),
]

# Where a phrase is a usual one elsewhere, it stands with the marks that it had around it.
OLD = """
Paste an address
Filter by title, address
Nothing is like that
Nothing lies in this folder
An empty library
Whoever may write
will be deleted in a moment
With those chosen
"or a new one"
Tags, by commas
with commas between them
>Take out<
Back in use
"In use"
Not searched
Notes on texts
} chosen
>Further<
Neighbourhood
As work
Search finds it
Note it
search and agents find it too
>Joined<
>Alike<
What about it?
Note this
Go on where you stopped
Smaller letters
Larger letters
You see the library as
Make it<
the words that are chosen
choose nothing
of that only what search finds
It may also write
Good for
for good<
for good{
is made. This is the one time
<th>May<
<th>Sees<
It sees
Make a token for
stands for a token
the first call has come
good once
"not needed"
Make a link
Nobody is waiting
who belongs here
may do everything
somebody who
>Now <
Change it<
"Change it"
Set it"
End it
to say that you mean it
only for names, not for numbers
More about it
Add it<
over the graph door
Who does it
What it waits for
These wait for each other
Wait no more
Wait for it
Read memories out of notes
what is worth keeping
It has to be of a project
Change it first
Keep it"
Being done
How far
being written down
being indexed
Take that away
What is joined or alike
do not belong together
too old to be sent
There is no address for
Name at least one folder
what is to become of
An empty shelf
Nothing waits
>Nothing found<
Once more
It is tried again
Slow down
That did not work
Something broke
Fetch again
Keep web pages, files of any kind
whether everything is in order
Which lot of them
How many to pass over
Only where the drawing leads
stands below that from now on
Follow a feed no more
Say what to look for
Found by their words from now on
web address
E-mail
""".strip().splitlines()


def lines(file: Path) -> list[tuple[int, str]]:
    """Return the lines of a file with their numbers; of Python only the texts, not docstrings."""
    if file.suffix != ".py":
        return list(enumerate(file.read_text().splitlines(), 1))
    tree = ast.parse(file.read_text())
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        (node.lineno, f'"{node.value}"')
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]


TEXTS = {file: lines(file) for file in [*PAGES, *COMMAND_LINE, *MESSAGES, *DOCS]}


@pytest.mark.parametrize("phrase", OLD)
def test_a_phrase_that_was_replaced_is_not_used_again(phrase: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file, said in TEXTS.items()
        for number, line in said
        if phrase in line
    ]
    assert not found, "\n".join(found)
