"""What a process gives up for itself and all it starts: capabilities, system calls, files.

Standard library only, by ctypes: it runs in the supervisor, in one thread. Every function raises
OSError when the kernel refuses; nothing is ever given back.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 22, 24, 38, 47
_MODE_FILTER, _AMBIENT_CLEAR_ALL = 2, 4
_CAPABILITY_VERSION = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture."""
_READ = 1 | 4 | 8
"""Execute, read file, read folder."""
_DEVICES = 64 | 2048
"""Make character and block devices."""
_OF_FILES = 1 | 2 | 4 | 0x4000 | 0x8000
"""The rights that a rule on a file may name."""
_SCOPED = 3
"""Abstract sockets and signals."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def prctl(option: int, *arguments: int | bytes) -> None:
    """Ask the kernel for one of the many things that the call of that name does."""
    padded = (*arguments, *(0 for _ in range(4 - len(arguments))))
    words = (ctypes.c_ulong(word) if isinstance(word, int) else word for word in padded)
    if _LIBC.prctl(option, *words) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def drop_capabilities() -> None:
    """All of them, for good; what root alone may do is not to be had any more."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    with suppress(OSError):
        prctl(PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _LIBC.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def filter_calls(program: bytes) -> None:
    """Install a seccomp filter (syscall_filter.py); privileges cannot be gained after."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    held = ctypes.create_string_buffer(program, len(program))
    record = _Program(len(program) // 8, ctypes.cast(held, ctypes.c_void_p))
    if _LIBC.prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(record), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def landlock_abi() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    return max(0, int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def ruleset(read: Iterable[bytes], write: Iterable[bytes], listed: Iterable[bytes]) -> int:
    """A descriptor of rules: folders and files to read, to write, folders to list.

    What is not there is left out. It holds once `confine` is called with it.
    """
    abi = landlock_abi()
    rights = _rights(abi)
    scoped = _SCOPED if abi >= 6 else 0
    words = (rights, 0, scoped)[: 1 if abi < 4 else 2 if abi < 6 else 3]
    attributes = struct.pack(f"={len(words)}Q", *words)
    rules = _LIBC.syscall(
        _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    )
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for paths, access in ((read, _READ), (write, rights & ~_DEVICES), (listed, 8)):
        for path in paths:
            _allow(rules, path, access & rights)
    return int(rules)


def confine(rules: int) -> None:
    """Put this process under the rules."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if _LIBC.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")


def _rights(abi: int) -> int:
    """All rights on files that this version knows."""
    return 0x1FFF | sum(
        right for since, right in ((2, 0x2000), (3, 0x4000), (5, 0x8000)) if abi >= since
    )


def _allow(rules: int, path: bytes, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= _OF_FILES
        rule = struct.pack("=Qi", access, place)
        if access and _LIBC.syscall(_ADD_RULE, rules, 1, rule, ctypes.c_uint32(0)) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule", path)
    finally:
        os.close(place)
