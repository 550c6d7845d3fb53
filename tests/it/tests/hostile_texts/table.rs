//! The places for the text, written `ODD`, and the verbs that show it.

/// Arguments that an error message quotes, or that name something that does not exist.
pub(crate) const ARGUMENTS: &[&[&str]] = &[
    &["ODD"],
    &["--ODD"],
    &["run", "--ODD"],
    &["run", "--ask", "ODD", "--", "true"],
    &["run", "--project", "ODD", "--", "true"],
    &["run", "--settings", "ODD", "--", "true"],
    &["run", "--policy", "ODD", "--", "true"],
    &["run", "--", "./ODD"],
    &["check", "ODD"],
    &["check", "read", "~/ODD", "--ODD"],
    &["check", "connect", "ODD:80"],
    &["check", "connect", "ODD"],
    &["check", "tool", "x", "ODD"],
    &["check", "--policy", "ODD", "read", "x"],
    &["check", "--json", "--policy", "ODD", "read", "x"],
    &["check", "--settings", "ODD", "read", "x"],
    &["explain", "ODD"],
    &["explain", "ODD:1"],
    &["explain", "--json", "ODD:1"],
    &["audit", "show", "ODD:1"],
    &["audit", "verify", "ODD"],
    &["audit", "verify", "--json", "ODD"],
    &["audit", "tail", "-n", "ODD"],
    &["config", "show", "--settings", "ODD"],
    &["config", "show", "--json", "--settings", "ODD"],
    &["config", "validate", "ODD"],
    &["config", "validate", "--json", "ODD"],
    &["config", "import", "--from", "./ODD"],
    &["config", "ODD"],
    &["asks", "answer", "ODD:1", "x"],
    &["grants", "revoke", "ODD"],
    &["grants", "revoke", "ODD:1"],
    &["policy", "inspect", "ODD"],
    &["policy", "inspect", "--json", "ODD"],
    &["policy", "test", "ODD"],
    &["policy", "test", "--json", "ODD"],
    &["policy", "diff", "ODD", "ODD"],
    &["policy", "lint", "ODD"],
    &["policy", "bench", "ODD"],
    &["policy", "fuzz", "ODD"],
    &["policy", "run", "ODD", "read", "/x"],
    &["policy", "build", "ODD"],
    &["policy", "new", "x", "--lang", "ODD"],
    &["policy", "new", "ODD/x", "--lang", "rust", "--id", "ODD"],
    &["policy", "add", "ODD"],
    &["policy", "add", "--json", "ODD"],
    &["policy", "verify", "ODD"],
    &["policy", "pull", "oci://ODD"],
    &["policy", "trust", "file", "ODD"],
    &["policy", "trust", "publisher", "ODD", "--key", "ODD"],
    &["policy", "replay", "ODD"],
    &["doctor", "ODD"],
    &["completions", "ODD"],
    &["ports", "ODD"],
    &["pi-extension", "ODD"],
    &["exec-client", "x", "y", "ODD"],
    &["policy", "remove", "ODD"],
    &["policy", "update", "ODD"],
    &["policy", "sign", "ODD", "--key", "ODD"],
];

/// Verbs that show settings, or report why the settings cannot be used.
pub(crate) const VERBS_OF_SETTINGS: &[&[&str]] = &[
    &["config", "show"],
    &["config", "show", "--json"],
    &["config", "validate"],
    &["config", "validate", "--json"],
    &["check", "read", "x"],
    &["check", "--json", "read", "x"],
    &["run", "--ask", "deny", "--", "true"],
    &["grants", "list", "--all"],
    &["grants", "list", "--all", "--json"],
    &["config", "path", "--all"],
    &["doctor"],
];

pub(crate) const VERBS_OF_A_LOG: &[&[&str]] = &[
    &["audit", "tail"],
    &["audit", "tail", "--json"],
    &["audit", "show", "LAST"],
    &["audit", "show", "LAST", "--json"],
    &["explain", "LAST"],
    &["explain", "LAST", "--json"],
];

/// Verbs that report why the settings cannot be used.
const MISTAKES: &[&[&str]] = &[
    &["config", "show"],
    &["config", "validate"],
    &["config", "validate", "--json"],
    &["check", "read", "x"],
    &["check", "--json", "read", "x"],
    &["run", "--ask", "deny", "--", "true"],
];
const SHOWN: &[&[&str]] = &[&["config", "show"], &["config", "show", "--json"]];

/// A file with the text in it: a description of the place, the content of the file, and the verbs that show it.
pub(crate) type Row = (&'static str, &'static str, &'static [&'static [&'static str]]);

/// The user's own settings. `RAW` stands for the text unescaped, which is not valid JSON.
pub(crate) const SETTINGS: &[Row] = &[
    ("a key", r#"{ "ODD": 1 }"#, MISTAKES),
    ("a key of a list", r#"{ "filesystem": { "ODD": [] } }"#, MISTAKES),
    ("a value", r#"{ "combine": "ODD" }"#, MISTAKES),
    ("a host", r#"{ "network": { "allowedDomains": ["ODD"], "deniedDomains": [] } }"#, MISTAKES),
    ("a pattern", r#"{ "filesystem": { "denyWrite": ["{ODD"] } }"#, MISTAKES),
    ("a policy", r#"{ "policies": [{ "use": "ODD" }] }"#, MISTAKES),
    ("a policy's file", r#"{ "policies": [{ "use": "ODD/x.wasm" }] }"#, MISTAKES),
    ("a key for a policy", r#"{ "policies": [{ "use": "git-guard", "config": { "ODD": 1 } }] }"#, MISTAKES),
    (
        "a value for a policy",
        r#"{ "policies": [{ "use": "git-guard", "config": { "push": "ODD" } }] }"#,
        MISTAKES,
    ),
    ("no JSON", "{ \"enabled\": true, \"RAW\": RAW }", &[&["config", "validate"]]),
    ("a protection", r#"{ "protections": { "lift": ["ODD"] } }"#, MISTAKES),
    ("a path", r#"{ "filesystem": { "allowWrite": [".", "ODD"], "denyRead": ["~/ODD"] } }"#, SHOWN),
    ("a variable", r#"{ "environment": { "keep": ["ODD"] } }"#, SHOWN),
    (
        "an answer",
        r#"{ "grants": [{ "path": "/ODD", "exact": false, "rights": "read", "grantedAt": 1 }] }"#,
        &[
            &["grants", "list", "--all"],
            &["grants", "list", "--all", "--json"],
            &["config", "show", "--json"],
        ],
    ),
    (
        "a reason",
        r#"{ "network": { "allowedDomains": [], "deniedDomains": ["evil.test"],
             "deniedDomainReasons": { "evil.test": "ODD" } } }"#,
        &[
            &["check", "connect", "evil.test:80"],
            &["check", "--json", "connect", "evil.test:80"],
            &["check", "--explain", "connect", "evil.test:80"],
            &["config", "show"],
        ],
    ),
];

/// The file of per-project settings.
pub(crate) const PROJECTS: &[Row] = &[
    ("a directory", r#"{ "/ODD": { "filesystem": 1 } }"#, &[&["config", "validate", "--json"]]),
    ("a relative directory", r#"{ "ODD": {} }"#, MISTAKES),
    (
        "a key of an entry",
        r#"{ "/x": { "ODD": {} } }"#,
        &[&["config", "validate"], &["config", "validate", "--json"]],
    ),
];

/// A project's own settings.
pub(crate) const PROJECT: &[Row] = &[
    ("a key", r#"{ "ODD": 1 }"#, MISTAKES),
    ("a value", r#"{ "filesystem": { "denyWrite": [{ "ODD": 1 }] } }"#, MISTAKES),
    ("what a project may not say", r#"{ "policies": [{ "use": "ODD" }] }"#, &[&["config", "validate"]]),
    (
        "a path",
        r#"{ "filesystem": { "denyWrite": ["ODD"] } }"#,
        &[
            &["config", "show"],
            &["config", "show", "--json"],
            &["check", "write", "./ODD"],
            &["check", "--json", "write", "./ODD"],
            &["run", "--ask", "deny", "--", "sh", "-c", "touch \"$1\" 2> /dev/null", "-", "./ODD"],
        ],
    ),
];
