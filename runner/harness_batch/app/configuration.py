"""The configuration of an invocation, out of the files that its command line names."""

from harness_batch.app.options import ConfigSources
from harness_batch.app.reviewed import configuration_file, configuration_folder
from harness_batch.app.shelves import user_agents
from harness_batch.config.door import load_config
from harness_batch.config.record import Config


def read_config(sources: ConfigSources) -> Config:
    """Raises: FaultyInput with the faults of all files; UsageError."""
    return load_config(
        repo=configuration_folder(sources) if sources.repo_config else sources.cwd,
        explicit=configuration_file(sources),
        environ=sources.environ,
        trust_repo=sources.trust_repo,
        use_repo=sources.repo_config,
        taken_agents=user_agents(sources.environ),
    )
