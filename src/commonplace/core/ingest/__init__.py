"""From a source to passages: fetch, extract, cut, embed, summarize, transcribe."""
