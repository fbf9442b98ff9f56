"""Unpacks the library of a PJRT plugin from its wheel, and probes a library. Standard library only.

    python plugin_tool.py unpack WHEEL WHEEL_SHA256 MEMBER MEMBER_SHA256 DESTINATION
    python plugin_tool.py probe LIBRARY
"""

import ctypes
import hashlib
import json
import os
import pathlib
import sys
import zipfile


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(wheel, wheel_sha256, member, member_sha256, destination):
    """Writes one member of a wheel whose content, and the member's, are known beforehand."""
    found = digest(wheel)
    if found != wheel_sha256:
        os.unlink(wheel)
        sys.exit(
            f"{wheel} has the SHA-256 {found}, not {wheel_sha256} as plugins.lock says. It was not "
            "used and is deleted; run setup again, and mistrust the package index if this repeats"
        )
    temporary = pathlib.Path(f"{destination}.part")
    content = hashlib.sha256()
    with zipfile.ZipFile(wheel).open(member) as source, open(temporary, "wb") as target:
        while chunk := source.read(1 << 20):
            content.update(chunk)
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    if content.hexdigest() != member_sha256:
        temporary.unlink()
        sys.exit(f"{member} has the SHA-256 {content.hexdigest()}, not {member_sha256}")
    temporary.rename(destination)


class ApiVersion(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class Api(ctypes.Structure):
    """The part of the function table that every version of the C API starts with."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version", ApiVersion),
    ]


def probe(path):
    """Prints the version of the C API of a plugin."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        sys.exit(f"the system cannot load it: {error}")
    try:
        get = library.GetPjrtApi
    except AttributeError:
        sys.exit("it is a shared library, but it exports no function GetPjrtApi")
    get.restype = ctypes.POINTER(Api)
    get.argtypes = []
    api = get()
    if not api:
        sys.exit("its function GetPjrtApi returned nothing")
    if api.contents.struct_size < ctypes.sizeof(Api):
        sys.exit(f"its function table has {api.contents.struct_size} bytes only")
    version = api.contents.version
    print(json.dumps({"major": version.major, "minor": version.minor}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["unpack", *arguments] if len(arguments) == 5:
            unpack(*arguments)
        case ["probe", library]:
            probe(library)
        case _:
            sys.exit(__doc__)
