//! Checks each row of the table of fields.
//!
//! The field must be read, kept or refused as the row says, and mistakes in it must be reported.
#![expect(clippy::wildcard_enum_match_arm, reason = "whatever is not expected fails the test")]

use std::path::Path;

use portcullis_settings_format::{
    ConfigError, FIELDS, Field, Presence, Problem, ProxyProtocol, Settings, Shape, Status, field,
};
use serde_json::{Map, Value, json};

fn base() -> Value {
    json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
    })
}

fn parse(document: &Value) -> Result<Settings, ConfigError> {
    Settings::parse(&document.to_string(), Path::new("x.json"))
}

fn problem(document: &Value) -> Problem {
    match parse(document) {
        Err(ConfigError::Invalid { problem, .. }) => problem,
        other => panic!("{document} gave {other:?}"),
    }
}

/// Returns a valid value that differs from the default.
fn sample(field: &Field) -> Value {
    match field.name {
        "combine" => "first".into(),
        "escalation" => "ask".into(),
        "unattendedRefusals" => "report".into(),
        "policies[].use" => "other".into(),
        "policies[].mode" => "observe".into(),
        "policies[].configFile" => "lists.toml".into(),
        "ask.hold" => "accept".into(),
        "ask.ports" => "every".into(),
        "enabled" | "network.requireHostMatch" | "network.allowLocalBinding" => false.into(),
        "network.hiddenServerNames" | "network.unlistedHosts" => "allow".into(),
        "filesystem.elsewhere" => "closed".into(),
        "filesystem.tmp" => "shared".into(),
        "network.parentProxy.http" | "network.parentProxy.https" => "http://proxy.test:3128".into(),
        "network.parentProxy.noProxy" => "corp.test".into(),
        "environment.set" => json!({ "NAME": "value" }),
        "network.filterRequest" => json!({}),
        "network.requests[].allow" | "credentials.brokered[].for" => json!(["GET /**"]),
        "credentials.brokered[].name" | "credentials.ssh[].name" | "credentials.signing.name" => {
            "forge".into()
        }
        "credentials.signing.form" => "ssh".into(),
        "credentials.signing.key" => "~/.ssh/id_ed25519.pub".into(),
        "credentials.signing.for" => json!(["tag"]),
        "credentials.signing.ask" | "credentials.signing.always" => false.into(),
        "credentials.brokered[].host" | "network.requests[].host" | "network.pushes[].host" => {
            "forge.test".into()
        }
        "network.pushes[].repositories" => json!(["me/proj"]),
        "network.pushes[].refs" => json!(["refs/heads/agent/*"]),
        "credentials.brokered[].source" => json!({ "env": "OTHER" }),
        "credentials.brokered[].source.file" => "/token".into(),
        "credentials.brokered[].source.secretTool" => json!(["service", "forge"]),
        "credentials.brokered[].variables" => json!(["NAME"]),
        "grants" => json!([{ "tool": "t" }]),
        "grants[].commands" => json!([["git", "push"]]),
        _ => of_shape(field.shape, field.name),
    }
}

fn of_shape(shape: Shape, name: &str) -> Value {
    match shape {
        Shape::Bool => true.into(),
        Shape::Text => "text".into(),
        Shape::AbsolutePath => "/a".into(),
        Shape::Integer(low, _) => low.into(),
        Shape::OneOf(words) => words[0].into(),
        Shape::Path => "a/b".into(),
        Shape::AllowedDomain | Shape::DeniedDomain => "example.com".into(),
        Shape::Address => "10.0.0.0/8".into(),
        Shape::VariableName | Shape::VariableGlob => "NAME".into(),
        Shape::List(item) => json!([of_shape(*item, name)]),
        Shape::Map(value) => json!({ "example.com": of_shape(*value, name) }),
        Shape::Object => Value::Object(required(name)),
        Shape::Objects => json!([required(&format!("{name}[]"))]),
        Shape::AnyObject => json!({ "x": 1 }),
        Shape::PortRange => json!([1000, 1010]),
    }
}

fn required(parent: &str) -> Map<String, Value> {
    let inside = FIELDS.iter().filter(|field| parent_of(field.name) == parent);
    let needed = inside.filter(|field| field.presence == Presence::Required);
    needed.map(|field| (field.key().to_owned(), sample(field))).collect()
}

fn parent_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(parent, _)| parent)
}

/// Returns a whole document in which the field has this value.
fn with(field: &Field, key: &str, value: Value) -> Value {
    let mut document = base();
    if field.name == "network.deniedDomainReasons" {
        document["network"]["deniedDomains"] = json!(["example.com"]);
    }
    let mut at = &mut document;
    let parent = parent_of(field.name);
    let mut name = String::new();
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(step);
        let (step, is_list) = step.strip_suffix("[]").map_or((step, false), |step| (step, true));
        let object = at.as_object_mut().unwrap();
        let fresh = Value::Object(required(&name));
        at = object.entry(step).or_insert(if is_list { json!([fresh]) } else { fresh });
        if is_list {
            at = &mut at[0];
        }
    }
    if field.name.starts_with("credentials.brokered[].source.") {
        *at = json!({});
    }
    at[key] = value;
    match field.name {
        "credentials.brokered[].user" | "credentials.brokered[].git" => at["form"] = json!("basic"),
        "credentials.brokered[].header" => at["form"] = json!("header"),
        "credentials.brokered[].services" | "credentials.brokered[].regions" => {
            at["form"] = json!("aws");
            at["source"] = json!({ "awsProfile": "default" });
        }
        "credentials.brokered[].source.awsProfile" => {
            document["credentials"]["brokered"][0]["form"] = json!("aws");
        }
        "grants[].exact" | "grants[].rights" => at["path"] = json!("/a"),
        "grants[].openEnded" => at["commands"] = json!([["git"]]),
        "grants[].provider" | "grants[].input" | "grants[].grantedAt" | "grants[].expiresAt" => {
            at["tool"] = json!("t");
        }
        _ => {}
    }
    document
}

/// Returns the settings as text, without the places of values in the file.
fn unplaced(settings: &Settings) -> String {
    let text = format!("{settings:?}");
    let parts = text.split("at: Position {").enumerate();
    parts.map(|(index, part)| if index == 0 { part } else { part.split_once('}').unwrap().1 }).collect()
}

/// Returns the document without the field, or without its parent if that needs the field.
fn without(document: &Value, field: &Field) -> Value {
    let gone = if field.presence == Presence::Required { parent_of(field.name) } else { field.name };
    let mut document = document.clone();
    let (parent, key) = gone.rsplit_once('.').unwrap_or(("", gone));
    let parent = format!("/{}", parent.replace("[]", ".0").replace('.', "/"));
    let object = document.pointer_mut(parent.trim_end_matches('/')).and_then(Value::as_object_mut);
    object.unwrap().remove(key);
    document
}

/// Returns true if the field lies in an object that is refused as a whole.
fn is_refused(field: &Field) -> bool {
    matches!(field.status, Status::Refused(_))
}

#[test]
fn every_field_does_what_the_table_says() {
    // These two choose between files and are not decoded; see `layered.rs`.
    for field in FIELDS.iter().filter(|field| !["layout", "extends"].contains(&field.name)) {
        let document = with(field, field.key(), sample(field));
        match field.status {
            Status::Honoured => {
                let settings = parse(&document).unwrap_or_else(|error| panic!("{}: {error}", field.name));
                let named_or_object = matches!(field.shape, Shape::Object | Shape::Objects);
                let required_in_base =
                    ["network.allowedDomains", "network.deniedDomains"].contains(&field.name);
                if !named_or_object || required_in_base {
                    assert_ne!(settings, parse(&base()).unwrap(), "{} is not read", field.name);
                }
                assert!(settings.kept.is_empty(), "{}", field.name);
            }
            Status::NoEffect(reason) => {
                let mut settings = parse(&document).unwrap_or_else(|error| panic!("{}: {error}", field.name));
                let mut without = parse(&without(&document, field)).unwrap();
                let kept = settings.kept.iter().find(|kept| kept.name == field.name);
                assert_eq!(kept.map(|kept| kept.reason), Some(reason), "{}", field.name);
                settings.kept.clear();
                without.kept.clear();
                assert_eq!(unplaced(&settings), unplaced(&without), "{} has an effect", field.name);
            }
            Status::Refused(reason) => match problem(&document) {
                Problem::Refused { reason: given, .. } => assert_eq!(given, reason, "{}", field.name),
                other => panic!("{}: {other:?}", field.name),
            },
        }
    }
}

/// The schema of sandbox-runtime 0.0.83, field by field, read from the published package.
const UPSTREAM: &str = include_str!("sandbox-runtime.txt");

/// Returns the fields of sandbox-runtime, each with its type, its presence, and the words that it may have.
fn upstream() -> Vec<(&'static str, &'static str, &'static str, Vec<&'static str>)> {
    let rows = UPSTREAM.lines().filter(|line| !line.starts_with('#'));
    let row = |row: &'static str| {
        let mut cells = row.split(' ');
        (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap(), cells.collect())
    };
    rows.map(row).collect()
}

/// Fields that sandbox-runtime does not have.
const OURS: &str = "
    $schema presets enabled layout extends network.hiddenServerNames network.uploadBudgetMib network.requests network.pushes
    credentials.brokered credentials.ssh credentials.signing readOnlyPresets policies combine protections undo ask escalation requiredTier
    limits environment grants home unattendedRefusals tools network.unlistedHosts filesystem.elsewhere
    filesystem.tmp
";

#[test]
fn every_field_of_upstream_has_its_place_and_every_other_one_is_ours() {
    let names: std::collections::HashSet<&str> = upstream().into_iter().map(|(name, ..)| name).collect();
    let missing: Vec<_> = names.iter().filter(|name| field(name).is_none()).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    let is_ours = |name: &str| {
        let under = |own: &str| {
            name == own || name.starts_with(&format!("{own}.")) || name.starts_with(&format!("{own}[]"))
        };
        OURS.split_whitespace().any(under)
    };
    for field in FIELDS {
        assert!(names.contains(field.name) != is_ours(field.name), "whose is {}?", field.name);
    }
    assert_eq!((names.len(), upstream().len()), (93, 93), "the number of fields in the package");
}

#[test]
fn every_value_of_upstream_is_accepted() {
    for (name, kind, presence, words) in upstream() {
        let field = field(name).unwrap();
        let is_kind = match (kind, field.shape) {
            ("Boolean", Shape::Bool)
            | ("Number", Shape::Integer(..))
            | ("Array", Shape::List(_) | Shape::Objects)
            | ("Object", Shape::Object)
            | ("Record", Shape::Map(_))
            | ("Tuple", Shape::PortRange)
            | ("Any", _) => true,
            ("String", Shape::Text | Shape::AbsolutePath | Shape::VariableName) => true,
            ("Enum", Shape::OneOf(ours)) => ours == words.as_slice(),
            _ => false,
        };
        assert!(is_kind, "{name} is {kind} {words:?} there");
        // Fields may be missing here that the package requires, and never the other way.
        assert!(presence == "required" || field.presence != Presence::Required, "{name}");
    }
}

#[test]
fn silenced_reports_are_named() {
    let mut document = base();
    document["ignoreViolations"] = json!({ "*": ["a.test"], "git push": ["b.test", "/usr"] });
    let ignored = parse(&document).unwrap().ignored;
    let silent = |command: &str, report: &str| ignored.iter().any(|ignored| ignored.covers(command, report));
    for (command, report, expected) in [
        ("anything", "no connection to a.test:80", true),
        ("anything", "no connection to b.test:80", false),
        ("cd x && git push origin", "no connection to b.test:80", true),
        ("git pull", "/usr/lib is refused", false),
    ] {
        assert_eq!(silent(command, report), expected, "{command}: {report}");
    }
    for nothing in [json!({ "": ["a"] }), json!({ "*": [""] })] {
        document["ignoreViolations"] = nothing;
        assert!(matches!(problem(&document), Problem::BadValue { .. }));
    }
}

#[test]
fn a_refused_field_may_say_no() {
    for field in FIELDS.iter().filter(|field| is_refused(field)) {
        let nothing = match field.shape {
            Shape::Bool => json!(false),
            Shape::List(_) | Shape::Objects => json!([]),
            _ => continue,
        };
        let outcome = parse(&with(field, field.key(), nothing));
        let parent_is_refused =
            self::field(parent_of(field.name).trim_end_matches("[]")).is_some_and(is_refused);
        if !parent_is_refused {
            let settings = outcome.unwrap_or_else(|error| panic!("{}: {error}", field.name));
            assert_eq!(settings.filesystem, parse(&base()).unwrap().filesystem);
        }
    }
}

#[test]
fn every_field_tells_a_wrong_type() {
    for field in FIELDS {
        for wrong in [Value::Null, json!(-1.5)] {
            match problem(&with(field, field.key(), wrong)) {
                Problem::WrongType { field: pointer, .. } => {
                    assert!(pointer.ends_with(&format!("/{}", field.key())), "{pointer}");
                }
                other => panic!("{}: {other:?}", field.name),
            }
        }
    }
}

#[test]
fn every_field_is_suggested_for_a_slip() {
    for field in FIELDS.iter().filter(|field| field.key().len() > 4) {
        let slip: String = field.key().chars().take(field.key().len() - 1).collect();
        let known =
            FIELDS.iter().any(|other| parent_of(other.name) == parent_of(field.name) && other.key() == slip);
        if known {
            continue;
        }
        let mut document = with(field, field.key(), sample(field));
        let value = sample(field);
        let pointer = format!("/{}", parent_of(field.name).replace("[]", ".0").replace('.', "/"));
        let object = document.pointer_mut(pointer.trim_end_matches('/')).unwrap().as_object_mut().unwrap();
        object.remove(field.key());
        object.insert(slip.clone(), value);
        match problem(&document) {
            Problem::UnknownKey { key, nearest } => {
                assert_eq!((key, nearest), (slip, Some(field.key().to_owned())), "{}", field.name);
            }
            other => panic!("{}: {other:?}", field.name),
        }
    }
}

#[test]
fn the_table_is_sound() {
    let mut names = std::collections::HashSet::new();
    for field in FIELDS {
        assert!(names.insert(field.name), "{} is there twice", field.name);
        let parent = parent_of(field.name);
        assert!(parent.is_empty() || self::field(parent.trim_end_matches("[]")).is_some(), "{}", field.name);
        assert!(field.meaning.ends_with('.'), "{}", field.name);
    }
    for needed in FIELDS.iter().filter(|field| field.presence == Presence::Required) {
        let mut document = with(needed, needed.key(), sample(needed));
        let pointer = format!("/{}", parent_of(needed.name).replace("[]", ".0").replace('.', "/"));
        document
            .pointer_mut(pointer.trim_end_matches('/'))
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(needed.key());
        assert!(matches!(problem(&document), Problem::MissingKey { .. }), "{}", needed.name);
    }
}

#[test]
fn loosening_upstream_switches_change_nothing() {
    for (name, value) in
        [("enableWeakerNestedSandbox", json!(true)), ("allowNestedUserNamespaces", json!(true))]
    {
        let mut document = base();
        document[name] = value;
        assert_eq!(parse(&document).unwrap().kept.len(), 1, "{name}");
    }
    let mut document = base();
    document["filesystem"]["disabled"] = json!(true);
    let settings = parse(&document).unwrap();
    assert_eq!(settings.filesystem, parse(&base()).unwrap().filesystem, "the rules on files hold");
}

#[test]
fn what_upstream_masks_is_denied() {
    let mut document = base();
    document["credentials"] = json!({
        "files": [{ "path": "a", "mode": "mask", "extract": "x" }, { "path": "b", "mode": "deny" }],
        "envVars": [{ "name": "TOKEN", "mode": "mask", "injectHosts": ["a.test"] }],
        "awsPairs": [{ "accessKeyIdVar": "ID", "secretAccessKeyVar": "KEY" }],
    });
    let credentials = parse(&document).unwrap().credentials;
    assert_eq!(credentials.files.len(), 2);
    assert_eq!(credentials.variables, ["TOKEN", "ID", "KEY"]);
    let warned: Vec<&str> = credentials.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert!(
        matches!(warned.as_slice(), [file, variable] if file.contains("`a`") && variable.contains("TOKEN"))
    );
}

#[test]
fn proxies_of_upstream_are_passed_or_their_hosts_refused() {
    let network = |value: Value| {
        let mut document = base();
        document["network"] = value;
        parse(&document).unwrap().network
    };
    let port = |network: &portcullis_settings_format::Network, port| {
        let target = portcullis_decision::pattern::HostName::parse("a.test").unwrap();
        network.parent_proxy.proxy_for(&target, port).map(|proxy| (proxy.protocol, proxy.port))
    };
    let both = network(json!({ "httpProxyPort": 8080, "socksProxyPort": 1080,
        "parentProxy": { "http": "http://corp.test:1", "noProxy": "*" } }));
    let socks = network(json!({ "socksProxyPort": 1080 }));
    for asked in [80, 443, 22] {
        assert_eq!(port(&both, asked), Some((ProxyProtocol::Http, 8080)), "nothing goes past the filter");
        assert_eq!(port(&socks, asked), Some((ProxyProtocol::Socks, 1080)));
    }
    let mitm = network(json!({ "allowedDomains": ["a.test"],
        "mitmProxy": { "socketPath": "/run/m.sock", "domains": ["a.test", "*.b.test"] } }));
    assert_eq!(mitm.denied_domains.len(), 2);
    assert!(mitm.denied_domain_reasons["a.test"].contains("mitmProxy"));
    assert_eq!((mitm.warnings.len(), mitm.closed), (1, None));
    for (key, value) in
        [("stripResponseHeaders", json!(["set-cookie"])), ("refuseOpaqueTunnels", json!(true))]
    {
        let closed = network(json!({ key: value }));
        assert_eq!(closed.closed.as_ref().map(|entry| entry.text.as_str()), Some(key));
        assert_eq!(closed.warnings.len(), 1);
    }
    for (key, value) in [("stripResponseHeaders", json!([])), ("refuseOpaqueTunnels", json!(false))] {
        assert_eq!(network(json!({ key: value })).closed, None, "{key} asks for nothing");
    }
}

#[test]
fn a_field_knows_what_holds_without_it() {
    for (name, default) in [
        ("enabled", Some("`true`")),
        ("limits.processes", Some("4096")),
        ("policies", Some("`workspace` alone")),
        ("network.allowedDomains", None),
    ] {
        let field = field(name).unwrap();
        assert_eq!(field.default_in_words(), default, "{name}");
    }
}
