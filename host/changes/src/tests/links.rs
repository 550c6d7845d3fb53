//! Hard links that the user makes after a call: undo does not change their content.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::agent::Session;
use super::tree::tree;
use crate::plan::Why;

/// What undo and redo must not change: the user's links outside the project, with content, mode and time.
fn backup(session: &Session, names: &[&str]) -> String {
    let of = |name: &&str| {
        let path = session.place.path().join("backup").join(name);
        let found = path.symlink_metadata().expect("there");
        format!(
            "{name} {:o} {} {}\n",
            found.mode(),
            found.mtime_nsec(),
            fs::read_to_string(&path).expect("text")
        )
    };
    names.iter().map(of).collect()
}

fn link(session: &Session, names: &[&str]) {
    fs::create_dir(session.place.path().join("backup")).expect("made");
    for name in names {
        fs::hard_link(session.at(name), session.place.path().join("backup").join(name)).expect("linked");
    }
}

#[test]
fn a_link_that_the_user_makes_keeps_its_content_and_mode() {
    let mut session = Session::new();
    let names = ["changed", "overwritten", "merged", "mode"];
    for name in names {
        fs::write(session.at(name), "1\n2\n3\n").expect("a file");
    }
    let before = tree(&session.project());
    session.append("changed", "4\n").expect("written");
    session.overwrite("overwritten", "x").expect("written");
    session.write("merged", "1\n2\n3\nagent\n").expect("written");
    session.mode("mode", 0o700).expect("changed");
    session.end();
    let after = tree(&session.project());
    link(&session, &names);
    let linked = backup(&session, &names);
    for round in 0..2 {
        let report = session.undo();
        assert!(report.is_complete(), "{round}: {report:?}");
        assert_eq!(backup(&session, &names), linked, "{round}");
        let is = tree(&session.project());
        assert!(is == before, "{round}: {is:?} {before:?}");
        let report = session.redo();
        assert!(report.is_complete(), "{round}: {report:?}");
        assert_eq!(backup(&session, &names), linked, "{round}");
        assert!(tree(&session.project()) == after, "{round}");
    }
}

#[test]
fn a_merged_text_is_not_written_through_a_link() {
    let mut session = Session::new();
    fs::write(session.at("a"), "1\n2\n3\n4\n5\n6\n").expect("a file");
    session.write("a", "1\n2\n3\n4\n5\n6\nagent\n").expect("written");
    session.end();
    fs::write(session.at("a"), "user\n2\n3\n4\n5\n6\nagent\n").expect("edited");
    link(&session, &["a"]);
    let linked = backup(&session, &["a"]);
    let report = session.undo();
    assert_eq!(report.merged, [session.at("a")], "{report:?}");
    assert_eq!(fs::read_to_string(session.at("a")).expect("text"), "user\n2\n3\n4\n5\n6\n");
    assert_eq!(backup(&session, &["a"]), linked);
}

/// Names that the file had before are given back as well if they are in the record, and named otherwise.
#[test]
fn other_names_of_a_file_that_is_linked_since() {
    for is_recorded in [true, false] {
        let mut session = Session::new();
        fs::write(session.at("a"), "former").expect("a file");
        fs::hard_link(session.at("a"), session.at("same")).expect("linked");
        if is_recorded {
            session.remove("same").expect("removed");
            session.hard_link("a", "same").expect("linked");
        }
        session.write("a", "of the agent").expect("written");
        session.end();
        link(&session, &["a"]);
        let linked = backup(&session, &["a"]);
        let report = session.undo();
        let whys: Vec<Why> = report.left.iter().map(|(_, why, _)| *why).collect();
        assert_eq!(whys, if is_recorded { vec![] } else { vec![Why::OtherNames] }, "{report:?}");
        let text = |name: &str| fs::read_to_string(session.at(name)).expect("text");
        assert_eq!(text("a"), "former");
        assert_eq!(text("same"), if is_recorded { "former" } else { "of the agent" });
        assert_eq!(backup(&session, &["a"]), linked);
        let inode = |name: &str| session.at(name).metadata().expect("there").ino();
        assert_eq!(inode("a") == inode("same"), is_recorded);
    }
}

/// Without a new hard link, undo writes the file in place: its older names get the former content as well, and its inode
/// stays.
#[test]
fn a_file_without_new_links_is_still_written_in_place() {
    let mut session = Session::new();
    fs::write(session.at("a"), "former").expect("a file");
    fs::hard_link(session.at("a"), session.at("same")).expect("linked");
    let inode = session.at("a").metadata().expect("there").ino();
    session.write("a", "of the agent").expect("written");
    session.end();
    assert!(session.undo().is_complete());
    assert_eq!(fs::read_to_string(session.at("same")).expect("text"), "former");
    assert_eq!(session.at("a").metadata().expect("there").ino(), inode);
    assert_eq!(session.at("a").metadata().expect("there").permissions().mode() & 0o7000, 0);
}

/// A link that the user makes at any time keeps its content, whatever is taken back after that.
#[test]
fn a_link_made_between_undo_and_redo_keeps_its_content() {
    let names = ["appended", "replaced", "new", "removed", "moved", "from", "same", "twin", "mode"];
    for stage in 0..4 {
        let mut session = Session::new();
        for name in ["appended", "replaced", "removed", "from", "same", "mode"] {
            fs::write(session.at(name), format!("{name}\n")).expect("a file");
        }
        fs::hard_link(session.at("same"), session.at("twin")).expect("linked");
        session.append("appended", "of the agent\n").expect("written");
        session.write("replaced.new", "of the agent\n").expect("written");
        session.rename("replaced.new", "replaced", false).expect("moved");
        session.write("new", "of the agent\n").expect("written");
        session.remove("removed").expect("removed");
        session.rename("from", "moved", false).expect("moved");
        session.append("moved", "of the agent\n").expect("written");
        session.append("same", "of the agent\n").expect("written");
        session.mode("mode", 0o700).expect("changed");
        session.end();
        for round in 0..4 {
            let mut linked = None;
            if round >= stage {
                if round == stage {
                    let there: Vec<_> = names.into_iter().filter(|name| session.at(name).exists()).collect();
                    link(&session, &there);
                }
                let there: Vec<_> = names
                    .into_iter()
                    .filter(|name| session.place.path().join("backup").join(name).exists())
                    .collect();
                linked = Some((backup(&session, &there), there));
            }
            let report = if round % 2 == 0 { session.undo() } else { session.redo() };
            if let Some((before, there)) = linked {
                assert_eq!(backup(&session, &there), before, "linked at {stage}, round {round}: {report:?}");
            }
        }
    }
}
