"""`python -m jax_plugins.ifrt_proxy_rs check [ADDRESS]`: what is installed, and does it connect?"""

import argparse
import platform
import sys
import time

from jax_plugins.ifrt_proxy_rs import _address, _connect


def check(text: str | None, seconds: int | None) -> int:
    """Prints versions, connects, prints what the server offers. Returns the exit code."""
    import jax
    import jaxlib

    print(f"python   {platform.python_version()}")
    print(f"jax      {jax.__version__}")
    print(f"jaxlib   {jaxlib.__version__}")
    try:
        address = _address.parse(text or _connect.target())
        seconds = seconds or _connect.timeout_secs()
        print(f"address  {address.text}", flush=True)
        start = time.perf_counter()
        client = _connect.connect(address, seconds)
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"connected in {time.perf_counter() - start:.3f} s")
    print(f"platform {client.platform}, runtime {client.runtime_type}")
    print(f"version  {client.platform_version}")
    found = client.devices()
    print(f"devices  {len(found)}: {', '.join(str(device) for device in found)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m jax_plugins.ifrt_proxy_rs")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("check", help="prints the versions and tries the connection")
    command.add_argument("address", nargs="?", help=f"default: ${_connect.TARGET}")
    command.add_argument("--timeout", type=int, metavar="SECS", help=f"default: ${_connect.TIMEOUT}, or 30")
    arguments = parser.parse_args()
    if arguments.timeout is not None and arguments.timeout < 1:
        parser.error("--timeout must be at least 1")
    return check(arguments.address, arguments.timeout)


if __name__ == "__main__":
    sys.exit(main())
