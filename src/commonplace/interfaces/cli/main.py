"""The `commonplace` command: its tree. A command is imported when it runs."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

import commonplace

GROUPS = {
    "trash": "Restore deleted items, or delete them for good.",
    "review": "Review candidate memories.",
    "task": "Manage tasks and epics.",
    "disk": "Publish summaries of items, and save those of others.",
    "feed": "Follow feeds and add their new entries.",
    "folder": "Manage folders.",
    "token": "Manage tokens of agents and scripts.",
    "oauth": "Connect clients with OAuth.",
    "oauth client": "Manage OAuth clients.",
    "user": "Manage people. Each has a library.",
    "admin": "For whoever runs the server.",
    "member": "Manage members: viewers read, members write, admins and owners also manage members.",
}
# The sections of the help, with the commands and groups in the order in which they are listed.
SECTIONS = {
    "Library": "add search ask list get edit tag move archive delete trash open history refresh "
    "retry folder feed crawl disk import export",
    "Memory": "remember reflect context related review",
    "Work": "task",
    "Server": "serve mcp worker connect token member user admin oauth setup doctor backup restore "
    "reextract reindex eval",
}
# Commands by the module that has them, with the first line of their help. Those of `generated` have
# the titles of their actions.
COMMANDS = {
    "server": {
        "serve": "Run the server: web app, MCP, REST and job workers.",
        "mcp": "Serve MCP over standard input and output, for desktop clients.",
        "worker": "Run jobs outside the server, on this or another machine.",
    },
    "items": {
        "add": "Add web pages, files, standard input or a note.",
        "get": "Show an item or entity in full.",
        "history": "List, show, compare or restore an item's earlier versions.",
        "refresh": "Fetch an item's page again.",
        "retry": "Retry failed work of an item: fetching, transcription, vectors, summary.",
        "disk publish": "Publish a disk, or unpublish it.",
        "disk save": "Save another person's disk, or remove it.",
    },
    "editing": {
        "edit": "Edit the text of an item, or mark a memory as superseded, wrong or stale.",
    },
    "organize": {
        "tag": "Add tags to an item, or remove them.",
        "move": "Move items to a folder.",
        "archive": "Archive items, or bring them back.",
        "open": "Open the library or an item in the browser.",
    },
    "memory": {
        "remember": "Remember a text, or add a project or another entity.",
        "reflect": "Extract candidate memories from notes or a transcript.",
        "related": "Show what an entity is linked to, or link it.",
        "task add": "Add a task or an epic.",
        "task list": "List tasks or epics, or suggest what to do next.",
        "task update": "Update a task or an epic, change its status, or add a note.",
    },
    "generated": {
        "search": "Search passages, or search entities and documents.",
        "ask": "Answer a question from the library.",
        "list": "List items, newest first, or list entities, newest first.",
        "review list": "List the review queue, or read a candidate.",
        "delete": "Delete an item.",
        "trash list": "List deleted items, newest first.",
        "trash restore": "Restore a deleted item.",
        "trash empty": "Delete everything in the trash for good, or delete an item in the trash "
        "for good.",
        "context": "Gather context for a goal.",
        "review accept": "Accept a candidate.",
        "review reject": "Reject a candidate.",
        "disk list": "List owned and saved disks, newest first.",
        "feed add": "Follow a feed.",
        "feed list": "List feeds.",
        "feed remove": "Unfollow a feed.",
        "crawl": "Crawl a site.",
        "folder list": "List the folders in the token's scope.",
        "folder create": "Create a folder.",
        "folder rename": "Rename a folder, or move it into another.",
        "folder delete": "Delete a folder.",
        "token create": "Create a token.",
        "token revoke": "Revoke a token.",
    },
    "people": {
        "token list": "List the library's tokens.",
        "user create": "Create a person with a library, and a token that can read and write.",
        "user link": "Print a sign-in link for the web app.",
        "member list": "List members and pending invitations.",
        "member invite": "Invite a person to the library, or withdraw an invitation.",
        "member role": "Change a member's role, or remove them.",
        "admin libraries": "List the libraries of this server, the newest first: names, sizes and "
        "jobs.",
    },
    "connect": {"connect": "Print how to connect a client, or change its configuration."},
    "oauth": {
        "oauth client create": "Create an OAuth client for a console that asks for a client id and "
        "secret.",
        "oauth client list": "List OAuth clients, also those that registered themselves.",
        "oauth client delete": "Delete an OAuth client, and revoke what it was granted.",
    },
    "transfer": {
        "import": "Import notes, bookmarks, agent transcripts or a git repository.",
        "export": "Export every item to a Markdown file, with the files that were uploaded.",
        "backup": "Back up everything, including vectors and uploaded files, to one file for "
        "SQLite or Postgres.",
        "restore": "Restore a backup, all or nothing.",
    },
    "doctor": {
        "doctor": "Check the installation: version, server, disk, database, models and jobs.",
    },
    "maintenance": {
        "setup": "Download the models that the settings use.",
        "reextract": "Read the kept pages anew, without fetching them.",
        "reindex": "Compute missing vectors, or all vectors after a change of embedder.",
        "eval": "Evaluate search on a retrieval set, in a temporary library.",
    },
}


class Grouped(TyperGroup):
    """The commands in the order of the help, whatever module they are in."""

    def list_commands(self, context: Any) -> list[str]:
        known = {name: at for at, name in enumerate(" ".join(SECTIONS.values()).split())}
        return sorted(super().list_commands(context), key=lambda name: known[name])


class LazyCommand(TyperCommand):
    """A command whose callback makes the real one, which is needed to run it and for its help."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        assert self.callback is not None
        try:
            return self.callback().make_context(info_name, args, parent, **extra)
        except typer.BadParameter as error:
            error.message = _plain(error.message)
            raise


def _plain(message: str) -> str:
    """Say what is wrong with a value as people do, where pydantic says it."""
    if message.startswith("Input should be a valid integer"):
        return "Must be a whole number."
    return message.removeprefix("Value error, ").replace("Input should be", "Must be")


def _loader(module: str, path: str) -> Callable[[], TyperCommand]:
    def load() -> Any:
        from commonplace.interfaces.cli.command import make_command

        commands = import_module(f"commonplace.interfaces.cli.{module}").COMMANDS
        return make_command(path, commands[path])

    return load


_display_type = TyperOption.display_type_rich


def _display_type_unless_switch(self: TyperOption, ctx: Any) -> str | None:
    return None if self.is_flag else _display_type(self, ctx)


TyperOption.display_type_rich = _display_type_unless_switch  # type: ignore[method-assign]

SECTION_OF = {name: title for title, names in SECTIONS.items() for name in names.split()}
app = typer.Typer(
    name="commonplace", no_args_is_help=True, cls=Grouped, pretty_exceptions_enable=False
)
groups = {"": app}
for name, help in GROUPS.items():
    parent, _, leaf = name.rpartition(" ")
    groups[name] = typer.Typer(no_args_is_help=True, help=help)
    panel = None if parent else SECTION_OF[name]
    groups[parent].add_typer(groups[name], name=leaf, rich_help_panel=panel)
for module, commands in COMMANDS.items():
    for path, help in commands.items():
        group, _, name = path.rpartition(" ")
        panel = None if group else SECTION_OF[name]
        command = groups[group].command(name, cls=LazyCommand, help=help, rich_help_panel=panel)
        command(_loader(module, path))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(commonplace.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """The knowledge base that people and their agents share."""


def main() -> None:
    """Run the command line. Without arguments on a terminal, serve and open the browser."""
    alone = len(sys.argv) == 1 and sys.stdout.isatty()
    app(["serve", "--browser"] if alone else None)
