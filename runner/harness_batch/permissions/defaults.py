"""What holds when nobody declares anything: look at the workspace, but not at its secrets."""

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

DEFAULT_RULES: tuple[Rule, ...] = (
    *(Rule(name, "*", "allow", "default") for name in ("read", "glob", "grep", "todo")),
    *(Rule("read", pattern, "deny", "default") for pattern in SECRET_FILES),
    Rule("read", "*.env.example", "allow", "default"),
)
"""The bottom of every stack. What no rule matches is denied."""


def guards(rule: Rule) -> bool:
    """Is this one of the default denies of secret files?"""
    return rule.source == "default" and rule.action == "deny" and rule.pattern != "*"


def names(pattern: str, guard: Rule) -> bool:
    """Does a rule's pattern name the secret file that `guard` keeps, rather than sweep it in?

    The guard's own literal text must stand in it: `.env` reopens `*.env`, `src/**` does not.
    A guard of a folder may be named anywhere in the pattern, a guard of a file in its last part.
    """
    pattern = pattern.lower().replace("\\", "/")
    where = pattern if guard.pattern.endswith("/*") else pattern.rpartition("/")[2]
    return max(guard.pattern.removeprefix("**/").split("*"), key=len).strip("/") in where
