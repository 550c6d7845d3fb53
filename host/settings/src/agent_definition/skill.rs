//! The header of a skill of pi.

use std::path::{Path, PathBuf};

use super::template::Skill;
use crate::disk::Disk;
use crate::settings_text;

/// The longest description, as in pi.
const LONGEST: usize = 1024;

/// Returns the files that were looked up, and the skill or why it cannot be used.
pub(super) fn find(skills: &Path, name: &str, disk: &dyn Disk) -> (Vec<PathBuf>, Result<Skill, String>) {
    let files = vec![skills.join(name).join("SKILL.md"), skills.join(format!("{name}.md"))];
    for file in &files {
        let text = match settings_text::read(file, disk) {
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(error) => return (files.clone(), Err(error.to_string())),
        };
        let skill = description(&text).map(|description| Skill {
            name: name.to_owned(),
            description,
            file: file.clone(),
        });
        return (files.clone(), skill);
    }
    let why = format!("there is neither `{name}/SKILL.md` nor `{name}.md` in the agent's directory `skills`");
    (files, Err(why))
}

/// Returns the description in a skill's header: a plain or quoted text, or an indented block.
fn description(text: &str) -> Result<String, String> {
    let header = text.strip_prefix("---\n").and_then(|rest| Some(rest.split_once("\n---")?.0));
    let header = header.ok_or("it has no header between lines of `---`")?;
    let mut lines = header.lines().peekable();
    let mut described = None;
    while let Some(line) = lines.next() {
        let Some(value) = line.strip_prefix("description:").map(str::trim) else { continue };
        let is_block = value.starts_with(['>', '|']);
        let mut words = if is_block { String::new() } else { unquoted(value).to_owned() };
        // Further lines of the same text are indented.
        while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(more.trim());
        }
        described = Some(words);
    }
    match described.filter(|text| !text.trim().is_empty()) {
        None => Err("it has no `description`".to_owned()),
        Some(text) if text.len() > LONGEST => {
            Err(format!("its `description` has more than {LONGEST} characters"))
        }
        Some(text) => Ok(text),
    }
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_in_all_forms() {
        for (header, expected) in [
            ("name: x\ndescription: Reviews code.", "Reviews code."),
            ("description: \"Reviews: code\"\nname: x", "Reviews: code"),
            ("description: >\n  Reviews\n  code\nname: x", "Reviews code"),
            ("description: |-\n\tone", "one"),
            ("description: Reviews\n  code", "Reviews code"),
        ] {
            assert_eq!(
                description(&format!("---\n{header}\n---\nbody")).as_deref(),
                Ok(expected),
                "{header}"
            );
        }
        for (text, part) in [
            ("no header", "no header"),
            ("---\nname: x\n---\n", "no `description`"),
            ("---\ndescription: ''\n---\n", "no `description`"),
            (&format!("---\ndescription: {}\n---\n", "x".repeat(1025)), "1024"),
        ] {
            let why = description(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
