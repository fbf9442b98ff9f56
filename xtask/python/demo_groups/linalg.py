"""Linear algebra, which JAX leaves to LAPACK on a CPU: the server must have the calls of its own.

Factorizations are unique up to signs and phases only, so their products and their invariants are
compared, and that they are factorizations is checked wherever the program runs.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from demo_groups import batch_mesh, group, require


def matrices(dtype, *shape):
    """Well-conditioned square matrices and, of those, symmetric positive definite ones."""
    rng = np.random.default_rng(11)
    a = rng.standard_normal(shape).astype(np.float32)
    if dtype is np.complex64:
        a = a + 1j * rng.standard_normal(shape).astype(np.float32)
    n = shape[-1]
    square = (a + 3 * np.eye(n)).astype(dtype)
    return square, (a @ np.conj(a.swapaxes(-1, -2)) / n + np.eye(n)).astype(dtype)


def parts(array):
    """An array of complex numbers as one of real numbers."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array


def adjoint(array):
    """The conjugate transpose of every matrix."""
    return jnp.conj(jnp.swapaxes(array, -1, -2))


def close(found, expected, what):
    """A product that must be what was factorized, wherever the program runs."""
    worst = float(np.max(np.abs(np.asarray(found) - np.asarray(expected))))
    require(worst < 1e-3, f"{what} is off by {worst}")


def unique(square, definite):
    """What has one value only."""
    right = square[..., :2]
    return {
        "solve": jnp.linalg.solve(square, right),
        "inv": jnp.linalg.inv(square),
        "det": jnp.linalg.det(square / 3),
        "slogdet": jnp.linalg.slogdet(square)[1],
        "cholesky": jnp.linalg.cholesky(definite),
        "eigvalsh": jnp.linalg.eigvalsh(definite),
        "svdvals": jnp.linalg.svdvals(square),
        "pinv": jnp.linalg.pinv(square),
        "triangular solve": jsl.solve_triangular(jnp.tril(square), right, lower=True),
    }


def products(square, definite):
    """Factorizations, multiplied out: pairs of what was found and what was factorized."""
    values, vectors = jnp.linalg.eigh(definite)
    u, s, vh = jnp.linalg.svd(square, full_matrices=False)
    q, r = jnp.linalg.qr(square)
    lu = jax.vmap(jsl.lu) if square.ndim > 2 else jsl.lu
    permutation, lower, upper = lu(square)
    return {
        "eigh": ((vectors * values[..., None, :]) @ adjoint(vectors), definite),
        "svd": ((u * s[..., None, :]) @ vh, square),
        "qr": (q @ r, square),
        "q of qr": (adjoint(q) @ q, jnp.broadcast_to(jnp.eye(q.shape[-1]), q.shape)),
        "lu": (permutation @ lower @ upper, square),
    }


@group
def linear_algebra(record):
    """One matrix and a batch of them, of real and of complex numbers."""
    for dtype in [np.float32, np.complex64]:
        for shape in [(6, 6), (2, 5, 5)]:
            arguments = matrices(dtype, *shape)
            name = f"{np.dtype(dtype).name}{list(shape)}"
            for what, array in jax.jit(unique)(*arguments).items():
                record.close(f"{name} {what}", parts(array), rtol=1e-4, atol=1e-4)
            for what, (found, expected) in jax.jit(products)(*arguments).items():
                close(found, expected, f"{name} {what}")


@group
def linear_algebra_more(record):
    square, definite = matrices(np.float32, 5, 5)
    values, vectors = jnp.linalg.eig(square)
    close(square @ vectors, vectors * values, "eig")
    # Complex eigenvalues come in the order in which the QR iteration finds them.
    mixed, _ = matrices(np.complex64, 2, 4, 4)
    record.close("eigvals", parts(jnp.linalg.eigvals(mixed)), rtol=1e-3, atol=1e-3)
    triangular, unitary = jsl.schur(square)
    close(unitary @ triangular @ unitary.T, square, "schur")
    hessenberg, unitary = jsl.hessenberg(square, calc_q=True)
    close(unitary @ hessenberg @ unitary.T, square, "hessenberg")
    record.close("expm", jsl.expm(square / 4), rtol=1e-4, atol=1e-4)
    record.close("sqrtm", jnp.real(jsl.sqrtm(definite)), rtol=1e-3, atol=1e-3)
    record.close("lstsq", jnp.linalg.lstsq(square[:, :3], square[:, 4])[0], rtol=1e-3, atol=1e-4)
    record.exact("matrix_rank", int(jnp.linalg.matrix_rank(np.outer([1.0, 2, 3], [1.0, 1, 4]))))
    factor = jsl.cho_factor(definite, lower=True)
    record.close("cho_solve", jsl.cho_solve(factor, np.ones(5, np.float32)), rtol=1e-4, atol=1e-5)
    gradient = jax.grad(lambda a: jnp.sum(jnp.linalg.inv(a)) + jnp.linalg.slogdet(a)[1])(square)
    record.close("gradient", gradient, rtol=1e-3, atol=1e-4)
    solved = jax.vmap(lambda b: jnp.linalg.solve(definite, b))(np.eye(5, dtype=np.float32))
    record.close("vmap", solved, rtol=1e-4, atol=1e-5)
    # What cannot be factorized gives NaN, not an error.
    record.close("cholesky of a negative", jnp.linalg.cholesky(-definite), rtol=0)
    record.close("inv of zeros", jnp.linalg.inv(np.zeros((3, 3), np.float32)), rtol=0)
    record.exact("empty", list(jnp.linalg.inv(np.zeros((0, 3, 3), np.float32)).shape))
    _, many = matrices(np.float32, 8, 4, 4)
    split = jax.device_put(many, NamedSharding(batch_mesh(), P("batch")))
    record.close("on eight devices", jax.jit(jnp.linalg.cholesky)(split), rtol=1e-4, atol=1e-5)
