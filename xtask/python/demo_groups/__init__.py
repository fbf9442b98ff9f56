"""The groups of entries of the demo program, and what they are written with.

An entry is compared exactly, or within the relative and absolute tolerance that stands in it where
two builds of the XLA compiler may round differently, or, for a duration, not at all.
"""

import hashlib

import jax
import numpy as np
from jax.sharding import Mesh

GROUPS = {}


def group(function):
    """Registers a function that makes one group of entries."""
    GROUPS[function.__name__] = function
    return function


class Record:
    """The entries of one group, under names that start with the name of the group."""

    def __init__(self, entries, prefix):
        self._entries = entries
        self._prefix = prefix

    def _put(self, name, entry):
        full = f"{self._prefix}.{name}"
        if full in self._entries:
            raise ValueError(f"two entries are called {full}")
        self._entries[full] = entry

    def exact(self, name, value):
        """A value of plain Python that must be the same everywhere."""
        self._put(name, {"kind": "exact", "value": value})

    def bits(self, name, array):
        """An array that must be the same to the last bit."""
        host = np.asarray(array)
        digest = hashlib.sha256(np.ascontiguousarray(host).tobytes()).hexdigest()
        self.exact(name, {"dtype": str(host.dtype), "shape": list(host.shape), "sha256": digest})

    def close(self, name, array, rtol, atol=0.0):
        """An array whose elements may differ by `atol + rtol * |expected|`."""
        host = np.asarray(array)
        values = [repr(v) for v in host.astype(np.float64).ravel().tolist()]
        self._put(
            name,
            {
                "kind": "close",
                "dtype": str(host.dtype),
                "shape": list(host.shape),
                "values": values,
                "rtol": rtol,
                "atol": atol,
            },
        )

    def one_of(self, name, value, accepted):
        """A value that may differ from one runtime to another, within these choices."""
        self._put(name, {"kind": "one_of", "value": value, "accepted": accepted})

    def duration(self, name, seconds):
        """A time, to be read and not to be compared."""
        self._put(name, {"kind": "duration", "seconds": seconds})

    def error(self, name, function, text=True):
        """The error of a call that must fail: its class, and its text unless told otherwise."""
        try:
            value = function()
        except Exception as error:  # The class is what is recorded.
            kind = type(error).__name__
            self.exact(name, f"{kind}: {error}" if text else kind)
        else:
            raise AssertionError(f"{name}: no error, but {type(value).__name__}")


def require(condition, text):
    """A fact that must hold wherever the program runs."""
    if not condition:
        raise AssertionError(text)


def batch_mesh():
    """All eight devices along one axis."""
    return Mesh(np.array(jax.devices()), ("batch",))
