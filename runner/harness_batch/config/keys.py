"""Which key each provider gets: the environment's, else that of `auth.json`, else its `api_key`.

The environment's is the variable that `api_key: "{env:NAME}"` names, else the provider's own.
"""

from collections.abc import Mapping
from typing import Any

from harness_batch.config.auth_file import Stored, read_stored
from harness_batch.config.expansion import file_text
from harness_batch.config.record import KeyOrigin, ProviderSettings

Tree = dict[str, Any]

KEYLESS = ("scripted", "replay")
"""Types that ask nobody."""


def with_keys(providers: Tree, environ: Mapping[str, str], stored: Stored) -> Tree:
    """The providers, each with its `api_key` and `key_origin`."""
    return {
        name: {key: value for key, value in tree.items() if key not in _PLACES}
        | _key(name, tree, environ, stored)
        for name, tree in providers.items()
    }


_PLACES = ("own_variable", "api_key_file")
"""What the trees note for this module alone."""


def _key(name: str, tree: Tree, environ: Mapping[str, str], stored: Stored) -> Tree:
    if tree.get("type") in KEYLESS:
        return {"key_origin": KeyOrigin()}
    declared, named = tree.get("api_key"), tree.get("api_key_env")
    variable = named or tree.get("own_variable")
    value = declared if named else environ.get(variable) if variable else None
    if value:
        origin = KeyOrigin(variable=variable, place=variable)
        return {"api_key": value, "key_origin": origin}
    if stored.trouble is not None:
        return {"api_key": None, "key_origin": KeyOrigin(variable=variable, trouble=stored.trouble)}
    if value := stored.keys.get(name):
        origin = KeyOrigin(variable=variable, place=str(stored.file), file=stored.file, stored=True)
        return {"api_key": value, "key_origin": origin}
    file = tree.get("api_key_file") if declared else None
    place = str(file or "the configuration") if declared else None
    return {"key_origin": KeyOrigin(variable=variable, place=place, file=file)}


def read_again(settings: ProviderSettings) -> str | None:
    """The key as it stands in its file now; None when it came from none, or is there no more."""
    origin = settings.key_origin
    if origin.file is None:
        return None
    if origin.stored:
        return read_stored(origin.file).keys.get(settings.name)
    try:
        return file_text(origin.file) or None
    except (OSError, ValueError):
        return None
