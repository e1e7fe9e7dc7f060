# harness-batch in an image: slim Debian, git, ripgrep and bubblewrap inside, no root at run time.
# DuckDB has no musl wheels, so there is no Alpine image.
#   docker build -t harness-batch .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" harness-batch run recipes/nightly.yaml
ARG BASE=python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY . .
RUN python -m venv /opt/harness-batch \
    && /opt/harness-batch/bin/pip install --constraint constraints.txt hatchling \
    && /opt/harness-batch/bin/pip install --constraint constraints.txt --no-build-isolation .

FROM ${BASE}
# Debian takes old versions off its mirrors, so a pinned version would only break the build later.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends git ripgrep bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 agent
COPY --from=build /opt/harness-batch /opt/harness-batch
# HOME is writable for any `--user`; the commands of agents get a home of their own.
ENV PATH=/opt/harness-batch/bin:$PATH HOME=/tmp/home PYTHONDONTWRITEBYTECODE=1
USER 1000
WORKDIR /work
ENTRYPOINT ["harness-batch"]
CMD ["--help"]
