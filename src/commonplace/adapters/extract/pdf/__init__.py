"""Read PDFs: words and lines of each page, their order, tables, headings, links."""
