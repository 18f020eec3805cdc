"""All actions, in the order of the reference."""

from commonplace.interfaces.actions import (
    ask,
    crawls,
    disks,
    entities,
    events,
    folders,
    graph,
    items,
    memory,
    people,
    search,
    tasks,
    trash,
    uploads,
    versions,
)
from commonplace.interfaces.actions.action import Action

ROOMS: dict[str, tuple[str, tuple[Action, ...]]] = {
    "items": ("Items: add, search, read, change, delete", (*items.ACTIONS, *versions.ACTIONS)),
    "trash": ("Trash: deleted items", trash.ACTIONS),
    "search": (
        "Searching passages and entities",
        (*search.ACTIONS, *ask.ACTIONS, disks.SEARCH_ITEMS),
    ),
    "uploads": ("Uploads of files, in three steps", uploads.ACTIONS),
    "folders": ("Folders, filing and feeds", folders.ACTIONS),
    "crawls": ("Crawls of sites", crawls.ACTIONS),
    "disks": ("Disks: search, read, publish, save", disks.ACTIONS),
    "entities": ("Entities of the graph, and corrections of memories", entities.ACTIONS),
    "graph": ("Exploring and linking entities", graph.ACTIONS),
    "tasks": ("Tasks and epics, their states and plans", tasks.ACTIONS),
    "memory": ("Memories, context packs and the review queue", memory.ACTIONS),
    "events": ("Events of the library, and webhooks", events.ACTIONS),
    "people": ("Tokens, members and invitations", people.ACTIONS),
}
ACTIONS = {action.name: action for _, room in ROOMS.values() for action in room}
