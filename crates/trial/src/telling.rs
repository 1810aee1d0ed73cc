//! Which line of what a program said on standard error tells its failure from others.

use regex::{Regex, RegexSet};
use std::path::Path;
use std::sync::LazyLock;

/// Longer ones are cut.
const LONGEST: usize = 300;

/// Lines that say nothing of their own, because they are the same for other failures or quote the
/// input.
static SAYS_NOTHING: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = [
        r"^[^\p{Alphabetic}\d]*$",
        // Excerpts of the input as compilers show them, with what they suggest.
        r"^\s*\d*\s*\|",
        r"^\s*(--> |= (note|help): )",
        r"^ {8,}",
        r"(^|: )note: |^help: ",
        // What closes a list of errors, or says where to learn more.
        r"^\d+ (error|warning)s?( and \d+ errors?)?( generated)?\.?$",
        r"^compilation terminated\.$",
        r"(had|due to) compilation errors\.$",
        r"^error: aborting due to \d* ?previous errors?",
        r"^(Some errors have detailed explanations|For more information about (this error|an error)\b)",
        r"^Node\.js v[\d.]+$",
        // Calls that led there.
        r"^\s+(at|from) ",
        r"^\s+\.\.\. \d+ more$",
    ];
    RegexSet::new(patterns).expect("they are regular expressions")
});

/// Where Rust's compiler found what it says in this paragraph.
static FOUND_AT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*--> .+:\d+:\d+$").expect("it is a regular expression"));

/// Behind such a line there are nothing but calls, to the end.
static CALLS_FOLLOW: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^(stack traceback:|stack backtrace:|Stack trace:|goroutine \d+ \[.*\]:)$";
    Regex::new(pattern).expect("it is a regular expression")
});

/// The last line that says something, with what varies from run to run masked: numbers in any
/// base become `#`, and files in the directory of the test are called by their names. What a
/// sanitizer sums up says more than its last words.
pub fn telling_line(stderr: &[u8], directory: &Path) -> String {
    let mut text = String::from_utf8_lossy(stderr).into_owned();
    let real = directory.canonicalize();
    for directory in [Some(directory), real.as_deref().ok()].into_iter().flatten() {
        text = text.replace(&format!("{}/", directory.display()), "");
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_summary = |line: &&&str| line.starts_with("SUMMARY: ") && line.contains("Sanitizer");
    let summary = lines.iter().rev().find(is_summary);
    let line = summary.copied().or_else(|| last_that_tells(&lines)).unwrap_or_default();
    mask(line.trim()).chars().take(LONGEST).collect()
}

fn last_that_tells<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let end = lines.iter().position(|line| CALLS_FOLLOW.is_match(line)).unwrap_or(lines.len());
    let lines = &lines[..end];
    let aside = aside(lines);
    let points_up = |at: usize| lines.get(at + 1).is_some_and(|below| is_pointer(below));
    let tells = |at: &usize| {
        let says_nothing = aside[*at] || SAYS_NOTHING.is_match(lines[*at]);
        !says_nothing && !is_pointer(lines[*at]) && !points_up(*at)
    };
    let telling = (0..lines.len()).rev().find(tells);
    // Something is better than nothing.
    let at = telling.or_else(|| lines.iter().rposition(|line| !line.trim().is_empty()))?;
    Some(lines[at])
}

/// Of a paragraph of Rust's compiler all but the first line: excerpts, labels, suggestions,
/// whatever they look like. Of a warning the first, too.
fn aside(lines: &[&str]) -> Vec<bool> {
    let mut aside = vec![false; lines.len()];
    let mut start = 0;
    for paragraph in lines.split_inclusive(|line| line.trim().is_empty()) {
        let end = start + paragraph.len();
        let (is_error, is_warning) =
            (paragraph[0].starts_with("error"), paragraph[0].starts_with("warning"));
        if (is_error || is_warning) && paragraph.iter().any(|line| FOUND_AT.is_match(line)) {
            aside[start + usize::from(is_error)..end].fill(true);
        }
        start = end;
    }
    aside
}

/// Whether a line points at a place in the one above, which then is a quotation.
fn is_pointer(line: &str) -> bool {
    line.trim_start_matches([' ', '\t', '~', '-']).starts_with('^')
}

fn mask(line: &str) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    // A blank at the end closes the last word.
    for char in line.chars().chain([' ']) {
        if char.is_alphanumeric() || char == '_' {
            word.push(char);
            continue;
        }
        masked.push_str(if is_number(&word) { "#" } else { &word });
        word.clear();
        masked.push(char);
    }
    masked.trim_end().to_owned()
}

fn is_number(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stderr: &str, expected: &str) {
        assert_eq!(telling_line(stderr.as_bytes(), Path::new("/tmp/x-1")), expected, "{stderr}");
    }

    #[test]
    fn what_varies_is_masked() {
        check("", "");
        check("one\ntwo 17\n\n", "two #");
        check("==4711==ERROR: at 0x7fff12 in f2 (a.c:12)", "==#==ERROR: at # in f2 (a.c:#)");
        check("x1: bad", "x1: bad");
        check("no /tmp/x-1/a.c, but /tmp/x-1/b/c", "no a.c, but b/c");
    }

    #[test]
    fn the_line_that_tells_most() {
        check(
            "SUMMARY: AddressSanitizer: SEGV a.c:3 in f\n0x00 00\n==7==ABORTING\n",
            "SUMMARY: AddressSanitizer: SEGV a.c:# in f",
        );
        check("SUMMARY: 3 errors\nlast", "last");
        let panic = "thread 'main' panicked at a.rs:1:2:\nno such thing\n";
        check(
            &format!("{panic}note: run with `RUST_BACKTRACE=1` environment variable\n"),
            "no such thing",
        );
    }

    /// As the programs really say it.
    #[test]
    fn closing_words_pointers_quotations_and_calls_are_passed_over() {
        let gcc = "a.c: In function ‘main’:\na.c:7:11: error: no member named ‘c’\n    7 |   return x.c;\n      |           ^\n      |           d\n";
        check(gcc, "a.c:#:#: error: no member named ‘c’");
        let clang = "a.c:7:12: error: no member named 'c' in 'struct s'\n  return x.c;\n         ~ ^\n1 error generated.\n";
        check(clang, "a.c:#:#: error: no member named 'c' in 'struct s'");
        let xmllint = "a.xml:3: parser error : Opening and ending tag mismatch: d and c\n<c><d></c></d></r>\n          ^\n";
        check(xmllint, "a.xml:#: parser error : Opening and ending tag mismatch: d and c");
        let sqlite = "Parse error near line 1: near \"(\": syntax error\n  create a(n);\n          ^--- error here\n";
        check(sqlite, "Parse error near line #: near \"(\": syntax error");
        let lua = "lua: a.lua:5: attempt to concatenate a nil value\nstack traceback:\n\ta.lua:5: in function 'f'\n\t[C]: in ?\n";
        check(lua, "lua: a.lua:#: attempt to concatenate a nil value");
        let node = "a.js:1\nfoo(\n   ^\n\nSyntaxError: missing ) after argument list\n    at wrapSafe (node:internal:1153:20)\n    at node:internal/main\n\nNode.js v18.19.0\n";
        check(node, "SyntaxError: missing ) after argument list");
        let perl = "Global symbol \"$u\" requires explicit package name at a.pl line 6.\na.pl had compilation errors.\n";
        check(perl, "Global symbol \"$u\" requires explicit package name at a.pl line #.");
        let rustc = "error[E0425]: cannot find value `y` in this scope\n --> a.rs:1:13\n  |\n1 | fn main() { y }\n  |             ^ not found in this scope\n\nerror: aborting due to 1 previous error\n\nFor more information about this error, try `rustc --explain E0425`.\n";
        check(rustc, "error[E0425]: cannot find value `y` in this scope");
        let suggestion = "error[E0277]: the trait bound `N: Copy` is not satisfied\n --> a.rs:4:18\n  |\n4 | fn main() { show(N); }\n  |             ---- ^ the trait `Copy` is not implemented for `N`\nhelp: consider annotating `N` with `#[derive(Copy)]`\n  |\n3 + #[derive(Copy)]\n4 | struct N;\n  |\n\nerror: aborting due to 1 previous error\n";
        check(suggestion, "error[E0277]: the trait bound `N: Copy` is not satisfied");
        let warning = "error: no\n --> a.rs:1:1\n  |\n\nwarning: unused\n --> a.rs:2:1\n  ::: b.rs:3:1\n  |\n";
        check(warning, "error: no");
        // Another program's paragraph, which only begins alike.
        check("error: no\nreally 1\n", "really #");
        let java = "Exception in thread \"main\" a.B: no\n\tat A.main(A.java:3)\nCaused by: a.C: really 1\n\tat A.f(A.java:9)\n\t... 1 more\n";
        check(java, "Caused by: a.C: really #");
        let go =
            "panic: no 1\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:4 +0x18\nexit status 2\n";
        check(go, "panic: no #");
        let php = "PHP Fatal error:  Uncaught Error: no in /tmp/x-1/a.php:5\nStack trace:\n#0 {main}\n  thrown in /tmp/x-1/a.php on line 5\n";
        check(php, "PHP Fatal error:  Uncaught Error: no in a.php:#");
        let ruby = "a.rb:1:in `f': no (RuntimeError)\n\tfrom a.rb:2:in `<main>'\n";
        check(ruby, "a.rb:#:in `f': no (RuntimeError)");
        // If there is nothing else, what says little has to do.
        check("    ^\n1 error\n", "# error");
    }
}
