"""Shell scripts for the tests of permissions, and the policy they are judged by.

Every payload reaches the program `canary`, or a program in `./bin`, when bash really runs it in
the folder that the canary test makes.
"""

import re

from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Policy
from harness_batch.rules import rules_from

OPEN = frozenset(
    re.split(
        r"\s+",
        "echo cat ls find sed sort awk tar xargs env timeout nice nohup setsid stdbuf"
        " printf true false test head wc grep seq tr cut dirname basename [ : read export"
        " set unset local declare cd pwd type command builtin exec time shift return wait"
        " jobs exit break continue sleep touch printenv",
    )
)
"""Programs that the policy opens by their bare name; the canary and shells are not among them."""

POLICY = Policy(
    (
        *DEFAULT_RULES,
        *rules_from(
            {
                "bash": {
                    **{f"{name} *": "allow" for name in sorted(OPEN)},
                    "git status *": "allow",
                },
                "edit": {"out*": "allow"},
            },
            "recipe:test",
        ),
    )
)

_LINES = r"""
canary
echo a; canary
echo a && canary
false || canary
echo a | canary
echo a |& canary
echo a & canary
(canary)
{ canary; }
! canary
echo $(canary)
echo "$(canary)"
echo "a $(echo $(canary))"
echo `canary`
echo "`canary`"
echo `echo \`canary\``
cat <(canary)
echo a > >(canary)
x=$(canary)
x=$(canary) true
export x=$(canary)
declare x=$(canary)
echo ${x:-$(canary)}
echo "${x:-$(canary)}"
echo "${x:-`canary`}"
echo ${x:=$(canary)}
echo $((1 + $(canary; echo 1)))
echo $((a[$(canary)]))
(( a[$(canary)] ))
[[ -v a[$(canary)] ]]
[[ -v 'a[$(canary)]' ]]
test -v 'a[$(canary)]'
[ -v 'a[$(canary)]' ]
x='a[$(canary)]'; [[ $x -eq 1 ]]
x='a[$(canary)]'; echo $((x))
echo='a[$(canary)]'; ((echo))
echo='a[$(canary)]'; (( echo )) || true
echo='a[$(canary)]'; x="$((echo))"
echo='a[$(canary)]'; cat < <(cat <<< $((echo)))
echo='a[$(canary)]'; [[ echo -eq 1 ]]
echo='a[$(canary)]'; export x=$((echo))
echo='a[$(canary)]'; echo ${x:-$((echo))}
x=abc; echo='a[$(canary)]'; echo ${x:echo}
x='-v a[$(canary)]'; IFS=' '; [ $x ]
y='a[$(canary)]'; test -v "$y"
o=-v; y='a[$(canary)]'; test "$o" "$y"
printf -v 'a[$(canary)]' x
read 'a[$(canary)]' <<< 1
a=; unset 'a[$(canary)]'
declare 'a[$(canary)]=1'
export x; let 'a[$(canary)]=1'
x='$(canary)'; echo ${x@P}
x='a[$(canary)]'; echo ${!x}
y=abc; x='a[$(canary)]'; echo ${y:x}
x=canary; $x
x=canary; "$x"
x=can; ${x}ary
c''anary
"canary"
'canary'
\canary
can\ary
$'canary'
$'\x63anary'
$"canary"
{canary,}
ca[n]ary
./canary
././canary
~+/canary
$PWD/canary
eval canary
eval "can""ary"
. ./canary
source ./canary
command canary
builtin eval canary
exec canary
env canary
env -i PATH="$PATH" canary
env -u FOO canary
env -S 'canary'
env FOO=1 canary
timeout 5 canary
timeout -k 1 5 canary
nice canary
nice -n 5 canary
nohup canary
setsid canary
setsid -w canary
stdbuf -oL canary
stdbuf -o L canary
time canary
time -p canary
time FOO=1 canary
timeout 5 env nice canary
sh -c canary
bash -c 'echo a; canary'
env sh -c canary
sh -c 'sh -c canary'
sh <<< canary
echo canary | sh
sh < <(echo canary)
echo x | xargs canary
echo canary | xargs -I{} env {}
printf canary | xargs -0I echo env echo
echo canary | xargs -ti env {}
find . -maxdepth 0 -exec env -u + canary \;
find . -maxdepth 0 -exec env -u {} canary \;
echo x | sed -l 5 '1e canary'
echo x | sed --line-length 5 '1e canary'
echo x | sed --expr='1e canary'
echo x | sed -n -e p -e '1e canary'
echo x | sed -n --expression '1e canary'
y=canary; git -c alias.x="!$y" x
y=canary; git -c "alias.x=!$y" x
echo x | awk '{ system("canary") }'
echo x | awk -v c=canary '{ system(c) }'
echo x | awk -v c=canary 'END { print | c }'
echo canary | xargs -I% sh -c %
echo x | xargs -n1 env canary
seq 1 | xargs -I{} canary {}
find . -maxdepth 0 -exec canary {} \;
find . -maxdepth 0 -exec canary {} +
find . -maxdepth 0 -execdir ./canary \;
find . -maxdepth 0 -exec sh -c canary \;
find . -maxdepth 0 -name '.' -"exec" canary {} \;
x=-exec; find . -maxdepth 0 $x canary \;
find . -maxdepth 0 {-exec,canary,\;}
awk 'BEGIN{system("canary")}'
awk 'BEGIN{"canary" | getline}'
awk 'BEGIN{print "x" | "canary"}'
echo x | sed '1e canary'
echo x | sed -n 's/x/canary/e'
echo canary | sed e
sort --compress-program=./canary -S 1k big big big
tar cf /dev/null in --checkpoint=1 --checkpoint-action=exec=canary
tar cf /dev/null --checkpoint=1 --checkpoint-act=exec=canary in
tar c -I ./canary -f out.tar in
tar cf out.tar in --to-command=canary && tar xf out.tar --to-command=canary
tar cf x.tar -- * 2>/dev/null; tar cf y.tar *
git -c alias.x='!canary' x
git -c core.fsmonitor=./canary status
git --exec-path=. canary
git config alias.x '!canary' && git x
PATH=./bin:$PATH ls
PATH=./bin ls
export PATH=./bin; ls
declare -x PATH=./bin; ls
read PATH <<< ./bin; ls
for PATH in ./bin; do ls; done
printf -v PATH ./bin; ls
: ${PATH:=x}; unset PATH; PATH=./bin; ls
BASH_ENV=./canary env bash -c true
BASH_ENV=./canary bash -c true
ENV=./canary sh -i -c true
env PATH=./bin ls
if canary; then :; fi
if true; then canary; fi
if false; then :; elif canary; then :; fi
if false; then :; else canary; fi
while canary; do break; done
while true; do canary; break; done
until canary; do break; done
for i in 1; do canary; done
for i in $(canary); do :; done
for ((i=0;i<1;i++)); do canary; done
select x in a; do canary; break; done <<< 1
case x in x) canary;; esac
case $(canary) in *) ;; esac
case x in $(canary)) ;; esac
f() { canary; }; f
function f { canary; }; f
f() ( canary ); f
echo() { canary; }; echo hi
f() { "$@"; }; f canary
trap canary EXIT
trap 'canary' 0
coproc canary; wait
coproc { canary; }; wait
alias ls=canary; shopt -s expand_aliases; eval ls
mapfile -C canary -c 1 < <(echo a)
cat <<< "$(canary)"
cat <<< $(canary)
echo a > "$(canary; echo out)"
> out canary
2>out canary
>out FOO=1 canary
env > out canary
timeout > out 5 canary
echo a	;	canary
set -- canary; "$@"
set -- canary; $1
set -k; ls PATH=./bin
: canary; $_
echo ${0+$(canary)}
hash -p ./canary ls; ls
enable -n echo; PATH=./bin; echo
IFS=x; c=canaryx; $c
exec 3> >(canary)
exec > out; canary
jobs -x canary
command -p env ./canary
complete -C canary ls; compgen -C canary
history -s canary; fc -s
[ a = b -o "$(canary)" ]
[[ a =~ $(canary) ]]
[[ $(canary) == x ]]
a=(`canary`)
a=([$(canary)]=1)
a[$(canary)]=1
echo ${a[$(canary)]}
x=a; echo ${x/$(canary)/y}
x=a; echo ${x:$(canary)}
x=a; echo ${x%$(canary)}
x=a; echo "${x%"$(canary)"}"
echo a >out; sh out; . ./canary
let "x = $(canary; echo 1)"
wait -p 'a[$(canary)]' -n; read -r 'a[$(canary)]' < in

"""

_SCRIPTS = r"""
cat <<EOF
$(canary)
EOF
~~~
cat <<EOF
hi `canary`
EOF
~~~
cat <<EOF
$x `canary`
EOF
~~~
cat <<EOF
a $x b $(canary)
EOF
~~~
cat <<EOF
${x:-$(canary)}
EOF
~~~
cat <<-EOF
	$(canary)
	EOF
~~~
cat <<'EOF'
EOF
canary
~~~
cat <<EOF
foo \
EOF
cat <<'X'
EOF
canary
X
~~~
cat <<EOF && canary
hi
EOF
~~~
cat <<EOF | canary
hi
EOF
~~~
cat <<EOF > out; canary
hi
EOF
~~~
cat <<A <<'B'
x
A
y
B
canary
~~~
cat <<'A' <<B
x
A
$(canary)
B
~~~
cat <<E\
OF
x
EOF
canary
~~~
cat <<""
hi

canary
~~~
echo='a[$(canary)]'; cat <<EOF
$((echo))
EOF
~~~
echo='a[$(canary)]'; cat <<EOF
a $(( echo ))
EOF
~~~
cat <<EOF; cat <<'X'
$(canary)
EOF
x
X
~~~
echo a \
; canary
~~~
echo a # \
canary
~~~
can\
ary
~~~
echo a # comment
canary
~~~
# it's
canary # '
~~~
echo 'a
b'; canary
~~~
echo "a
$(canary)
"
~~~
echo $(cat <<'EOF'
x
EOF
canary)
~~~
echo "$(cat <<EOF
$(canary)
EOF
)"
~~~
if true
then
canary
fi
~~~
echo a |
canary
~~~
echo a &&
# comment
canary
~~~
x='
'; canary
~~~
f() {
canary
}
f
"""

PAYLOADS = (
    *_LINES.strip("\n").split("\n"),
    *(script.strip("\n") for script in _SCRIPTS.split("\n~~~\n")),
)

PROBES = (
    "git -c core.pager=./canary -p status",
    "GIT_EXTERNAL_DIFF=./canary git diff",
    "GIT_PAGER=./canary git -p status",
    "git bisect run canary",
    "git submodule foreach canary",
    "git grep -O./canary x",
    "git diff --ext-diff",
    "git diff --outp=x",
    "git status; git log --output=out",
    "PATH=.:$PATH; printenv",
    "shopt -s expand_aliases; alias e=canary",
    "_=canary; $_",
    "echo @($(canary))",
    "echo x > /dev/tcp/127.0.0.1/9",
    "cat < /dev/udp/127.0.0.1/9",
    "cat < .env",
    "cat < out/../.ENV",
    "echo x > $HOME/x",
    "echo x > ~/x",
    "echo x > /etc/motd",
    "echo x > out/../../x",
    "echo x >> .git/config",
    "cd .. && ls",
    "cd; ls",
    "cd -; ls",
    "cd $x && ls",
    "cd / && cd tmp && ls",
    "cd out; cd ../..; ls",
    "pushd /; ls",
    "find . -delete",
    "find . -fprint out",
    "find . -fls out",
    "sort -o out in",
    "sort --outp=out in",
    "sort -uoout in",
    "sed -i s/a/b/ in",
    "sed -ni p in",
    "sed -n 'w out' in",
    "sed 's/a/b/w out' in",
    "sed -f script in",
    'git commit -m -m "$x"',
    "git commit -m $x",
    "awk '{print > \"out\"}' in",
    "tar xf a.tar --to-command=x",
    "sudo ls",
    "busybox sh",
    "xargs -a in sh",
    "env -C / ls",
    "bash",
    "bash script",
    "bash -x script",
    "sh -s",
    "ec\u0127o hi",
    "echo \u00a0canary",
    "\u0435cho hi",
    "echo \u00e9t\u00e9",
    "echo a\rcanary",
    "echo a\0canary",
    "echo \x1b[31m",
    "ls\x0bcanary",
    "",
    " ",
    "(",
    "echo 'a",
    'echo "a',
    "echo $(",
    "cat <<EOF",
    "fi",
    "!",
    "{",
    "a=1",
    "> out",
)
"""Denied by the policy, whatever bash makes of them here."""

PLAIN = (
    "echo hi",
    "  echo   hi  ",
    "echo 'a b' \"c d\" e\\ f",
    'echo "$HOME" ${x:-y} $?',
    "ls src | head -20",
    "ls -la && cat in; wc -l in || true",
    "cat in 2>/dev/null",
    "cat in 2>&1 | grep -n x",
    "cat in >/dev/null 2>&1",
    "echo x > out",
    "echo x >> out.txt 2>&1",
    'grep -rn "a|b" . | sort | head',
    "grep -E '^(a|b)$' in",
    "find . -name '*.py' -not -path './x/*'",
    "find . -type f | wc -l",
    "sed -n '1,20p' in",
    "sed 's/a/b/g; s|c|d|' in",
    "sed -e 's/a/b/' -e '/x/d' in",
    "awk '{print $1}' in",
    "awk -F: '{ s += $2 } END { print s }' in",
    "sort -u in",
    "sort -t, -k2,2n in",
    "tar tzf a.tgz",
    "git status",
    "git status --short",
    "cd bin && ls",
    "cd ./bin/.. && ls -a",
    "cd bin || exit 1; ls",
    "(cd bin; ls); cat in",
    'for f in *.py; do echo "$f"; done',
    "for i in 1 2 3; do echo $i; done",
    'while IFS= read -r line; do echo "$line"; done < in',
    "if [ -f in ]; then cat in; else echo none; fi",
    'if [ "$x" = y ]; then echo y; fi',
    "if [[ -d bin && $x == y* ]]; then ls; fi",
    "[ -f in ] && cat in",
    "test -f in && echo yes",
    "test $? -eq 0 && echo ok",
    "case $x in a) echo a;; b|c) echo b;; *) echo c;; esac",
    "x=1; echo $x",
    "FOO=bar ls",
    "FOO=bar BAZ=1 grep x in",
    "export FOO=bar; echo $FOO",
    "set -euo pipefail; ls",
    "timeout 5 ls",
    "timeout -k 1 5s nice -n 3 ls -la",
    "env FOO=1 ls",
    "time ls",
    "nohup ls &",
    "ls | xargs cat",
    "ls | xargs -n1 -I{} echo {}",
    "sh -c 'ls -la'",
    'bash -c "ls; cat in"',
    "echo $(ls)",
    'echo "$(cat in | head -1)"',
    "echo `ls`",
    "cat <(ls)",
    "cat <<'EOF'\n$(canary) `canary`\nEOF",
    "cat <<EOF\nhi $x $(ls)\nEOF",
    "cat <<EOF > out.txt\nhi\nEOF",
    "cat <<EOF | grep hi\nhi\nEOF",
    "cat <<-EOF\n\thi\n\tEOF\nls",
    "cat <<< hi",
    "# a comment\nls # another\n",
    "ls \\\n  -la",
    "ls &&\n  cat in",
    'f() { echo "$1"; }',
    "! grep -q x in",
    "{ ls; cat in; } > out",
    "printf '%s\\n' a b",
    "head -c 10 in; echo; echo done",
    "echo a#b '#c' \"d # e\"",
    "echo {} @{1} a{b",
    "echo '*' \"?\" *.py",
    "echo \\$x '$x'",
    "echo a=b --c=d",
    "true",
)
"""Allowed by the policy: what people and models write every day."""
