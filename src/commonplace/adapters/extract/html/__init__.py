"""Web pages and other HTML: the article, its facts, and Markdown made of both."""
