"""YouTube: captions and audio of a video."""
