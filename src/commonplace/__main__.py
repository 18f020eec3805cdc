"""`python -m commonplace` is the `commonplace` command."""

from commonplace.faces.cli.main import main

if __name__ == "__main__":
    main()
