"""The configuration door: the user's file, the repository's, the one of `--config`; later wins.

Every fault of every file is told at once. What a repository's own file may say is trust.py's.
"""

import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import Factory, define, evolve, field, fields

from harness_batch.config.auth_file import Stored, stored_keys, user_folder
from harness_batch.config.document import Document, Steps, read_document
from harness_batch.config.expansion import REFERENCE, Expansion
from harness_batch.config.keys import with_keys
from harness_batch.config.providers import (
    OWN_VARIABLES,
    built_in,
    provider_faults,
    secret_values,
    settings,
    with_declared,
)
from harness_batch.config.record import Config, DeclaredAgent
from harness_batch.config.run_defaults import merged_run
from harness_batch.config.schema import config_schema
from harness_batch.config.trust import Tightening
from harness_batch.errors import Fault, FaultyInput
from harness_batch.limits import Limits
from harness_batch.rules import Rule, rules_from, unknown_permissions
from harness_batch.schema_faults import schema_faults

NOT_YET = ("mcp", "lsp", "memory")
"""Keys whose engine this version does not have."""

REPOSITORY_FILE = "harness.jsonc"

Tree = dict[str, Any]


def load_config(
    *,
    repo: Path | None,
    explicit: Path | None,
    environ: Mapping[str, str],
    trust_repo: bool = False,
    use_repo: bool = True,
    taken_agents: Collection[str] = (),
) -> Config:
    """All sources merged.

    `repo` is the repository or a folder in it; `use_repo` False leaves its files out
    (`--no-repo-config`), `trust_repo` takes them like the user's own (`--trust-repo`).
    `taken_agents` are names that the user's own files define elsewhere.
    Raises: FaultyInput with the faults of all files.
    """
    merge = _Merge(environ, frozenset(taken_agents))
    found = _sources(repo if use_repo else None, explicit, environ, trust_repo=trust_repo)
    for file, trusted in found:
        try:
            merge.take(read_document(file, trusted=trusted))
        except FaultyInput as error:
            merge.faults += error.faults
    return merge.config()


def _sources(
    repo: Path | None, explicit: Path | None, environ: Mapping[str, str], *, trust_repo: bool
) -> Iterator[tuple[Path, bool]]:
    user = _user_file(environ)
    if user is not None and user.exists():
        yield user, True
    chosen = {file.resolve() for file in (user, explicit) if file is not None}
    for file in _repository_files(repo) if repo is not None else ():
        if file.resolve() not in chosen:
            yield file, trust_repo
    if explicit is not None:
        yield explicit, True


def _user_file(environ: Mapping[str, str]) -> Path | None:
    folder = user_folder(environ)
    return None if folder is None else folder / "config.jsonc"


def _repository_files(repo: Path) -> list[Path]:
    """`harness.jsonc` from the repository's top down to `repo`."""
    start = repo.resolve()
    folders = [start, *start.parents]
    top = next((i for i, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    files = (folder / REPOSITORY_FILE for folder in reversed(folders[: top + 1]))
    return [file for file in files if file.exists() or file.is_symlink()]


@define
class _Merge:
    """The files taken in so far, in order."""

    environ: Mapping[str, str]
    taken_agents: frozenset[str] = frozenset()
    documents: list[Document] = Factory(list)
    providers: Tree = field(factory=dict, repr=False)
    agents: dict[str, DeclaredAgent] = Factory(dict)
    plain: Tree = Factory(dict)
    """`model`, `small_model`, `grants`, `run`: the last file that says it."""
    rules: list[Rule] = Factory(list)
    limits: Limits = Factory(Limits)
    ceiling: Limits = Factory(Limits)
    instructions: dict[str, None] = Factory(dict)
    faults: list[Fault] = Factory(list)
    warnings: list[Fault] = Factory(list)
    secrets: list[str] = field(factory=list, repr=False)

    def __attrs_post_init__(self) -> None:
        self.providers = built_in(self.environ)

    def take(self, document: Document) -> None:
        """One more file on top; its faults and warnings are kept for the end."""
        tightening = Tightening(document, self.taken_agents | frozenset(self.agents))
        body = document.body if document.trusted else tightening.without_barred_keys()
        faults = [*_faults(document, body)]
        if not faults:
            body = self._resolved(document, body, tightening)
        self.warnings += tightening.warnings
        self.faults += faults
        self.documents.append(document)
        if not faults:
            self._put(document, body)

    def _resolved(self, document: Document, body: Tree, tightening: Tightening) -> Tree:
        if not document.trusted:
            return tightening.body(body)
        expansion = Expansion(document, self.environ)
        resolved = expansion.body()
        self.secrets += expansion.secrets
        self.faults += expansion.faults
        self.warnings += _open_keys(document)
        return resolved

    def _put(self, document: Document, body: Tree) -> None:
        self.providers = with_declared(self.providers, body.get("provider", {}))
        self.rules += rules_from(body.get("permissions", {}), f"config:{document.file}")
        if document.trusted:
            self.limits = evolve(self.limits, **_limits(body))
        else:
            self.ceiling = self.ceiling.lowest(Limits(**_limits(body)))
        self.instructions |= dict.fromkeys(self._instructions(document, body))
        for name, tree in body.get("agents", {}).items():
            self.agents[name] = _agent(name, self.agents.get(name), tree)
        for key in ("model", "small_model"):
            if key in body:
                self.plain[key] = body[key]
        if "grants" in body:
            self.plain["grants"] = {**self.plain.get("grants", {}), **body["grants"]}
        run = {**({"db": db} if (db := body.get("history", {}).get("db")) else {})}
        run |= body.get("run", {})
        self.plain["run"] = merged_run(self.plain.get("run", {}), run, trusted=document.trusted)

    def _instructions(self, document: Document, body: Tree) -> Iterator[str]:
        home = self.environ.get("HOME")
        for glob in body.get("instructions", ()):
            mine = document.trusted and home and glob.startswith("~/")
            yield f"{home}{glob[1:]}" if mine else glob

    def _secrets(self, stored: Stored) -> Iterator[str]:
        """Also those that no provider uses: what is there may be printed."""
        yield from self.secrets
        yield from stored.keys.values()
        yield from filter(None, map(self.environ.get, OWN_VARIABLES.values()))

    def config(self) -> Config:
        """The record. Raises: FaultyInput."""
        told = {(fault.file, fault.line, fault.column) for fault in self.faults}
        more = provider_faults(self.providers, self.documents)
        faults = [*self.faults, *(f for f in more if (f.file, f.line, f.column) not in told)]
        if faults:
            raise FaultyInput(faults)
        stored = stored_keys(self.environ)
        providers = settings(with_keys(self.providers, self.environ, stored))
        grants = self.plain.get("grants")
        known = {*self._secrets(stored), *secret_values(providers)}
        return Config(
            providers=providers,
            model=self.plain.get("model"),
            small_model=self.plain.get("small_model"),
            grants=None if grants is None else {name: tuple(m) for name, m in grants.items()},
            rules=tuple(self.rules),
            limits=self.limits,
            ceiling=self.ceiling,
            agents=tuple(self.agents.values()),
            instructions=tuple(self.instructions),
            run=self.plain.get("run", {}),
            files=tuple(document.file for document in self.documents),
            warnings=tuple(self.warnings),
            secrets=tuple(sorted(known, key=lambda secret: (-len(secret), secret))),
        )


def _faults(document: Document, body: Tree) -> Iterator[Fault]:
    yield from schema_faults(body, config_schema(), file=document.file, place=document.place)
    for key in NOT_YET:
        if body.get(key):
            told = f"{key!r} is not supported by this version; remove it"
            yield document.fault((key,), told)
    declared: list[tuple[Steps, object]] = [(("permissions",), body.get("permissions"))]
    agents = body.get("agents")
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        if isinstance(agent, dict):
            declared.append((("agents", name, "permissions"), agent.get("permissions")))
    for path, permissions in declared:
        for permission, told in unknown_permissions(permissions):
            yield document.fault((*path, permission), told)


def _open_keys(document: Document) -> Iterator[Fault]:
    try:
        mode = document.file.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode) or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return
    for name, provider in document.body.get("provider", {}).items():
        if provider.get("api_key") and not REFERENCE.search(provider["api_key"]):
            told = "a literal api_key in a file that others can read: chmod 600, or {env:NAME}"
            yield document.warning(("provider", name, "api_key"), told)


def _limits(body: Tree) -> Tree:
    declared: Tree = dict(body.get("limits", {}))
    if "cost_usd" in declared:
        declared["cost_usd"] = Decimal(str(declared["cost_usd"]))
    return declared


def _agent(name: str, before: DeclaredAgent | None, tree: Tree) -> DeclaredAgent:
    agent = before or DeclaredAgent(name=name)
    rules = rules_from(tree.get("permissions", {}), f"agent:{name}")
    known: Iterable[str] = (entry.name for entry in fields(DeclaredAgent))
    changes = {key: tree[key] for key in known if key in tree}
    return evolve(agent, **changes, rules=(*agent.rules, *rules))
