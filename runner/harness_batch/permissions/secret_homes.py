"""Where people and programs keep what signs them in: masked by the sandbox, shut for file tools."""

IN_HOME = (
    *(".ssh", ".aws", ".azure", ".docker", ".kube", ".gnupg", ".password-store"),
    *(".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".vault-token"),
    *(".boto", ".s3cfg", ".pgpass", ".my.cnf", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(".gradle/gradle.properties", ".terraform.d/credentials.tfrc.json", ".composer/auth.json"),
    *(".local/share/keyrings", ".local/share/opencode/auth.json", ".mozilla", ".thunderbird"),
    *(".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json"),
    *(".bash_history", ".zsh_history", ".python_history", ".gitconfig"),
    *("actions-runner/.credentials", "actions-runner/.credentials_rsaparams"),
)
"""Below a home folder."""

IN_CONFIG = (
    *("gcloud", "gh", "hub", "glab-cli", "op", "rclone", "doctl", "github-copilot", "containers"),
    *("git/credentials", "git/config", "composer/auth.json", "google-chrome", "chromium"),
    *("harness-batch/auth.json", "harness-batch/config.jsonc"),
)
"""Below `~/.config`."""
