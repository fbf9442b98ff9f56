"""A JAX program that does what its standard input says, one word a line, and answers every word.

It stands for a user's session that is still open when something happens to it or to the server.
Like the program of the demo it imports JAX and NumPy and nothing else.
"""

import sys

import jax
import numpy as np

# What `hold` makes.
ARRAYS = 50
EXECUTABLES = 3

held = []


def hold():
    """Makes arrays and executables and keeps them."""
    arrays = [jax.device_put(np.full(1 << 18, i, np.float32)) for i in range(ARRAYS)]
    compiled = [jax.jit(lambda v, k=k: v * k).lower(arrays[0]).compile() for k in range(EXECUTABLES)]
    jax.block_until_ready([run(arrays[0]) for run in compiled])
    held.extend([arrays, compiled])
    return f"{ARRAYS} arrays, {EXECUTABLES} executables"


def compute():
    """A computation with an upload and a download."""
    return float(jax.jit(lambda v: (v * 2).sum())(np.arange(10, dtype=np.float32)))


def delete():
    """Deletes everything that is held, twice."""
    arrays = held[0]
    for array in arrays + arrays:
        array.delete()
    return all(array.is_deleted() for array in arrays)


def main():
    commands = {"hold": hold, "compute": compute, "delete": delete}
    for line in sys.stdin:
        word = line.strip()
        if word == "quit":
            break
        try:
            answer = f"done {word}: {commands[word]()}"
        except Exception as error:
            answer = f"error {word}: {type(error).__name__}: {str(error).splitlines()[0]}"
        print(answer, flush=True)
    print("bye", flush=True)


if __name__ == "__main__":
    main()
