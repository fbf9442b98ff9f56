"""The address of a server: `grpc://TARGET`, where TARGET is what gRPC calls a target."""

import dataclasses
import ipaddress

FORMS = "grpc://HOST:PORT, grpc://[IPV6]:PORT or grpc://unix:/PATH"

# Resolver prefixes of gRPC that name a host and a port.
_HOST_SCHEMES = ("dns:", "ipv4:", "ipv6:")


@dataclasses.dataclass(frozen=True)
class Address:
    """A checked address. `host` and `port` are None for a Unix socket, `path` is None otherwise."""

    text: str
    host: str | None = None
    port: int | None = None
    path: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine can answer at, or listen to, this address."""
        if self.path is not None:
            return True
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse(text: str) -> Address:
    """Checks an address.

    Raises:
        ValueError: it is not an address; the text says what is wrong and which forms there are.
    """

    def refuse(reason):
        return ValueError(f"{text!r} is not a server address: {reason}. Write {FORMS}.")

    scheme, separator, target = text.partition("://")
    if not separator:
        raise refuse("it does not start with grpc://")
    if scheme != "grpc":
        raise refuse(f"jaxlib knows the transport grpc, not {scheme!r}")
    if target.startswith("unix:"):
        path = target.removeprefix("unix:")
        # gRPC takes unix:///absolute as well as unix:/absolute.
        path = path.removeprefix("//") if path.startswith("///") else path
        if not path or path.startswith("//"):
            raise refuse("no path follows unix:")
        return Address(text, path=path)
    for prefix in _HOST_SCHEMES:
        if target.startswith(prefix):
            target = target.removeprefix(prefix).lstrip("/")
            break
    host, separator, digits = target.rpartition(":")
    if not separator or "]" in digits:
        raise refuse("it has no port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise refuse(f"{host!r} is not an IPv6 address") from None
    elif ":" in host:
        raise refuse("an IPv6 address stands in square brackets")
    if not host:
        raise refuse("it has no host")
    if any(c.isspace() or c in "/," for c in host):
        raise refuse(f"{host!r} is not a host name")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits) <= 65535:
        raise refuse(f"{digits!r} is not a port between 1 and 65535")
    return Address(text, host=host, port=int(digits))
