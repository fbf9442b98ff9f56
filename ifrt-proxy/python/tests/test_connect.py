"""The way from the environment to a connection, up to a server that is not there."""

import os
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings

from jax_plugins.ifrt_proxy_rs import _address, _connect, _shared_directory

LOCAL = _address.parse("grpc://127.0.0.1:5000")
REMOTE = _address.parse("grpc://tpu.example:5000")
# A child that hangs is a failure, not a hang of the tests.
DEADLINE_SECS = 120


def closed_port():
    """A port of this machine at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_python(*arguments, **variables):
    """Runs Python with only these variables of the package and of JAX set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "IFRT_PROXY_"))}
    return subprocess.run(
        [sys.executable, *arguments],
        env=kept | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECS,
    )


class Plaintext(unittest.TestCase):
    def test_local_addresses_turn_it_on(self):
        for text in ["grpc://127.0.0.1:1", "grpc://[::1]:1", "grpc://localhost:1", "grpc://unix:/s"]:
            environ = {}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertTrue(_connect.allow_plaintext(_address.parse(text), environ))
            self.assertEqual(environ, {_connect.INSECURE: "true"})

    def test_other_addresses_warn_and_leave_it(self):
        environ = {}
        with self.assertWarnsRegex(UserWarning, _connect.INSECURE):
            self.assertFalse(_connect.allow_plaintext(REMOTE, environ))
        self.assertEqual(environ, {})

    def test_the_user_decides(self):
        for address in [LOCAL, REMOTE]:
            for value, allowed in [("true", True), ("false", False), ("1", False)]:
                environ = {_connect.INSECURE: value}
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    self.assertEqual(_connect.allow_plaintext(address, environ), allowed)
                self.assertEqual(environ, {_connect.INSECURE: value})


class Timeout(unittest.TestCase):
    def test_default_and_values(self):
        self.assertEqual(_connect.timeout_secs({}), _connect.DEFAULT_TIMEOUT_SECS)
        self.assertEqual(_connect.timeout_secs({_connect.TIMEOUT: "7"}), 7)

    def test_refuses_anything_else(self):
        for text in ["0", "-1", "1.5", "soon", "86401"]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, _connect.TIMEOUT):
                _connect.timeout_secs({_connect.TIMEOUT: text})


class Refusal(unittest.TestCase):
    def test_names_address_variable_and_command(self):
        text = _connect.refusal(LOCAL, 5, True, Exception("UNAVAILABLE: refused"))
        for part in [LOCAL.text, "5 s", _connect.TARGET, _connect.START, _connect.TIMEOUT, "refused"]:
            self.assertIn(part, text)

    def test_names_the_credentials_of_another_machine(self):
        text = _connect.refusal(REMOTE, 5, False, Exception("Invalid credentials"))
        self.assertIn(f"{_connect.INSECURE}=true", text)


    def test_a_server_that_refuses_is_no_missing_server(self):
        text = _connect.refusal(LOCAL, 5, True, Exception("UNAUTHENTICATED: wants a token"))
        self.assertIn(f"at {LOCAL.text} refused this client", text)
        self.assertIn("wants a token", text)
        self.assertNotIn(_connect.START, text)


class Token(unittest.TestCase):
    def test_the_content_of_the_file(self):
        self.assertIsNone(_connect.token({}))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b" secret\n")
            file.flush()
            self.assertEqual(_connect.token({_connect.TOKEN_FILE: file.name}), b"secret")

    def test_files_without_one(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = os.path.join(folder, "empty")
            open(empty, "wb").close()
            for path in [empty, os.path.join(folder, "missing"), folder]:
                with self.subTest(path), self.assertRaisesRegex(ValueError, path):
                    _connect.token({_connect.TOKEN_FILE: path})


class SharedDirectory(unittest.TestCase):
    def test_unasked_it_does_nothing(self):
        environ = {}
        self.assertIsNone(_shared_directory.make(environ))
        self.assertEqual(environ, {})

    def test_each_process_gets_its_own(self):
        with tempfile.TemporaryDirectory() as root:
            first = {_shared_directory.ROOT: root}
            second = {_shared_directory.ROOT: root, _shared_directory.THRESHOLD: "1"}
            names = [_shared_directory.make(environ) for environ in (first, second)]
            self.assertEqual(sorted(names), sorted(os.listdir(root)))
            for name, environ in zip(names, (first, second)):
                path = os.path.join(root, name)
                self.assertEqual(environ[_shared_directory.DIRECTORY], path)
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
                # Another connection of the process uses the same one.
                self.assertEqual(_shared_directory.make(environ), name)
            self.assertEqual(second[_shared_directory.THRESHOLD], "1")
            self.assertEqual(
                first[_shared_directory.THRESHOLD], str(_shared_directory.DEFAULT_THRESHOLD_BYTES)
            )

    def test_what_the_user_has_set_up_stays(self):
        environ = {_shared_directory.ROOT: "/a", _shared_directory.DIRECTORY: "/b/c"}
        self.assertIsNone(_shared_directory.make(environ))
        self.assertEqual(environ[_shared_directory.DIRECTORY], "/b/c")

    def test_a_root_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            environ = {_shared_directory.ROOT: os.path.join(folder, "missing")}
            with self.assertRaisesRegex(ValueError, "--shared-directory"):
                _shared_directory.make(environ)


class WholeProcess(unittest.TestCase):
    """What a user sees who types the documented command."""

    DEVICES = ("-c", "import jax; print(jax.devices())")

    def test_no_address(self):
        result = run_python(*self.DEVICES, JAX_PLATFORMS="proxy")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(f"{_connect.TARGET} is not set", result.stderr)

    def test_bad_address(self):
        result = run_python(*self.DEVICES, JAX_PLATFORMS="proxy", JAX_BACKEND_TARGET="localhost")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("does not start with grpc://", result.stderr)

    def test_closed_port(self):
        target = f"grpc://127.0.0.1:{closed_port()}"
        result = run_python(
            *self.DEVICES,
            JAX_PLATFORMS="proxy",
            JAX_BACKEND_TARGET=target,
            IFRT_PROXY_CONNECTION_TIMEOUT_SECS="1",
        )
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(f"no IFRT proxy server could be reached at {target} within 1 s", result.stderr)
        self.assertIn(_connect.START, result.stderr)

    def test_the_case_of_a_socket_path_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            target = f"grpc://unix:{folder}/Nobody.Here"
            result = run_python(
                *self.DEVICES,
                JAX_PLATFORMS="proxy",
                JAX_BACKEND_TARGET=target,
                IFRT_PROXY_CONNECTION_TIMEOUT_SECS="1",
            )
        self.assertIn(f"could be reached at {target} within", result.stderr)

    def test_in_the_place_of_cpu(self):
        target = f"grpc://127.0.0.1:{closed_port()}"
        result = run_python(
            *self.DEVICES,
            JAX_PLATFORMS="cpu",
            JAX_BACKEND_TARGET=target,
            IFRT_PROXY_AS_CPU="1",
            IFRT_PROXY_CONNECTION_TIMEOUT_SECS="1",
        )
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Unable to initialize backend 'cpu'", result.stderr)
        self.assertIn(f"could be reached at {target}", result.stderr)

    def test_jax_works_without_it(self):
        result = run_python("-c", "import jax; print(jax.default_backend())")
        self.assertEqual(result.stdout.strip(), "cpu", result.stderr)
        self.assertEqual(result.returncode, 0)

    def test_check_command(self):
        target = f"grpc://127.0.0.1:{closed_port()}"
        module = ("-m", "jax_plugins.ifrt_proxy_rs", "check")
        result = run_python(*module, target, "--timeout", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("jaxlib ", result.stdout)
        self.assertIn(f"could be reached at {target} within 1 s", result.stderr)
        result = run_python(*module)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{_connect.TARGET} is not set", result.stderr)


if __name__ == "__main__":
    unittest.main()
