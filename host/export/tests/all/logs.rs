//! Logs that are damaged, removed, or still being written, and damaged cursors.

use std::fs::{self, File};
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use portcullis_export::Step;

use crate::collector::{Collector, OK};
use crate::world::{World, write};

#[test]
fn a_line_without_an_end_waits() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    write(&world.log("one"), 1);
    let file = world.audit().join("one.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    let part: String = last.chars().take(20).collect();
    fs::write(&file, format!("{before}\n{part}")).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    fs::write(&file, &text).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    assert_eq!(collector.ids(), ["one:1", "one:2"]);

    // Nobody ends it any more.
    let mut log = File::options().append(true).open(&file).unwrap();
    log.write_all(b"{\"version\":1").unwrap();
    log.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    let last = collector.received().pop().unwrap();
    assert_eq!(last.id, "one.jsonl#3");
    assert!(last.attribute("portcullis.unreadable").unwrap().contains("line 3 has no end"), "{last:?}");
    assert_eq!(world.drain(&collector.destination()), 0);
}

#[test]
fn damaged_lines_are_told_and_hide_no_others() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    write(&world.log("one"), 2);
    let file = world.audit().join("one.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&file, [lines[0], "nonsense", lines[2], lines[3], ""].join("\n")).unwrap();
    assert_eq!(world.drain(&collector.destination()), 4);
    assert_eq!(collector.ids(), ["one:1", "one.jsonl#2", "one:3", "one:4"]);

    fs::write(&file, lines[0]).unwrap();
    assert_eq!(world.drain(&collector.destination()), 1);
    let last = collector.received().pop().unwrap();
    assert!(last.attribute("portcullis.unreadable").unwrap().contains("its end was cut off"), "{last:?}");
    assert_eq!(world.drain(&collector.destination()), 0);
}

#[test]
fn a_log_that_was_removed_before_it_was_sent_is_told_once() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    write(&world.log("sent"), 1);
    assert_eq!(world.drain(&collector.destination()), 2);
    write(&world.log("unsent"), 3);
    for name in ["sent", "unsent"] {
        fs::remove_file(world.audit().join(format!("{name}.jsonl"))).unwrap();
    }
    assert_eq!(world.drain(&collector.destination()), 1);
    let last = collector.received().pop().unwrap();
    let reason = last.attribute("portcullis.unreadable").unwrap();
    assert!(reason.contains("`unsent.jsonl` was removed, with 6 records"), "{reason}");
    assert_eq!(world.drain(&collector.destination()), 0);
}

#[test]
fn a_damaged_cursor_repeats_everything_and_says_so() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    let log = world.log("one");
    write(&log, 2);
    world.drain(&collector.destination());
    fs::write(world.state().join("team.json"), "{\"version\":1,\"acc").unwrap();
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    assert!(exporter.was_damaged);
    write(&log, 1);
    assert!(matches!(exporter.step().unwrap(), Step::Sent { records: 6, .. }));
    let repeated: Vec<bool> = collector.received()[4..].iter().map(|one| one.is_repeated).collect();
    assert_eq!(repeated, [true, true, true, true, false, false]);
}

#[test]
fn a_full_disk_sends_nothing_that_it_cannot_remember() {
    let world = World::new();
    let collector = Collector::start(|_, _| OK);
    write(&world.log("one"), 1);
    let mut exporter = world.exporter(&collector.destination()).unwrap();
    // Nothing can be created in a directory that is gone.
    fs::remove_dir_all(world.state()).unwrap();
    let error = exporter.step().unwrap_err();
    assert!(error.to_string().starts_with("writing `"), "{error}");
    assert!(collector.received().is_empty());
}
