//! Tests of the examples in the documents: every code block is run or parsed, here or in the test that [`checked`]
//! names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::help_tests::{example, parses};

/// Pages whose blocks are all run, by `tests/it/tests/pages.rs`.
const RUN: [&str; 2] = ["cookbook.md", "tutorial.md"];
/// Pages that tests write.
const GENERATED: [&str; 3] = ["refusals.md", "screens-pi.md", "screens.md"];
/// Pages with diagrams in place of examples.
const DIAGRAMS: [&str; 1] = ["architecture.md"];

/// Commands of other programs in the examples, each with the reason why no test of this crate parses it.
const OTHER_COMMANDS: [(&str, &str); 5] = [
    ("cargo xtask build --release", "a step of CI, which builds the release"),
    ("cargo xtask test", "the test run itself"),
    ("cargo xtask demo", "`tests/it/tests/demo.rs` runs it"),
    (
        "ssh-keygen -Y verify -f machines -I laptop-7 -n portcullis-report -s report.json.sig < report.json",
        "`tests/it/tests/share/teams/members.rs` verifies a report like this",
    ),
    ("pi", "`tests/it/tests/extension.rs` starts plain pi with the installed extension"),
];

/// A page for users.
pub(super) struct Page {
    pub(super) name: String,
    pub(super) text: String,
}

struct Block<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

/// Returns the README and the pages of `docs`.
pub(super) fn pages() -> Vec<Page> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = fs::read_dir(top.join("docs")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.push(top.join("README.md"));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let page = |file: &PathBuf| Page {
        name: file.file_name().unwrap().to_string_lossy().into_owned(),
        text: fs::read_to_string(file).unwrap(),
    };
    files.iter().map(page).collect()
}

fn blocks(page: &Page) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in page.text.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some(Block { language, lines: Vec::new() }),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.lines.push(line);
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block without an end", page.name);
    blocks
}

/// Returns the test that checks a block as a whole.
fn checked(page: &str, language: &str) -> Option<&'static str> {
    Some(match (page, language) {
        (page, _) if RUN.contains(&page) => "tests/it/tests/pages.rs",
        ("protocol.md", "json") => "host/rpc/tests/page.rs",
        (_, "json") => "host/settings/tests/all/reference.rs",
        ("policy-authors.md", "rust" | "toml") => "guest/sdk/tests/page.rs",
        ("text-policies.md", "cedar" | "rego" | "toml") => "tests/it/tests/text_policies.rs",
        ("export.md" | "teams.md", "toml") => "host/command-line/src/args/doc_tests.rs",
        _ => return None,
    })
}

/// Returns the command of a line in a block that is no file, without the prompt and the comment.
fn command<'a>(block: &Block<'_>, line: &'a str) -> Option<&'a str> {
    let line = match block.language {
        "console" => line.strip_prefix("$ ")?,
        "yaml" => line.trim().strip_prefix("- run: ")?,
        _ => line,
    };
    Some(line.split(" # ").next().unwrap_or_default().trim())
}

#[test]
fn every_block_is_run_or_parsed() {
    let mut unused: BTreeSet<&str> = OTHER_COMMANDS.iter().map(|(command, _)| *command).collect();
    let (mut parsed, mut whole) = (0, 0);
    for page in pages() {
        let name = page.name.as_str();
        for block in blocks(&page) {
            if let Some(test) = checked(name, block.language) {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(test);
                assert!(file.is_file(), "{name}: there is no {test}");
                whole += 1;
                continue;
            }
            if GENERATED.contains(&name) || DIAGRAMS.contains(&name) {
                assert_eq!(block.language, "text", "{name}");
                continue;
            }
            for line in block.lines.iter().filter_map(|line| command(&block, line)) {
                // A build beside others is started by its path.
                let by_name = line.replace("target/release/portcullis ", "portcullis ");
                if let Some(words) = example(&by_name) {
                    parsed += 1;
                    assert_eq!(parses(&words), Ok(()), "{name}: {line}");
                } else if ["sh", "console"].contains(&block.language) && !line.is_empty() {
                    let known = OTHER_COMMANDS.iter().find(|(other, _)| line == *other);
                    let (other, _) = known.unwrap_or_else(|| panic!("{name}: nothing checks `{line}`"));
                    unused.remove(other);
                }
            }
            let languages = ["sh", "console", "text", "yaml", ""];
            assert!(languages.contains(&block.language), "{name}: nothing checks `{}`", block.language);
        }
    }
    assert!(parsed >= 50 && whole >= 60, "{parsed} commands, {whole} blocks");
    assert!(unused.is_empty(), "no document has {unused:?}");
}

/// The examples of `trust.toml`, with keys and digests in place of the abbreviated ones.
#[test]
fn the_trust_file_is_accepted() {
    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJ8pIBmUjQNC1bJ4PdXb1YHBdI5l2vmGZ9Q3sXqeR7tk";
    let page = pages().into_iter().find(|page| page.name == "policy-authors.md").unwrap();
    let blocks = blocks(&page);
    let block =
        blocks.iter().find(|block| block.lines.iter().any(|line| line.contains("[[publisher]]"))).unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let text = block
        .lines
        .join("\n")
        .replace("AAAA...", KEY)
        .replace("sha256:...", &digest)
        .replace("SHA256:...", "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU");
    let directory = tempfile::tempdir().unwrap();
    let signers = format!("a@acme.test namespaces=\"portcullis\" ssh-ed25519 {KEY}\n");
    fs::write(directory.path().join("acme.allowed_signers"), signers).unwrap();
    let file = directory.path().join("trust.toml");
    portcullis_bootstrap::trust_files::parse(&file, &text).unwrap();
    let wrong = text.replace("threshold", "treshold");
    assert!(portcullis_bootstrap::trust_files::parse(&file, &wrong).is_err(), "the control");
}

#[test]
fn the_file_with_collectors_is_accepted() {
    let page = pages().into_iter().find(|page| page.name == "export.md").unwrap();
    let blocks = blocks(&page);
    let block = blocks.iter().find(|block| block.language == "toml").unwrap();
    let text = block.lines.join("\n");
    let names: Vec<String> =
        portcullis_export::parse(&text).unwrap().into_iter().map(|destination| destination.name).collect();
    assert_eq!(names, ["team", "siem"]);
    assert!(portcullis_export::parse(&text.replace("format", "formt")).is_err(), "the control");
}

#[test]
fn the_files_of_teams_are_accepted() {
    use portcullis_teams::{Folder, Membership, NewTeam, Owner};

    let page = pages().into_iter().find(|page| page.name == "teams.md").unwrap();
    let texts = blocks(&page).into_iter().filter(|block| block.language == "toml");
    let [bundle, machine] = texts.map(|block| block.lines.join("\n")).collect::<Vec<_>>().try_into().unwrap();
    let root = format!("sha256:{}", "0".repeat(64));
    let machine = machine.replace("sha256:4f1c…", &root);
    assert!(Membership::parse(&machine, Owner::Machine).unwrap().mandatory);
    assert!(Membership::parse(&machine, Owner::User).is_err(), "the control");

    let directory = tempfile::tempdir().unwrap();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8pIBmUjQNC1bJ4PdXb1YHBdI5l2vmGZ9Q3sXqeR7tk".to_owned();
    let team = NewTeam { team: "acme".to_owned(), keys: vec![key], threshold: 1, timestamp_keys: Vec::new() };
    let folder = Folder::create(&directory.path().join("team"), &team, 0).unwrap();
    let file = directory.path().join("team/bundle.toml");
    fs::write(&file, &bundle).unwrap();
    let told = folder.draft().unwrap_err().to_string();
    assert!(told.contains("guard-1.2.0.wasm"), "only the pack is missing: {told}");
    fs::write(&file, bundle.replace("valid-days", "valid-day")).unwrap();
    assert!(folder.draft().unwrap_err().to_string().contains("unknown field"), "the control");
}

#[test]
fn blocks_are_found_with_their_commands() {
    let text = "```sh\nportcullis doctor # why\n```\n```console\n$ portcullis status\nout\n```\n";
    let page = Page { name: "x.md".to_owned(), text: text.to_owned() };
    let blocks = blocks(&page);
    let commands: Vec<_> =
        blocks.iter().flat_map(|block| block.lines.iter().filter_map(|line| command(block, line))).collect();
    assert_eq!(commands, ["portcullis doctor", "portcullis status"]);
}
