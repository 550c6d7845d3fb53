//! Tests of agent definitions.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::disk::RealDisk;
use crate::{discover, resolve};

struct World {
    top: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("project")).unwrap();
        Self { top }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.top.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn places(&self, agent: &str) -> Places {
        let top = self.top.path();
        Places { agent: agent.to_owned(), ..Places::usual(&top.join("project"), &top.join("home")) }
    }

    /// Returns the name of the definition's file, the names of its skills, and the warnings.
    fn read(&self, agent: &str) -> (Option<String>, Vec<String>, Vec<String>) {
        let places = self.places(agent);
        let found = discover(&places, &RealDisk).unwrap();
        let resolved = resolve(&found, &places, &RealDisk).unwrap();
        let definition = resolved.definition;
        let file = |definition: &AgentDefinition| {
            definition.file.file_name().unwrap().to_string_lossy().into_owned()
        };
        let skills = definition.iter().flat_map(|definition| &definition.skills);
        let warnings = resolved.warnings.iter().map(|warning| format!("{} {}", warning.origin, warning.text));
        (
            definition.as_ref().map(file),
            skills.map(|skill| format!("{}: {}", skill.name, skill.description)).collect(),
            warnings.collect(),
        )
    }
}

const AGENTS: &str = "home/.pi/agent/sandbox/agents";

#[test]
fn an_agent_has_its_own_definition_or_that_for_all() {
    let world = World::new();
    assert_eq!(world.read("reviewer"), (None, vec![], vec![]));
    world.write(&format!("{AGENTS}/default.md"), "For all.");
    world.write(&format!("{AGENTS}/reviewer.md"), "---\nskills: review, gone\n---\n{{skills}}");
    world.write("home/.pi/agent/skills/review/SKILL.md", "---\ndescription: Reviews code.\n---\n");
    assert_eq!(world.read("").0.as_deref(), Some("default.md"));
    assert_eq!(world.read("writer").0.as_deref(), Some("default.md"));
    let (file, skills, warnings) = world.read("reviewer");
    assert_eq!(
        (file.as_deref(), skills.as_slice()),
        (Some("reviewer.md"), &["review: Reviews code.".to_owned()][..])
    );
    assert!(
        matches!(warnings.as_slice(), [one] if one.contains("`gone`") && one.contains("reviewer.md")),
        "{warnings:?}"
    );
}

#[test]
fn a_definition_with_a_mistake_is_left_out_and_named() {
    let world = World::new();
    world.write(&format!("{AGENTS}/default.md"), "For all.");
    for (text, part) in [
        ("{{os}}".to_owned(), "`{{system}}`"),
        ("x".repeat(LARGEST + 1), "KiB"),
        (format!("---\nskills: {}\n---\n", "a,".repeat(MOST_SKILLS + 1)), "skills"),
    ] {
        world.write(&format!("{AGENTS}/reviewer.md"), &text);
        let (file, _, warnings) = world.read("reviewer");
        assert_eq!(file, None, "another text does not take its place");
        assert!(matches!(warnings.as_slice(), [one] if one.contains(part)), "{part}: {warnings:?}");
    }
    fs::write(world.top.path().join(AGENTS).join("reviewer.md"), [0xff, 0xfe]).unwrap();
    assert!(world.read("reviewer").2[0].contains("UTF-8"));
}

/// An agent may have written everything in the project.
#[test]
fn a_project_sets_no_text() {
    let world = World::new();
    for name in [".pi/agents/reviewer.md", "agents/reviewer.md", ".pi/sandbox/agents/reviewer.md"] {
        world.write(&format!("project/{name}"), "evil");
    }
    world.write("project/.pi/skills/review/SKILL.md", "---\ndescription: evil\n---\n");
    assert_eq!(world.read("reviewer").0, None);
    world.write(&format!("{AGENTS}/reviewer.md"), "---\nskills: review\n---\nMine.");
    let (file, skills, warnings) = world.read("reviewer");
    assert!(file.is_some() && skills.is_empty() && warnings.len() == 1, "{skills:?} {warnings:?}");
}

/// The user may keep a definition in a project, through a link: commands do not write it there.
#[test]
fn a_definition_is_not_written_by_the_agent() {
    let world = World::new();
    let target = world.write("project/notes.md", "Mine.");
    let own = world.write(&format!("{AGENTS}/default.md"), "x");
    let skill = world.write("home/.pi/agent/skills/review.md", "---\ndescription: x\n---\n");
    fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink(&target, &own).unwrap();
    fs::write(&target, "---\nskills: review\n---\n").unwrap();
    let places = world.places("");
    let found = discover(&places, &RealDisk).unwrap();
    let resolved = resolve(&found, &places, &RealDisk).unwrap();
    assert!(resolved.definition.is_some());
    for file in [&target, &skill, &places.agents_directory().join("other.md")] {
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        let denied = resolved.deny_write().any(|rule| rule.pattern.matcher().matches(&file));
        assert!(denied, "{}", file.display());
    }
    let free = world.write("project/free.md", "").canonicalize().unwrap();
    assert!(!resolved.deny_write().any(|rule| rule.pattern.matcher().matches(&free)), "control");
}
