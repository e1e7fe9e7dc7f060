"""What bash would run, as the asks that the rules see: a table of scripts.

An ask is written as its permission and pattern, then ` ?` when it is undecidable, ` +option` for
each risky option, ` ~` when no rule need allow it.
"""

from pathlib import Path

import pytest

from harness_batch.permissions.judge import Allowed, Denied, Policy
from harness_batch.permissions.shell import ShellPlace, asks_of, refusal
from harness_batch.rules import Ask, Rule
from permissions_cases import PLAIN, POLICY, PROBES

PLACE = ShellPlace(Path("/w"), Path("/w"), Path("/priv"))

CASES: dict[str, tuple[str, ...]] = {
    "git status": ("bash git status",),
    "git   \"status\"  --'short'": ("bash git status --short",),
    "git s'tat'us": ("bash git status",),
    "\\git status": ("bash git status",),
    '"git" status': ("bash git status",),
    "/usr/bin/git status": ("bash /usr/bin/git status",),
    "echo a; echo b": ("bash echo a", "bash echo b"),
    "a && b || c": ("bash a", "bash b", "bash c"),
    "a | b |& c": ("bash a", "bash b", "bash c"),
    "a & b": ("bash a", "bash b"),
    "(a; b)": ("bash a", "bash b"),
    "{ a; b; }": ("bash a", "bash b"),
    "! a": ("bash a",),
    "echo $(a)": ("bash a", "bash echo $(a)"),
    'echo "x $(a) y"': ("bash a", 'bash echo "x $(a) y"'),
    "echo `a`": ("bash a", "bash echo `a`"),
    "cat <(a) >(b)": ("bash a", "bash b", "bash cat <(a) >(b)"),
    "if a; then b; elif c; then d; else e; fi": ("bash a", "bash b", "bash c", "bash d", "bash e"),
    "for x in $(a); do b $x; done": ("bash a", "bash b $x"),
    "while a; do b; done": ("bash a", "bash b"),
    "until a; do b; done": ("bash a", "bash b"),
    "case $(a) in x) b;; *) c;; esac": ("bash a", "bash b", "bash c"),
    "select x in a; do b; done": ("bash b",),
    "for ((;;)); do a; done": ("bash for ((;;)); do a; done ?", "bash a"),
    "f() { a; }; f": ("bash a", "bash f"),
    "function f { a; }": ("bash a",),
    "cd() { a; }": ("bash cd() { a; } ?", "bash a"),
    "[ -f x ] && a": ("bash a",),
    "[[ -f x ]] && a": ("bash a",),
    "[[ -v a[$(x)] ]]": ("bash [[ -v a[$(x)] ]] ?", "bash x"),
    "[[ $x -eq 1 ]]": ("bash [[ $x -eq 1 ]] ?",),
    "[ $x = 1 ]": ("bash [ $x = 1 ] ?",),
    "test -v x": ("bash test -v x ?",),
    "A=b C=d e": ("bash e",),
    "LD_PRELOAD=x e": ("bash e ?",),
    "PATH=. e": ("bash e ?",),
    "GIT_DIR=x git status": ("bash git status ?",),
    "BASH_ENV=x e": ("bash e ?",),
    "PYTHONPATH=x e": ("bash e ?",),
    "IFS=x e": ("bash e ?",),
    "IFS= read -r x": ("bash read -r x",),
    "a=$(b)": ("bash b",),
    "a=b": ("bash a=b",),
    "export A=b": ("bash export A=b",),
    "export PATH=x": ("bash export PATH=x ?",),
    "declare -n a=b": ("bash declare -n a=b ?",),
    "readonly A": ("bash readonly A",),
    "unset A": ("bash unset A",),
    "a=(1 2)": ("bash a=(1 2) ?",),
    "a[0]=1": ("bash a[0]=1 ?",),
    "> out": ("edit out", "bash > out"),
    "a > out": ("edit out", "bash a"),
    "a >> out 2>> err": ("edit out", "edit err", "bash a"),
    "a &> out": ("edit out", "bash a"),
    "a >| out": ("edit out", "bash a"),
    "a 2>&1 >&2 2>&-": ("bash a",),
    "a < in": ("read in", "bash a"),
    "a <> in": ("bash a <> in ?", "bash a", "edit in"),
    "a > /dev/null 2> /dev/stderr": ("bash a",),
    "a > /dev/tcp/h/1": ("edit /dev/tcp/h/1 ?", "bash > /dev/tcp/h/1 ?", "bash a"),
    "a > $x": ("edit $x ?", "bash > $x ?", "bash a"),
    'a > "$x/y"': ('edit "$x/y" ?', 'bash > "$x/y" ?', "bash a"),
    "a > *.txt": ("edit *.txt ?", "bash > *.txt ?", "bash a"),
    "a > ~/x": ("edit ~/x ?", "bash > ~/x ?", "bash a"),
    "a > /etc/x": ("edit /etc/x", "external_directory /etc/x", "bash a"),
    "a > ../x": ("edit /x", "external_directory /x", "bash a"),
    "a > sub/../y": ("edit y", "bash a"),
    "a > /priv/t": ("bash a",),
    "a < /etc/passwd": ("read /etc/passwd", "external_directory /etc/passwd", "bash a"),
    'a <<< "$(b)"': ("bash b", "bash a"),
    "a > out b": ("edit out", "bash a b"),
    "> out a b": ("edit out", "bash a b"),
    "2> err a": ("edit err", "bash a"),
    "{fd}> out a": ("bash {fd}> out a ?", "bash fd}> out a ?", "bash fd} ?", "bash > out a ?"),
    "cd sub && a > out": ("bash cd sub ~", "edit sub/out", "bash a"),
    "cd sub; a > out": ("bash cd sub ~", "edit out", "edit sub/out", "bash a"),
    "(cd sub; a) > out": ("edit out", "bash cd sub ~", "bash a"),
    "cd /w/sub && a": ("bash cd /w/sub ~", "bash a"),
    "cd ..": ("external_directory /", "bash cd .."),
    "cd /": ("external_directory /", "bash cd /"),
    "cd": ("bash cd ?",),
    "cd -": ("bash cd - ?",),
    "cd $x": ("bash cd $x ?",),
    "cd sub && cd .. && a > out": ("bash cd sub ~", "bash cd .. ~", "edit out", "bash a"),
    "pushd sub": ("bash pushd sub",),
    "env a": ("bash a", "bash env a ~"),
    "env -i A=b a c": ("bash a c", "bash env -i A=b a c ~"),
    "env PATH=x a": ("bash env PATH=x a ?",),
    "env -S a": ("bash env -S a ?",),
    "env --weird a": ("bash env --weird a ?",),
    "env": ("bash env",),
    "timeout 5 a": ("bash a", "bash timeout 5 a ~"),
    "timeout -s KILL 5 a": ("bash a", "bash timeout -s KILL 5 a ~"),
    "timeout $t a": ("bash timeout $t a ?",),
    "nice -n 5 a": ("bash a", "bash nice -n 5 a ~"),
    "nice -5 a": ("bash a", "bash nice -5 a ~"),
    "nohup a &": ("bash a", "bash nohup a ~"),
    "stdbuf -oL a": ("bash a", "bash stdbuf -oL a ~"),
    "setsid a": ("bash a", "bash setsid a ~"),
    "time a": ("bash a", "bash time a ~"),
    "time -p a | b": ("bash a", "bash time -p a ~", "bash b"),
    "command a": ("bash a", "bash command a ~"),
    "command -v a": ("bash command -v a",),
    "builtin a": ("bash a", "bash builtin a ~"),
    "exec a": ("bash a", "bash exec a ~"),
    "exec > out": ("edit out", "bash exec"),
    "sudo a": ("bash a", "bash sudo a"),
    "sudo -u x a": ("bash a", "bash sudo -u x a"),
    "sudo -s": ("bash sudo -s ?",),
    "xargs": ("bash echo {}", "bash xargs ~"),
    "b | xargs a": ("bash b", "bash a {}", "bash xargs a ~"),
    "b | xargs -0 -n 1 a c": ("bash b", "bash a c {}", "bash xargs -0 -n 1 a c ~"),
    "b | xargs -I{} a {} c": ("bash b", "bash a {} c", "bash xargs -I{} a {} c ~"),
    "b | xargs sh -c 'c'": ("bash b", "bash c", "bash sh -c c {} ~", "bash xargs sh -c c ~"),
    "find . -name x": ("bash find . -name x",),
    "find . -exec a {} \\;": ("bash a {}", "bash find . -exec a {} ';' +-exec"),
    "find . -exec a {} + -exec b \\;": (
        "bash a {}",
        "bash b",
        "bash find . -exec a {} + -exec b ';' +-exec",
    ),
    "find . -delete": ("bash find . -delete +-delete",),
    "find . -fprint o": ("bash find . -fprint o +-fprint",),
    "find . -name *.py": ("bash find . -name *.py ?",),
    "find . -name \\*.py": ("bash find . -name *.py",),
    "find . $x": ("bash find . $x ?",),
    "sh -c 'a; b'": ("bash a", "bash b", "bash sh -c 'a; b' ~"),
    'bash -ec "a"': ("bash a", "bash bash -ec a ~"),
    'bash -c "$x"': ('bash bash -c "$x" ?',),
    "bash x": ("bash bash x",),
    "bash -c a b": ("bash a", "bash bash -c a b ~"),
    "bash --rcfile x -c a": ("bash bash --rcfile x -c a",),
    "sh -c 'sh -c \"a\"'": ("bash a", "bash sh -c a ~", "bash sh -c 'sh -c \"a\"' ~"),
    "git -c a.b=c status": ("bash git -c a.b=c status ?",),
    "git -c user.name=x commit": ("bash git -c user.name=x commit +-c",),
    "git -c alias.x='!a' x": ("bash a", "bash git -c alias.x=!a x +-c"),
    "git diff --output=x": ("bash git diff --output=x +--output",),
    "git diff --ext-diff": ("bash git diff --ext-diff +--ext-diff",),
    "git log --format=%H": ("bash git log --format=%H",),
    'git commit -m "$(a)"': ("bash a", 'bash git commit -m "$(a)"'),
    'git add "$x"': ('bash git add "$x" ?',),
    'git add -- "$x"': ('bash git add -- "$x"',),
    "git bisect run a": ("bash git bisect run a +bisect",),
    "sed -n 1p x": ("bash sed -n 1p x",),
    "sed -i s/a/b/ x": ("bash sed -i s/a/b/ x +-i",),
    "sed 'w x' y": ("bash sed 'w x' y ?",),
    "sed -f x y": ("bash sed -f x y +-f",),
    "awk '{print}' x": ("bash awk {print} x",),
    "awk 'BEGIN{system(\"a\")}'": ("bash awk 'BEGIN{system(\"a\")}' ?",),
    "sort x": ("bash sort x",),
    "sort -o x y": ("bash sort -o x y +-o",),
    "tar xf x": ("bash tar xf x",),
    "tar xf x --to-command=a": ("bash tar xf x --to-command=a +--to-command",),
    "tar xIf a x": ("bash tar xIf a x +xIf",),
    "rg --pre a x": ("bash rg --pre a x +--pre",),
    "eval a": ("bash eval a ?",),
    ". ./a": ("bash . ./a ?",),
    "source a": ("bash source a ?",),
    "trap a EXIT": ("bash trap a EXIT ?",),
    "alias a=b": ("bash alias a=b ?",),
    "coproc a": ("bash coproc a ?",),
    "let a=1": ("bash let a=1 ?",),
    "(( a ))": ("bash (( a )) ?",),
    "echo $((1+1))": ("bash echo $((1+1)) ?",),
    "echo ${a[0]}": ("bash echo ${a[0]} ?",),
    "echo ${x@P}": ("bash echo ${x@P} ?",),
    "echo ${!x}": ("bash echo ${!x} ?",),
    "echo ${x:=y}": ("bash echo ${x:=y} ?",),
    "echo ${x:-y}": ("bash echo ${x:-y}",),
    "echo $'a\\tb'": ("bash echo 'a\tb'",),
    "echo $'\\x41'": ("bash echo $'\\x41' ?",),
    'echo $"a"': ('bash echo $"a" ?',),
    "$x": ("bash $x ?",),
    "$x a": ("bash $x a ?",),
    '"$x" a': ('bash "$x" a ?',),
    "${x}a": ("bash ${x}a ?",),
    "{a,b}": ("bash {a,b} ?",),
    "a {b,c}": ("bash a {b,c}",),
    "./a": ("bash ./a",),
    "a*": ("bash a* ?",),
    "a *": ("bash a *",),
    "~/a": ("bash ~/a ?",),
    "echo $IFS": ("bash echo $IFS",),
    "printf -v x a": ("bash printf -v x a ?",),
    'printf %s "$x"': ('bash printf %s "$x"',),
    "read x": ("bash read x",),
    "read PATH": ("bash read PATH ?",),
    "read 'a[1]'": ("bash read a[1] ?",),
    "set -e": ("bash set -e",),
    "set -k": ("bash set -k ?",),
    "set -- a": ("bash set -- a ?",),
    "shopt -s x": ("bash shopt -s x ?",),
    "true": ("bash true",),
    "exit 1": ("bash exit 1",),
    ":": ("bash :",),
    "# only a comment": ("bash # only a comment",),
    "a # comment": ("bash a",),
    "a\\\nb": ("bash a\\\nb ?",),
    "a \\\n b": ("bash a b",),
    "'a b'": ("bash 'a b' ?",),
    "echo é": ("bash echo é ?", "bash echo 'é'"),
    "echo 'a\nb'": ("bash echo 'a\nb'",),
    "echo \"a'b\" 'a\"b' a\\'b": ("bash echo 'a'\\''b' 'a\"b' 'a'\\''b'",),
    "echo '' \"\"": ("bash echo '' ''",),
    "if": ("bash if ?",),
    "a (": ("bash a ( ?", "bash a"),
    "cat <<EOF\n$x $(a) \\$(b)\nEOF": ("bash a", "bash cat"),
    "cat <<'EOF'\n$(a)\nEOF": ("bash cat",),
    "cat <<EOF\n`a`\nEOF": ("bash cat <<EOF\n`a`\nEOF ?", "bash cat"),
    "cat <<EOF | b > out\nx\nEOF": ("bash cat", "edit out", "bash b"),
    "cat <<EOF && b\nx\nEOF": ("bash cat", "bash b"),
    "cat <<EOF\nx \\\nEOF\nb\nEOF": (
        "bash cat <<EOF\nx \\\nEOF ?",
        "bash cat",
        "bash b",
        "bash EOF",
    ),
    "cat <<-EOF\n\tx\n\tEOF\na": ("bash cat", "bash a"),
    "cat <<A <<B\nA\nB": (
        "bash cat <<A <<B\nA\nB ?",
        "bash cat <<A <<B\nA ?",
        "bash cat",
        "read B",
        "bash B",
    ),
    "a\rb": ("bash a\rb ?", "bash a\rb ?"),
    "a\x00b": ("bash a\x00b ?", "bash 'a\x00b' ?"),
    "a\x1bb": ("bash a\x1bb ?", "bash 'a\x1bb' ?"),
    "": ("bash ",),
    "\u0430 b": ("bash \u0430 b ?", "bash '\u0430' b ?"),
    "a;\xa0b": ("bash a;\xa0b ?", "bash a", "bash '\xa0b' ?"),
}


def shown(ask: Ask) -> str:
    """As in the table."""
    marks = " ?" * (ask.undecidable is not None) + "".join(f" +{o}" for o in ask.options)
    return f"{ask.permission} {ask.pattern}{marks}{' ~' * ask.passing}"


@pytest.mark.parametrize("script", CASES)
def test_a_script_asks_for_everything_that_bash_would_do(script: str) -> None:
    assert tuple(shown(ask) for ask in asks_of(script, PLACE)) == CASES[script]


@pytest.mark.parametrize("script", PLAIN)
def test_what_people_write_every_day_can_be_allowed_by_plain_rules(script: str) -> None:
    verdict = POLICY.judge(asks_of(script, PLACE))
    assert isinstance(verdict, Allowed), verdict


@pytest.mark.parametrize("script", PROBES)
def test_what_reaches_beyond_the_plain_rules_is_denied(script: str) -> None:
    assert isinstance(POLICY.judge(asks_of(script, PLACE)), Denied)


@pytest.mark.parametrize("script", CASES)
def test_a_rule_for_exactly_everything_allows_whatever_bash_does(script: str) -> None:
    policy = Policy(
        tuple(
            Rule(permission, "*", "allow", "cli")
            for permission in ("bash", "edit", "read", "external_directory")
        )
    )
    assert isinstance(policy.judge(asks_of(script, PLACE)), Allowed)


@pytest.mark.parametrize(
    "script",
    [
        "git push",
        "git push --force origin main",
        "git remote -v",
        "git config --get user.name",
        "git -C sub push",
        "git -c a.b=c push",
        "git --no-pager   'push'",
        "/usr/bin/git push",
        "ls && git push",
        "echo $(git push)",
        "env A=b git push",
        "timeout 5 git push",
        "command git push",
        "sh -c 'git push'",
        "echo origin | xargs git push",
        "find . -exec git config {} ;",
        "git send-pack x",
        "if true; then git push",
        "x=$((1)); git push (",
        "echo x > .git/config",
        "echo x >> sub/.GIT/hooks/post-commit",
        "cd .git && echo x > config",
    ],
)
def test_the_outward_part_of_git_is_refused_whatever_the_rules_say(script: str) -> None:
    reason = refusal(script, PLACE)
    assert reason is not None
    assert reason.startswith("Refused: ")


@pytest.mark.parametrize(
    "script",
    [
        "git status",
        "git add . && git commit -m push",
        "echo git push",
        "git log -- push",
        "ls .git",
        "git stash push",
        "git show 'HEAD:git config'",
        "echo x > .gitignore",
    ],
)
def test_the_rest_of_git_is_a_matter_of_the_rules(script: str) -> None:
    assert refusal(script, PLACE) is None


def test_a_working_folder_outside_the_workspace_is_asked_for() -> None:
    asks = asks_of("ls", ShellPlace(Path("/w"), Path("/etc"), None))
    assert asks == (Ask("external_directory", "/etc"), Ask("bash", "ls"))


def test_links_are_followed_before_a_target_is_judged(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "work"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "deep" / "er")
    place = ShellPlace(root, root, None)
    outside = str(tmp_path.resolve() / "x")
    assert Ask("external_directory", outside) in asks_of("echo a > out/x", place)
    assert Ask("external_directory", outside) in asks_of("cd out && echo a > x", place)
    # For `cd`, bash undoes the link; for a redirection, the kernel goes up from where it leads.
    assert Ask("edit", "x") in asks_of("cd in && cd .. && echo a > x", place)
    assert Ask("edit", "deep/x") in asks_of("cd in && echo a > ../x", place)


def test_a_loop_that_changes_folders_makes_relative_targets_unknown() -> None:
    asks = asks_of("for i in 1 2; do cd ..; done; echo a > x", PLACE)
    assert any(ask.permission == "edit" and ask.undecidable for ask in asks)


@pytest.mark.parametrize(
    "script",
    [
        "a" * 70_000,
        "echo " + "$(echo " * 200 + ")" * 200,
        "(" * 3_000,
        "a|" * 8_000 + "a",
        ">" * 16_000,
        "|]{1" * 4_000,
        "sh -c " * 50 + "a",
        "timeout 1 " * 50 + "a",
        "echo " + "${a:-" * 2_000 + "}" * 2_000,
        "[[ " + "! " * 3_000 + "a ]]",
        "sed '" + "s/a/b/ppp;" * 1_400 + "!'",
        "git " * 4_000 + "$(",
    ],
    ids=lambda script: script[:8],
)
def test_hostile_sizes_are_undecidable_and_cost_little(script: str) -> None:
    assert isinstance(POLICY.judge(asks_of(script, PLACE)), Denied)
    refusal(script, PLACE)
