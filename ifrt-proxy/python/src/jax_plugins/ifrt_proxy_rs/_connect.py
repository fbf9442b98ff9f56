"""From the environment to a connected client."""

import os
import warnings
from collections.abc import Mapping

from jax_plugins.ifrt_proxy_rs import _address, _shared_directory

TARGET = "JAX_BACKEND_TARGET"
TIMEOUT = "IFRT_PROXY_CONNECTION_TIMEOUT_SECS"
AS_CPU = "IFRT_PROXY_AS_CPU"
TOKEN_FILE = "IFRT_PROXY_TOKEN_FILE"
# Read by the client inside jaxlib, which knows only plaintext and a credential of its own.
INSECURE = "IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"

DEFAULT_TIMEOUT_SECS = 30
START = "ifrt-proxy-server --plugin PLUGIN.so --listen grpc://127.0.0.1:0"


def registrations() -> list[tuple[str, int]]:
    """The backend names to register, with their priorities.

    The priority decides only where JAX_PLATFORMS is unset: below JAX's own CPU backend for
    `proxy`, in its place for `cpu`.
    """
    import jax

    if os.environ.get(AS_CPU, "") not in ("1", "true"):
        return [("proxy", -1)]
    # One connection is enough unless both names are asked for.
    asked = (jax.config.jax_platforms or "").split(",")
    return [("cpu", 0)] + ([("proxy", -1)] if "proxy" in asked else [])


def target() -> str:
    """The address that the user gave.

    Raises:
        RuntimeError: there is none.
    """
    import jax

    text = os.environ.get(TARGET, "")
    # JAX folds the variable to lower case, which breaks the path of a Unix socket; a value that
    # was set through jax.config only is taken as it is.
    configured = getattr(jax.config, "jax_backend_target", None) or ""
    if configured and configured != text.lower():
        text = configured
    if not text:
        raise RuntimeError(
            f"{TARGET} is not set, so JAX does not know where the IFRT proxy server is. Set it to "
            f"the address that the server prints when it starts ({_address.FORMS}), or start one: "
            f"{START}"
        )
    return text


def timeout_secs(environ: Mapping[str, str] = os.environ) -> int:
    """How long to try to connect.

    Raises:
        ValueError: the variable is set to something else than a positive whole number.
    """
    text = environ.get(TIMEOUT, "")
    if not text:
        return DEFAULT_TIMEOUT_SECS
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 86400:
        raise ValueError(f"{TIMEOUT} must be a whole number of seconds from 1 to 86400, not {text!r}")
    return int(text)


def token(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """The token to show to the server, if the user has one.

    Raises:
        ValueError: the file cannot be read or is empty.
    """
    path = environ.get(TOKEN_FILE, "")
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            found = file.read().strip()
    except OSError as error:
        raise ValueError(f"{TOKEN_FILE} names a file that cannot be read: {error}") from error
    if not found:
        raise ValueError(f"{TOKEN_FILE} names {path}, which is empty")
    return found


def allow_plaintext(address: _address.Address, environ=os.environ) -> bool:
    """Turns plaintext on for an address that cannot leave this machine.

    For any other address the choice stays with the user: a warning says so and names the variable.
    Returns whether the connection will be in plaintext.
    """
    if environ.get(INSECURE):
        return environ[INSECURE] == "true"
    if address.is_local:
        environ[INSECURE] = "true"
        return True
    warnings.warn(
        f"{address.text} is not on this machine, and jaxlib's client cannot encrypt a connection to "
        f"it. Set {INSECURE}=true if the network in between may read and change everything, or "
        "forward a local port through a tunnel.",
        stacklevel=2,
    )
    return False


def refusal(address: _address.Address, seconds: int, plaintext: bool, error: Exception) -> str:
    """What to tell a user whose connection failed."""
    if was_refused(str(error)):
        return f"the IFRT proxy server at {address.text} refused this client; jaxlib said: {error}"
    lines = [f"no IFRT proxy server could be reached at {address.text} within {seconds} s"]
    if not plaintext and not address.is_local:
        lines.append(f"plaintext is not allowed for this address: set {INSECURE}=true to allow it")
    else:
        lines.append(f"is the server running, and is {TARGET} its address? Start one with: {START}")
    lines.append(f"the wait is set by {TIMEOUT}; jaxlib said: {error}")
    return "; ".join(lines)


def was_refused(text: str) -> bool:
    """Whether a server has answered, and does not want this client."""
    return "UNAUTHENTICATED" in text


def make_client():
    """Connects: the factory that JAX calls when it first needs a device.

    Raises:
        RuntimeError: no address is set, or nothing answers there.
        ValueError: the address or the time limit is malformed.
    """
    return connect(_address.parse(target()), timeout_secs())


def connect(address: _address.Address, seconds: int):
    """A client that is connected to `address`.

    Raises:
        RuntimeError: nothing answers there in time.
        ValueError: the file of the token or the shared directory cannot be used.
    """
    from jax.extend.backend import ifrt_proxy

    plaintext = allow_plaintext(address)
    data = {}
    if (secret := token()) is not None:
        data["token"] = secret
    if address.is_local and (directory := _shared_directory.make()) is not None:
        data["shared_directory"] = directory.encode()
    # `on_disconnect` and `on_connection_update` stay unset: jaxlib runs them on threads of its own,
    # also while the interpreter ends, which aborts the process.
    options = ifrt_proxy.ClientConnectionOptions()
    options.connection_timeout_in_seconds = seconds
    if data:
        options.initialization_data = data
    try:
        return ifrt_proxy.get_client(address.text, options)
    except Exception as error:
        raise RuntimeError(refusal(address, seconds, plaintext, error)) from error
