"""``python -m tests.golden [NAME ...]``: write what the program finds today as what it is to find. Read the difference
that version control shows: every number that changed is a change of the program.
"""

from __future__ import annotations

import sys
import time

from tests.golden.files import keep_sound_files
from tests.golden.records import every_case, found, write


def main(names: list[str]) -> None:
    """All records, or those whose names begin so."""
    keep_sound_files()
    fields = {}
    for name, case in every_case().items():
        if not names or name.startswith(tuple(names)):
            begin = time.process_time()
            fields[name] = found(case)
            print(f"{name}: {time.process_time() - begin:.2f} s", flush=True)
    write(fields)


if __name__ == "__main__":
    main(sys.argv[1:])
