//! The command matching of the helpers in JavaScript, Python and C passes the test cases that Rust's passes. The
//! integration test `policies::go`, which fetches a compiler, does the same for Go.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A folder with the helpers of a language and a program that runs the cases.
struct Helpers(tempfile::TempDir);

impl Helpers {
    /// Copies files of the templates, each to its name in a policy, and one of the programs beside this file.
    fn new(files: &[(&str, &str)], program: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, name) in files {
            fs::copy(here("templates").join(file), folder.path().join(name)).unwrap();
        }
        fs::copy(here("tests/spellings").join(program), folder.path().join(program)).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    /// Runs a program in the folder and returns its output.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().map_err(|error| format!("starting `{program}`: {error}")).unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {text}");
        text
    }
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn spellings() -> PathBuf {
    here("../../guest/sdk/tables/spellings.json")
}

fn cases() -> Vec<Value> {
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(spellings()).unwrap()).unwrap();
    assert!(cases.len() > 250, "{} cases", cases.len());
    cases
}

fn assert_all(printed: &str) {
    assert_eq!(printed.trim(), format!("{} cases", cases().len()));
}

#[test]
fn in_javascript() {
    let helpers =
        Helpers::new(&[("js/commands.js", "commands.js"), ("js/table.js", "table.js")], "cases.mjs");
    helpers.write("package.json", r#"{"type": "module"}"#);
    assert_all(&helpers.run("node", &["cases.mjs", &spellings().to_string_lossy()]));
}

#[test]
fn in_python() {
    let files =
        [("python/commands.py", "portcullis_commands.py"), ("python/table.py", "portcullis_table.py")];
    let helpers = Helpers::new(&files, "cases.py");
    assert_all(&helpers.run("python3", &["cases.py", &spellings().to_string_lossy()]));
}

#[test]
fn in_c() {
    let files = [
        ("c/commands.c", "commands.c"),
        ("c/commands.h", "commands.h"),
        ("c/table.h", "table.h"),
        ("c/bindings.h", "policy.h"),
    ];
    let helpers = Helpers::new(&files, "cases.c");
    helpers.write("cases.h", &cases().iter().map(in_macros).collect::<String>());
    helpers.run("cc", &["-std=c11", "-Wall", "-Wextra", "-Werror", "cases.c", "commands.c", "-o", "cases"]);
    let program = helpers.0.path().join("cases");
    assert_all(&helpers.run(&program.to_string_lossy(), &[]));
}

/// Writes a case for `cases.c`. Text of JSON is text of C, as all of it is ASCII.
fn in_macros(case: &Value) -> String {
    let [pattern, line, expect] = ["pattern", "line", "expect"].map(|key| case[key].to_string());
    let mut text = format!("CASE({})\n", case["hides"]);
    for words in case["commands"].as_array().unwrap() {
        let words = words.as_array().unwrap().iter().map(|word| format!("WORD({}, {})", word[0], word[1]));
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            writeln!(text, "COMMAND({pattern}, {})", words.join(", ")).unwrap();
        }
    }
    writeln!(text, "END({pattern}, {line}, {expect})").unwrap();
    assert!(text.is_ascii(), "{text}");
    text
}
