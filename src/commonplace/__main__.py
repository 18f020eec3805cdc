"""`python -m commonplace` is the `commonplace` command."""

from commonplace.interfaces.cli.main import main

if __name__ == "__main__":
    main()
