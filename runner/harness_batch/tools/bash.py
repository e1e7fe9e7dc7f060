"""The bash tool: one shell command in the session's sandbox."""

from collections.abc import Sequence
from functools import cache

from attrs import frozen

from harness_batch.errors import SandboxError
from harness_batch.limits import BASH_TIMEOUT_MAX_SECONDS, BASH_TIMEOUT_SECONDS
from harness_batch.messages import JsonObject
from harness_batch.permissions.shell import ShellPlace, asks_of, refusal
from harness_batch.processes import Command, CommandEnd, own_program
from harness_batch.rules import Ask
from harness_batch.tools.capture import Capture
from harness_batch.tools.paths import Place, Refused, locate
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.truncation import safe_name

MAX_COMMAND = 100_000
"""Bytes of a command; the kernel takes 128 KiB for one argument."""


@frozen
class BashTool:
    """Runs a command with bash."""

    name: str = "bash"
    permission: str = "bash"
    description: str = (
        "Runs a command with bash in the workspace and answers with its output (stdout and stderr "
        "as they came), exit code and duration. No stdin, no terminal; each call is a fresh shell, "
        "and background processes are killed when the command ends. timeout is in seconds, "
        f"{BASH_TIMEOUT_SECONDS} by default and {BASH_TIMEOUT_MAX_SECONDS} at most. Of long output "
        "the end is shown. Use read, edit, glob and grep for files rather than cat, sed, find and "
        "grep. git push, git remote and git config are refused: the runner does git."
    )

    @property
    def parameters(self) -> JsonObject:
        """A command and how to run it."""
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": MAX_COMMAND},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": BASH_TIMEOUT_MAX_SECONDS,
                    "description": f"Seconds; {BASH_TIMEOUT_SECONDS} when left out.",
                },
                "workdir": {
                    "type": "string",
                    "description": "Folder to run in; the workspace when left out.",
                },
                "description": {"type": "string", "description": "What it does, in a few words."},
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """Every simple command of the shell text, its redirections, and a folder outside."""
        folder = _folder(arguments, context)
        if isinstance(folder, Refused):
            return folder.result()
        command = arguments["command"]
        place = ShellPlace(context.root, folder.path, context.tmp)
        unfit = _unfit(command) or refusal(command, place)
        return asks_of(command, place) if unfit is None else Refused(unfit).result()

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Run it to its end or its timeout."""
        shell = _bash()
        folder = _folder(arguments, context)
        if isinstance(folder, Refused):
            return folder.result()
        if shell is None:
            return Refused("there is no bash on this host.").result()
        timeout = arguments.get("timeout", BASH_TIMEOUT_SECONDS)
        file = context.outputs / f"{safe_name(call_id)}.txt"
        capture = Capture(file, context.secrets.in_stream())
        command = Command(
            argv=(shell, "--noprofile", "--norc", "-c", arguments["command"]),
            cwd=folder.path,
            timeout=float(timeout),
        )
        try:
            end = await context.launcher.run(command, capture.add)
        except SandboxError as error:
            return Refused(f"the command could not be started: {error}").result()
        finally:
            capture.close()
        return _told(arguments, capture, end, float(timeout))


def _told(arguments: JsonObject, capture: Capture, end: CommandEnd, timeout: float) -> ToolResult:
    body = capture.text()
    if body and not body.endswith("\n"):
        body += "\n"
    trouble = f"[{capture.trouble}]\n" if capture.trouble else ""
    return ToolResult(
        output=f"{body or '(no output)' + chr(10)}{trouble}[{_ending(end, timeout)}]",
        title=arguments.get("description") or arguments["command"][:80],
        status="timeout" if end.timed_out else "completed",
        exit_code=end.exit_code,
        metadata={"output_bytes": capture.total, "duration_s": round(end.duration_s, 3)},
        keep="tail",
        whole=capture.whole,
    )


def _ending(end: CommandEnd, timeout: float) -> str:
    if end.timed_out:
        return (
            f"timed out after {timeout:g} s and was killed with all its processes; what it printed "
            f"until then stands above. timeout may be up to {BASH_TIMEOUT_MAX_SECONDS} s"
        )
    if end.limit:
        return f"{end.limit}, after {end.duration_s:.1f} s (exit code {end.exit_code})"
    if end.exit_code is not None and end.exit_code < 0:
        return f"killed by signal {-end.exit_code} after {end.duration_s:.1f} s"
    return f"exit code {end.exit_code} after {end.duration_s:.1f} s"


def _folder(arguments: JsonObject, context: ToolContext) -> Place | Refused:
    wanted = arguments.get("workdir")
    if wanted is None:
        return Place(context.cwd, context.root)
    place = locate(wanted, context)
    if isinstance(place, Place) and not place.path.is_dir():
        return Refused(f"workdir {place.shown} is not a folder.")
    return place


def _unfit(command: str) -> str | None:
    if not command.strip():
        return "the command is empty."
    if "\0" in command:
        return "the command holds a NUL byte; remove it."
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        return "the command holds a lone surrogate; remove it."
    if size > MAX_COMMAND:
        return (
            f"the command has {size} bytes, at most {MAX_COMMAND} are possible; write a script "
            "with the write tool and run it."
        )
    return None


@cache
def _bash() -> str | None:
    return own_program("bash")
