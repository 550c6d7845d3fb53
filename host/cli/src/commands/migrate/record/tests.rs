//! Tests of the record.

use portcullis_settings::replace_file;

use super::*;

struct World {
    top: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { top: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn record(&self) -> Record {
        Record::open(&self.at("state")).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let (file, earlier) = (self.at(name), fs::read(self.at(name)).ok());
        let new = NewText { file: &file, project: None, earlier: earlier.as_deref(), text, dropped: None };
        self.record().write(new, || Ok(replace_file(&file, text.as_bytes())?)).unwrap();
    }

    fn undo(&self) -> Vec<String> {
        self.record().undo(|place| Ok(fs::remove_dir_all(place)?)).unwrap()
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }
}

#[test]
fn undo_restores_every_kind_of_change() {
    let world = World::new();
    fs::write(world.at("old"), "before").unwrap();
    fs::create_dir_all(world.at("extensions/one")).unwrap();
    world.write("old", "after");
    world.write("fresh", "new");
    world.write("old", "after that");
    world.record().hide(&world.at("extensions/one")).unwrap();
    assert!(world.at("extensions/.one.before-portcullis").is_dir());
    fs::create_dir(world.at("ours")).unwrap();
    world.record().note(Made::Installed { place: world.at("ours") }).unwrap();
    assert_eq!(world.text("old.before-portcullis").as_deref(), Some("before"));
    assert_eq!(world.text("old.before-portcullis-2").as_deref(), Some("after"));
    assert_eq!(world.undo(), [""; 0]);
    assert_eq!((world.text("old").as_deref(), world.text("fresh")), (Some("before"), None));
    assert!(world.at("extensions/one").is_dir() && !world.at("ours").exists());
    assert!(!world.at("state").join(FILE).exists() && !world.at("old.before-portcullis").exists());
}

#[test]
fn undo_keeps_a_file_that_was_edited_since() {
    let world = World::new();
    fs::write(world.at("old"), "before").unwrap();
    world.write("old", "after");
    fs::write(world.at("old"), "edited").unwrap();
    let kept = world.undo();
    assert!(matches!(kept.as_slice(), [one] if one.contains("old.before-portcullis")), "{kept:?}");
    assert_eq!(world.text("old").as_deref(), Some("edited"));
    assert_eq!(world.text("old.before-portcullis").as_deref(), Some("before"));
}

#[test]
fn a_change_that_failed_needs_no_undo() {
    let world = World::new();
    fs::write(world.at("old"), "before").unwrap();
    let file = world.at("old");
    let new = |earlier| NewText { file: &file, project: None, earlier, text: "after", dropped: None };
    let mut record = world.record();
    assert!(record.write(new(Some(b"other")), || Ok(())).is_err(), "it is not what was planned with");
    assert!(record.write(new(Some(b"before")), || bail!("no space")).is_err());
    assert!(Record::open(&world.at("state")).is_err(), "two at once would lose changes");
    drop(record);
    assert_eq!(world.undo(), [""; 0]);
    assert_eq!(world.text("old").as_deref(), Some("before"));
}

/// An agent may write a file with the copy's name; if undo used it, the agent would choose pi's settings.
#[test]
fn nothing_is_taken_from_the_copy() {
    let world = World::new();
    fs::write(world.at("old"), "before").unwrap();
    world.write("old", "after");
    fs::write(world.at("old.before-portcullis"), "evil").unwrap();
    assert_eq!(world.undo(), [""; 0]);
    assert_eq!(world.text("old").as_deref(), Some("before"));
    assert_eq!(world.text("old.before-portcullis").as_deref(), Some("evil"), "it is not ours any more");
}

#[test]
fn a_link_stays_a_link_and_others_read_no_earlier_text() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    fs::write(world.at("target"), "password").unwrap();
    std::os::unix::fs::symlink(world.at("target"), world.at("old")).unwrap();
    world.write("old", "after");
    assert_eq!(world.text("target").as_deref(), Some("after"));
    for name in ["state/migration.json", "old.before-portcullis"] {
        let mode = fs::metadata(world.at(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    assert_eq!(world.undo(), [""; 0]);
    assert!(world.at("old").is_symlink());
    assert_eq!(world.text("target").as_deref(), Some("password"));
}

/// pi rewrites its settings often, and undo must add the extension's entry nevertheless.
#[test]
fn an_item_comes_back_into_a_list_that_changed_since() {
    let world = World::new();
    let (before, after) = (r#"{ "packages": ["a", "old"] }"#, r#"{ "packages": ["a"] }"#);
    fs::write(world.at("s"), before).unwrap();
    let file = world.at("s");
    let dropped = Some(("packages".to_owned(), "old".into()));
    let new = NewText { file: &file, project: None, earlier: Some(before.as_bytes()), text: after, dropped };
    world.record().write(new, || Ok(replace_file(&file, after.as_bytes())?)).unwrap();
    fs::write(&file, r#"{ "theme": "dark", "packages": ["a", "b"] }"#).unwrap();
    assert_eq!(world.undo(), [""; 0]);
    let now: Value = serde_json::from_str(&world.text("s").unwrap()).unwrap();
    assert_eq!(now, serde_json::json!({ "theme": "dark", "packages": ["a", "b", "old"] }));
}
