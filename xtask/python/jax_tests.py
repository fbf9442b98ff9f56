"""Runs one file of JAX's own tests and says on standard output what became of each test.

    python jax_tests.py --root CHECKOUT --file NAME [--sample N] [--timeout SECONDS]
                        [--only FILE] [--without FILE] [--server PID]

Every line on standard output is a JSON object, written as soon as there is something to say:

    {"event": "collected", "tests": 214}
    {"event": "start", "test": "tests/array_test.py::..."}
    {"event": "end", "test": "...", "outcome": "failed", "seconds": 0.31, "text": "..."}
    {"event": "finished"}

A test that starts and does not end has taken the process with it. What pytest prints goes to
standard error.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import pathlib
import sys
import zlib

import pytest

TEXT_CHARS = 600


class Events:
    """The stream of events, which nothing that a test prints can reach."""

    def __init__(self):
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def say(self, event, **more):
        self._stream.write(json.dumps({"event": event, **more}) + "\n")
        self._stream.flush()


class Recorder:
    """The pytest plugin that chooses the tests and tells what became of them."""

    def __init__(self, events, arguments):
        self._events = events
        self._arguments = arguments
        self._outcome = "passed"
        self._text = ""
        self._seconds = 0.0

    def pytest_collection_modifyitems(self, config, items):
        chosen = choose([item.nodeid for item in items], self._arguments)
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]
        self._events.say("collected", tests=len(items))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self._outcome, self._text, self._seconds = "passed", "", 0.0
        self._events.say("start", test=item.nodeid)
        # A test that hangs may hang outside of Python: only the end of the process is certain.
        faulthandler.dump_traceback_later(self._arguments.timeout, exit=True)
        try:
            result = yield
        finally:
            faulthandler.cancel_dump_traceback_later()
        if not self._server_lives():
            # The text of the failure is that of a lost connection, here and in every later test.
            os._exit(SERVER_DIED)
        self._events.say(
            "end",
            test=item.nodeid,
            outcome=self._outcome,
            seconds=round(self._seconds, 3),
            text=self._text[:TEXT_CHARS],
        )
        return result

    def pytest_runtest_logreport(self, report):
        self._seconds += report.duration
        if report.failed:
            self._outcome = "failed"
            crash = getattr(report.longrepr, "reprcrash", None)
            self._text = self._text or (crash.message if crash else str(report.longrepr))
        elif report.skipped and self._outcome == "passed":
            self._outcome = "skipped"
            place = report.longrepr
            self._text = place[2] if isinstance(place, tuple) else str(place)

    def _server_lives(self):
        if self._arguments.server is None:
            return True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._arguments.server, 0)
            return True
        return False


# How this process ends when the server has died in a test.
SERVER_DIED = 86


def choose(tests, arguments):
    """The tests to run: those that are asked for, or a sample that depends on their names only.

    A smaller sample is a part of every larger one.
    """
    chosen = tests
    if arguments.only:
        only = names(arguments.only)
        chosen = [test for test in chosen if test in only]
    if arguments.sample:
        chosen = sorted(chosen, key=lambda test: (zlib.crc32(test.encode()), test))
        chosen = chosen[: arguments.sample]
    return set(chosen) - names(arguments.without)


def names(path):
    """The lines of a file."""
    return set(path.read_text(encoding="utf-8").splitlines()) if path else set()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--only", type=pathlib.Path)
    parser.add_argument("--without", type=pathlib.Path)
    parser.add_argument("--server", type=int)
    arguments = parser.parse_args()
    events = Events()
    os.chdir(arguments.root)
    faulthandler.enable()
    code = pytest.main(
        [
            *("-c", "pyproject.toml", "--rootdir", "."),
            *("-o", "addopts=--import-mode=importlib"),
            *("-p", "no:cacheprovider", "-p", "no:faulthandler"),
            *("--quiet", "--tb=short", "--no-header"),
            f"tests/{arguments.file}.py",
        ],
        plugins=[Recorder(events, arguments)],
    )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(int(code))
    events.say("finished")


if __name__ == "__main__":
    main()
