"""Why a session ended as it did: one table from reason to JUnit `type` and to human words.

The types are stable: dashboards group by them and scripts match them. They never change and are
never reused; a new reason gets a new line here, and `docs` list what `documented()` gives.

    check:NAME  -> check.NAME       a check of the recipe failed
    expect:NAME -> expect.NAME      an expectation of the recipe does not hold
    agent.*     what the model did: an empty answer, one that does not fit the schema
    limit.*     a limit of the session or of the run
    policy.*    permissions, patch rules, secrets
    provider.*  the model provider: authentication, quota, network
    infra.*     this machine or this program: git, sandbox, storage, a killed runner
    run.*       the run as a whole: interrupted, not admitted, cached
"""

import re
from typing import Literal

from attrs import frozen

from harness_batch_reports.records import Attempt, Check, Session

Kind = Literal["passed", "failure", "error", "skipped"]
"""What JUnit makes of a session."""


@frozen
class Meaning:
    """The stable JUnit type of a reason, and its words for people.

    `{}` in the words stands for the subject, which may come from a recipe: a report writes it as
    its format writes text that is not ours.
    """

    type: str
    words: str
    subject: str | None = None

    @property
    def text(self) -> str:
        """The words with the subject in, as plain text."""
        return self.words if self.subject is None else self.words.replace("{}", self.subject)


REASONS: dict[str, Meaning] = {
    "empty": Meaning("agent.empty", "the agent answered nothing and changed nothing"),
    "schema": Meaning("agent.schema", "the answer does not fit the recipe's schema"),
    "content_filter": Meaning("agent.content_filter", "the provider's content filter stopped it"),
    "needs_human": Meaning("agent.needs_human", "the agent asked for a person"),
    "max_steps": Meaning("limit.steps", "the step limit was reached"),
    "max_tool_calls": Meaning("limit.tool_calls", "the limit of tool calls was reached"),
    "max_tokens": Meaning("limit.tokens", "the token limit was reached"),
    "max_cost": Meaning("limit.cost", "the cost limit was reached"),
    "max_time": Meaning("limit.time", "the time limit was reached"),
    "max_seconds": Meaning("limit.time", "the time limit was reached"),
    "max_working_seconds": Meaning("limit.working_time", "the working-time limit was reached"),
    "max_tool_seconds": Meaning("limit.tool_time", "the limit of tool time was reached"),
    "max_output_bytes": Meaning("limit.output_bytes", "the limit of tool output was reached"),
    "output_length": Meaning("limit.output", "a reply was cut off at the output limit"),
    "permission": Meaning("policy.denied", "the rules denied what the agent wanted to do"),
    "doom_loop": Meaning("policy.doom_loop", "the agent repeated the same call"),
    "patch": Meaning("policy.patch", "the patch rules refuse the change"),
    "secret_leak": Meaning("policy.secret_leak", "a secret was found in the output"),
    "grant": Meaning("policy.grant", "the model is not granted to this recipe"),
    "auth": Meaning("provider.auth", "the provider's key is missing or was refused"),
    "quota": Meaning("provider.quota", "the provider account has no credit left"),
    "rate_limit": Meaning("provider.rate_limit", "the provider kept limiting the rate"),
    "unavailable": Meaning("provider.unavailable", "the provider was not available"),
    "network": Meaning("provider.network", "the connection to the provider failed"),
    "timeout": Meaning("provider.timeout", "the provider did not answer in time"),
    "model": Meaning("provider.model", "the provider refused the model or the request"),
    "protocol": Meaning("provider.protocol", "the provider's answer broke its protocol"),
    "context_overflow": Meaning(
        "provider.context_overflow", "the conversation outgrew the model's window"
    ),
    "killed": Meaning("infra.killed", "the runner was killed"),
    "shard_missing": Meaning("infra.shard_missing", "its machine never came to it"),
    "unfinished": Meaning("infra.unfinished", "the session never ended"),
    "git": Meaning("infra.git", "git failed"),
    "workspace": Meaning("infra.workspace", "the workspace could not be made"),
    "setup": Meaning("infra.setup", "a setup command failed"),
    "sandbox": Meaning("infra.sandbox", "the sandbox could not be set up"),
    "mcp": Meaning("infra.mcp", "a tool server failed"),
    "storage": Meaning("infra.storage", "disk or database failed"),
    "internal": Meaning("infra.internal", "a fault of the runner itself"),
    "cancelled": Meaning("run.cancelled", "the run was interrupted"),
    "interrupted": Meaning("run.cancelled", "the run was interrupted"),
    "max_failures": Meaning("run.max_failures", "the run stopped after too many failures"),
    "not_admitted": Meaning("run.not_admitted", "the run stopped before its turn"),
    "flaky": Meaning("run.flaky", "it passed after a failed try"),
    "cached": Meaning("run.cached", "an earlier result was reused"),
}
"""Every exact reason. `check:NAME`, `expect:NAME` and `provider_KIND` follow their pattern."""

_BY_TYPE = {meaning.type: meaning for meaning in reversed(REASONS.values())}
"""A reason may be a type already, as that of a session whose runner died."""
_PREFIXES = {"check": "check {} failed", "expect": "expectation {} does not hold"}
_ODD = re.compile(r"[^A-Za-z0-9_.\-]+")
_NAME_LIMIT = 64

_KINDS: dict[str | None, Kind] = {
    "passed": "passed",
    "failed": "failure",
    "errored": "error",
    "cancelled": "error",
    "skipped": "skipped",
    "cached": "skipped",
    None: "error",
}


def kind(session: Session | Attempt) -> Kind:
    """Failure: the work is not good. Error: provider, machine or we failed. Never two."""
    return _KINDS.get(session.status, "error")


def meaning(session: Session | Attempt) -> Meaning:
    """Type and words of a session or attempt that did not pass."""
    if session.status == "cancelled":
        return REASONS["cancelled"]
    if session.status == "cached":
        return REASONS["cached"]
    if session.status is None:
        return REASONS["unfinished"]
    if session.reason is None:
        return Meaning(f"{_family(session)}.unknown", "no reason was recorded")
    return of_reason(session.reason, _family(session))


def check_meaning(check: Check) -> Meaning:
    """Type and words of a check that failed."""
    return of_reason(check.code, "check")


def of_reason(reason: str, family: str = "infra") -> Meaning:
    """Type and words of a reason; one that is not in the table becomes `family.reason`."""
    if known := REASONS.get(reason) or _BY_TYPE.get(reason):
        return known
    head, colon, name = reason.partition(":")
    if colon and (words := _PREFIXES.get(head)):
        return Meaning(f"{head}.{code_word(name)}", words, name)
    provider = reason.removeprefix("provider_")
    if provider in REASONS and provider != reason:
        return Meaning(f"provider.{provider}", REASONS[provider].words)
    if provider != reason:
        return Meaning(f"provider.{code_word(provider)}", "the provider failed: {}", provider)
    return Meaning(f"{family}.{code_word(reason)}", "{}", reason.replace("_", " "))


def code_word(name: str) -> str:
    """The name as part of a type: letters, digits, `_`, `.`, `-`, at most 64 characters."""
    return _ODD.sub("_", name)[:_NAME_LIMIT] or "_"


def documented() -> tuple[tuple[str, str, str], ...]:
    """Reason, type and words of the whole table, as the user guide lists them."""
    patterns = (
        ("check:NAME", "check.NAME", "a check of the recipe failed"),
        ("expect:NAME", "expect.NAME", "an expectation of the recipe does not hold"),
        ("provider_KIND", "provider.KIND", "the model provider failed"),
    )
    return patterns + tuple((reason, m.type, m.words) for reason, m in REASONS.items())


def _family(session: Session | Attempt) -> str:
    if session.error_kind in {"infra", "provider", "agent", "policy", "task"}:
        return str(session.error_kind)
    return {"failed": "task", "skipped": "run"}.get(session.status or "", "infra")
