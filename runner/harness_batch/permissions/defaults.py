"""What holds when nobody declares anything: look at the workspace, but not at its secrets."""

from collections.abc import Iterable, Iterator

from harness_batch.permissions.secret_homes import IN_CONFIG, IN_HOME
from harness_batch.rules import Rule

SECRET_FILES = (
    "*.env",
    "*.env.*",
    "**/.envrc",
    # private keys
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    "**/id_rsa",
    "**/id_dsa",
    "**/id_ecdsa",
    "**/id_ed25519",
    # files of credentials
    "**/.netrc",
    "**/_netrc",
    "**/.npmrc",
    "**/.pypirc",
    "**/.pgpass",
    "**/.htpasswd",
    "**/.dockercfg",
    "**/.git-credentials",
    "**/credentials",
    "**/credentials.json",
    "**/credentials.yaml",
    "**/credentials.yml",
    "**/credentials.toml",
    "**/credentials.ini",
    "**/credentials.xml",
    "**/credentials.csv",
    "**/secrets.json",
    "**/secrets.yaml",
    "**/secrets.yml",
    "**/secrets.toml",
    "**/client_secret*.json",
    "**/service-account*.json",
    "**/auth.json",
    "**/.docker/config.json",
    "**/.kube/config",
    "**/.ssh/*",
    "**/.aws/*",
    "**/.gnupg/*",
)
"""Denied for `read` whatever their case; only a rule whose pattern names them reopens them."""

SECRET_HOMES = (
    *IN_HOME,
    *(f".config/{name}" for name in IN_CONFIG),
    *("_runner_file_commands", "docker.sock"),
)
"""Below a home: where people and programs keep what signs them in. A rule that opens the outside
(`external_directory: "*"`) does not mean them, neither to read nor to write; one that names them
does. The sandbox masks them."""

OWN_FILES = (".harness/runs", ".harness/history*", ".harness/*.lock")
"""The runner's own records, which lie in the checkout: no edit of an agent's, unless named."""


def _denied(permission: str, places: Iterable[str]) -> Iterator[Rule]:
    for place in places:
        yield Rule(permission, f"**/{place}", "deny", "default")
        yield Rule(permission, f"**/{place}/*", "deny", "default")


DEFAULT_RULES: tuple[Rule, ...] = (
    *(Rule(name, "*", "allow", "default") for name in ("read", "glob", "grep", "todo")),
    *(Rule("read", pattern, "deny", "default") for pattern in SECRET_FILES),
    Rule("read", "*.env.example", "allow", "default"),
    *_denied("external_directory", SECRET_HOMES),
    *_denied("edit", OWN_FILES),
)
"""The bottom of every stack. What no rule matches is denied."""


def guards(rule: Rule) -> bool:
    """Is this one of the default denies of secret files and homes?"""
    return rule.source == "default" and rule.action == "deny" and rule.pattern != "*"


def names(pattern: str, guard: Rule) -> bool:
    """Does a rule's pattern name the secret file that `guard` keeps, rather than sweep it in?

    The guard's own literal text must stand in it: `.env` reopens `*.env`, `src/**` does not.
    A guard of a folder may be named anywhere in the pattern, a guard of a file in its last parts.
    """
    literal = max(guard.pattern.removeprefix("**/").split("*"), key=len).strip("/")
    where = pattern.lower().replace("\\", "/")
    if not guard.pattern.endswith("/*"):
        where = "/".join(where.split("/")[-1 - literal.count("/") :])
    return literal in where
