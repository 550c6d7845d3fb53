//! Scripted walks through `/sandbox`: keys in, screens out.

use std::cell::{Cell, RefCell};
use std::path::Path;

use portcullis_settings::{Draft, GrantFile, Places, Store};

use super::*;

/// Real settings in a temporary directory; all other data is fake.
struct Fake {
    places: Places,
    on: Cell<bool>,
    held: RefCell<Vec<&'static str>>,
    rule: RefCell<&'static str>,
    saved: RefCell<Vec<String>>,
    revoked: RefCell<Vec<String>>,
    _directory: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("p")).unwrap();
        let places = Places::usual(&home.join("p"), &home);
        Self {
            places,
            on: Cell::new(true),
            held: RefCell::new(vec!["a", "b"]),
            rule: RefCell::new("Allow for all projects"),
            saved: RefCell::default(),
            revoked: RefCell::default(),
            _directory: directory,
        }
    }
}

impl World for Fake {
    fn is_on(&self) -> bool {
        self.on.get()
    }
    fn summary(&self) -> Vec<Line> {
        let lines = [
            "The sandbox is on, every layer in force.",
            "Settings: default.json",
            "Commands do not see your home directory (~), except ~/.pi and ~/src/shop.",
            "Commands can read ~/src/shop, ~/.pi and everything else; /home after a question, if a command names \
             them; not /run and parts of /sys.",
            "Commands can write ~/src/shop and /tmp (this session's own); everything else after a question; not /home.",
            "Commands reach no host without a question; every other host on the internet after a question.",
        ];
        lines.map(Line::plain).to_vec()
    }
    fn short(&self) -> Vec<Line> {
        let lines = [
            "The sandbox is on, every layer in force.",
            "Settings: default.json",
            "writes here · asks network",
            "Policies: workspace",
        ];
        lines.map(Line::plain).to_vec()
    }
    fn path_in_words(&self, path: &Path) -> String {
        portcullis_text::tilde(&path.to_string_lossy(), &self.places.home.to_string_lossy())
    }
    fn presets(&self) -> Vec<Offered> {
        let offered = |name: &str| Offered {
            name: name.into(),
            title: "registry".into(),
            hosts: vec!["a.test:443".into()],
        };
        ["npm", "cargo"].map(offered).to_vec()
    }
    fn policies(&self) -> Vec<OfferedPolicy> {
        let offered = |(name, title): (&str, &str)| OfferedPolicy { name: name.into(), title: title.into() };
        [("workspace", "the default"), ("acme:guard", "pack 1.2.0")].map(offered).to_vec()
    }
    fn scopes(&self) -> Vec<Scope> {
        let projects = "every project".into();
        vec![Scope { label: "Edit default config".into(), projects, grant_file: GrantFile::Default }]
    }
    fn open(&self, grant_file: &GrantFile) -> Result<Draft, String> {
        Draft::open(&self.places, grant_file).map_err(|error| error.to_string())
    }
    fn save(&self, draft: &Draft) -> Result<String, String> {
        draft.save(&Store::new(&self.places)).map_err(|error| error.to_string())?;
        self.saved.borrow_mut().push(draft.text().to_owned());
        Ok("saved".into())
    }
    fn grants(&self) -> Vec<Held> {
        let held =
            |id: &str| Held { id: id.into(), label: format!("reading /{id}"), origin: "this session".into() };
        self.held.borrow().iter().map(|id| held(id)).collect()
    }
    fn revoke(&self, id: &str) -> Result<String, String> {
        self.revoked.borrow_mut().push(id.to_owned());
        Ok(String::new())
    }
    fn decisions(&self) -> Vec<Decided> {
        vec![Decided { id: "x:1".into(), label: "read /etc/x".into(), value: "deny (base.outside)".into() }]
    }
    fn explain(&self, _: &str) -> Result<Explained, String> {
        Ok(Explained {
            lines: vec![Line::bad("deny: it lies outside")],
            rules: vec![(*self.rule.borrow()).into()],
        })
    }
    fn make_rule(&self, id: &str, rule: &str) -> Result<String, String> {
        Ok(format!("written {id} {rule}"))
    }
}

const FOR_PI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pi/test/screens/menu.json");

/// Returns the screens of the menu, each with the events that lead there.
fn screens() -> Vec<(&'static str, Vec<Event>)> {
    let settings = Event::Choose(1);
    vec![
        ("the first screen", vec![]),
        ("what is in force", vec![Event::Choose(2)]),
        ("settings", vec![settings.clone()]),
        ("settings, what one means", vec![settings.clone(), Event::Key('i', 1)]),
        ("settings, left before they are saved", vec![settings.clone(), Event::Choose(0), Event::Back]),
        ("a list of the settings", vec![settings.clone(), Event::Choose(5)]),
        ("an entry that cannot be used", vec![settings, Event::Choose(1), key('a'), text("https://x.test/")]),
        ("presets", vec![Event::Choose(3), Event::Key('i', 0)]),
        ("policies and packs", vec![Event::Choose(4)]),
        ("kept answers", vec![Event::Choose(5)]),
        ("recent decisions", vec![Event::Choose(6)]),
        ("one decision", vec![Event::Choose(6), Event::Choose(0)]),
    ]
}

/// The screens that the extension's tests draw for `docs/screens-pi.md`.
#[test]
fn the_extension_draws_the_same_screens() {
    let world = Fake::new();
    let shown: Vec<_> = screens()
        .into_iter()
        .map(|(name, events)| {
            let screen = walk(&world, &events);
            serde_json::json!({ "name": name, "screen": crate::serve::menu_screen(screen) })
        })
        .collect();
    let shown = format!("{:#}\n", serde_json::json!(shown));
    if std::fs::read_to_string(FOR_PI).is_ok_and(|known| known == shown) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_REFERENCE").is_some(),
        "`{FOR_PI}` is behind the menu: run this test with UPDATE_REFERENCE=1"
    );
    std::fs::write(FOR_PI, shown).unwrap();
}

#[test]
fn every_key_that_a_screen_names_works() {
    for (name, events) in screens() {
        let world = Fake::new();
        let before = walk(&world, &events);
        let keys = if before.input.is_none() { before.keys.clone() } else { Vec::new() };
        // There is only one file to switch presets and policies in.
        for (named, _) in keys.into_iter().filter(|(named, _)| *named != 't') {
            let world = Fake::new();
            let pressed = Event::Key(named, before.selected);
            let after = walk(&world, &[events.clone(), vec![pressed]].concat());
            assert_ne!(format!("{after:?}"), format!("{before:?}"), "{name}: {named}");
        }
    }
}

/// Sends the events and returns the last screen.
fn walk(world: &Fake, events: &[Event]) -> Screen {
    let mut menu = Menu::default();
    let mut screen = menu.handle(world, &Event::Open);
    for event in events {
        screen = menu.handle(world, event);
    }
    screen
}

fn labels(screen: &Screen) -> Vec<&str> {
    screen.items.iter().map(|item| item.label.as_str()).collect()
}

fn value(screen: &Screen, label: &str) -> String {
    screen.items.iter().find(|item| item.label == label).and_then(|item| item.value.clone()).unwrap()
}

fn key(key: char) -> Event {
    Event::Key(key, 0)
}

fn text(text: &str) -> Event {
    Event::Text(text.to_owned())
}

#[test]
fn the_toggle_comes_first_and_enter_alone_toggles() {
    let world = Fake::new();
    let screen = walk(&world, &[]);
    assert_eq!(
        labels(&screen),
        [
            "Disable sandbox",
            "Edit default config",
            "What is in force",
            "Presets",
            "Policies and packs",
            "Kept answers",
            "Recent decisions"
        ]
    );
    assert_eq!(screen.selected, 0);
    assert_eq!(walk(&world, &[Event::Choose(0)]).need, Some(Need::Disable));
    world.on.set(false);
    assert_eq!(labels(&walk(&world, &[]))[0], "Enable sandbox");
    assert_eq!(walk(&world, &[Event::Choose(0)]).need, Some(Need::Enable));
}

#[test]
fn what_has_changed_since_it_was_shown_is_not_chosen() {
    let world = Fake::new();
    let mut menu = Menu::default();
    menu.handle(&world, &Event::Open);
    world.on.set(false);
    let screen = menu.handle(&world, &Event::Choose(0));
    assert!(screen.need.is_none() && screen.lines[0].text.contains("has changed"), "{screen:?}");
    assert_eq!(menu.handle(&world, &Event::Choose(0)).need, Some(Need::Enable), "it was shown by now");
}

#[test]
fn what_another_session_has_changed_is_neither_taken_back_nor_written() {
    let world = Fake::new();
    let mut menu = Menu::default();
    let mut press = |event: &Event| menu.handle(&world, event);
    press(&Event::Open);
    press(&Event::Choose(5));
    world.held.replace(vec!["b"]);
    let screen = press(&Event::Key('d', 0));
    assert!(screen.lines[0].text.contains("has changed") && world.revoked.borrow().is_empty(), "{screen:?}");
    assert_eq!(labels(&screen), ["reading /b"], "what is there now is shown");
    world.held.replace(Vec::new());
    assert_eq!(press(&key('b')).title, "Sandbox", "one can leave whatever has changed");
    press(&Event::Choose(6));
    press(&Event::Choose(0));
    world.rule.replace("Allow for all projects: for 1 h");
    let screen = press(&Event::Choose(0));
    assert!(screen.lines[0].text.contains("has changed"), "{screen:?}");
    let screen = press(&Event::Choose(0));
    assert_eq!(screen.lines[0], Line::good("written x:1 Allow for all projects: for 1 h"));
}

#[test]
fn every_way_out_leads_out() {
    let world = Fake::new();
    for way in [vec![Event::Back], vec![key('q')], vec![Event::Choose(1), Event::Back, Event::Back]] {
        assert_eq!(walk(&world, &way).need, Some(Need::Close), "{way:?}");
    }
    assert_eq!(walk(&world, &[Event::Choose(99)]).title, "Sandbox");
    assert_eq!(walk(&world, &[Event::Choose(1), Event::Choose(99), key('x')]).title, "Edit default config");
}

#[test]
fn the_field_editor_toggles_lists_and_saves() {
    let world = Fake::new();
    let editor = walk(&world, &[Event::Choose(1)]);
    assert_eq!(
        labels(&editor),
        [
            "enabled",
            "network.allowedDomains",
            "network.deniedDomains",
            "filesystem.denyRead",
            "filesystem.allowRead",
            "filesystem.allowWrite",
            "filesystem.denyWrite"
        ]
    );
    assert_eq!(value(&editor, "filesystem.allowRead"), "., ~/.pi");
    let toggled = walk(&world, &[Event::Choose(1), Event::Choose(0)]);
    assert_eq!(
        (value(&toggled, "enabled").as_str(), toggled.title.as_str()),
        ("false", "Edit default config (not saved)")
    );

    let added = [
        Event::Choose(1),
        Event::Choose(1),
        key('a'),
        text("github.com:443"),
        key('a'),
        text("*.crates.io"),
        Event::Key('d', 0),
        key('b'),
        key('s'),
    ];
    let saved = walk(&world, &added);
    assert_eq!(value(&saved, "network.allowedDomains"), "*.crates.io");
    assert_eq!(saved.lines[0], Line::good("saved"));
    assert_eq!(saved.title, "Edit default config", "nothing is left to save");
    let file = std::fs::read_to_string(world.places.sandbox_directory().join("default.json")).unwrap();
    assert!(file.contains("\"*.crates.io\"") && !file.contains("github.com"), "{file}");
    assert_eq!(world.saved.borrow().len(), 1);
}

#[test]
fn unsaved_changes_are_not_lost_without_a_word() {
    let world = Fake::new();
    let changed = [Event::Choose(1), Event::Choose(0), Event::Back];
    let warned = walk(&world, &changed);
    assert!(warned.lines[0].text.starts_with("Not saved yet") && warned.title.contains("(not saved)"));
    let events = |more: &[Event]| [&changed[..], more].concat();
    assert_eq!(walk(&world, &events(&[Event::Back])).title, "Sandbox");
    let again = walk(&world, &events(&[key('i'), Event::Back]));
    assert!(again.lines[0].text.starts_with("Not saved yet"), "it is said once for each leaving");
    assert_eq!(walk(&world, &events(&[key('s'), Event::Back])).title, "Sandbox");
    assert_eq!(world.saved.borrow().len(), 1);
}

#[test]
fn the_mark_stays_where_it_was() {
    let world = Fake::new();
    assert_eq!(walk(&world, &[Event::Choose(4), Event::Back]).selected, 4);
    assert_eq!(walk(&world, &[Event::Choose(5), Event::Key('d', 1)]).selected, 1);
    assert_eq!(walk(&world, &[Event::Choose(3), Event::Choose(1)]).selected, 1);
    assert_eq!(walk(&world, &[Event::Choose(1), Event::Key('i', 3)]).selected, 3);
}

#[test]
fn what_a_setting_means_is_one_key_away() {
    let world = Fake::new();
    let told = walk(&world, &[Event::Choose(1), Event::Key('i', 1)]);
    assert!(told.lines.iter().any(|line| line.text.starts_with("Hosts that commands may reach")), "{told:?}");
    assert_eq!(walk(&world, &[Event::Choose(1), Event::Key('i', 1), Event::Key('i', 1)]).lines.len(), 1);
}

#[test]
fn presets_are_switched_on_and_off() {
    let world = Fake::new();
    let on = walk(&world, &[Event::Choose(3), Event::Choose(1)]);
    assert_eq!(on.lines[0], Line::good("cargo is on for every project"));
    assert_eq!(
        (value(&on, "cargo").as_str(), value(&on, "npm").as_str()),
        ("on   registry", "off  registry")
    );
    let hosts = walk(&world, &[Event::Choose(3), Event::Key('i', 0)]);
    assert!(hosts.lines.iter().any(|line| line.text == "npm: a.test:443"), "{hosts:?}");
    let off = walk(&world, &[Event::Choose(3), Event::Choose(1)]);
    assert_eq!(value(&off, "cargo"), "off  registry");
}

#[test]
fn policies_and_packs_are_switched_on_and_off() {
    let world = Fake::new();
    let list = walk(&world, &[Event::Choose(4)]);
    assert_eq!(value(&list, "workspace"), "on   the default", "it is on without being named");
    let on = walk(&world, &[Event::Choose(4), Event::Choose(1)]);
    assert_eq!(on.lines[0], Line::good("acme:guard is on for every project"));
    assert_eq!((value(&on, "acme:guard").as_str(), on.selected), ("on   pack 1.2.0", 1));
    let file = || std::fs::read_to_string(world.places.sandbox_directory().join("default.json")).unwrap();
    let listed = |file: String| serde_json::from_str::<serde_json::Value>(&file).unwrap()["policies"].clone();
    assert_eq!(
        listed(file()),
        serde_json::json!([{ "use": "workspace" }, { "use": "acme:guard" }]),
        "the default stays beside it"
    );
    let off = walk(&world, &[Event::Choose(4), Event::Choose(1)]);
    assert_eq!(value(&off, "acme:guard"), "off  pack 1.2.0");
    let last = walk(&world, &[Event::Choose(4), Event::Choose(0)]);
    assert_eq!(last.lines[0].tone, Tone::Bad, "without any policy nothing could be decided: {last:?}");
    assert_eq!(listed(file()), serde_json::json!([{ "use": "workspace" }]));
}

#[test]
fn a_second_save_knows_the_first() {
    let world = Fake::new();
    let twice = [Event::Choose(1), Event::Choose(0), key('s'), Event::Choose(0), key('s')];
    assert_eq!(walk(&world, &twice).lines[0], Line::good("saved"));
    assert_eq!(world.saved.borrow().len(), 2);
}

#[test]
fn what_cannot_be_used_is_told_where_it_is_typed() {
    let world = Fake::new();
    let input = walk(&world, &[Event::Choose(1), Event::Choose(1), key('a'), text("https://x.example/")]);
    assert_eq!(
        input.input,
        Some(("network.allowedDomains".into(), "https://x.example/".into())),
        "it can be mended"
    );
    assert!(
        input.lines.iter().any(|line| line.tone == Tone::Bad && line.text.contains("without scheme")),
        "{input:?}"
    );
    let mended = walk(
        &world,
        &[Event::Choose(1), Event::Choose(1), key('a'), text("https://x.example/"), text("x.example")],
    );
    assert_eq!(labels(&mended), ["x.example"]);
    assert!(world.saved.borrow().is_empty());
}

#[test]
fn advanced_fields_come_with_a_question_mark() {
    let world = Fake::new();
    let advanced = walk(&world, &[Event::Choose(1), key('?')]);
    for field in [
        "enableWeakerNestedSandbox",
        "allowPty",
        "mandatoryDenySearchDepth",
        "limits.memoryMib",
        "ask.timeoutMs",
    ] {
        assert!(labels(&advanced).contains(&field), "{field}");
    }
    for field in ["policies", "grants", "ignoreViolations", "environment.set", "network.deniedDomainReasons"]
    {
        assert!(labels(&advanced).contains(&field), "{field}");
    }
    assert!(!labels(&advanced).contains(&"network.filterRequest"), "what is refused cannot be set");
    assert_eq!(walk(&world, &[Event::Choose(1), key('?'), key('?')]).items.len(), 7);
    let place = labels(&advanced).iter().position(|label| *label == "limits.memoryMib").unwrap();
    let number = [Event::Choose(1), key('?'), Event::Choose(place), text("many"), text("2048")];
    assert_eq!(value(&walk(&world, &number), "limits.memoryMib"), "2048");
}

#[test]
fn keys_with_values_and_policies_are_edited_as_lines() {
    let world = Fake::new();
    let advanced = walk(&world, &[Event::Choose(1), key('?')]);
    let at = |field: &str| labels(&advanced).iter().position(|label| *label == field).unwrap();
    let open = |field: &str| vec![Event::Choose(1), key('?'), Event::Choose(at(field)), key('a')];
    let typed = |field: &str, line: &str| walk(&world, &[open(field), vec![text(line)]].concat());
    assert_eq!(labels(&typed("environment.set", "CI = 1")), ["CI = 1"]);
    assert_eq!(labels(&typed("ignoreViolations", "npm = a.test, b.test")), ["npm = a.test, b.test"]);
    assert_eq!(labels(&typed("policies", r#"{"use":"guard"}"#)), [r#"{"use":"guard"}"#]);
    let push = r#"{"host":"a.test","refs":["refs/heads/agent/**"],"repositories":["me/proj"]}"#;
    assert_eq!(labels(&typed("network.pushes", push)), [push]);
    for (field, line, part) in [
        ("environment.set", "CI", "KEY = value"),
        ("policies", "guard", "JSON"),
        ("policies", r#"{"uze":"guard"}"#, "policies[].use"),
        ("network.pushes", r#"{"host":"a.test","repositories":["me/proj"]}"#, "network.pushes[].refs"),
    ] {
        let shown = typed(field, line);
        assert_eq!(shown.input.as_ref().map(|(_, typed)| typed.as_str()), Some(line), "{field}");
        let is_told = |shown: &Line| shown.tone == Tone::Bad && shown.text.contains(part);
        assert!(shown.lines.iter().any(is_told), "{field}: {shown:?}");
    }
    let gone = [open("environment.set"), vec![text("CI = 1"), key('d')]].concat();
    assert_eq!(labels(&walk(&world, &gone)), [""; 0]);
}

#[test]
fn an_item_is_changed_in_its_place_of_the_list() {
    let world = Fake::new();
    let changed = [Event::Choose(1), Event::Choose(5), Event::Choose(0), text("out")];
    assert_eq!(labels(&walk(&world, &changed)), ["out"]);
}

#[test]
fn a_literal_path_stays_one() {
    let world = Fake::new();
    let settings = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] }, "filesystem": { "denyRead": [],
        "allowRead": [{ "path": "[a]", "literal": true }], "allowWrite": [], "denyWrite": [] } }"#;
    let file = world.places.sandbox_directory().join("default.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, settings).unwrap();
    let list = walk(&world, &[Event::Choose(1), Event::Choose(4)]);
    assert_eq!(value(&list, "[a]"), "literal", "and it shows");
    let edit = [Event::Choose(1), Event::Choose(4), Event::Choose(0), text("[ab]"), key('b'), key('s')];
    walk(&world, &edit);
    let saved = std::fs::read_to_string(&file).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let expected = serde_json::json!([{ "path": "[ab]", "literal": true }]);
    assert_eq!(saved["filesystem"]["allowRead"], expected);
}

#[test]
fn answers_are_taken_back_and_denials_become_rules() {
    let world = Fake::new();
    let grants = walk(&world, &[Event::Choose(5), Event::Key('d', 1)]);
    assert_eq!(grants.lines[0], Line::good("taken back: reading /b"));
    assert_eq!(*world.revoked.borrow(), ["b"]);
    let explained = walk(&world, &[Event::Choose(6), Event::Choose(0)]);
    assert_eq!(
        (explained.title.as_str(), labels(&explained)),
        ("Decision x:1", vec!["Allow for all projects"])
    );
    let ruled = walk(&world, &[Event::Choose(6), Event::Choose(0), Event::Choose(0)]);
    assert_eq!(ruled.lines[0], Line::good("written x:1 Allow for all projects"));
}

#[test]
fn a_broken_file_is_told_and_not_opened() {
    let world = Fake::new();
    let file = world.places.sandbox_directory().join("default.json");
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).unwrap();
    std::fs::write(&file, "{ broken").unwrap();
    let screen = walk(&world, &[Event::Choose(1)]);
    assert_eq!((screen.title.as_str(), screen.lines[0].tone), ("Sandbox", Tone::Bad));
}
