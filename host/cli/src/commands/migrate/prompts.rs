//! Prompts that mention another sandbox. They are listed, never changed.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_settings::{Disk as _, RealDisk};
use serde::Serialize;

/// Words of other sandboxes, each with its replacement.
const WORDS: [(&str, &str); 7] = [
    ("/sandbox-configure", "`/sandbox`"),
    ("/sandbox-disable", "`/sandbox`, Enter"),
    ("/sandbox-enable", "`/sandbox`, Enter"),
    ("just init", "`portcullis config import --from bosun --replace`"),
    ("just start", "`portcullis pi`"),
    ("bwrap", "Portcullis, which tells the model its own rules"),
    ("sandbox-runtime", "Portcullis, which tells the model its own rules"),
];

/// A line that mentions another sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mention {
    /// The file.
    pub(crate) file: PathBuf,
    /// The number of the line.
    pub(crate) line: usize,
    /// The word in the line.
    pub(crate) word: &'static str,
    /// Its replacement.
    pub(crate) instead: &'static str,
}

/// Finds mentions in the prompts that pi gives to the model.
pub(crate) fn find(agent: &Path, project: &Path) -> Vec<Mention> {
    let own = project.join(".pi");
    let mut files: Vec<PathBuf> = vec![project.join("AGENTS.md")];
    for directory in [agent, own.as_path()] {
        files.extend(["AGENTS.md", "SYSTEM.md", "APPEND_SYSTEM.md"].map(|name| directory.join(name)));
        let prompts = fs::read_dir(directory.join("prompts")).into_iter().flatten();
        let mut prompts: Vec<PathBuf> = prompts.filter_map(|entry| Some(entry.ok()?.path())).collect();
        prompts.sort();
        files
            .extend(prompts.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    }
    files.iter().flat_map(|file| mentions(file)).collect()
}

fn mentions(file: &Path) -> Vec<Mention> {
    let text = RealDisk.read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let in_line = |(number, line): (usize, &str)| {
        let found = WORDS.iter().find(|(word, _)| line.contains(word))?;
        Some(Mention { file: file.to_owned(), line: number + 1, word: found.0, instead: found.1 })
    };
    text.lines().enumerate().filter_map(in_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_has_its_line_and_its_replacement() {
        let top = tempfile::tempdir().unwrap();
        let (agent, project) = (top.path().join("agent"), top.path().join("project"));
        fs::create_dir_all(agent.join("prompts")).unwrap();
        fs::create_dir_all(&project).unwrap();
        fs::write(agent.join("prompts/go.md"), "Hello\nthen run `just init`.\n").unwrap();
        fs::write(agent.join("prompts/go.txt"), "just init").unwrap();
        fs::write(project.join("AGENTS.md"), "You run in bwrap.").unwrap();
        let found = find(&agent, &project);
        let found: Vec<_> = found.iter().map(|mention| (mention.line, mention.word)).collect();
        assert_eq!(found, [(1, "bwrap"), (2, "just init")]);
    }
}
