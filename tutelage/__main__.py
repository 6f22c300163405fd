"""`python -m tutelage` is the command line."""

from tutelage.present.cli import main

if __name__ == "__main__":
    main()
