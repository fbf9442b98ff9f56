"""Large uploads through a directory that the server on this machine reads.

The client inside jaxlib names its files by the lower half of a counter, so each process needs a
directory of its own. The client reads its environment when the first connection is made.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import MutableMapping

ROOT = "IFRT_PROXY_SHARED_DIRECTORY"
# Read by the client inside jaxlib.
DIRECTORY = "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY"
THRESHOLD = "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES"

# A smaller upload is not worth a file.
DEFAULT_THRESHOLD_BYTES = 4 << 20


def make(environ: MutableMapping[str, str] = os.environ) -> str | None:
    """Makes this process's directory, and returns its name below the shared one.

    None if the user has not asked for it, or has set up jaxlib's client otherwise. The directory is
    removed when the process ends.

    Raises:
        ValueError: the directory cannot be made.
    """
    root = environ.get(ROOT, "")
    if not root:
        return None
    present = environ.get(DIRECTORY, "")
    if present:
        # Made for an earlier connection of this process, or the user's own.
        inside = os.path.dirname(present) == os.path.abspath(root)
        return os.path.basename(present) if inside else None
    try:
        directory = tempfile.mkdtemp(prefix="jax-", dir=os.path.abspath(root))
    except OSError as error:
        raise ValueError(
            f"{ROOT} names a directory in which none can be made: {error}. It must be the one that "
            "the server was given as --shared-directory"
        ) from error
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    environ[DIRECTORY] = directory
    environ.setdefault(THRESHOLD, str(DEFAULT_THRESHOLD_BYTES))
    return os.path.basename(directory)
