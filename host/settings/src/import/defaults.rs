//! The defaults of other sandboxes, and what their lists mean.

use serde_json::{Value as Json, json};

/// Default hosts of `@sysid/pi-sandbox`, and of `pi-sandbox`.
const HOSTS: [&str; 10] = [
    "npmjs.org",
    "*.npmjs.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "*.pypi.org",
    "github.com",
    "*.github.com",
    "api.github.com",
    "raw.githubusercontent.com",
];

const NAMES: [&str; 4] = [".env", ".env.*", "*.pem", "*.key"];

/// Returns the configuration of the policy `guard`, which has the semantics of `@sysid/pi-sandbox`: the given lists, with
/// the entries that were carried.
pub(super) fn guard(given: &Json, carried: &Json) -> Json {
    let of = |part: &str, keys: &[&str]| {
        let member = |key: &&str| {
            let way = format!("/{part}/{key}");
            let kept = carried.pointer(&way).and_then(Json::as_array).cloned().unwrap_or_default();
            let is_kept = |item: &&Json| {
                item.as_str().is_some_and(|text| {
                    kept.contains(&json!(text)) || kept.contains(&json!(format!("**/{text}")))
                })
            };
            let items = given.pointer(&way).and_then(Json::as_array)?;
            Some(((*key).to_owned(), items.iter().filter(is_kept).cloned().collect()))
        };
        Json::Object(keys.iter().filter_map(member).collect())
    };
    json!({
        "network": of("network", &["allowedDomains", "deniedDomains"]),
        "filesystem": of("filesystem", &["denyRead", "allowWrite", "denyWrite"]),
    })
}

/// Returns the defaults of `@sysid/pi-sandbox`.
pub(super) fn sysid_defaults() -> Json {
    json!({
        "network": { "allowedDomains": HOSTS, "deniedDomains": [] },
        "filesystem": { "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"], "allowWrite": [".", "/tmp"], "denyWrite": NAMES },
    })
}

/// Returns the defaults of `pi-sandbox`.
pub(super) fn pi_sandbox_defaults() -> Json {
    json!({
        "network": { "allowedDomains": HOSTS, "deniedDomains": [] },
        "filesystem": { "denyRead": ["/Users", "/home"], "allowRead": [".", "~/.config", "~/.local"],
            "allowWrite": [".", "/tmp"], "denyWrite": NAMES },
    })
}

/// Merges one level of objects, as both sandboxes do: a given list replaces the default list.
pub(super) fn over(defaults: &Json, given: &Json) -> Json {
    let (Json::Object(defaults), Json::Object(given)) = (defaults, given) else { return given.clone() };
    let mut whole = defaults.clone();
    for (key, value) in given {
        match (whole.get_mut(key), value) {
            (Some(Json::Object(known)), Json::Object(more)) => {
                known.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
    Json::Object(whole)
}

/// Turns names in `denyWrite` into globs that match at any depth. The other sandbox has names there; ours has paths.
pub(super) fn names_at_every_depth(mut settings: Json) -> Json {
    if let Some(Json::Array(items)) = settings.pointer_mut("/filesystem/denyWrite") {
        for item in items {
            if let Json::String(text) = item
                && !text.contains('/')
                && ![".", "..", "~"].contains(&text.as_str())
            {
                *text = format!("**/{text}");
            }
        }
    }
    settings
}
