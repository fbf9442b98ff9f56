#!/usr/bin/env python3
"""Computes the bytes in golden.txt with Google's protocol buffers, which share no code with us.

    pip install jaxlib==0.10.2 protobuf grpcio-tools
    golden.py .../site-packages/jaxlib/libjax_common.so [XLA] > new.txt

Rows before the line `[head]` use the message descriptors inside jaxlib, so they are what its client
writes. Later rows use the definitions of a source tree XLA at the commit named there, compiled
with protoc; without a tree they keep their bytes. `@NAME@` in a text stands for the bytes of an
earlier row.
"""
import pathlib
import re
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

TABLE = pathlib.Path(__file__).with_name("golden.txt")


def varint(data, pos):
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, pos


def descriptor_at(data, start):
    """The file descriptor that begins at `start`: it goes on as long as its fields do."""
    pos = start
    while True:
        tag, after = varint(data, pos)
        field, wire = tag >> 3, tag & 7
        if wire == 2 and field in range(1, 13) and (field != 1 or pos == start):
            length, after = varint(data, after)
            after += length
        elif wire == 0 and field in (10, 11, 14):
            _, after = varint(data, after)
        else:
            break
        pos = after
    found = descriptor_pb2.FileDescriptorProto()
    found.ParseFromString(data[start:pos])
    return found


def files_of_library(path):
    data = path.read_bytes()
    files = {}
    for match in re.finditer(rb"\x0a(.)((?:xla|google)/[\w/.\-]+?\.proto)", data, re.S):
        if match.group(1)[0] != len(match.group(2)):
            continue
        try:
            found = descriptor_at(data, match.start())
        except Exception:  # The bytes only look like a descriptor.
            continue
        if found.message_type or found.enum_type:
            known = files.get(found.name)
            if known is None or known.ByteSize() < found.ByteSize():
                files[found.name] = found
    return files


def files_of_tree(root):
    from grpc_tools import protoc

    names = [
        str(path.relative_to(root))
        for folder in ("xla/python/ifrt", "xla/python/pjrt_ifrt")
        for path in sorted((root / folder).glob("*.proto"))
    ]
    include = pathlib.Path(protoc.__file__).with_name("_proto")
    with tempfile.NamedTemporaryFile() as out:
        arguments = ["protoc", f"-I{root}", f"-I{include}", "--include_imports"]
        if protoc.main([*arguments, f"--descriptor_set_out={out.name}", *names]):
            sys.exit("protoc failed")
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())
    return {file.name: file for file in files.file}


def pool_of(files):
    pool = descriptor_pool.DescriptorPool()
    added = set()

    def add(name):
        if name in added or name not in files:
            return
        added.add(name)
        for dependency in files[name].dependency:
            add(dependency)
        pool.Add(files[name])

    for name in files:
        add(name)
    return pool


def main():
    library = pathlib.Path(sys.argv[1])
    tree = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    pool = pool_of(files_of_library(library))
    known = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("[head]"):
            pool = pool_of(files_of_tree(tree)) if tree else None
        if not line or line[0] in "#[":
            print(line)
            continue
        name, kind, text, old = (part.strip() for part in line.split("|"))
        if pool is None:
            known[name] = bytes.fromhex(old)
        else:
            escaped = re.sub(
                r"@(\w+)@",
                lambda m: '"' + "".join(f"\\x{byte:02x}" for byte in known[m[1]]) + '"',
                text,
            )
            message = message_factory.GetMessageClass(pool.FindMessageTypeByName(kind))()
            text_format.Parse(escaped, message, descriptor_pool=pool)
            known[name] = message.SerializeToString(deterministic=True)
        print(f"{name} | {kind} | {text} | {known[name].hex()}".rstrip())


main()
