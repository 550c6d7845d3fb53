//! The JSON Schema that is published for editors.

use portcullis_settings_format::{BUILT_IN, FIELDS, FileKind, Layer, Status, TIGHTENING_FIELDS, json_schema};
use serde_json::{Value, json};

const PUBLISHED: &str = "/../../docs/settings.schema.json";

#[test]
fn the_published_schema_is_this_one() {
    let path = format!("{}{PUBLISHED}", env!("CARGO_MANIFEST_DIR"));
    let made = json_schema(FileKind::Settings);
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if serde_json::from_str::<Value>(&found).ok().as_ref() == Some(&made) {
        return;
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, format!("{made:#}\n")).unwrap();
        return;
    }
    panic!("docs/settings.schema.json is behind the table of fields: run this test with UPDATE_REFERENCE=1");
}

/// Returns the schema of a field.
fn schema_of<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(schema, |at, key| match key.strip_suffix("[]") {
        Some(key) => at["properties"].get(key)?.get("items"),
        None => at["properties"].get(key),
    })
}

#[test]
fn every_field_is_in_it() {
    let settings = json_schema(FileKind::Settings);
    let layer = json_schema(FileKind::Tightening(Layer::Project));
    // Only entries of `projects.json` may have `extends`.
    for field in FIELDS.iter().filter(|field| field.name != "extends") {
        let inside_refused = field.name.split('.').collect::<Vec<_>>();
        let inside_refused = (1..inside_refused.len()).any(|length| {
            let parent = inside_refused[..length].join(".");
            portcullis_settings_format::field(parent.trim_end_matches("[]"))
                .is_some_and(|field| matches!(field.status, Status::Refused(_)))
        });
        let said = schema_of(&settings, field.name);
        assert_eq!(said.is_some(), !inside_refused, "{}", field.name);
        if let Some(said) = said {
            let description = said["description"].as_str().unwrap();
            assert!(description.starts_with(field.meaning), "{description}");
            let refused = matches!(field.status, Status::Refused(_));
            assert_eq!(description.contains("Refused: "), refused, "{description}");
        }
        let tightens = TIGHTENING_FIELDS.contains(&field.name);
        assert_eq!(schema_of(&layer, field.name).is_some(), tightens, "{}", field.name);
    }
}

/// Evaluates the keywords that the schema uses, except patterns.
fn accepts(schema: &Value, value: &Value) -> bool {
    let all = |key: &str, test: &dyn Fn(&Value) -> bool| schema.get(key).is_none_or(test);
    let (object, list) = (value.as_object(), value.as_array());
    let length = list.and_then(|items| u64::try_from(items.len()).ok());
    all("type", &|kind| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("{other}"),
    }) && all("const", &|wanted| wanted == value)
        && all("enum", &|words| words.as_array().unwrap().contains(value))
        && all("minimum", &|low| value.as_u64() >= low.as_u64())
        && all("maximum", &|high| value.as_u64() <= high.as_u64())
        && all("minItems", &|low| length >= low.as_u64())
        && all("maxItems", &|high| length <= high.as_u64())
        && all("not", &|inner| inner.get("pattern").is_some() || !accepts(inner, value))
        && all("anyOf", &|some| some.as_array().unwrap().iter().any(|one| accepts(one, value)))
        && all("items", &|inner| list.is_none_or(|items| items.iter().all(|item| accepts(inner, item))))
        && all("required", &|keys| {
            keys.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
        })
        && object.is_none_or(|members| {
            members.iter().all(|(key, member)| match schema["properties"].get(key) {
                Some(inner) => accepts(inner, member),
                None => all("additionalProperties", &|more| more != &json!(false) && accepts(more, member)),
            })
        })
}

#[test]
fn it_accepts_what_reading_accepts() {
    let schema = json_schema(FileKind::Settings);
    let built_in: Value = serde_json::from_str(BUILT_IN).unwrap();
    assert!(accepts(&schema, &built_in));
    let with = |path: &str, value: Value| {
        let mut document = built_in.clone();
        let mut at = &mut document;
        for key in path.split('.') {
            at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
        }
        *at = value;
        document
    };
    let cases = [
        ("enabled", json!("yes"), false),
        ("enabeld", json!(true), false),
        ("filesystem.denyRead", json!([{ "path": "a*", "literal": true }]), true),
        ("filesystem.denyRead", json!([{ "path": "a*", "literal": false }]), false),
        ("filesystem.disabled", json!(true), true),
        ("filesystem.disabled", json!(false), true),
        ("network.filterRequest", json!({ "x": 1 }), false),
        ("network.tlsTerminate", json!({ "maxTunnels": 1 }), true),
        ("limits.processes", json!(0), false),
        ("limits.processes", json!(10), true),
        ("ask.hold", json!("never"), false),
        ("policies", json!([{ "use": "workspace", "mode": "observe" }]), true),
        ("policies", json!([{ "mode": "observe" }]), false),
        ("windows.proxyPortRange", json!([1, 2, 3]), false),
        ("ignoreViolations", json!({ "npm *": ["/a"] }), true),
        ("$schema", json!("x"), true),
    ];
    for (path, value, good) in cases {
        let document = with(path, value.clone());
        assert_eq!(accepts(&schema, &document), good, "{path}: {value}");
        let read = portcullis_settings_format::Settings::parse(&document.to_string(), "x.json".as_ref());
        assert_eq!(read.is_ok(), good, "{path}: {value}: {:?}", read.err());
    }
    let projects = json_schema(FileKind::Projects);
    assert!(accepts(&projects, &json!({ "/a": built_in })));
    assert!(accepts(&projects, &json!({ "/a": {} })));
    assert!(!accepts(&projects, &json!({ "/a": { "x": 1 } })));
}
