//! Shells and the small programs that scripts are made of.

use crate::Program;
use crate::data::{bash, text};
use crate::support::job::Job;
use crate::support::mask::SHELL_JOB_PID;

pub const PROGRAMS: &[Program] = &[
    Program::new("bash", bash_script).masks(&[SHELL_JOB_PID]),
    Program::new("dash", dash_script),
    Program::new("coreutils", coreutils),
    Program::new("find-and-tar", find_and_tar),
    Program::new("sort", sort_a_large_file),
    Program::new("awk", awk),
    Program::new("sed", sed),
    Program::new("grep-and-diff", grep_and_diff),
];

fn bash_script() -> Result<Job, String> {
    Ok(bash(
        r#"
fib() { local n=$1; if ((n < 2)); then echo "$n"; else echo $(($(fib $((n - 1))) + $(fib $((n - 2))))); fi; }
echo "fib 7 = $(fib 7)"
declare -A tree=([oak]=3 [elm]=1 [fir]=2)
for name in $(printf '%s\n' "${!tree[@]}" | sort); do echo "$name ${tree[$name]}"; done
mapfile -t squares < <(for i in {1..20}; do echo $((i * i)); done)
echo "${#squares[@]} squares, the last is ${squares[-1]}"
trap 'echo "caught USR1"' USR1
kill -USR1 $$
(trap 'echo "subshell leaves"' EXIT; exit 3) || echo "subshell ended with $?"
sleep 100 & kill %1; wait %1 2>/dev/null || echo "job ended with $?"
cat <<END | tr a-z A-Z | rev
here is a document
END
coproc UPPER { tr -u a-z A-Z 2>/dev/null || tr a-z A-Z; }
echo "to the coprocess" >&"${UPPER[1]}"; eval "exec ${UPPER[1]}>&-"
cat <&"${UPPER[0]}"
wait
for i in 1 2 3 4; do (echo "child $i" > "child.$i") & done; wait
cat child.*
[[ "alder birch" =~ ^(a[a-z]+)\ (b.*)$ ]] && echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]}"
echo "to standard error" >&2
ls /nonexistent 2>/dev/null || echo "ls ended with $?"
bash -c 'kill -SEGV $$' 2>/dev/null || echo "killed child: $?"
"#,
    ))
}

fn dash_script() -> Result<Job, String> {
    let script = r#"#!/bin/sh
i=0
while [ $i -lt 20 ]; do i=$((i + 1)); echo "line $i" | sed "s/line/$(printf %03d $i)/"; done
set -- one two three
for word; do printf '%s.' "$word"; done; echo
exec 3>out; echo "through descriptor 3" >&3; exec 3>&-
read -r first rest < out; echo "$first|$rest"
"#;
    Ok(Job::new("/bin/sh").args(["job.sh"]).file("job.sh", script))
}

fn coreutils() -> Result<Job, String> {
    Ok(bash(
        r#"
mkdir -p tree/a/b tree/c; cp words tree/a/words; ln -s a/words tree/link; mkfifo tree/fifo
cp -r tree copy; ls -1R --color=never copy; ls -l copy/a | awk '{print $1, $5, $9}'
sort words | uniq -c | sort -k1,1nr -k2 | head -5
wc words; cut -d' ' -f1 words | sort -u | paste -sd, ; tr -s a-z 'A-Z' < words | md5sum
sha256sum words; sha512sum words; b2sum words; cksum words; base64 words | tail -1
split -l 500 words part.; cat part.* | cmp - words && echo "split and cat agree"
head -c 1000 words | od -A d -t x1 | tail -2; tac words | nl | tail -2
comm -12 <(cut -d' ' -f1 words | sort -u) <(printf 'elm\nfir\nzebra\n')
join <(printf '1 a\n2 b\n') <(printf '1 x\n2 y\n'); seq 1 3 100 | shuf --random-source=words | sort -n | sum
dd if=words of=dd.out bs=7 count=300 2>/dev/null; stat -c '%s %a %F' dd.out tree/fifo tree/link
truncate -s 1M sparse; du --apparent-size -b sparse; chmod 640 dd.out; touch -d @0 dd.out; stat -c %Y dd.out
expr 6 '*' 7; factor 1234567890123456789; date -u -d @1000000000; env -i A=1 env; nproc --all > /dev/null
timeout 0.1 sleep 10 || echo "timeout says $?"; yes | head -1000 | wc -l; tee t1 t2 < words > /dev/null
mv t1 moved; rm -r copy part.*; printf '%5.2f|%-8s|%x\n' 3.14159 left 255
"#,
    )
    .file("words", text(2000)))
}

fn find_and_tar() -> Result<Job, String> {
    Ok(bash(
        r#"
for i in {1..40}; do mkdir -p "d$((i % 5))/e$((i % 3))"; echo "file $i" > "d$((i % 5))/e$((i % 3))/f$i"; done
find . -name 'f*1' -type f | sort; find d1 d2 -type f -size -2 -print0 | sort -z | xargs -0 -n 3 cat
find . -type d -empty; find d3 -type f -exec sha1sum {} + | sort
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf all.tgz d0 d1 d2 d3 d4
mkdir out; tar -xzf all.tgz -C out; diff -r d1 out/d1 && echo "the same after tar"; tar -tzf all.tgz | wc -l
find out -newer all.tgz -delete || true
rm -rf out
"#,
    ))
}

fn sort_a_large_file() -> Result<Job, String> {
    // The small buffer makes it merge temporary files, with two threads.
    Ok(bash(
        r#"
sort -S 1M --parallel=2 -k3,3n -k1,1 words > sorted; sort -c -k3,3n -k1,1 sorted
sort -u -k1,1 words | wc -l; sort -R --random-source=words words | sort -r | md5sum; tail -1 sorted
"#,
    )
    .file("words", text(100_000)))
}

fn awk() -> Result<Job, String> {
    crate::support::package::find("gawk")?;
    Ok(bash(
        r#"
program='{ count[$1]++; sum[$1] += $3; if ($3 > max[$1]) max[$1] = $3 }
END { for (w in count) printf "%s %d %d %.3f\n", w, count[w], max[w], sum[w] / count[w] | "sort"; close("sort") }'
gawk "$program" words
gawk 'BEGIN { for (i = 1; i <= 20000; i++) s += sin(i) * sqrt(i); printf "%.6f\n", s }'
gawk '{ gsub(/[aeiou]+/, "<&>"); print length($0), toupper(substr($0, 1, 5)) }' words | tail -3
"#,
    )
    .file("words", text(5000)))
}

fn sed() -> Result<Job, String> {
    Ok(bash(
        r#"
sed -n '/oak/{s/\([a-z]*\) \([a-z]*\)/\2 \1/;p}' words | tail -3
sed -E 's/([0-9])([0-9]+)$/\2-\1/; 10q' words; sed '$!d' words
cp words edited; sed -i '1~2d;s/elm/ELM/g' edited; wc -l < edited
sed ':a;N;$!ba;s/\n/,/g' <(head -20 words)
"#,
    )
    .file("words", text(3000)))
}

fn grep_and_diff() -> Result<Job, String> {
    Ok(bash(
        r#"
grep -c oak words; grep -nE '^(fir|elm) .*[05]$' words | head -3; grep -vwF -f <(printf 'oak\nelm\n') words | wc -l
sed 's/^pine/spruce/' words > changed; diff -u --label a --label b words changed > p || echo "diff says $?"
wc -l < p; head -8 p; cmp words changed || echo "cmp says $?"
"#,
    )
    .file("words", text(3000)))
}
