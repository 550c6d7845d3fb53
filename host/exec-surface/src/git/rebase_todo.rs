//! `git-rebase-todo`: the next steps of `git rebase --continue`.

use super::finding::{Finding, new_lines};

/// Returns the lines that run a command and were not there before.
pub(crate) fn findings(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(previous, new, commands, "a command that the next `git rebase --continue` runs")
}

/// Returns the numbered lines whose first word is `exec` or `x`. Git's own comments begin with another word.
fn commands(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0);
    let is_command = move |line: &[u8]| {
        let first = line.split(is_blank).find(|word| !word.is_empty());
        matches!(first, Some(b"exec" | b"x"))
    };
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.filter(move |(_, line)| is_command(line)).map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(previous: Option<&str>, new: &str) -> Vec<usize> {
        findings(previous.map(str::as_bytes), new.as_bytes())
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn commands_ask_and_the_rest_does_not() {
        let todo = "pick 1 exec\n\n# exec comment\nlabel x\nfixup -C 2 x\nbreak\n";
        assert!(lines(None, todo).is_empty());
        assert_eq!(lines(None, "pick 1\nexec sh\n  x sh\n\tx\r\n"), [2, 3, 4]);
        assert_eq!(lines(Some("pick 1\nexec sh\nexec b"), "exec sh\nexec c\n"), [2]);
    }
}
