//! Storing answers: the table of places, the layout of the files, two writers at once.

use portcullis_decision::grant::{CommandPattern, PathPattern, ToolPattern};
use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::FileRights;
use portcullis_decision::{Grant, GrantPattern, GrantScope};
use portcullis_settings::{
    AllowLists, Draft, GrantFile, RealDisk, Seed, Store, StoreError, grant_files, keep, kept_grants, revoke,
};
use portcullis_settings_format::{Change, FileKind};
use serde_json::json;

use crate::world::World;

const DEFAULT: &str = r#"{
  "enabled": true,
  "network": { "allowedDomains": ["kept.example"], "deniedDomains": [] },
  "filesystem": {
    "denyRead": ["/home"],
    "allowRead": ["."],
    "allowWrite": ["."],
    "denyWrite": []
  }
}
"#;

fn grant(pattern: GrantPattern) -> Grant {
    Grant { scope: GrantScope::Project, pattern, granted_at: 7, expires_at: 0 }
}

fn path(path: &str, rights: FileRights) -> Grant {
    grant(GrantPattern::Path(PathPattern { pattern: FilePattern::tree(path).unwrap(), rights }))
}

fn host(text: &str) -> Grant {
    grant(GrantPattern::Network(NetworkPattern::parse(text).unwrap()))
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.places.sandbox_directory().join(name)).unwrap_or_default()
}

fn put(world: &World, grant_file: &GrantFile, grant: &Grant) {
    let store = Store::new(&world.places);
    keep(&store, &world.places, grant_file, grant, AllowLists::Heard).unwrap();
}

fn found_shelves(world: &World) -> Vec<GrantFile> {
    grant_files(&world.discover().unwrap(), &world.places, &RealDisk).unwrap()
}

#[test]
fn the_places_depend_on_the_entry_that_holds_here() {
    let world = World::new();
    let here = world.places.workspace.clone();
    let above = here.parent().unwrap().display().to_string();
    let none = GrantFile::NewEntry { key: here.clone(), seed: Seed::Default };
    assert_eq!(found_shelves(&world), [none, GrantFile::Default], "no match");

    let projects = |key: &str| format!("{{ \"{key}\": {DEFAULT} }}");
    world.write("home/u/.pi/agent/sandbox/projects.json", &projects(&above));
    let parent = GrantFile::Entry { key: above, exact: false };
    let copy = GrantFile::NewEntry { key: here.clone(), seed: Seed::Parent };
    assert_eq!(found_shelves(&world), [parent, copy, GrantFile::Default], "parent match");

    let exact = here.display().to_string();
    world.write("home/u/.pi/agent/sandbox/projects.json", &projects(&exact));
    assert_eq!(
        found_shelves(&world),
        [GrantFile::Entry { key: exact, exact: true }, GrantFile::Default],
        "exact match"
    );
}

#[test]
fn a_new_entry_holds_what_differs_and_edits_of_the_defaults_count() {
    let world = World::new();
    world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
    put(&world, &found_shelves(&world)[0], &host("new.example:443"));
    let key = world.places.workspace.display().to_string();
    let entry = r#"{ "extends": "default", "network": { "allowedDomains": ["new.example:443"] } }"#;
    assert_eq!(read(&world, "projects.json"), format!("{{\n  \"{key}\": {entry}\n}}\n"));
    assert_eq!(read(&world, "default.json"), DEFAULT, "the default stays");
    assert_eq!(domains(&world), ["kept.example", "new.example:443"]);

    let edited = DEFAULT
        .replace("kept.example", "edited.example")
        .replace("\"denyWrite\": []", "\"denyWrite\": [\"x\"]");
    world.write("home/u/.pi/agent/sandbox/default.json", &edited);
    assert_eq!(domains(&world), ["edited.example", "new.example:443"]);
    assert!(world.resolve().unwrap().deny_write().any(|rule| rule.id == "filesystem.denyWrite[0]"));
    // Each value records its file.
    let allowed = &world.discover().unwrap().settings.network.allowed_domains;
    let files: Vec<_> = allowed.iter().map(|entry| entry.origin.file.file_name().unwrap()).collect();
    assert_eq!(files, ["default.json", "projects.json"]);
}

/// Earlier versions created entries as copies. The control is a complete entry that lacks a value.
#[test]
fn a_copy_of_the_defaults_becomes_differences_with_the_next_answer() {
    for (leaves_out, expected) in [(false, Some(json!(["mine.example", "new.example"]))), (true, None)] {
        let world = World::new();
        world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
        let key = world.places.workspace.display().to_string();
        let mut copy = DEFAULT.replace("[\"kept.example\"]", "[\"kept.example\", \"mine.example\"]");
        if leaves_out {
            copy = copy.replace("\"denyRead\": [\"/home\"]", "\"denyRead\": []");
        }
        world.write("home/u/.pi/agent/sandbox/projects.json", &format!("{{ \"{key}\": {copy} }}"));
        put(&world, &found_shelves(&world)[0], &host("new.example"));
        let written: serde_json::Value = serde_json::from_str(&read(&world, "projects.json")).unwrap();
        let entry = &written[&key];
        assert_eq!(entry.get("extends").is_some(), expected.is_some(), "{entry}");
        if let Some(expected) = expected {
            assert_eq!(entry["network"]["allowedDomains"], expected, "{entry}");
            assert!(entry.get("filesystem").is_none_or(|lists| lists == &json!({})), "{entry}");
        }
        assert_eq!(domains(&world), ["kept.example", "mine.example", "new.example"], "nothing else changes");
    }
}

#[test]
fn extends_is_a_matter_of_entries_alone() {
    let world = World::new();
    let entry_is = |entry: &str| {
        let key = world.places.workspace.display().to_string();
        world.write("home/u/.pi/agent/sandbox/projects.json", &format!("{{ \"{key}\": {entry} }}"));
        world.discover().map(|_| ()).map_err(|error| error.to_string())
    };
    let with = DEFAULT.replace("\"enabled\": true", "\"extends\": \"default\"");
    world.write("home/u/.pi/agent/sandbox/default.json", &with);
    assert!(world.discover().unwrap_err().to_string().contains("only an entry of `projects.json`"));
    world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
    assert_eq!(entry_is(r#"{ "extends": "default" }"#), Ok(()));
    for (entry, problem) in [
        (r#"{ "extends": "other" }"#, "`other` is not `default` or `parent`"),
        (r#"{ "extends": "default", "netwrok": {} }"#, "unknown key `netwrok`"),
    ] {
        assert!(entry_is(entry).unwrap_err().contains(problem), "{entry}");
    }
    // The extended settings cannot be used, which must not lead to fewer restrictions.
    world.write("home/u/.pi/agent/sandbox/default.json", &DEFAULT.replace("denyRead", "denyReed"));
    assert!(entry_is(r#"{ "extends": "default" }"#).unwrap_err().contains("denyReed"));
}

fn domains(world: &World) -> Vec<String> {
    world.resolve().unwrap().allowed_domains.iter().map(ToString::to_string).collect()
}

#[test]
fn without_any_file_a_new_entry_begins_as_what_is_built_in() {
    let world = World::new();
    put(&world, &found_shelves(&world)[0], &path("/srv/data", FileRights::READ));
    let now = world.resolve().unwrap();
    assert!(now.allow_read.contains(&FilePattern::tree("/srv/data").unwrap()));
    assert_eq!(now.closed.len(), 3, "{:?}", now.closed);
}

#[test]
fn a_new_entry_inside_a_parents_extends_the_parents() {
    let world = World::new();
    world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
    let above = world.places.workspace.parent().unwrap().display().to_string();
    let parent = DEFAULT.replace("kept.example", "parent.example");
    let projects = format!("{{\n  \"{above}\": {}\n}}\n", parent.trim().replace('\n', "\n  "));
    world.write("home/u/.pi/agent/sandbox/projects.json", &projects);
    let grant_files = found_shelves(&world);

    put(&world, &grant_files[1], &host("new.example"));
    let written: serde_json::Value = serde_json::from_str(&read(&world, "projects.json")).unwrap();
    let in_entry = |key: &str| written[key]["network"]["allowedDomains"].clone();
    let here = world.places.workspace.display().to_string();
    assert_eq!(in_entry(&above), json!(["parent.example"]));
    assert_eq!(in_entry(&here), json!(["new.example"]));
    assert_eq!(domains(&world), ["parent.example", "new.example"]);
    assert!(read(&world, "projects.json").starts_with(projects.trim_end().trim_end_matches('}').trim_end()));

    put(&world, &grant_files[0], &host("for-the-parent.example"));
    let written: serde_json::Value = serde_json::from_str(&read(&world, "projects.json")).unwrap();
    assert_eq!(
        written[&above]["network"]["allowedDomains"],
        json!(["parent.example", "for-the-parent.example"])
    );
    assert_eq!(domains(&world), ["parent.example", "for-the-parent.example", "new.example"]);
}

#[test]
fn for_all_projects_is_written_once_and_holds_in_every_project() {
    let world = World::new();
    put(&world, &GrantFile::Default, &host("all.example"));
    assert_eq!(read(&world, "projects.json"), "", "no entry is made");
    put(&world, &found_shelves(&world)[0], &host("here.example"));
    put(&world, &GrantFile::Default, &host("later.example"));
    assert!(!read(&world, "projects.json").contains("later.example"));
    assert_eq!(domains(&world), ["all.example", "later.example", "here.example"]);

    // The lists of the defaults do not apply beside a complete entry, but the answers do.
    let key = world.places.workspace.display().to_string();
    world.write("home/u/.pi/agent/sandbox/projects.json", &format!("{{ \"{key}\": {DEFAULT} }}"));
    put(&world, &GrantFile::Default, &path("/srv/out", FileRights::READ_WRITE));
    assert!(!read(&world, "projects.json").contains("/srv/out"));
    assert_eq!(domains(&world), ["kept.example"]);
    let expected = Grant { scope: GrantScope::User, ..path("/srv/out", FileRights::READ_WRITE) };
    assert_eq!(world.resolve().unwrap().grants, [expected]);
}

/// Earlier versions wrote such an answer into both files. The control is another answer, which stays.
#[test]
fn an_answer_for_all_projects_is_taken_back_everywhere() {
    let world = World::new();
    let key = world.places.workspace.display().to_string();
    let both =
        DEFAULT.replace("\"allowWrite\": [\".\"]", "\"allowWrite\": [\".\", \"/srv/out\", \"/srv/kept\"]");
    world.write("home/u/.pi/agent/sandbox/default.json", &both);
    let projects = format!("{{ \"{key}\": {both}, \"/other\": {both} }}");
    world.write("home/u/.pi/agent/sandbox/projects.json", &projects);
    let kept = kept_grants(&world.places, &RealDisk, true).unwrap();
    let listed: Vec<String> = kept.iter().map(|grant| grant.in_words("/")).collect();
    assert_eq!(
        listed,
        ["connections to kept.example", "reading and writing /srv/out", "reading and writing /srv/kept"],
        "each answer once"
    );
    assert!(revoke(&Store::new(&world.places), &kept[1]).unwrap());
    for file in ["default.json", "projects.json"] {
        let text = read(&world, file);
        assert!(!text.contains("/srv/out") && text.contains("/srv/kept"), "{file}: {text}");
    }
}

#[test]
fn what_still_allows_it_is_known() {
    let world = World::new();
    put(&world, &GrantFile::Default, &path("/srv/a/b", FileRights::READ));
    put(&world, &GrantFile::Default, &path("/srv/a", FileRights::READ_WRITE));
    put(&world, &GrantFile::Default, &path("/srv/ab", FileRights::READ));
    put(&world, &GrantFile::Default, &host("*.example.org"));
    put(&world, &GrantFile::Default, &host("a.example.org:443"));
    let kept = kept_grants(&world.places, &RealDisk, false).unwrap();
    let find =
        |ends: &str| kept.iter().find(|grant| grant.in_words("/").ends_with(&format!(" {ends}"))).unwrap();
    for (wider, narrower, expected) in [
        ("/srv/a", "/srv/a/b", true),
        ("/srv/a/b", "/srv/a", false),
        ("/srv/a", "/srv/ab", false),
        ("*.example.org", "a.example.org:443", true),
        ("a.example.org:443", "*.example.org", false),
        ("/srv/a", "*.example.org", false),
    ] {
        assert_eq!(find(wider).overlaps(find(narrower)), expected, "{wider} {narrower}");
    }
}

#[test]
fn what_is_granted_stands_in_the_list_that_says_it() {
    let world = World::new();
    let grant_file = GrantFile::Default;
    put(&world, &grant_file, &path("/srv/in", FileRights::READ));
    put(&world, &grant_file, &path("/srv/out", FileRights::READ_WRITE));
    put(&world, &grant_file, &path("/srv/a[1]", FileRights::READ));
    put(&world, &grant_file, &path("/srv/in", FileRights::READ));
    let written: serde_json::Value = serde_json::from_str(&read(&world, "default.json")).unwrap();
    let kept = |path: &str| json!({ "path": path, "literal": true });
    assert_eq!(written["filesystem"]["allowRead"], json!([".", "~/.pi", kept("/srv/in"), kept("/srv/a[1]")]));
    assert_eq!(written["filesystem"]["allowWrite"], json!([".", kept("/srv/out")]));

    let tool = ToolPattern { name: "t".into(), provider: "mcp:x".into(), input_equals: vec![] };
    let words = |text: &str| CommandPattern {
        argv_prefix: text.split(' ').map(str::to_owned).collect(),
        open_ended: false,
    };
    let mut lent = path("/srv/lent", FileRights::READ);
    lent.expires_at = 99;
    let grants =
        [grant(GrantPattern::Tool(tool)), grant(GrantPattern::Command(vec![words("git push")])), lent];
    for grant in &grants {
        put(&world, &grant_file, grant);
    }
    let expected: Vec<Grant> =
        grants.into_iter().map(|grant| Grant { scope: GrantScope::User, ..grant }).collect();
    assert_eq!(world.resolve().unwrap().grants, expected);
}

#[test]
fn where_no_policy_takes_the_lists_everything_is_a_grant() {
    let world = World::new();
    let store = Store::new(&world.places);
    keep(&store, &world.places, &GrantFile::Default, &host("a.example"), AllowLists::Unheard).unwrap();
    let now = world.resolve().unwrap();
    assert_eq!((now.allowed_domains.len(), now.grants.len()), (0, 1));
}

#[test]
fn a_kept_answer_is_listed_and_taken_back() {
    let world = World::new();
    put(&world, &GrantFile::Default, &host("a.example"));
    put(&world, &GrantFile::Default, &path("/srv/x", FileRights::READ));
    let kept = kept_grants(&world.places, &RealDisk, false).unwrap();
    let values: Vec<_> = kept.iter().map(|grant| (grant.list.as_str(), grant.value.clone())).collect();
    let path = json!({ "path": "/srv/x", "literal": true });
    assert_eq!(values, [("network.allowedDomains", json!("a.example")), ("filesystem.allowRead", path)]);
    assert!(revoke(&Store::new(&world.places), &kept[0]).unwrap());
    let left = kept_grants(&world.places, &RealDisk, false).unwrap();
    assert_eq!(left.iter().map(|grant| &grant.id).collect::<Vec<_>>(), [&kept[1].id]);
}

#[test]
fn a_broken_file_is_left_alone() {
    let world = World::new();
    let broken = "{ \"enabled\": true, }";
    world.write("home/u/.pi/agent/sandbox/default.json", broken);
    let store = Store::new(&world.places);
    let error =
        keep(&store, &world.places, &GrantFile::Default, &host("a.example"), AllowLists::Heard).unwrap_err();
    assert!(matches!(error, StoreError::Broken(_)), "{error}");
    assert_eq!(read(&world, "default.json"), broken);
}

#[test]
fn two_writers_lose_nothing() {
    let world = World::new();
    let write = |from: usize| {
        let (store, places) = (Store::new(&world.places), world.places.clone());
        move || {
            for number in 0..20 {
                let grant = host(&format!("w{from}-{number}.example"));
                keep(&store, &places, &GrantFile::Default, &grant, AllowLists::Heard).unwrap();
            }
        }
    };
    let writers: Vec<_> = (0..3).map(|from| std::thread::spawn(write(from))).collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(world.resolve().unwrap().allowed_domains.len(), 60);
    let left: Vec<_> = std::fs::read_dir(world.places.sandbox_directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["default.json"], "nothing else is left");
}

/// A new project entry extends the settings for all projects, even if another process creates it at the same time.
#[test]
fn an_answer_for_all_projects_is_in_an_entry_that_is_made_meanwhile() {
    for _ in 0..20 {
        let world = World::new();
        let own = found_shelves(&world)[0].clone();
        std::thread::scope(|scope| {
            scope.spawn(|| put(&world, &GrantFile::Default, &host("all.example")));
            scope.spawn(|| put(&world, &own, &host("here.example")));
        });
        let held: Vec<String> =
            world.resolve().unwrap().allowed_domains.iter().map(ToString::to_string).collect();
        assert_eq!(held.len(), 2, "{held:?}");
        assert!(read(&world, "default.json").contains("all.example"));
    }
}

#[test]
fn a_link_stays_a_link_and_the_mode_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let target = world.write("home/u/dotfiles/default.json", DEFAULT);
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    world.link("home/u/.pi/agent/sandbox/default.json", &target);
    put(&world, &GrantFile::Default, &host("a.example"));
    assert!(std::fs::read_to_string(&target).unwrap().contains("a.example"));
    let link = world.places.sandbox_directory().join("default.json");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_draft_is_checked_and_saved_as_a_whole() {
    let world = World::new();
    let store = Store::new(&world.places);
    let way = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let mut draft = Draft::open(&world.places, &found_shelves(&world)[0]).unwrap();
    draft.change(&Change::Append(way("network.allowedDomains"), json!("https://a.example"))).unwrap();
    let obstacles = draft.obstacles();
    assert_eq!(obstacles[0].pointer, "/network/allowedDomains/0");
    assert!(matches!(draft.save(&store), Err(StoreError::Invalid(_))));
    assert_eq!(read(&world, "projects.json"), "");

    draft.change(&Change::Drop(way("network.allowedDomains"), json!("https://a.example"))).unwrap();
    draft.change(&Change::Set(way("enabled"), json!(false))).unwrap();
    draft.save(&store).unwrap();
    assert!(!world.resolve().unwrap().enabled);

    let stale = Draft::open(&world.places, &GrantFile::Default).unwrap();
    put(&world, &GrantFile::Default, &host("a.example"));
    assert!(matches!(stale.save(&store), Err(StoreError::Changed { .. })));
}

#[test]
fn somebody_who_holds_the_lock_is_not_waited_for_for_ever() {
    let world = World::new();
    let store = Store::new(&world.places);
    let file = world.places.sandbox_directory().join("default.json");
    let first = store.change(&file, FileKind::Settings, |_| Ok(DEFAULT.to_owned()));
    assert!(first.unwrap());
    let held = std::fs::File::open(world.places.state_directory.join("settings.lock")).unwrap();
    held.lock().unwrap();
    let second = store.change(&file, FileKind::Settings, |_| Ok("{}".to_owned()));
    assert!(matches!(second, Err(StoreError::Busy)));
}

/// An item of a list would cover all paths below once the name is a directory.
#[test]
fn one_name_is_kept_as_one_name() {
    let world = World::new();
    for rights in [FileRights::READ, FileRights::READ_WRITE] {
        for (name, is_tree) in [("data", false), ("data", true)] {
            world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
            let place = world.root.join(name);
            let pattern =
                if is_tree { FilePattern::Tree(place.clone()) } else { FilePattern::Exact(place.clone()) };
            put(
                &world,
                &GrantFile::Default,
                &grant(GrantPattern::Path(PathPattern { pattern: pattern.clone(), rights })),
            );
            let now = world.resolve().unwrap();
            assert_eq!(now.allow_read.contains(&FilePattern::Tree(place)), is_tree);
            let kept = now.grants.iter().any(|known| {
                known.pattern == GrantPattern::Path(PathPattern { pattern: pattern.clone(), rights })
            });
            assert_eq!(kept, !is_tree, "{:?}", now.grants);
        }
    }
}
