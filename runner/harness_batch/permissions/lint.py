"""What is odd about a stack: rules that deny, never decide, or grant more than they say."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from attrs import frozen

from harness_batch.permissions.defaults import DEFAULT_RULES, guards, names
from harness_batch.permissions.matcher import covers, matches, path_matches
from harness_batch.permissions.shell_names import words
from harness_batch.permissions.shell_wrappers import WRAPPERS
from harness_batch.rules import PERMISSIONS, Rule
from harness_batch.words import nearest

Kind = Literal["ask", "unknown", "shadowed", "grants_execution"]

GRANTS_EXECUTION = WRAPPERS | words(
    """R ansible ansible-playbook apt apt-get aria2c ash awk bash bazel bun bundle bunx busybox
    cargo cc chroot clang cmake composer conda cpan crontab csh curl dash dd deno dmesg
    dnf docker dotnet dpkg ed emacs env eval exec expect find fish flock ftp gawk gcc gdb
    gem ghc ghci gimp git gmake go gradle gradlew hatch install irb java ksh ltrace lua
    luajit m4 make man mawk meson mvn mysql nawk nc ncat ninja nix nmap node npm npx nvim
    openssl parallel perl php pip pip3 pipenv pipx pnpm podman poetry psql pwsh py pypy
    pypy3 python python2 python3 rake rbash rg rlwrap rsync ruby rustc rye scala scp
    screen script sed setarch sftp sh slsh socat sort source split sqlite3 ssh strace su
    swift systemctl systemd-run tar taskset tasksh tclsh tcsh tee terraform tmux tox ts-node
    tsx uv uvx vi view vim vimdiff watch wget xargs yarn yum zip zsh zypper"""
)
"""Programs that run other programs or write any file when their arguments say so."""

_ALIASES = {
    "write": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "apply_patch": "edit",
    "shell": "bash",
    "run": "bash",
    "list": "read",
    "ls": "read",
    "search": "grep",
    "fetch": "webfetch",
    "todowrite": "todo",
}
_LINE = re.compile(r":\d+$")
_CALL = re.compile(r"\w+\(")


@frozen
class Finding:
    """One thing odd about a rule, and what to do about it."""

    kind: Kind
    rule: Rule
    message: str


def lint(stack: Sequence[Rule]) -> tuple[Finding, ...]:
    """Findings in the order of the stack; the defaults are left alone."""
    return tuple(
        finding
        for place, rule in enumerate(stack)
        if rule.source != "default"
        for finding in _findings(rule, stack[place + 1 :])
    )


def unknown_permission(name: str) -> str | None:
    """What to say of a name, wildcards allowed, that no tool ever asks for; else None."""
    if any(matches(name, known) for known in PERMISSIONS):
        return None
    if _CALL.match(name):
        # `Bash(git diff:*)`, as Claude Code writes it; a rule ends at its first colon
        form = "a rule is PERMISSION:PATTERN, `bash:git diff *` for example"
        return f"`{name}` is no permission; {form}"
    near = nearest(_ALIASES.get(name, name), PERMISSIONS)
    hint = near or f"; known are {', '.join(PERMISSIONS)}"
    return f"`{name}` is no permission{hint}"


def _findings(rule: Rule, later: Sequence[Rule]) -> Iterable[Finding]:
    if rule.action == "ask":
        yield Finding(
            "ask",
            rule,
            f"`{rule}`: nobody answers an ask, so this denies; write deny, or allow",
        )
    if unknown := unknown_permission(rule.permission):
        yield Finding("unknown", rule, unknown)
    over = next((r for r in later if _shadows(r, rule)), None)
    if over is not None:
        yield Finding(
            "shadowed",
            rule,
            f"`{rule}` can never decide: the later `{over}` covers it, and the last match wins",
        )
    program = _granted(rule)
    if program is not None:
        yield Finding("grants_execution", rule, _grant(rule, program))


def _shadows(later: Rule, rule: Rule) -> bool:
    """Does a later rule of the same origin decide all that this one could?

    Rules of different origins may cover each other: that is what the order of the stack is for.
    """
    if _LINE.sub("", later.source) != _LINE.sub("", rule.source):
        return False
    if not covers(later.permission, rule.permission, ""):
        return False
    if not covers(later.pattern, rule.pattern, rule.permission):
        return False
    if rule.action != "allow" or later.action != "allow" or later.pattern == rule.pattern:
        return True
    return not _more_exact(rule, later)


def _more_exact(rule: Rule, later: Rule) -> bool:
    """Two allows: does the first reach what the second is too vague for?"""
    guarded = {guard.permission for guard in DEFAULT_RULES if guards(guard)}
    if later.pattern == "*" and rule.permission not in guarded:
        return False
    if rule.permission == "bash":
        return " -" in rule.pattern or rule.pattern == "*"
    return any(
        guards(guard)
        and guard.permission == rule.permission
        and path_matches(guard.pattern, rule.pattern.lower())
        and names(rule.pattern, guard)
        for guard in DEFAULT_RULES
    )


def _granted(rule: Rule) -> str | None:
    """The program that a rule grants by its bare name, when that grants execution."""
    if rule.action != "allow" or not matches(rule.permission, "bash"):
        return None
    first, *rest = rule.pattern.split()
    program = first.rstrip("*").rpartition("/")[2]
    if "*" in first and rest and rest != ["*"]:
        return None
    while rest and rest[0].startswith("-") and "*" not in rest[0]:
        rest = rest[1:]
    bare = not rest or rest[0].startswith("*")
    wild = "*" in rule.pattern
    return program if bare and wild and program in GRANTS_EXECUTION else None


def _grant(rule: Rule, program: str) -> str:
    return (
        f"`{rule}` grants execution: {program} can run other programs or write any file by its"
        ' arguments; name the exact commands, or write bash: "*" and rely on the sandbox'
    )
