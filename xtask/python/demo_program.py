"""A JAX program that does a little of everything and writes down what it saw.

    python demo_program.py RESULTS.json [--only GROUP ...]

It and its groups import JAX and NumPy and nothing else, and do not know what the devices are: the
program is run once on JAX's built-in CPU client and once through a server, and the two files are
compared entry by entry.
"""

import argparse
import json
import pathlib
import time

# Importing a module registers its groups.
import demo_groups.answers
import demo_groups.computing
import demo_groups.data
import demo_groups.deletion
import demo_groups.linalg
from demo_groups import GROUPS, Record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=sorted(GROUPS), default=list(GROUPS))
    arguments = parser.parse_args()
    entries = {}
    for name in arguments.only:
        start = time.perf_counter()
        try:
            GROUPS[name](Record(entries, name))
        except Exception as error:  # One broken group must not hide the others.
            entries[f"{name}.group"] = {"kind": "error", "text": f"{type(error).__name__}: {error}"}
        else:
            entries[f"{name}.group"] = {"kind": "exact", "value": "finished"}
        print(f"{name}: {time.perf_counter() - start:.2f} s", flush=True)
    temporary = arguments.results.with_suffix(".part")
    temporary.write_text(json.dumps(entries, indent=1))
    temporary.replace(arguments.results)


if __name__ == "__main__":
    main()
