"""A program of its own: HTML on stdin, Markdown or plain text on stdout, within hard limits.

A hostile page can make any converter ask for more memory than there is (a table of a million
cells), and this one then ends its process. So it never runs inside the runner. Called with
`markdown` or `plain`; imports nothing of the house, so that it starts quickly.
"""

import resource
import sys

from html_to_markdown import ConversionOptions, InlineDataMedia, convert

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 10
MAX_DEPTH = 256
"""Elements inside one another; what lies deeper is left out."""
MAX_OUTPUT_BYTES = 5 * 1024 * 1024


def main() -> None:
    """Convert stdin."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = ConversionOptions(
        output_format=sys.argv[1],
        extract_metadata=False,
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
        max_depth=MAX_DEPTH,
        compact_tables=True,
    )
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    text = convert(html, options).content or ""
    sys.stdout.buffer.write(text.encode("utf-8", "replace")[:MAX_OUTPUT_BYTES])


if __name__ == "__main__":
    main()
