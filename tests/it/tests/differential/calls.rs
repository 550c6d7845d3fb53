//! The calls that are compared.

use portcullis_it::{PiVersion, Scene, User};
use serde_json::{Value, json};

/// A call of a tool, and how its results are compared.
pub(super) struct Call {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    order: Order,
}

/// The order in which pi's own tool returns its results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Fixed,
    /// ripgrep searches several files in parallel, so the files come in any order.
    OfFiles,
}

impl Call {
    /// Returns the result in a form that does not depend on the order in which files were searched.
    pub(super) fn comparable(&self, result: &Value) -> Value {
        let mut result = lasting(result);
        if self.order == Order::OfFiles
            && let Some(text) = result.pointer_mut("/content/0/text")
        {
            let mut lines: Vec<String> =
                text.as_str().unwrap_or_default().split('\n').map(str::to_owned).collect();
            lines.sort_unstable();
            *text = json!(lines);
        }
        result
    }
}

/// Returns the result without the parts that differ between runs: pi gives the files with whole outputs random names,
/// and reports how long a command took.
fn lasting(result: &Value) -> Value {
    const BEFORE: &str = "pi-bash-";
    match result {
        Value::String(text) => {
            let mut parts = text.split(BEFORE);
            let first = parts.next().unwrap_or_default().to_owned();
            let rest = parts.map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()));
            Value::String(rest.fold(first, |text, part| text + BEFORE + part))
        }
        Value::Array(all) => all.iter().map(lasting).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "wall_time_seconds")
            .map(|(name, value)| (name.clone(), lasting(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => result.clone(),
    }
}

/// Returns all calls of file tools, in the order in which they are made.
pub(super) fn of_files(scene: &Scene, user: User) -> Vec<Call> {
    let mut all = reads(scene);
    all.extend(listings(scene));
    all.extend(finds(scene));
    all.extend(greps(scene, user));
    all.extend(edits());
    all.extend(writes());
    all
}

fn fixed(tool: &'static str, arguments: Value) -> Call {
    Call { tool, arguments, order: Order::Fixed }
}

fn reads(scene: &Scene) -> Vec<Call> {
    let project = scene.project().display().to_string();
    let names = [
        "a.txt",
        "no-end.txt",
        "empty.txt",
        "only-end.txt",
        "crlf.txt",
        "cr.txt",
        "bom.txt",
        "unicode.txt",
        "nul.txt",
        "long.txt",
        "exactly.txt",
        "wide.txt",
        "wide-later.txt",
        "latin1.txt",
        "utf16.txt",
        "link.txt",
        "to-src/a.ts",
        "small.png",
        "wide.png",
        "animated.png",
        "broken.png",
        "not.gif",
        "broken.gif",
        "tiny.gif",
        "lossless.jpg",
        "broken.jpg",
        "broken.webp",
        "tiny.bmp",
        "bm.txt",
        "none.txt",
        "dangling",
        "circle",
        "src",
        "a.txt/below",
        "@a.txt",
        "./a.txt",
        "src/../a.txt",
        "sp\u{a0}ace/with\u{2003}space.txt",
        "Shot at 3 PM.png.txt",
        "caf\u{e9}.txt",
        "it's.txt",
        "[x].env",
        "a*b",
        "",
        "a.txt/",
    ];
    let mut all: Vec<Call> = names.iter().map(|name| fixed("read", json!({ "path": name }))).collect();
    let parts = [
        json!({ "path": "long.txt", "offset": 10, "limit": 5 }),
        json!({ "path": "long.txt", "offset": 2_990 }),
        json!({ "path": "long.txt", "offset": 4_000 }),
        json!({ "path": "long.txt", "offset": 3_001 }),
        json!({ "path": "long.txt", "limit": 2_500 }),
        json!({ "path": "long.txt", "offset": 0, "limit": 0 }),
        json!({ "path": "long.txt", "offset": -5, "limit": 2 }),
        json!({ "path": "long.txt", "offset": 1.5, "limit": 2.5 }),
        json!({ "path": "long.txt", "limit": -1 }),
        json!({ "path": "wide-later.txt", "offset": 2 }),
        json!({ "path": "empty.txt", "offset": 2 }),
        json!({ "path": format!("{project}/a.txt"), "limit": 1 }),
        json!({ "path": format!("file://{project}/a.txt") }),
        json!({ "path": format!("{project}/src/../../{}/a.txt", scene.project().file_name().unwrap_or_default().to_string_lossy()) }),
    ];
    all.extend(parts.into_iter().map(|arguments| fixed("read", arguments)));
    all
}

fn listings(scene: &Scene) -> Vec<Call> {
    let project = scene.project().display().to_string();
    [
        json!({}),
        json!({ "path": "." }),
        json!({ "path": "" }),
        json!({ "path": "src" }),
        json!({ "path": "src/" }),
        json!({ "path": "to-src" }),
        json!({ "path": ".git/info" }),
        json!({ "path": format!("{project}/src/deep") }),
        json!({ "path": "a.txt" }),
        json!({ "path": "none" }),
        json!({ "path": "dangling" }),
        json!({ "limit": 5 }),
        json!({ "limit": 1 }),
        json!({ "path": "src", "limit": 2 }),
        json!({ "path": "@src" }),
    ]
    .into_iter()
    .map(|arguments| fixed("ls", arguments))
    .collect()
}

fn finds(scene: &Scene) -> Vec<Call> {
    let project = scene.project().display().to_string();
    [
        json!({ "pattern": "*.ts" }),
        json!({ "pattern": "*.TSX" }),
        json!({ "pattern": "*.tsx" }),
        json!({ "pattern": "*" }),
        json!({ "pattern": "src/**/*.ts" }),
        json!({ "pattern": "**/*.txt" }),
        json!({ "pattern": "**" }),
        json!({ "pattern": "deep" }),
        json!({ "pattern": "*.log" }),
        json!({ "pattern": "*.txt", "path": "nested" }),
        json!({ "pattern": "*.txt", "path": "build" }),
        json!({ "pattern": "*", "path": "to-src" }),
        json!({ "pattern": "*.{ts,TSX}", "path": "src" }),
        json!({ "pattern": "[ab].t*" }),
        json!({ "pattern": format!("{project}/src/*.ts") }),
        json!({ "pattern": "nothing-like-it" }),
        json!({ "pattern": "*.ts", "path": "none" }),
        json!({ "pattern": "*.ts", "path": "a.txt" }),
        json!({ "pattern": "[a" }),
        json!({ "pattern": "{a" }),
        json!({ "pattern": "*.ts", "limit": 2 }),
        json!({ "pattern": "*.ts", "limit": 3 }),
        json!({ "pattern": "*.ts", "path": "src", "limit": 500 }),
        json!({ "pattern": "with*", "path": "sp ace" }),
    ]
    .into_iter()
    // `fd` prints its results in no fixed order if its search takes more than a tenth of a second.
    .map(|arguments| Call { tool: "find", arguments, order: Order::OfFiles })
    .collect()
}

fn greps(scene: &Scene, user: User) -> Vec<Call> {
    let project = scene.project().display().to_string();
    let of_files = |arguments| Call { tool: "grep", arguments, order: Order::OfFiles };
    let mut all: Vec<Call> = [
        json!({ "pattern": "needle", "glob": "*.ts" }),
        json!({ "pattern": "needle", "glob": "src/**/*.ts" }),
        json!({ "pattern": "needle", "glob": "!**/*.txt", "limit": 2_000 }),
        json!({ "pattern": "needle", "glob": "*.log" }),
        json!({ "pattern": "needle", "path": "src" }),
        json!({ "pattern": "NEEDLE", "path": "src", "ignoreCase": true }),
        json!({ "pattern": "needle", "path": "nested" }),
        json!({ "pattern": "needle", "path": "build" }),
        json!({ "pattern": "needle", "path": ".hidden" }),
        json!({ "pattern": "needle", "path": "to-src" }),
        json!({ "pattern": "zero matches for this" }),
        json!({ "pattern": "needle", "path": "sp ace", "context": 2 }),
        json!({ "pattern": "(?i)shot|curly|decomposed" }),
    ]
    .into_iter()
    .map(of_files)
    .collect();
    all.extend(
        [
            json!({ "pattern": "needle", "path": "many.txt" }),
            json!({ "pattern": "needle", "path": "many.txt", "limit": 400 }),
            json!({ "pattern": "needle", "path": "many.txt", "limit": 401 }),
            json!({ "pattern": "needle", "path": "many.txt", "limit": 3, "context": 2 }),
            json!({ "pattern": "number 7 ", "path": "many.txt", "context": 3 }),
            json!({ "pattern": "number (1|3) ", "path": "many.txt", "context": 1 }),
            json!({ "pattern": "number (1|3) ", "path": "many.txt", "context": 1, "limit": 1 }),
            json!({ "pattern": "needle", "path": "crlf.txt" }),
            json!({ "pattern": "needle", "path": "crlf.txt", "context": 1 }),
            json!({ "pattern": "needle", "path": "cr.txt" }),
            json!({ "pattern": "needle", "path": "cr.txt", "context": 1 }),
            json!({ "pattern": "three$", "path": "crlf.txt" }),
            json!({ "pattern": "needle", "path": "bom.txt", "context": 5 }),
            json!({ "pattern": "^head", "path": "bom.txt" }),
            json!({ "pattern": "needle", "path": "utf16.txt" }),
            json!({ "pattern": "needle", "path": "latin1.txt" }),
            json!({ "pattern": "needle", "path": "latin1.txt", "context": 1 }),
            json!({ "pattern": "needle", "path": "nul.txt" }),
            json!({ "pattern": "needle", "path": "wide.txt" }),
            json!({ "pattern": "next", "path": "wide.txt", "context": 1 }),
            json!({ "pattern": "beta", "path": "no-end.txt", "context": 1 }),
            json!({ "pattern": "gamma", "path": "a.txt", "context": 9 }),
            json!({ "pattern": "", "path": "a.txt" }),
            json!({ "pattern": "a.p", "path": "a.txt" }),
            json!({ "pattern": "a.p", "path": "a.txt", "literal": true }),
            json!({ "pattern": "(", "path": "a.txt" }),
            json!({ "pattern": "(", "path": "a.txt", "literal": true }),
            json!({ "pattern": "a\\nb", "path": "a.txt" }),
            json!({ "pattern": "a\nb", "path": "a.txt", "literal": true }),
            json!({ "pattern": "\\x00", "path": "a.txt" }),
            json!({ "pattern": "[[:alpha:]]{5}\\b", "path": "a.txt" }),
            json!({ "pattern": "needle", "glob": "[a" }),
            json!({ "pattern": "needle", "path": "none" }),
            json!({ "pattern": "needle", "path": "dangling" }),
            json!({ "pattern": "alpha", "path": "link.txt" }),
            json!({ "pattern": "alpha", "path": format!("{project}/a.txt") }),
            json!({ "pattern": "alpha", "path": "a.txt", "limit": 0 }),
            json!({ "pattern": "-e", "path": "a.txt" }),
        ]
        .into_iter()
        .map(|arguments| fixed("grep", arguments)),
    );
    // A file of 500 UTF-16 units and a character that the limit cuts in half: pi 0.x leaves half of a surrogate pair,
    // which only JavaScript strings can hold.
    if user == User::Ordinary {
        all.push(fixed("grep", json!({ "pattern": "x{501}", "path": "wide.txt" })));
    }
    all
}

/// Calls of commands: their output and exit code are compared, but not the interleaving of the two streams, which is
/// not deterministic.
pub(super) fn commands(version: PiVersion) -> Vec<Call> {
    let mut all: Vec<Call> = [
        "echo one; echo two",
        "printf 'no end'",
        "echo complaint >&2",
        "true",
        "false",
        "echo before; exit 7",
        "exit 300",
        "sh -c 'exit 9'; echo then $?",
        "printf 'a\\r\\nb\\r'",
        "printf 'tab\\there\\0nul\\x01\\x1b[31mred\\x1b[0m\\x07\\n'",
        "printf '\\xff\\xfe latin \\xe9\\n'",
        "echo 'naïve \u{1F600}'",
        "printf '\\xf0\\x9f'; sleep 0.1; printf '\\x98\\x80\\n'",
        "printf '\\n\\n  x  \\n\\n'",
        "seq 1 2000",
        "seq 1 2001",
        "seq 1 20000; exit 3",
        "head -c 60000 /dev/zero | tr '\\0' x",
        "for i in $(seq 300); do head -c 400 /dev/zero | tr '\\0' y; echo; done",
        "cd src && pwd; pwd",
        "cat",
        "read x; echo \"[$x] $?\"",
        "for n in 0 1 2; do test -t $n || echo none; done",
        "cat <<'END'\nwith $lines\nEND",
        "no-such-program",
        "cat none.txt",
        "if then",
        "./script.sh",
        "umask; ls -d a.txt src",
        "echo $AI_AGENT $PI_CODING_AGENT",
        "(sleep 5 >/dev/null 2>&1 &); echo on",
        "",
        "# nothing",
        "set -e; false; echo never",
    ]
    .into_iter()
    .map(|command| fixed("bash", json!({ "command": command })))
    .collect();
    all.push(fixed("bash", json!({ "command": "echo begun; sleep 600", "timeout": 1 })));
    all.push(fixed("bash", json!({ "command": "echo in time", "timeout": 100 })));
    let timed = |timeout: Value| fixed("bash", json!({ "command": "echo at once", "timeout": timeout }));
    all.extend([json!(0), json!(-1), json!(50.5)].map(timed));
    // pi 0.x does not report that a signal ended a command, and may end a command at once if its timeout is longer than
    // a timer can hold.
    if version == PiVersion::V1_5 {
        all.extend(
            ["kill -9 $$", "kill -TERM $$"].map(|command| fixed("bash", json!({ "command": command }))),
        );
        all.extend([json!(2_147_484), json!(1e300)].map(timed));
    }
    all
}

fn edits() -> Vec<Call> {
    let edit = |path: &str, edits: &[(&str, &str)]| {
        let edits: Vec<Value> =
            edits.iter().map(|(old, new)| json!({ "oldText": old, "newText": new })).collect();
        fixed("edit", json!({ "path": path, "edits": edits }))
    };
    vec![
        edit("a.txt", &[("beta", "BETA")]),
        edit("a.txt", &[("alpha", "A"), ("gamma", "G")]),
        edit("crlf.txt", &[("two needle\nthree", "2\n3\n4")]),
        edit("mixed.txt", &[("three", "3\n3")]),
        edit("bom.txt", &[("head", "HEAD")]),
        edit("bom-crlf.txt", &[("head\nbody", "new\nlines")]),
        edit("unicode.txt", &[("naive 'quotes' - dash", "plain")]),
        edit("no-end.txt", &[("beta", "beta\n")]),
        edit("script.sh", &[("needle", "thread")]),
        edit("link.txt", &[("BETA", "through a link")]),
        edit("latin1.txt", &[("plain", "other")]),
        edit("a.txt", &[("not in it", "x")]),
        edit("a.txt", &[("a", "x")]),
        edit("a.txt", &[("", "x")]),
        edit("a.txt", &[("G", "G")]),
        edit("a.txt", &[("through a", "1"), ("a link", "2")]),
        edit("none.txt", &[("x", "y")]),
        edit("src", &[("x", "y")]),
        edit("dangling", &[("x", "y")]),
        edit("a.txt/below", &[("x", "y")]),
        edit("many.txt", &[("number 200 ", "number two hundred ")]),
    ]
}

fn writes() -> Vec<Call> {
    [
        ("new.txt", "new\n"),
        ("deep/er/new.txt", "x"),
        ("a.txt", "over\r\nwritten"),
        ("script.sh", "#!/bin/sh\n"),
        ("link.txt", "through the link\n"),
        ("dangling", "made through a link\n"),
        ("empty-now.txt", ""),
        ("unicode-\u{1F600}.txt", "\u{FEFF}with a mark \u{1F600}\n"),
        ("src", "x"),
        ("src/", "x"),
        ("@at.txt", "at"),
        ("sp\u{a0}ace/new.txt", "space"),
    ]
    .into_iter()
    .map(|(path, content)| fixed("write", json!({ "path": path, "content": content })))
    .collect()
}
