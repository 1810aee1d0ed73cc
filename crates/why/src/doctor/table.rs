//! The findings for people: 80 columns, no colour.

use super::finding::{Finding, Verdict};

const WIDTH: usize = 80;
const INDENT: usize = 22;

pub fn render(findings: &[Finding], lacking: &[&str]) -> String {
    let mut text = String::new();
    for finding in findings {
        let head = format!("{:<8} {:<12} ", finding.verdict.word(), finding.probe);
        text.push_str(&block(&head, &finding.found));
        text.push_str(&block("", &finding.means));
        if finding.verdict != Verdict::Works && !finding.remedy.is_empty() {
            text.push_str(&block("", &format!("-> {}", finding.remedy)));
        }
    }
    text.push('\n');
    text.push_str(&match lacking {
        [] => "The engine can run on this machine.\n".to_owned(),
        _ => format!("The engine cannot run on this machine without: {}.\n", lacking.join(", ")),
    });
    text
}

/// The text beside the head, wrapped between the indent and the width.
fn block(head: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = format!("{head:<INDENT$}");
    let mut length = line.chars().count();
    let mut first = true;
    for word in text.split_whitespace() {
        let size = word.chars().count();
        if !first && length + 1 + size > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(INDENT);
            length = INDENT;
            first = true;
        }
        if !first {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += size;
        first = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, block};

    #[test]
    fn long_texts_wrap() {
        let text = block("works    ptrace", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.starts_with("works    ptrace       word word"));
        assert_eq!(text.matches("word").count(), 40);
    }
}
