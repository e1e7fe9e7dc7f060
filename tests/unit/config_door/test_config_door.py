"""The configuration door: layers, references, records, and every fault with its place."""

import json
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.config.document import read_document
from harness_batch.config.door import load_config
from harness_batch.config.record import Config, ModelInfo, Prices
from harness_batch.config.schema import config_schema
from harness_batch.errors import FaultyInput
from harness_batch.limits import Limits
from harness_batch.rules import Rule

EXAMPLE = """{"provider": {"mine": {"type": "openai-chat", "base_url": "http://127.0.0.1:8080/v1",
 "api_key": "{env:KEY}", "models": {"m": {"context": 128000, "output": 8000,
 "cost": {"input": 3.0, "output": 15.0}}}}}}"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".config" / "harness-batch").mkdir(parents=True)
    return folder


@pytest.fixture
def user_file(home: Path) -> Path:
    return home / ".config" / "harness-batch" / "config.jsonc"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    return folder


def load(
    home: Path,
    repo: Path | None = None,
    explicit: Path | None = None,
    environ: Mapping[str, str] | None = None,
    trust_repo: bool = False,
) -> Config:
    return load_config(
        repo=repo,
        explicit=explicit,
        environ={"HOME": str(home), **(environ or {})},
        trust_repo=trust_repo,
    )


def faults_of(text: str, tmp_path: Path, environ: Mapping[str, str] | None = None) -> list[str]:
    file = tmp_path / "c.jsonc"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FaultyInput) as caught:
        load_config(repo=None, explicit=file, environ=environ or {})
    assert all(fault.file in {file, Path("environment")} for fault in caught.value.faults)
    return [f"{fault.line}:{fault.message}" for fault in caught.value.faults]


def test_without_files_the_built_in_providers_are_there(home: Path) -> None:
    config = load(home, environ={"ANTHROPIC_API_KEY": "sk-ant-123456"})
    names = ["anthropic", "copilot", "openai", "openai-responses", "replay", "scripted"]
    assert sorted(config.providers) == names
    anthropic = config.providers["anthropic"]
    assert (anthropic.type, anthropic.base_url) == ("anthropic", "https://api.anthropic.com")
    assert anthropic.api_key == "sk-ant-123456"
    openai = config.providers["openai"]
    assert (openai.type, openai.base_url) == ("openai-chat", "https://api.openai.com/v1")
    assert (openai.api_key, openai.key_origin.variable) == (None, "OPENAI_API_KEY")
    assert not openai.configured_base_url
    assert config.grants is None
    assert config.secrets == ("sk-ant-123456",)


def test_base_urls_of_the_environment_replace_the_built_in_ones(home: Path) -> None:
    config = load(home, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert config.providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert config.providers["openai"].configured_base_url


def test_a_base_url_of_the_environment_that_is_none_is_a_fault(home: Path) -> None:
    with pytest.raises(FaultyInput, match="from OPENAI_BASE_URL"):
        load(home, environ={"OPENAI_BASE_URL": "127.0.0.1"})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"base_url": "http://exa mple/v1"}, "base_url must be a web address"),
        ({"base_url": "http://127.0.0.1/v1\u0001"}, "base_url must be a web address"),
        ({"headers": {"x a": "b"}}, "the header 'x a' cannot be sent"),
        ({"headers": {"x-a": "sécret"}}, "the header 'x-a' cannot be sent"),
        ({"headers": {"x-a": "sec\nret"}}, "the header 'x-a' cannot be sent"),
        ({"models": {"m": {"cost": {"input": 1e30, "output": 1}}}}, "1000000"),
    ],
)
@pytest.mark.parametrize("kind", ["openai-chat", "copilot"])
def test_what_no_request_could_carry_is_a_fault_before_there_is_one(
    home: Path, user_file: Path, said: dict[str, object], told: str, kind: str
) -> None:
    mine = {"type": kind, "base_url": "http://127.0.0.1/v1", **said}
    user_file.write_text(json.dumps({"provider": {"mine": mine}}))
    with pytest.raises(FaultyInput) as caught:
        load(home)
    assert told in str(caught.value)
    assert "ret" not in str(caught.value)


def test_the_documented_example_gives_its_provider(home: Path, user_file: Path) -> None:
    user_file.write_text(EXAMPLE)
    provider = load(home, environ={"KEY": "secret-value"}).providers["mine"]
    assert provider.api_key == "secret-value"
    assert provider.api_key_env == "KEY"
    assert provider.configured_base_url
    prices = Prices(input=Decimal("3.0"), output=Decimal("15.0"))
    assert provider.models == {"m": ModelInfo(context=128000, output=8000, prices=prices)}


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}])
def test_a_key_whose_variable_is_not_set_is_left_open(
    home: Path, user_file: Path, environ: dict[str, str]
) -> None:
    user_file.write_text(EXAMPLE)
    provider = load(home, environ=environ).providers["mine"]
    assert provider.api_key is None
    assert provider.api_key_env == "KEY"


@pytest.mark.parametrize(
    ("environ", "key"), [({}, "literal-key"), ({"ANTHROPIC_API_KEY": "other"}, "other")]
)
def test_a_literal_key_is_what_there_is_when_the_environment_has_none(
    home: Path, user_file: Path, environ: dict[str, str], key: str
) -> None:
    user_file.write_text('{"provider": {"anthropic": {"api_key": "literal-key"}}}')
    user_file.chmod(0o600)
    config = load(home, environ=environ)
    assert config.providers["anthropic"].api_key == key
    assert config.warnings == ()


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o644, True)])
def test_a_literal_key_that_others_can_read_is_a_warning(
    home: Path, user_file: Path, mode: int, warned: bool
) -> None:
    user_file.write_text('{"provider": {\n"anthropic": {"api_key": "literal-key"}}}')
    user_file.chmod(mode)
    warnings = load(home).warnings
    assert [(w.line, "chmod 600" in w.message) for w in warnings] == ([(2, True)] if warned else [])


def test_another_type_under_a_built_in_name_inherits_neither_key_nor_address(
    home: Path, user_file: Path
) -> None:
    user_file.write_text(
        '{"provider": {"anthropic": {"type": "openai-chat", "base_url": "http://x/v1"}}}'
    )
    provider = load(home, environ={"ANTHROPIC_API_KEY": "k"}).providers["anthropic"]
    assert (provider.api_key, provider.base_url) == (None, "http://x/v1")


def test_later_files_win_key_by_key(home: Path, user_file: Path, tmp_path: Path) -> None:
    user_file.write_text(
        """{ // comments and trailing commas are fine
        model: 'anthropic/one', small_model: "anthropic/small",
        "provider": {"mine": {"type": "anthropic", "base_url": "http://a", "headers": {"A": "1"}}},
        "limits": {"steps": 30, "seconds": 60},
        "instructions": ["~/style.md", "docs/a.md"],
        "grants": {"build": ["a/*"], "plan": []},
        "history": {"db": "h.duckdb"},
        "run": {"jobs": 2, "deny": ["bash"]},
        }"""
    )
    explicit = tmp_path / "more.jsonc"
    explicit.write_text(
        """{"model": "openai/two", "provider": {"mine": {"headers": {"B": "2"}}},
        "limits": {"steps": 40, "cost_usd": 0.1}, "instructions": ["docs/b.md", "docs/a.md"],
        "grants": {"build": ["b/c"]}, "run": {"jobs": 4}}"""
    )
    config = load(home, explicit=explicit)
    assert (config.model, config.small_model) == ("openai/two", "anthropic/small")
    assert config.providers["mine"].headers == {"A": "1", "B": "2"}
    assert config.limits == Limits(steps=40, seconds=60, cost_usd=Decimal("0.1"))
    assert config.instructions == (f"{home}/style.md", "docs/a.md", "docs/b.md")
    assert config.grants == {"build": ("b/c",), "plan": ()}
    assert config.run == {"jobs": 4, "deny": ["bash"], "db": "h.duckdb"}
    assert config.files == (user_file, explicit)


def test_rules_keep_their_written_order_across_files(
    home: Path, user_file: Path, tmp_path: Path
) -> None:
    user_file.write_text('{"permissions": {"edit": {"src/**": "allow", "src/v/**": "deny"}}}')
    explicit = tmp_path / "more.jsonc"
    explicit.write_text('{"permissions": {"bash": "allow", "edit": {"src/**": "ask"}}}')
    one, two = f"config:{user_file}", f"config:{explicit}"
    assert load(home, explicit=explicit).rules == (
        Rule("edit", "src/**", "allow", one),
        Rule("edit", "src/v/**", "deny", one),
        Rule("bash", "*", "allow", two),
        Rule("edit", "src/**", "ask", two),
    )


def test_agents_are_declared_field_by_field(home: Path, user_file: Path, tmp_path: Path) -> None:
    user_file.write_text(
        '{"agents": {"doc": {"prompt": "Write docs.", "permissions": {"bash": "deny"}}}}'
    )
    explicit = tmp_path / "more.jsonc"
    explicit.write_text(
        '{"agents": {"doc": {"steps": 3, "permissions": {"bash": {"ls *": "allow"}}}}}'
    )
    (agent,) = load(home, explicit=explicit).agents
    assert (agent.name, agent.prompt, agent.steps, agent.mode) == ("doc", "Write docs.", 3, None)
    assert agent.rules == (
        Rule("bash", "*", "deny", "agent:doc"),
        Rule("bash", "ls *", "allow", "agent:doc"),
    )


def test_xdg_config_home_is_honoured(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "xdg" / "harness-batch"
    folder.mkdir(parents=True)
    (folder / "config.jsonc").write_text('{"model": "a/b"}')
    config = load(home, environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")})
    assert config.model == "a/b"


def test_references_are_expanded_in_the_users_files(home: Path, user_file: Path) -> None:
    (user_file.parent / "key.txt").write_text("file-secret\n")
    user_file.write_text(
        """{"model": "{env:M}", "provider": {
        "a": {"type": "anthropic", "base_url": "{env:URL}/x", "api_key": "{file:key.txt}",
              "headers": {"Authorization": "Bearer {env:TOKEN}", "X-Team": "blue"}},
        "b": {"type": "openai-chat", "base_url": "http://user:pass-word@h/v1"}}}"""
    )
    environ = {"M": "a/model", "URL": "http://h", "TOKEN": "tok-123"}
    config = load(home, environ=environ)
    assert config.model == "a/model"
    assert config.providers["a"].base_url == "http://h/x"
    assert config.providers["a"].api_key == "file-secret"
    assert config.providers["a"].headers["Authorization"] == "Bearer tok-123"
    assert config.secrets == ("Bearer tok-123", "file-secret", "pass-word", "tok-123")


def test_no_secret_is_in_a_repr(home: Path, user_file: Path) -> None:
    user_file.write_text(
        """{"provider": {"a": {"type": "anthropic", "base_url": "http://h",
        "api_key": "{env:KEY}", "headers": {"x-api-key": "{env:KEY}"}}}}"""
    )
    config = load(home, environ={"KEY": "canary-4711", "OPENAI_API_KEY": "canary-4711"})
    assert config.secrets == ("canary-4711",)
    assert "canary" not in repr(config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:is not JSON with comments: No JSON data found"),
        ('{\n"model": "a/b"\n"run": {}}', "3:is not JSON with comments: Expected ',' or '}'"),
        ("[]", "1:the file must hold one object"),
        ('{"model": "a/b",\n "model": "c/d"}', "2:the key 'model' is there twice (line 1)"),
        ('{\n"models": "a/b"}', "2:unknown key `models`; did you mean `model`?"),
        ('{"zzz": 1}', "1:unknown key `zzz`"),
        ('{"model": "claude"}', '1:`model` must be PROVIDER/MODEL, not the text "claude"'),
        ('{"model": 3}', "1:`model` must be PROVIDER/MODEL, not the number 3"),
        ('{"limits": {\n"steps": 0}}', "2:`limits.steps` must be at least 1, not 0"),
        (
            '{"limits": {"steps": 1.5}}',
            "1:`limits.steps` must be a whole number, not the number 1.5",
        ),
        ('{"limits": {"seconds": 0}}', "1:`limits.seconds` must be more than 0, not 0"),
        ('{"limits": {"cost_usd": NaN}}', "1:nan is not a number"),
        ('{"limits": {"step": 1}}', "1:unknown key `step` in `limits`; did you mean `steps`?"),
        ('{"permissions": {"edt": "deny"}}', "1:unknown permission `edt`; did you mean `edit`?"),
        (
            '{"permissions": {"edit": "allows"}}',
            "1:`permissions.edit` must be allow, deny or ask, or a mapping of patterns to them",
        ),
        ('{"permissions": {"edit": 1}}', "1:`permissions.edit` must be"),
        (
            '{"permissions": {"edit": {\n"a": "no"}}}',
            '2:`permissions.edit.a` must be allow, deny or ask, not the text "no"',
        ),
        ('{"run": {"only": 3}}', "1:`run.only` must be a text or a list, not the number 3"),
        ('{"provider": {"a b": {}}}', '1:`provider["a b"]` must be a name of letters'),
        ('{"mcp": {"x": {}}}', "1:'mcp' is not supported by this version"),
        ('{"lsp": {"x": {}}}', "1:'lsp' is not supported by this version"),
        ('{"memory": {"x": 1}}', "1:'memory' is not supported by this version"),
        ('{"provider": {"x": {}}}', "1:provider 'x' needs 'type'"),
        ('{"provider": {"x": {"type": "openai"}}}', "1:`provider.x.type` must be anthropic"),
        ('{"provider": {"x": {"type": "openai-chat"}}}', "1:provider 'x' needs 'base_url'"),
        (
            '{"provider": {\n"x": {"type": "anthropic", "base_url": "ftp://h"}}}',
            "2:provider 'x': base_url must be a web address",
        ),
        ('{"provider": {"x": {"apikey": "k"}}}', "did you mean `api_key`?"),
        (
            '{"provider": {"x": {"headers": {"A": 1}}}}',
            "1:`provider.x.headers.A` must be a text, not the number 1",
        ),
        ('{"provider": {"openai": {"models": {"m": {"cost": {"in": 1}}}}}}', "unknown key `in`"),
        ('{"provider": {"openai": {"headers": {"A": "{env:NOPE}"}}}}', "'NOPE'"),
        ('{"model": "{env:}/x"}', "names nothing"),
        ('{"model": "{file:gone.txt}/x"}', "{file:gone.txt} cannot be read: No such file"),
        (
            '{"agents": {"a": {"mode": "both"}}}',
            "1:`agents.a.mode` must be primary, subagent or all",
        ),
        ('{"agents": {"a": {"permissions": {"bsh": "deny"}}}}', "did you mean `bash`?"),
        ('{"run": {"jobz": 1}}', "1:unknown key `jobz` in `run`; did you mean `jobs`?"),
        ('{"run": {"max_time": "soon"}}', "a duration such as 90, 30m or 2h"),
        ('{"grants": {"build": "all"}}', '1:`grants.build` must be a list, not the text "all"'),
        ('{"model": "a/\\ud800"}', "is not JSON with comments"),
        ('{"model": ' + "[" * 100 + "]" * 100 + "}", "is not JSON with comments"),
    ],
)
def test_bad_files_say_what_and_where(text: str, expected: str, tmp_path: Path) -> None:
    told = faults_of(text, tmp_path)
    assert any(expected in line for line in told), told


def test_all_faults_of_all_files_are_told_at_once(
    home: Path, user_file: Path, tmp_path: Path
) -> None:
    user_file.write_text('{\n"models": 1,\n"limits": {"steps": -1}, "mcp": {"a": {}}}')
    explicit = tmp_path / "more.jsonc"
    explicit.write_text('{"run": 3}')
    with pytest.raises(FaultyInput) as caught:
        load(home, explicit=explicit)
    assert [(f.file, f.line) for f in caught.value.faults] == [
        (user_file, 2),
        (user_file, 3),
        (user_file, 3),
        (explicit, 1),
    ]


@pytest.mark.parametrize("name", ["gone.jsonc", "."])
def test_a_config_file_that_cannot_be_read_is_a_fault(tmp_path: Path, name: str) -> None:
    with pytest.raises(FaultyInput, match="cannot be read"):
        load_config(repo=None, explicit=tmp_path / name, environ={})


def test_bytes_that_are_no_text_and_huge_files_are_faults(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonc"
    file.write_bytes(b'{\n"model": "\xff"}')
    with pytest.raises(FaultyInput, match=r"c\.jsonc:2:1: is not UTF-8"):
        load_config(repo=None, explicit=file, environ={})
    file.write_bytes(b" " * 1_000_001)
    with pytest.raises(FaultyInput, match="larger than"):
        load_config(repo=None, explicit=file, environ={})


def test_a_pipe_serves_as_explicit_file(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b'{"model": "a/b"}')
    os.close(writer)
    try:
        config = load_config(repo=None, explicit=Path(f"/dev/fd/{reader}"), environ={})
    finally:
        os.close(reader)
    assert config.model == "a/b"


def test_the_schema_names_every_key_of_the_contract() -> None:
    keys = set(config_schema()["properties"]) - {"$schema"}
    assert keys == {
        *("provider", "model", "small_model", "grants", "mcp", "lsp", "agents", "instructions"),
        *("memory", "permissions", "limits", "history", "run"),
    }
    options = set(config_schema()["$defs"]["run"]["properties"])
    assert {"max_cost", "trust_repo", "junit_dialect"} <= options
    limits = config_schema()["$defs"]["limits"]["properties"]
    assert set(limits) == set(Limits.__annotations__)
    assert evolve(Limits(), steps=1).steps == 1


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(body=st.dictionaries(st.text(max_size=6), JSON_LIKE, max_size=4))
def test_every_value_of_a_file_has_a_place(
    body: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "law.jsonc"
    file.write_text(json.dumps(body, indent=1), encoding="utf-8")
    document = read_document(file, trusted=True)
    assert document.body == body

    def check(value: object, path: tuple[str | int, ...]) -> None:
        assert path in document.places
        children = value.items() if isinstance(value, dict) else ()
        for key, inner in children:
            check(inner, (*path, key))
        for index, inner in enumerate(value if isinstance(value, list) else ()):
            check(inner, (*path, index))

    check(body, ())
    assert set(document.places.values()) <= {
        (line, column)
        for line, text in enumerate(file.read_text(encoding="utf-8").split("\n"), 1)
        for column in range(1, len(text) + 2)
    }


def test_openai_may_speak_its_other_interface_with_the_same_key(
    home: Path, user_file: Path
) -> None:
    user_file.write_text('{"provider": {"openai": {"type": "openai-responses"}}}')
    openai = load(home, environ={"OPENAI_API_KEY": "sk-123456"}).providers["openai"]
    assert (openai.type, openai.api_key) == ("openai-responses", "sk-123456")
    assert openai.base_url == "https://api.openai.com/v1"


def test_a_header_that_looks_like_a_secret_is_one_whatever_its_name(home: Path) -> None:
    headers = {"x-signed": "5f1e77d0c2b4-and-much-more", "x-team": "platform-engineering-eu"}
    file = home / "c.json"
    file.write_text(
        json.dumps({"provider": {"anthropic": {"headers": {**headers, "X-Auth": "Basic short"}}}})
    )
    config = load_config(repo=None, explicit=file, environ={})
    assert set(config.secrets) == {headers["x-signed"], "Basic short", "short"}
