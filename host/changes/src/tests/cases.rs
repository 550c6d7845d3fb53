//! Single cases, each with the control that something was changed at all.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};

use rustix::fs::{XattrFlags, setxattr};

use super::agent::Session;
use super::closed::mode;
use super::tree::tree;
use crate::plan::Why;
use crate::{Bounds, Lost, Record};

/// Runs `change` as a call in a prepared project, and expects that undo gives everything back, and redo the change.
pub(super) fn there_and_back(prepare: impl FnOnce(&Session), change: impl FnOnce(&mut Session)) {
    let mut session = Session::new();
    prepare(&session);
    let before = tree(&session.project());
    change(&mut session);
    session.end();
    let after = tree(&session.project());
    assert_ne!(before, after, "control: nothing was changed");
    let report = session.undo();
    assert!(report.left.is_empty() && report.failed.is_empty(), "{report:?}");
    assert_eq!(tree(&session.project()), before, "{report:?}");
    let report = session.redo();
    assert!(report.left.is_empty() && report.failed.is_empty(), "{report:?}");
    assert_eq!(tree(&session.project()), after, "{report:?}");
    for _ in 0..2 {
        let report = session.undo();
        assert!(report.left.is_empty() && report.failed.is_empty(), "{report:?}");
        assert_eq!(tree(&session.project()), before, "{report:?}");
        let report = session.redo();
        assert!(report.left.is_empty() && report.failed.is_empty(), "{report:?}");
        assert_eq!(tree(&session.project()), after, "{report:?}");
    }
}

/// A length at which a content has a file of its own in the store.
const LONG: usize = 40_000;

pub(super) fn files(session: &Session) {
    for name in ["a", "b"] {
        fs::write(session.at(name), name).expect("a file");
    }
    fs::create_dir(session.at("d")).expect("a directory");
    fs::write(session.at("d/x"), "x").expect("a file");
    fs::create_dir(session.at("d/e")).expect("a directory");
    fs::write(session.at("d/e/y"), "y").expect("a file");
    symlink("a", session.at("l")).expect("a link");
}

#[test]
fn what_is_removed_from_a_directory_that_becomes_read_only_comes_back() {
    there_and_back(files, |session| {
        session.remove("d/x").expect("removed");
        session.write("d/e/new", "new").expect("written");
        session.mode("d/e", 0o500).expect("changed");
        session.mode("d", 0o500).expect("changed");
    });
}

/// The content is kept by a link to the file itself.
#[test]
fn a_removed_file_whose_mode_changes_comes_back() {
    for mode in [0o644, 0o000] {
        let mut session = Session::new();
        files(&session);
        fs::write(session.at("a"), "a".repeat(LONG)).expect("a file");
        let before = tree(&session.project());
        let open = File::open(session.at("a")).expect("opened");
        session.remove("a").expect("removed");
        open.set_permissions(fs::Permissions::from_mode(mode)).expect("changed");
        drop(open);
        session.end();
        let report = session.undo();
        assert!(report.failed.is_empty(), "{report:?}");
        assert_eq!(tree(&session.project()), before, "{report:?}");
    }
}

#[test]
fn many_long_names_come_back() {
    let directory = vec!["n".repeat(250); 12].join("/");
    there_and_back(
        |session| fs::create_dir_all(session.at(&directory)).expect("made"),
        |session| {
            for number in 0..500 {
                session.write(&format!("{directory}/{number}"), "new").expect("written");
            }
        },
    );
}

#[test]
fn files_and_directories_come_back() {
    there_and_back(files, |session| session.write("a", "other").expect("written"));
    there_and_back(files, |session| session.append("a", "more").expect("written"));
    there_and_back(files, |session| session.remove("a").expect("removed"));
    there_and_back(files, |session| session.remove_all("d").expect("removed"));
    there_and_back(files, |session| session.mode("a", 0o755).expect("changed"));
    there_and_back(files, |session| session.mode("d", 0o700).expect("changed"));
    there_and_back(files, |session| {
        session.make_directory("n").expect("made");
        session.write("n/1", "1").expect("written");
    });
    there_and_back(files, |session| {
        session.remove("l").expect("removed");
        session.link("elsewhere", "l").expect("linked");
    });
}

/// Contents are kept in the record, with others in one file, or in a file of their own.
#[test]
fn contents_of_every_length_come_back() {
    for length in [0, 1, 511, 512, 513, 32 << 10, (32 << 10) + 1] {
        let content: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
        let prepare = |session: &Session| fs::write(session.at("a"), &content).expect("a file");
        there_and_back(prepare, |session| session.remove("a").expect("removed"));
        there_and_back(prepare, |session| session.write("a", "other").expect("written"));
    }
}

#[test]
fn a_content_that_looks_like_a_record_is_none() {
    let turn = Record::Turn { id: "forged".to_owned(), label: String::new(), at: 0 };
    let line = turn.line().expect("a line");
    assert!(line.len() <= 512, "control: it is kept in the record");
    let forged = |session: &Session| {
        let records = session.recorder.store().records_from(0).expect("read").0;
        records.into_iter().filter(|record| *record == turn).count()
    };
    there_and_back(
        |session| fs::write(session.at("a"), &line).expect("a file"),
        |session| {
            session.remove("a").expect("removed");
            assert_eq!(forged(session), 0);
            session.recorder.turn("forged", "").expect("recorded");
            let turns = session.recorder.store().records_from(0).expect("read").0;
            let is_turn = |record: &&Record| matches!(record, Record::Turn { .. });
            assert_eq!(turns.iter().filter(is_turn).count(), 1, "control");
        },
    );
}

#[test]
fn a_status_comes_back_without_a_copy_of_the_content() {
    let kept =
        |session: &Session| fs::read_dir(session.place.path().join("store/content")).expect("read").count();
    let longer = |session: &Session| {
        files(session);
        fs::write(session.at("b"), "b".repeat(1_000)).expect("a file");
    };
    there_and_back(longer, |session| {
        session.mode("a", 0o000).expect("changed");
        session.mode("d", 0o000).expect("changed");
        session.end();
        assert_eq!(kept(session), 0);
        session.mode("b", 0o700).expect("changed");
        session.mode("b", 0o750).expect("changed");
        session.append("b", "more").expect("written");
        session.mode("b", 0o755).expect("changed");
        assert_eq!(kept(session), 1, "control: a content is kept");
    });
    there_and_back(files, |session| {
        session.mode("d/x", 0o700).expect("changed");
        session.rename("d/x", "moved", false).expect("moved");
        session.end();
        session.mode("moved", 0o711).expect("changed");
        session.write("moved", "other").expect("written");
        session.end();
        session.remove("moved").expect("removed");
    });
    // A file that the user has written since keeps what was written.
    let mut session = Session::new();
    files(&session);
    session.mode("a", 0o700).expect("changed");
    session.end();
    fs::write(session.at("a"), "the user's").expect("written");
    let report = session.undo();
    assert!(report.is_complete() && report.merged == [session.at("a")], "{report:?}");
    assert_eq!(fs::read_to_string(session.at("a")).expect("text"), "the user's");
    assert_eq!(mode(&session.at("a")), 0o644);
}

#[test]
fn names_that_change_their_kind_come_back() {
    there_and_back(files, |session| {
        session.remove("a").expect("removed");
        session.make_directory("a").expect("made");
        session.write("a/1", "1").expect("written");
    });
    there_and_back(files, |session| {
        session.remove_all("d").expect("removed");
        session.link("/etc", "d").expect("linked");
    });
    there_and_back(files, |session| {
        session.remove_all("d").expect("removed");
        session.write("d", "a file").expect("written");
    });
}

#[test]
fn moves_come_back() {
    there_and_back(files, |session| session.rename("a", "z", false).expect("moved"));
    there_and_back(files, |session| session.rename("a", "b", false).expect("moved"));
    there_and_back(files, |session| session.rename("d", "z", false).expect("moved"));
    there_and_back(files, |session| session.rename("d", "a", true).expect("exchanged"));
    there_and_back(files, |session| {
        session.rename("d", "z", false).expect("moved");
        session.write("z/x", "other").expect("written");
        session.rename("z/e", "f", false).expect("moved");
        session.make_directory("d").expect("made");
        session.rename("f", "d/e", false).expect("moved");
        session.remove("d/e/y").expect("removed");
    });
    there_and_back(files, |session| {
        session.write("tmp", "saved").expect("written");
        session.rename("tmp", "a", false).expect("moved");
    });
    there_and_back(files, |session| {
        session.rename("d", "z", false).expect("moved");
        session.end();
        session.write("z/x", "other").expect("written");
        session.end();
        session.rename("z", "q", false).expect("moved");
        session.remove("q/x").expect("removed");
    });
    there_and_back(files, |session| {
        session.rename("a", "tmp", false).expect("moved");
        session.rename("b", "a", false).expect("moved");
        session.rename("tmp", "b", false).expect("moved");
    });
}

#[test]
fn a_move_that_failed_is_none() {
    there_and_back(files, |session| {
        session.rename("d", "d/e/inside", false).expect_err("into itself");
        session.write("d/x", "other").expect("written");
    });
}

#[test]
fn hard_links_stay_and_come_back() {
    let linked = |session: &Session| {
        files(session);
        fs::hard_link(session.at("a"), session.at("d/same")).expect("linked");
    };
    there_and_back(linked, |session| session.write("a", "in place").expect("written"));
    there_and_back(linked, |session| session.remove("a").expect("removed"));
    there_and_back(linked, |session| {
        session.remove("a").expect("removed");
        session.remove("d/same").expect("removed");
    });
    there_and_back(linked, |session| {
        session.write("tmp", "saved").expect("written");
        session.rename("tmp", "a", false).expect("moved");
    });
    there_and_back(files, |session| session.hard_link("a", "d/new").expect("linked"));
    there_and_back(linked, |session| {
        session.remove("d/same").expect("removed");
        session.hard_link("a", "d/same").expect("linked");
        session.write("d/same", "other").expect("written");
        session.remove("a").expect("removed");
    });
}

#[test]
fn attributes_times_and_holes_come_back() {
    let mut session = Session::new();
    let file = File::create(session.at("sparse")).expect("a file");
    file.set_len(8 << 20).expect("longer");
    file.write_all_at(b"middle", 4 << 20).expect("written");
    drop(file);
    let has_attributes =
        setxattr(session.at("sparse"), "user.note", b"\xffnote", XattrFlags::empty()).is_ok();
    fs::set_permissions(session.at("sparse"), fs::Permissions::from_mode(0o640)).expect("set");
    let before = fs::metadata(session.at("sparse")).expect("there");
    let whole = tree(&session.project());
    session.remove("sparse").expect("removed");
    session.end();
    session.undo();
    let after = fs::metadata(session.at("sparse")).expect("there again");
    assert_eq!(tree(&session.project()), whole, "with attributes: {has_attributes}");
    assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
    assert!(after.blocks() <= before.blocks() + 16, "{} blocks, before {}", after.blocks(), before.blocks());
}

#[test]
fn later_edits_of_the_user_are_merged_or_left() {
    let lines = |changed: &[(usize, &str)]| {
        let mut lines: Vec<String> = (0..20).map(|number| format!("line {number}\n")).collect();
        for (number, text) in changed {
            lines[*number] = format!("{text}\n");
        }
        lines.concat()
    };
    let mut session = Session::new();
    for name in ["clean", "clash", "removed"] {
        fs::write(session.at(name), lines(&[])).expect("a file");
        session.write(name, &lines(&[(2, "agent")])).expect("written");
    }
    session.write("made", "made by the agent").expect("written");
    session.make_directory("n").expect("made");
    session.end();
    fs::write(session.at("clean"), lines(&[(2, "agent"), (15, "user")])).expect("edited");
    fs::write(session.at("clash"), lines(&[(2, "user")])).expect("edited");
    fs::remove_file(session.at("removed")).expect("removed");
    fs::write(session.at("made"), "made by the agent, kept by the user").expect("edited");
    fs::write(session.at("n/own"), "the user's").expect("made");
    let report = session.undo();
    let text = |name: &str| fs::read_to_string(session.at(name)).expect("text");
    assert_eq!(text("clean"), lines(&[(15, "user")]));
    assert_eq!(text("clash"), lines(&[(2, "user")]));
    assert_eq!(text("clash.portcullis-old"), lines(&[]));
    assert_eq!(text("made"), "made by the agent, kept by the user");
    assert_eq!(text("n/own"), "the user's");
    assert!(!session.at("removed").exists());
    let whys: Vec<Why> = report.left.iter().map(|(_, why, _)| *why).collect();
    assert_eq!(report.merged, [session.at("clean")]);
    assert_eq!(whys, [Why::NotEmpty, Why::MadeAndChanged, Why::Removed, Why::Changed], "{report:?}");
}

/// Undoes when the user has put something else at a name, and returns what is at the given names then.
fn with_a_foreign<const N: usize>(
    change: impl FnOnce(&Session),
    user: impl FnOnce(&Session),
    names: [&str; N],
) -> [String; N] {
    let mut session = Session::new();
    files(&session);
    change(&session);
    session.end();
    user(&session);
    let report = session.undo();
    assert!(report.failed.is_empty() && !report.left.is_empty(), "{report:?}");
    names.map(|name| {
        let at = session.at(name);
        fs::read_to_string(&at).unwrap_or_else(|error| format!("{error}: {:?}", tree(&session.project())))
    })
}

#[test]
fn a_former_version_without_its_directory_is_put_beside_it() {
    let removed = |session: &Session| session.remove_all("d").expect("removed");
    let names = ["d.portcullis-old/x", "d.portcullis-old/e/y"];
    let plain = |session: &Session| fs::write(session.at("d"), "the user's").expect("written");
    assert_eq!(with_a_foreign(removed, plain, names), ["x", "y"]);
    assert_eq!(with_a_foreign(removed, plain, ["d"]), ["the user's"]);
    let link = |session: &Session| {
        fs::create_dir(session.at("own")).expect("made");
        symlink("own", session.at("d")).expect("linked");
    };
    assert_eq!(with_a_foreign(removed, link, names), ["x", "y"]);
    // The name beside is taken as well.
    let both = |session: &Session| {
        plain(session);
        fs::write(session.at("d.portcullis-old"), "the user's").expect("written");
    };
    let others = ["d.portcullis-old-1/x", "d.portcullis-old", "d"];
    assert_eq!(with_a_foreign(removed, both, others), ["x", "the user's", "the user's"]);
    // The agent emptied the directory, and the user removed it.
    let emptied = |session: &Session| {
        session.remove_all("d/e").expect("removed");
        session.remove("d/x").expect("removed");
    };
    let gone = |session: &Session| fs::remove_dir(session.at("d")).expect("removed");
    assert_eq!(with_a_foreign(emptied, gone, names), ["x", "y"]);
}

#[test]
fn a_moved_file_is_not_overwritten_if_it_cannot_go_back() {
    let moved = |session: &Session| {
        session.rename("d/x", "b", false).expect("moved");
        session.remove_all("d").expect("removed");
    };
    let plain = |session: &Session| fs::write(session.at("d"), "the user's").expect("written");
    let names = ["d", "b", "b.portcullis-old", "d.portcullis-old/e/y"];
    assert_eq!(with_a_foreign(moved, plain, names), ["the user's", "x", "b", "y"]);
    let written = |session: &Session| {
        session.write("d/x", "changed").expect("written");
        moved(session);
    };
    let names = ["d", "b", "d.portcullis-old/x"];
    assert_eq!(with_a_foreign(written, plain, names), ["the user's", "b", "x"]);
}

/// A call that has ended left nothing at a name that it moved away from.
#[test]
fn a_new_file_at_a_name_that_was_moved_away_stays() {
    let there_and_away = |session: &Session| {
        session.rename("b", "a", false).expect("moved");
        session.rename("a", "b", false).expect("moved");
    };
    let plain = |session: &Session| fs::write(session.at("a"), "the user's").expect("written");
    let names = ["a", "a.portcullis-old", "b"];
    assert_eq!(with_a_foreign(there_and_away, plain, names), ["the user's", "a", "b"]);
}

/// Two exchanges that cancel each other stay, since the user has replaced one of the two files.
#[test]
fn a_file_that_was_exchanged_twice_stays_where_it_is() {
    let mut session = Session::new();
    fs::create_dir(session.at("e")).expect("made");
    fs::write(session.at("a"), "first").expect("written");
    fs::write(session.at("e/a"), "the user's\n").expect("written");
    session.write("e/d", "the agent's").expect("written");
    session.rename("e/d", "e/a", true).expect("exchanged");
    session.append("e/d", "more").expect("appended");
    session.rename("e/a", "e/d", true).expect("exchanged");
    session.end();
    fs::rename(session.at("a"), session.at("e/d")).expect("renamed");
    session.write("a", "the agent's").expect("written");
    session.end();
    let report = session.undo();
    let text = |name: &str| fs::read_to_string(session.at(name)).unwrap_or_default();
    assert_eq!([text("e/a"), text("e/d"), text("a")], ["the user's\n", "first", ""], "{report:?}");
}

#[test]
fn a_directory_keeps_its_mode_when_another_had_its_name() {
    there_and_back(files, |session| {
        session.make_directory("n").expect("made");
        session.rename("d", "n", false).expect("moved");
    });
}

#[test]
fn other_kinds_at_a_name_stay() {
    let removed = |session: &Session| session.remove("a").expect("removed");
    let directory = |session: &Session| {
        fs::create_dir(session.at("a")).expect("made");
        fs::write(session.at("a/own"), "the user's").expect("written");
    };
    assert_eq!(with_a_foreign(removed, directory, ["a/own", "a.portcullis-old"]), ["the user's", "a"]);
    // A link whose name is taken.
    let unlinked = |session: &Session| session.remove("l").expect("removed");
    let plain = |session: &Session| fs::write(session.at("l"), "the user's").expect("written");
    assert_eq!(with_a_foreign(unlinked, plain, ["l", "l.portcullis-old"]), ["the user's", "a"]);
}

/// A file that somebody has open, or opens while it loses its name, is kept as it was.
#[test]
fn later_writes_to_a_removed_file_change_nothing_that_is_kept() {
    for (text, links) in [("first".to_owned(), 0), ("first".repeat(LONG), 1)] {
        let mut session = Session::new();
        fs::write(session.at("before"), &text).expect("a file");
        fs::write(session.at("without"), &text).expect("a file");
        let open = |name: &str| fs::OpenOptions::new().write(true).open(session.at(name)).expect("open");
        let writer = open("before");
        session.remove("before").expect("removed");
        let reader = File::open(session.at("without")).expect("open");
        session.remove("without").expect("removed");
        writer.write_all_at(b"other", 0).expect("written");
        // Control: a long file without writers is kept by a link, and the reader still has it.
        assert_eq!(reader.metadata().expect("status").nlink(), links);
        session.end();
        session.undo();
        for name in ["before", "without"] {
            let is_it = fs::read_to_string(session.at(name)).expect("text") == text;
            assert!(is_it, "{name}, {} bytes", text.len());
        }
    }
}

#[test]
fn what_is_too_large_is_said_before_and_left_after() {
    let mut session = Session::bounded(Bounds { file: 100, session: 150 });
    for name in ["large", "first", "second"] {
        let length = if name == "large" { 101 } else { 100 };
        fs::write(session.at(name), "x".repeat(length)).expect("a file");
        session.write(name, "changed").expect("written");
    }
    let changed = session.end();
    let lost = [(session.at("large"), Lost::FileTooLarge), (session.at("second"), Lost::SessionFull)];
    assert_eq!(changed.lost, lost);
    let report = session.undo();
    assert_eq!(report.left.len(), 2, "{report:?}");
    assert_eq!(fs::read_to_string(session.at("first")).expect("text"), "x".repeat(100));
    assert_eq!(fs::read_to_string(session.at("large")).expect("text"), "changed");
}

#[test]
fn nothing_is_followed_out_of_the_project() {
    let mut session = Session::new();
    files(&session);
    let outside = session.place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("x"), "the user's").expect("a file");
    session.write("d/x", "changed").expect("written");
    session.remove("a").expect("removed");
    session.end();
    // Somebody replaces the directory and the name by links that lead out.
    fs::rename(session.at("d"), session.at("away")).expect("moved");
    symlink(&outside, session.at("d")).expect("linked");
    symlink(outside.join("x"), session.at("a")).expect("linked");
    let report = session.undo();
    assert_eq!(fs::read_to_string(outside.join("x")).expect("text"), "the user's");
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 1);
    assert!(report.done.is_empty(), "{report:?}");
    assert_eq!(fs::read_to_string(session.at("a.portcullis-old")).expect("text"), "a");
}

#[test]
fn turns_are_taken_back_one_after_the_other() {
    let mut session = Session::new();
    let newest =
        |session: &Session| crate::undo::history(session.recorder.store()).expect("history").newest();
    let mut trees = vec![tree(&session.project())];
    for turn in 0..3 {
        session.recorder.turn(&format!("id{turn}"), "do it").expect("noted");
        session.write(&format!("f{turn}"), "1").expect("written");
        session.end();
        session.write("both", &format!("{turn}")).expect("written");
        session.end();
        trees.push(tree(&session.project()));
    }
    for turn in (0..3).rev() {
        session.undo_from(newest(&session).expect("a turn"), false);
        assert_eq!(tree(&session.project()), trees[turn], "{turn}");
    }
    assert_eq!(newest(&session), None);
    for wanted in &trees[1..] {
        session.redo();
        assert_eq!(tree(&session.project()), *wanted);
    }
    let history = crate::undo::history(session.recorder.store()).expect("history");
    assert_eq!(history.redoable(), None);
    assert!(history.points().iter().all(|point| !point.undone));
}

/// Undo passes over calls that are already undone, even if the user has changed their files since.
#[test]
fn calls_that_are_undone_are_passed_over() {
    let mut session = Session::new();
    files(&session);
    let history = |session: &Session| crate::undo::history(session.recorder.store()).expect("history");
    let length = |session: &Session| history(session).entries().len();
    session.write("a", "first").expect("written");
    session.end();
    assert_eq!(history(&session).in_force_since(0), Some(0));
    let second = length(&session);
    session.write("b", "second").expect("written");
    session.end();
    session.undo_from(second, false);
    assert_eq!(
        (history(&session).in_force_since(0), history(&session).in_force_since(second)),
        (Some(0), None)
    );
    session.redo();
    assert_eq!(history(&session).in_force_since(second), Some(second));
    session.undo();
    assert_eq!(history(&session).in_force_since(0), None);
    let third = length(&session);
    session.write("b", "third").expect("written");
    session.end();
    assert_eq!(history(&session).in_force_since(0), Some(third));
}

/// The user removes what an undo has given back, and undoes again.
#[test]
fn what_the_user_removes_after_an_undo_stays_removed() {
    for (agent, user) in [("a", "a"), ("d", "d"), ("d", "d/x"), ("l", "l")] {
        let mut session = Session::new();
        files(&session);
        session.remove_all(agent).expect("removed");
        session.end();
        let report = session.undo();
        assert!(report.is_complete(), "{agent}: {report:?}");
        match session.at(user).symlink_metadata().expect("there").is_dir() {
            true => fs::remove_dir_all(session.at(user)).expect("removed"),
            false => fs::remove_file(session.at(user)).expect("removed"),
        }
        let removed = tree(&session.project());
        let report = session.undo();
        assert_eq!(tree(&session.project()), removed, "{agent}, {user}: {report:?}");
        assert!(!report.is_complete(), "{agent}, {user}: {report:?}");
    }
    // The control: the user removed the agent's version, so the former file comes back.
    let mut session = Session::new();
    files(&session);
    let before = tree(&session.project());
    session.remove("a").expect("removed");
    session.end();
    session.write("a", "of the agent").expect("written");
    session.end();
    fs::remove_file(session.at("a")).expect("removed");
    let report = session.undo();
    assert_eq!(tree(&session.project()), before, "{report:?}");
}
