"""The seccomp filter: what no program in the sandbox may ask of the kernel. Pure: bytes out.

Classic BPF, built here, so that no library is needed: a foreign ABI dies, what reaches into other
processes, mounts, modules, keys or namespaces is refused (EPERM), sockets are refused but for the
families that are named. `socketpair` stays for streams, whose ends stay together. Numbers are
those of the kernel's tables for x86_64 and aarch64.
"""

import errno
import platform
import struct
from collections.abc import Iterable, Iterator

AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16
INTERNET = (AF_INET, AF_INET6, AF_NETLINK)
"""The families of programs that may use a network, be it only their own loopback."""

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEVER = {
    "x86_64": (
        *(101, 310, 311, 438),  # ptrace process_vm_readv process_vm_writev pidfd_getfd
        *(425, 426, 427),  # io_uring_setup io_uring_enter io_uring_register
        *(250, 248, 249),  # keyctl add_key request_key
        *(321, 323, 298),  # bpf userfaultfd perf_event_open
        *(165, 166, 155, 161),  # mount umount2 pivot_root chroot
        *(428, 429, 430, 431, 432),  # open_tree move_mount fsopen fsconfig fsmount
        *(433, 442, 443, 467),  # fspick mount_setattr quotactl_fd open_tree_attr
        *(304, 272, 308),  # open_by_handle_at unshare setns
        *(
            246,
            320,
            175,
            313,
            176,
        ),  # kexec_load kexec_file_load init_module finit_module delete_...
        *(167, 168, 169, 103),  # swapon swapoff reboot syslog
        *(163, 164, 179, 312),  # acct settimeofday quotactl kcmp
    ),
    "aarch64": (
        *(117, 270, 271, 438),
        *(425, 426, 427),
        *(219, 217, 218),
        *(280, 282, 241),
        *(40, 39, 41, 51),
        *(428, 429, 430, 431, 432),
        *(433, 442, 443, 467),
        *(265, 97, 268),
        *(104, 294, 105, 273, 106),
        *(224, 225, 142, 116),
        *(89, 170, 60, 272),
    ),
}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_IOCTL = {"x86_64": 16, "aarch64": 29}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
_SHARED = {
    "x86_64": (29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241),
    "aarch64": (*range(186, 197), 180, 181),
}
"""shm*, sem*, msg*, mq_open, mq_unlink: what outlives a process, and all of a user's reach."""

_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_STREAM, _SEQPACKET = 1, 5
_TYPE_OF_SOCKET = 15
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data; of arguments the low halves."""

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


def is_known() -> bool:
    """Whether this machine's system calls are."""
    return platform.machine() in _AUDIT


def program(families: Iterable[int], *, own_ipc: bool) -> bytes:
    """The filter as the kernel takes it; sockets of `families` may be made. KeyError: not known.

    `own_ipc`: shared memory and message queues are in a namespace of the sandbox's own; the host's
    are refused.
    """
    machine = platform.machine()
    never = _NEVER[machine] if own_ipc else (*_NEVER[machine], *_SHARED[machine])
    instructions = _instructions(machine, tuple(families), never)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _instructions(
    machine: str, families: tuple[int, ...], never: tuple[int, ...]
) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, _AUDIT[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":  # the x32 variants of the calls
        yield _AT_LEAST, 0, 1, 0x40000000
        yield _refused(errno.ENOSYS)
    for number in never:
        yield _EQUAL, 0, 1, number
        yield _refused(errno.EPERM)
    yield _EQUAL, 0, 1, _CLONE3  # its flags lie behind a pointer; libc falls back to clone
    yield _refused(errno.ENOSYS)
    yield _EQUAL, 0, 4, _CLONE[machine]
    yield _LOAD, 0, 0, _FIRST
    yield _ANY_BIT, 0, 1, _NAMESPACES
    yield _refused(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 0, 5, _IOCTL[machine]
    yield _LOAD, 0, 0, _SECOND
    yield _EQUAL, 1, 0, _TIOCSTI  # keystrokes for the runner's terminal
    yield _EQUAL, 0, 1, _TIOCLINUX
    yield _refused(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 0, 4, _PRLIMIT[machine]
    yield _LOAD, 0, 0, _FIRST
    yield _EQUAL, 1, 0, 0  # only its own limits, never another process's
    yield _refused(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield from _pairs(machine)
    yield _EQUAL, 0, 2 * len(families) + 2, _SOCKET[machine]
    yield _LOAD, 0, 0, _FIRST
    for family in families:
        yield _EQUAL, 0, 1, family
        yield _RETURN, 0, 0, _ALLOW
    yield _refused(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW


def _pairs(machine: str) -> Iterator[Instruction]:
    """Of a pair for datagrams each end can send to any other address, be they connected or not."""
    yield _EQUAL, 0, 6, _SOCKETPAIR[machine]
    yield _LOAD, 0, 0, _SECOND
    yield _AND, 0, 0, _TYPE_OF_SOCKET
    yield _EQUAL, 2, 0, _STREAM
    yield _EQUAL, 1, 0, _SEQPACKET
    yield _refused(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW


def _refused(number: int) -> Instruction:
    return _RETURN, 0, 0, _ERROR | number
