"""Words with a meaning of their own to bash: reserved words, builtins, variables that steer."""

import re


def words(text: str) -> frozenset[str]:
    """A table of words, written as they are read."""
    return frozenset(text.split())


RESERVED = words(
    "if then elif else fi for do done while until case esac select function in coproc"
    " { } ! [[ ]] (("
)
"""A command may not be called so: it means that bash reads another structure than we did."""

CONTROL = words("true false : exit return break continue shift")
"""Do nothing but steer the script; no rule need name them."""

EVALUATING = {
    **dict.fromkeys(("eval", ".", "source"), "runs text as commands"),
    **dict.fromkeys(("trap", "bind", "complete", "compgen", "compopt"), "runs text later"),
    **dict.fromkeys(("alias", "unalias", "enable", "hash"), "changes what command names mean"),
    **dict.fromkeys(("shopt", "history", "fc"), "changes how the shell reads commands"),
    **dict.fromkeys(("let", "getopts", "mapfile", "readarray"), "evaluates its arguments"),
    **dict.fromkeys(("coproc",), "is a compound command"),
    **dict.fromkeys(
        words(
            "parallel watch script su runuser flock strace ltrace unshare nsenter chroot setpriv"
            " systemd-run entr expect unbuffer pkexec run0 start-stop-daemon daemonize screen tmux"
            " at batch crontab dbus-run-session xvfb-run fakeroot ld.so rlwrap"
        ),
        "runs other commands in a way that cannot be read here",
    ),
}
"""Commands that can turn their arguments into other commands, and what they do."""

KNOWN = CONTROL | words(
    "cd pushd popd test [ read set export declare typeset local readonly unset printf wait"
    " builtin command exec git"
)
"""Commands whose effect is reckoned with, so that no function may take their names."""

SHELLS = words("sh bash dash zsh ksh mksh ash rbash")

SET_OPTIONS = re.compile(r"[-+][eufxCh]*o?|errexit|nounset|xtrace|noglob|noclobber|pipefail")
"""Arguments of `set` that change only when the script stops and what it prints."""

_STEERING = re.compile(
    r"(LD|DYLD|GIT|BASH|XDG|PYTHON|PERL|PERL5|RUBY|NODE|NPM|npm|PIP|UV|CARGO|RUSTC?|GO|JAVA|JDK"
    r"|CLASS|MAKE|CMAKE|LESS|SSH|GPG|GNUPG|DOCKER|KUBE|AWS|SSL|OPENSSL|CURL|PYTEST|TOX|NOX|CONDA"
    r"|RIPGREP|GREP|TAR|GCC|GCONV|LOC|NLS|GLIBC|MALLOC|TERM|DISPLAY|PS|R|LUA|PHP|ZSH|FZF|MAN"
    r"|COLLECT|COMPILER|SYSTEMD|HARNESS_BATCH|GITHUB|RUNNER|ACTIONS)_\w+"
    r"|(PYTHON|PERL5?|RUBY|NODE|LUA|LESS|RUST|GO)[A-Z0-9]+"
    r"|\w*(PATH|SHELL|PAGER|EDITOR|BROWSER|VISUAL|PRELOAD|COMMAND|CMD|OPTS?|OPTIONS?|FLAGS|CONFIG"
    r"|_?HOME|PROXY|proxy|PLUGINS?|INIT|RCFILE|ASKPASS|PROGRAM|TEMPLATE|EXEC|WRAPPER)"
    r"|IFS|ENV|PS[0-4]|FPATH|FIGNORE|GLOBIGNORE|EXECIGNORE|SHELLOPTS|BASHOPTS|HOSTALIASES|TMPDIR"
    r"|TEMP|TMP|PWD|OLDPWD|CC|CXX|CPP|LD|AR|AS|HISTFILE|FCEDIT|INPUTRC|TERMINFO"
    r"|TERMCAP|LANGUAGE|MAKEFILES|TZDIR|POSIXLY_CORRECT|FUNCNEST|TMOUT|OPTIND|OPTARG|REPLY"
    r"|NODE_OPTIONS|R_PROFILE|LESSOPEN|LESSCLOSE|_"
)
_HARMLESS = re.compile(
    r"PYTHON(DONTWRITEBYTECODE|UNBUFFERED|IOENCODING|HASHSEED|UTF8|FAULTHANDLER|DEVMODE)"
    r"|NODE_ENV|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH|GIT_PAGER_IN_USE|GREP_COLORS?|TERM|REPLY"
)


def steers(variable: str) -> bool:
    """Can setting it change which program runs, what it loads, or where it writes?"""
    return _STEERING.fullmatch(variable) is not None and _HARMLESS.fullmatch(variable) is None
