"""Actions on folders, filing and feeds."""

from typing import Annotated

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Cli,
    Id,
    Input,
    Name,
    Reference,
    WebAddress,
    about,
    number,
    patch_of,
)
from commonplace.interfaces.actions.items import OneItem
from commonplace.interfaces.actions.shapes import OK, Field, Listing, Shape, said
from commonplace.model import Folder, Json, Subscription


class Nothing(Input):
    """The input of an action that takes none."""


class FolderFields(Input):
    name: Annotated[
        Name,
        about("Unique in its parent, whatever its case", examples=["Research"]),
        Cli(argument=True),
    ]
    parent_id: Annotated[
        Reference | None, about("Folder that it is in; null: at the top"), Cli("--parent")
    ] = None


class OneFolder(Input):
    folder_id: Annotated[Id, about("The folder, by id")]


ChangeFolder = patch_of("ChangeFolder", FolderFields, "name parent_id", folder_id=(Id, ...))


class DeleteFolder(OneFolder):
    cascade_items: Annotated[bool, about("Also delete items that are in no other folder")] = False


class FileItem(OneItem):
    folder_ids: Annotated[list[Reference], about("Folders", min_length=1, max_length=100)]


class UnfileItem(OneItem):
    folder_id: Id


class Follow(Input):
    url: Annotated[
        WebAddress,
        about("URL of the feed", examples=["https://example.org/feed.xml"]),
        Cli(argument=True),
    ]
    folder_id: Annotated[
        Reference | None, about("Folder that new entries are filed in"), Cli("--folder")
    ] = None
    newest: Annotated[int, number(0, 100, "How many of the current entries to add"), WHOLE] = 10


class OneFeed(Input):
    feed_id: Id


FOLDER = Shape("Folder", Folder, "id name parent_id item_count created_at")
NEW_FOLDER = Shape(
    "NewFolder",
    Folder,
    base=FOLDER,
    folder=Field(
        Json,
        lambda made, call: FOLDER(made, call) | {"last_added_at": None},
        "The same once more, with last_added_at",
    ),
)
FEED = Shape(
    "Feed",
    Subscription,
    "id url title folder_id created_at polled_at error",
    next_poll_at="poll_at",
)
FILED = Shape("FiledItem", None, base=OK, added_folder_ids=said(list[str], ""))

ACTIONS = (
    Action(
        "list_folders",
        "List the folders in the token's scope",
        Nothing,
        "folders.list_folders",
        Listing("folders", FOLDER),
        "GET /api/v1/folders",
        cli="folder list",
    ),
    Action(
        "create_folder",
        "Create a folder",
        FolderFields,
        "folders.create",
        NEW_FOLDER,
        "POST /api/v1/folders",
        cli="folder create",
        status=201,
    ),
    Action(
        "get_folder",
        "Read a folder",
        OneFolder,
        "folders.get",
        FOLDER,
        "GET /api/v1/folders/{folder_id}",
    ),
    Action(
        "update_folder",
        "Rename a folder, or move it into another",
        ChangeFolder,
        "folders.update",
        FOLDER,
        "PATCH /api/v1/folders/{folder_id}",
        cli="folder rename",
        description="Folders can be nested 8 deep. Nesting does not change what tokens see.",
    ),
    Action(
        "delete_folder",
        "Delete a folder",
        DeleteFolder,
        "folders.delete",
        route="DELETE /api/v1/folders/{folder_id}",
        cli="folder delete",
        description="Moves the folders in it up one level, and revokes tokens that had no other "
        "folder.",
    ),
    Action(
        "file_item",
        "File an item in folders",
        FileItem,
        "folders.file",
        FILED,
        "POST /api/v1/items/{item_id}/folders",
        description="Every folder must be in the token's scope. Tokens for one folder file "
        "automatically and cannot use this.",
    ),
    Action(
        "unfile_item",
        "Remove an item from a folder",
        UnfileItem,
        "folders.unfile",
        route="DELETE /api/v1/items/{item_id}/folders/{folder_id}",
    ),
    Action(
        "follow_feed",
        "Follow a feed",
        Follow,
        "feeds.subscribe",
        FEED,
        "POST /api/v1/feeds",
        cli="feed add",
        status=201,
        description="New entries are added automatically, with the rights of this token. "
        "Following a feed again returns the same feed.",
    ),
    Action(
        "list_feeds",
        "List feeds",
        Nothing,
        "feeds.all",
        Listing("feeds", FEED),
        "GET /api/v1/feeds",
        cli="feed list",
        description="Tokens limited to folders or the KB see only the feeds that they follow "
        "themselves.",
    ),
    Action("get_feed", "Read a feed", OneFeed, "feeds.get", FEED, "GET /api/v1/feeds/{feed_id}"),
    Action(
        "unfollow_feed",
        "Unfollow a feed",
        OneFeed,
        "feeds.unsubscribe",
        route="DELETE /api/v1/feeds/{feed_id}",
        cli="feed remove",
        description="Items that it added stay.",
    ),
)
