//! `info/attributes`: the filters, merge drivers and converters of files.

use super::finding::{Finding, new_lines};

/// Returns the lines that select a program by name and were not there before.
pub(crate) fn findings(previous: Option<&[u8]>, new: &[u8]) -> Vec<Finding> {
    new_lines(
        previous,
        new,
        choosing,
        "an attribute that makes git use a filter, a merge driver or a converter",
    )
}

/// Returns the numbered lines that name a filter or a driver that is not built into git. A quoted pattern may contain
/// such a word as well: that asks too often, never too rarely.
fn choosing(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let chooses = |line: &[u8]| line.split(u8::is_ascii_whitespace).any(chooses);
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.filter(move |(_, line)| chooses(line)).map(|(index, line)| (index + 1, line))
}

fn chooses(word: &[u8]) -> bool {
    let Some(equals) = word.iter().position(|byte| *byte == b'=') else { return false };
    let (name, driver) = word.split_at(equals);
    match name {
        b"filter" => true,
        b"merge" => !matches!(driver, b"=text" | b"=binary" | b"=union"),
        b"diff" => !matches!(
            driver,
            b"=ada"
                | b"=bash"
                | b"=bibtex"
                | b"=cpp"
                | b"=csharp"
                | b"=css"
                | b"=golang"
                | b"=html"
                | b"=java"
                | b"=javascript"
                | b"=kotlin"
                | b"=markdown"
                | b"=objc"
                | b"=perl"
                | b"=php"
                | b"=python"
                | b"=ruby"
                | b"=rust"
                | b"=scheme"
                | b"=tex"
        ),
        _ => false,
    }
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
    fn what_chooses_a_program_asks() {
        assert!(lines(None, "*.png binary\n*.rs diff=rust merge=union text eol=lf -filter\n").is_empty());
        assert_eq!(lines(None, "* text\n*.c filter=evil\n[attr]m merge=evil\n*.d\tdiff=x"), [2, 3, 4]);
        assert!(lines(Some("* filter=lfs\n"), "*.b text\n* filter=lfs\n").is_empty());
    }
}
