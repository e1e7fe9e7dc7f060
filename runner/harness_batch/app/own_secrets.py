"""Before anything runs for an agent: the runner's secrets known, and out of everybody's reach."""

from attrs import evolve

from harness_batch.app.options import Inputs
from harness_batch.config.record import Config
from harness_batch.sandbox.environment import secret_values
from harness_batch.sandbox.own_memory import shield, without_secrets


def guarded(inputs: Inputs, config: Config) -> tuple[Inputs, Config]:
    """The inputs without the keys of providers, and a configuration that knows what to mask.

    A recipe may name a secret of the environment for its tools (`env: [NPM_TOKEN]`), but never one
    that the runner itself signs in with. This process cannot be looked into from here on.
    """
    shield()
    environ = without_secrets(inputs.environ, config.secrets)
    known = {*config.secrets, *secret_values(inputs.environ)}
    secrets = tuple(sorted(known, key=lambda secret: (-len(secret), secret)))
    return evolve(inputs, environ=environ), evolve(config, secrets=secrets)
