"""`auth.json`: read strictly, written whole, quoted nowhere; and which key a provider gets."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import evolve

from harness_batch.config.auth_file import drop_key, read_stored, store_key, stored_keys
from harness_batch.config.door import load_config
from harness_batch.config.keys import read_again
from harness_batch.config.record import Config
from harness_batch.errors import UsageError

KEY = "sk-stored-4711-abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "harness-batch" / "auth.json"


def load(file: Path, config: str | None = None, **environ: str) -> Config:
    if config is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name("config.jsonc").write_text(config)
        file.with_name("config.jsonc").chmod(0o600)
    base = {"XDG_CONFIG_HOME": str(file.parent.parent)}
    return load_config(repo=None, explicit=None, environ={**base, **environ})


def test_a_stored_key_comes_back_and_only_its_owner_can_read_it(file: Path) -> None:
    store_key(file, "anthropic", KEY)
    store_key(file, "mine", "k")
    assert read_stored(file).keys == {"anthropic": KEY, "mine": "k"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_not_there_says_nothing(file: Path) -> None:
    found = read_stored(file)
    assert (dict(found.keys), found.trouble) == ({}, None)
    assert not drop_key(file, "anthropic")
    assert not file.parent.exists()
    assert stored_keys({}).file is None


def test_a_dropped_key_is_gone_and_the_others_stay(file: Path) -> None:
    store_key(file, "a", "1")
    store_key(file, "b", "2")
    assert drop_key(file, "a")
    assert not drop_key(file, "a")
    assert read_stored(file).keys == {"b": "2"}


def test_half_a_character_in_another_entry_hinders_no_login(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text('{"mine": {"key": "\\ud800x", "note": "ü"}}')
    file.chmod(0o600)
    store_key(file, "anthropic", KEY)
    assert read_stored(file).keys == {"mine": "\ud800x", "anthropic": KEY}


def test_of_many_logins_at_once_none_is_lost(file: Path) -> None:
    names = [f"p{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store_key(file, name, KEY), names))
    assert set(read_stored(file).keys) == set(names)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660, 0o666, 0o620, 0o601])
def test_a_file_that_others_can_get_at_is_not_believed(file: Path, mode: int) -> None:
    store_key(file, "anthropic", KEY)
    file.chmod(mode)
    found = read_stored(file)
    assert not found.keys
    assert f"chmod 600 {file}" in str(found.trouble)
    assert f"{mode:04o}" in str(found.trouble)
    with pytest.raises(UsageError, match="chmod 600"):
        store_key(file, "openai", KEY)


def test_a_link_is_not_followed_wherever_it_leads(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    store_key(target, "anthropic", KEY)
    file.parent.mkdir(parents=True)
    file.symlink_to(target)
    assert "is a symbolic link" in str(read_stored(file).trouble)
    with pytest.raises(UsageError, match="symbolic link"):
        store_key(file, "anthropic", "other")
    assert read_stored(target).keys == {"anthropic": KEY}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(file: Path) -> None:
    store_key(file, "anthropic", KEY)
    os.chown(file, 12345, -1)
    assert "belongs to another user (uid 12345)" in str(read_stored(file).trouble)


def test_a_pipe_or_a_folder_in_its_place_hangs_nobody(file: Path) -> None:
    file.parent.mkdir(parents=True)
    os.mkfifo(file, 0o600)
    assert "is not an ordinary file" in str(read_stored(file).trouble)
    file.unlink()
    file.mkdir(0o700)
    assert read_stored(file).trouble


@pytest.mark.parametrize(
    "text",
    [
        f'{{"anthropic": {{"key": "{KEY}"}}',
        f'["{KEY}"]',
        f'{{"anthropic": "{KEY}"}}',
        f'{{"anthropic": {{"keys": "{KEY}"}}}}',
        '{"anthropic": {"key": 7}}',
        '{"anthropic": {"key": ""}}',
        "\xff" + KEY,
        "[" * 100_000,
        " " * 1_000_001,
    ],
)
def test_a_broken_file_is_told_and_nothing_of_it_quoted(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text, "latin-1")
    file.chmod(0o600)
    found = read_stored(file)
    assert found.trouble is not None
    assert found.trouble.startswith(str(file))
    assert KEY not in found.trouble
    assert not found.keys


# ---- which key a provider gets

LITERAL = '{"provider": {"anthropic": {"api_key": "sk-literal-9999"}}}'
NAMED = '{"provider": {"anthropic": {"api_key": "{env:TEAM_KEY}"}}}'


@pytest.mark.parametrize(
    ("config", "environ", "stored", "found"),
    [
        ("{}", {}, False, (None, None)),
        ("{}", {}, True, (KEY, "auth.json")),
        ("{}", {"ANTHROPIC_API_KEY": "sk-env-1234"}, True, ("sk-env-1234", "ANTHROPIC_API_KEY")),
        ("{}", {"ANTHROPIC_API_KEY": ""}, True, (KEY, "auth.json")),
        (LITERAL, {}, False, ("sk-literal-9999", "the configuration")),
        (LITERAL, {}, True, (KEY, "auth.json")),
        (LITERAL, {"ANTHROPIC_API_KEY": "sk-env-1234"}, True, ("sk-env-1234", "ANTHROPIC_API_KEY")),
        (NAMED, {"TEAM_KEY": "sk-team-12"}, True, ("sk-team-12", "TEAM_KEY")),
        (NAMED, {"ANTHROPIC_API_KEY": "sk-env-1234"}, True, (KEY, "auth.json")),
        (NAMED, {"ANTHROPIC_API_KEY": "sk-env-1234"}, False, (None, None)),
    ],
)
def test_the_environment_goes_before_the_file_and_that_before_the_configuration(
    file: Path,
    config: str,
    environ: dict[str, str],
    stored: bool,
    found: tuple[str | None, str | None],
) -> None:
    if stored:
        store_key(file, "anthropic", KEY)
    settings = load(file, config, **environ).providers["anthropic"]
    place = settings.key_origin.place
    assert (settings.api_key, place and Path(place).name) == found


def test_every_stored_key_and_every_own_variable_is_a_known_secret(file: Path) -> None:
    store_key(file, "nobody-uses-it", KEY)
    config = load(file, NAMED, TEAM_KEY="sk-team-12", COPILOT_GITHUB_TOKEN="gho_abcdef")
    assert {KEY, "sk-team-12", "gho_abcdef"} <= set(config.secrets)
    assert KEY not in repr(config)


def test_a_file_that_is_not_believed_leaves_providers_without_a_key_and_says_why(
    file: Path,
) -> None:
    store_key(file, "anthropic", KEY)
    file.chmod(0o644)
    config = load(file, LITERAL, OPENAI_API_KEY="sk-env-1234")
    assert config.providers["anthropic"].api_key is None
    assert "chmod 600" in str(config.providers["anthropic"].key_origin.trouble)
    assert config.providers["openai"].key_origin.trouble is None
    assert config.providers["scripted"].key_origin.trouble is None


# ---- a key that changes while a run lasts


def test_a_key_that_came_from_a_file_is_read_from_it_again(file: Path, tmp_path: Path) -> None:
    store_key(file, "anthropic", KEY)
    (tmp_path / "key.txt").write_text("sk-file-1\n")
    text = f'{{"provider": {{"openai": {{"api_key": "{{file:{tmp_path}/key.txt}}"}}}}}}'
    config = load(file, text)
    assert config.providers["openai"].api_key == "sk-file-1"
    store_key(file, "anthropic", "sk-newer")
    (tmp_path / "key.txt").write_text("sk-file-2\n")
    assert read_again(config.providers["anthropic"]) == "sk-newer"
    assert read_again(config.providers["openai"]) == "sk-file-2"
    (tmp_path / "key.txt").unlink()
    file.chmod(0o644)
    assert read_again(config.providers["anthropic"]) is None
    assert read_again(config.providers["openai"]) is None


def test_a_key_of_the_environment_cannot_have_changed(file: Path) -> None:
    settings = load(file, ANTHROPIC_API_KEY="sk-env-1234").providers["anthropic"]
    assert read_again(settings) is None
    assert read_again(evolve(settings, api_key="other")) is None
