"""The kinds of background jobs."""

INGEST = "ingest"  # read the source of an item that was accepted unread
EMBED = "embed"  # compute vectors of sections
TRANSFORM = "transform"  # write summary, key points, tags and category
TRANSCRIBE = "transcribe"  # turn a recording into text
LINK = "link"  # link an entity to similar ones
REMOVE = "remove"  # delete an item once its undo period is over
