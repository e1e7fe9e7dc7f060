"""What a process was started with can be read by nobody once it has shielded itself."""

import os
import subprocess
import sys

from harness_batch.sandbox.environment import secret_values
from harness_batch.sandbox.own_memory import without_secrets

SHIELDED = """
import ctypes, os, subprocess
from pathlib import Path
from harness_batch.sandbox.own_memory import shield

before = Path("/proc/self/environ").read_bytes()
shield()
after = Path("/proc/self/environ").read_bytes()
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
child = subprocess.run(["sh", "-c", "echo $NAMED"], capture_output=True, text=True)
print(b"canary-1" in before, set(after) == {0}, len(before) == len(after))
print(os.environ["NAMED"], libc.getenv(b"NAMED").decode(), child.stdout.strip())
print(libc.prctl(3, 0, 0, 0, 0))
"""


def test_the_environment_is_wiped_for_others_and_stays_for_the_process_and_its_children() -> None:
    environ = {**os.environ, "NAMED": "canary-1"}
    done = subprocess.run(
        [sys.executable, "-c", SHIELDED], env=environ, capture_output=True, text=True, check=True
    )

    wiped, kept, dumpable = done.stdout.splitlines()
    assert wiped == "True True True"
    assert kept == "canary-1 canary-1 canary-1"
    assert dumpable == "0"


def test_variables_that_hold_a_key_of_the_runner_are_left_out() -> None:
    environ = {"A": "key-123456", "B": "Bearer key-123456", "C": "other", "D": "abc"}

    assert without_secrets(environ, ["key-123456", "abc"]) == {"C": "other", "D": "abc"}


def test_values_of_variables_that_sound_secret_are_known_but_for_words_and_places() -> None:
    environ = {
        "NPM_TOKEN": "npm_0123456789",
        "npm_token": "lower-0123456789",
        "AUTH_TOKEN": "disabled",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/google.json",
        "SENTRY_DSN": "https://user:pass-123@sentry.example/1",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "https://actions.example/token",
        "BROKEN_TOKEN": "http://[broken",
        "PLAIN": "not-a-secret-at-all",
    }

    assert set(secret_values(environ)) == {"npm_0123456789", "lower-0123456789", "pass-123"}
