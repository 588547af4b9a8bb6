"""``python -m tests.golden [NAME ...]``: write what the program finds today as what it is to find. Read the difference
that version control shows: every number that changed is a change of the program.
"""

import sys

from tests.golden.records import every_case, found, write


def main(names: list[str]) -> None:
    """All records, or those whose names begin so."""
    chosen = {name: case for name, case in every_case().items() if not names or name.startswith(tuple(names))}
    write({name: found(case) for name, case in chosen.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
