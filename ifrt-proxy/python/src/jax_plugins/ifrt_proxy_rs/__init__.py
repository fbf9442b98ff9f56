"""Registers an IFRT proxy server as a JAX backend.

JAX imports every module below the namespace package `jax_plugins` when it first needs a device,
and calls its `initialize()`. This one registers a backend called `proxy`, which is the client that
jaxlib ships, connected to the address in `JAX_BACKEND_TARGET`:

    JAX_PLATFORMS=proxy JAX_BACKEND_TARGET=grpc://127.0.0.1:PORT python script.py

With `IFRT_PROXY_AS_CPU=1` the server also takes the place of JAX's own CPU backend.
"""

from jax_plugins.ifrt_proxy_rs import _connect

__all__ = ["initialize"]


def initialize() -> None:
    """Registers the backend; nothing is connected before JAX asks for its devices."""
    from jax.extend import backend

    for name, priority in _connect.registrations():
        backend.register_backend_factory(name, _connect.make_client, priority=priority)
