"""Options of known programs that execute something else, or write where no redirection shows it.

The list errs towards too many (a cluster `-xo` counts as `-o`; an abbreviated long option counts).
"""

from collections.abc import Mapping

from attrs import frozen

from harness_batch.permissions.shell_names import words as table


@frozen
class Risk:
    """What to look for among a program's arguments."""

    letters: str = ""
    """Letters of short options, alone or in a cluster."""
    long: tuple[str, ...] = ()
    """Long options, which may be abbreviated or carry `=value`."""
    exact: frozenset[str] = frozenset()
    """Whole words: single-dash options such as `-exec`, or subcommands."""
    bundled: bool = False
    """The first argument may be a cluster of letters without a dash (tar)."""


def long_options(text: str) -> tuple[str, ...]:
    """Names as `--name`."""
    return tuple(f"--{name}" for name in text.split())


_AWK = Risk("fiElopdW", long_options("file include exec load pretty-print profile dump-variables"))
_SSH = Risk("oFSJDLREi")
_PAGED = Risk(long=long_options("pager output"))

RISKS: Mapping[str, Risk] = {
    "find": Risk(exact=table("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")),
    "fd": Risk("xX", long_options("exec exec-batch")),
    "fdfind": Risk("xX", long_options("exec exec-batch")),
    "sort": Risk("To", long_options("output compress-program temporary-directory")),
    "sed": Risk("fiI", long_options("in-place file")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    "tar": Risk(
        "IF",
        long_options(
            "checkpoint-action use-compress-program to-command info-script new-volume-script"
            " rmt-command rsh-command index-file"
        ),
        bundled=True,
    ),
    "rg": Risk(long=long_options("pre hostname-bin")),
    **dict.fromkeys(("ag", "ack", "bat", "batcat", "delta"), _PAGED),
    "man": Risk("PHC", long_options("pager html browser config-file")),
    **dict.fromkeys(("less", "more"), Risk("oOkK", long_options("log-file LOG-FILE lesskey-file"))),
    "zip": Risk("TbO", long_options("unzip-command test output-file temp-path")),
    "rsync": Risk("eT", long_options("rsh rsync-path log-file temp-dir")),
    **dict.fromkeys(("ssh", "scp", "sftp"), _SSH),
    "curl": Risk(
        "oOKTDcJE",
        long_options(
            "output remote-name remote-name-all config upload-file dump-header cookie-jar trace"
            " trace-ascii output-dir stderr libcurl etag-save hsts alt-svc engine netrc-file"
        ),
    ),
    "wget": Risk(
        "OoaPiexN",
        long_options(
            "output-document output-file append-output directory-prefix input-file use-askpass"
            " execute config save-cookies warc-file post-file body-file recursive mirror"
        ),
    ),
    "split": Risk(long=long_options("filter")),
    "shuf": Risk("o", long_options("output")),
    "iconv": Risk("o", long_options("output")),
    "tree": Risk("oR"),
    "yq": Risk("i", long_options("inplace in-place split-exp from-file")),
    "xxd": Risk("r"),
    "file": Risk("C", long_options("compile")),
    "go": Risk(exact=table("run generate -toolexec -exec -overlay -vettool -o")),
    "cargo": Risk(long=long_options("config")),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang"),
        Risk("B", exact=frozenset(("-wrapper",)), long=long_options("plugin")),
    ),
    **dict.fromkeys(("nc", "ncat", "netcat"), Risk("ec", long_options("exec sh-exec lua-exec"))),
    "openssl": Risk(exact=frozenset(("-engine", "-out", "-provider", "engine"))),
    "jobs": Risk("x"),
    "ip": Risk(exact=frozenset(("netns", "vrf")), letters="b", long=long_options("batch")),
    "date": Risk("s", long_options("set")),
}


def risky_option(word: str, risk: Risk) -> str | None:
    """The option as it is spelled, a value after `=` cut off; None when it is harmless."""
    if word in risk.exact:
        return word
    if word == "--text":  # of its own right, no abbreviation of --textconv
        return None
    if word.startswith("--"):
        name = word.partition("=")[0]
        return name if len(name) > 2 and any(o.startswith(name) for o in risk.long) else None
    if word.startswith("-") and set(word[1:].partition("=")[0]) & set(risk.letters):
        return word.partition("=")[0]
    return None
