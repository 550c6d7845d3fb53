//! The table of known programs in each language of policies, made from `guest/sdk/tables/commands.toml`, and the shared
//! test cases with the facts that a policy sees.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::project;
use crate::run::quiet;

const SOURCE: &str = "guest/sdk/tables/commands.toml";
const SPELLINGS: &str = "guest/sdk/tables/spellings.toml";
const SPELLINGS_JSON: &str = "guest/sdk/tables/spellings.json";
/// The generated tables, by language.
const TABLES: [(&str, Render); 5] = [
    ("guest/sdk/src/command/table.rs", rust),
    ("host/policy-tools/templates/js/table.js", javascript),
    ("host/policy-tools/templates/python/table.py", python),
    ("host/policy-tools/templates/c/table.h", c),
    ("host/policy-tools/templates/go/table.go", go),
];

/// Prints a table in a language.
type Render = fn(&Rows) -> String;
/// Traits and options of each program and subcommand, by its name.
type Rows = BTreeMap<String, (String, String)>;

/// A program or a subcommand.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Command {
    #[serde(default)]
    traits: Vec<Trait>,
    #[serde(default)]
    options: String,
    #[serde(default)]
    covers: BTreeMap<String, String>,
    #[serde(default)]
    known: String,
    same_as: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Trait {
    Abbreviated,
    SingleDash,
    Everywhere,
    Dashed,
    UserAliases,
    OperandEnds,
    Runs,
}

/// Returns the generated files with their expected content.
pub(crate) fn files() -> Result<Vec<(&'static str, String)>> {
    let text =
        fs::read_to_string(project::root().join(SOURCE)).with_context(|| format!("reading `{SOURCE}`"))?;
    let rows = rows(&text).with_context(|| format!("reading `{SOURCE}`"))?;
    let mut cargo = project::cargo();
    cargo.args(["run", "--quiet", "--package", "portcullis-shell", "--example", "spellings"]);
    let facts =
        quiet(cargo.arg(project::root().join(SPELLINGS))).context("printing the facts of the test cases")?;
    let tables = TABLES.iter().map(|(file, render)| (*file, render(&rows)));
    Ok(tables.chain([(SPELLINGS_JSON, facts)]).collect())
}

fn rows(text: &str) -> Result<Rows> {
    let commands: BTreeMap<String, Command> = toml::from_str(text).context("parsing the table")?;
    let mut rows = Rows::new();
    for (name, command) in &commands {
        let context = || format!("in `{name}`");
        if let Some(target) = &command.same_as {
            rows.insert(name.clone(), ("=".to_owned(), target.clone()));
            continue;
        }
        rows.insert(name.clone(), (command.letters(), command.row_options().with_context(context)?));
        for known in command.known.split_whitespace() {
            let path = format!("{name} {known}");
            ensure!(!commands.contains_key(&path), "`{path}` has its own table, so it is not among `known`");
            rows.insert(path, (String::new(), String::new()));
        }
    }
    for (name, (traits, target)) in &rows {
        ensure!(
            traits != "=" || rows.get(target).is_some_and(|(traits, _)| traits != "="),
            "`{name}`: no `{target}`"
        );
    }
    Ok(rows)
}

impl Command {
    fn letters(&self) -> String {
        let letter = |trait_: &Trait| match trait_ {
            Trait::Abbreviated => 'a',
            Trait::SingleDash => 's',
            Trait::Everywhere => 'e',
            Trait::Dashed => 'd',
            Trait::UserAliases => 'u',
            Trait::OperandEnds => 'o',
            Trait::Runs => 'r',
        };
        self.traits.iter().map(letter).collect()
    }

    /// Returns the options with their main spelling first, then what they cover.
    fn row_options(&self) -> Result<String> {
        let mut main: BTreeMap<&str, &str> = BTreeMap::new();
        let mut parts = Vec::new();
        for entry in self.options.split_whitespace() {
            let names = entry.trim_end_matches(['=', '?']);
            let suffix = entry.strip_prefix(names).unwrap_or_default();
            let mut spellings: Vec<&str> = names.split('|').collect();
            spellings.sort_by_key(|name| !name.starts_with("--"));
            let first = *spellings.first().context("an option has a name")?;
            for name in &spellings {
                let is_name = name.starts_with('-')
                    && name.len() > 1
                    && !name.contains(['=', '?', '>', ',', '"', '\\']);
                ensure!(is_name && suffix.len() < 2, "`{entry}` is no option");
                if main.insert(name, first).is_some() {
                    bail!("`{name}` stands there twice");
                }
            }
            parts.push(format!("{}{suffix}", spellings.join("|")));
        }
        for (option, covered) in &self.covers {
            let name = |name: &str| main.get(name).copied().map(str::to_owned);
            let option =
                name(option).with_context(|| format!("`{option}` covers others and is not an option"))?;
            let covered: Vec<String> = covered
                .split_whitespace()
                .map(|word| name(word).unwrap_or_else(|| word.to_owned()))
                .collect();
            parts.push(format!("{option}>{}", covered.join(",")));
        }
        Ok(parts.join(" "))
    }
}

fn rust(rows: &Rows) -> String {
    let mut text =
        "//! The table of known programs; `cargo xtask gen` makes it from `tables/commands.toml`.\n\n\
        /// Name, traits and options of each program and subcommand, in the order of their names.\n"
            .to_owned();
    text += &format!("pub(super) static ROWS: [(&str, &str, &str); {}] = [\n", rows.len());
    rows.iter()
        .for_each(|(name, (traits, options))| text += &format!("    ({name:?}, {traits:?}, {options:?}),\n"));
    text + "];\n"
}

fn javascript(rows: &Rows) -> String {
    let mut text =
        "// The table of known programs: traits and options by name. `cargo xtask gen` makes it.\n\
        export const ROWS = new Map([\n"
            .to_owned();
    rows.iter()
        .for_each(|(name, (traits, options))| text += &format!("  [{name:?}, [{traits:?}, {options:?}]],\n"));
    text + "]);\n"
}

fn python(rows: &Rows) -> String {
    let mut text = "\"\"\"The table of known programs: traits and options by name. `cargo xtask gen` makes it.\"\"\"\n\n\
        ROWS = {\n"
        .to_owned();
    rows.iter()
        .for_each(|(name, (traits, options))| text += &format!("    {name:?}: ({traits:?}, {options:?}),\n"));
    text + "}\n"
}

fn c(rows: &Rows) -> String {
    let mut text = "// The table of known programs, in the order of their names. `cargo xtask gen` makes it.\n\
        #ifndef PORTCULLIS_TABLE_H\n#define PORTCULLIS_TABLE_H\n\n\
        typedef struct {\n    const char *path;\n    const char *traits;\n    const char *options;\n} portcullis_row_t;\n\n"
        .to_owned();
    text += &format!("#define PORTCULLIS_ROW_COUNT {}\n", rows.len());
    text += "static const portcullis_row_t PORTCULLIS_ROWS[PORTCULLIS_ROW_COUNT] = {\n";
    // A trigraph begins with two question marks.
    let quoted = |text: &str| format!("{text:?}").replace("??", "?\\?");
    for (name, (traits, options)) in rows {
        text += &format!("    {{{}, {}, {}}},\n", quoted(name), quoted(traits), quoted(options));
    }
    text + "};\n\n#endif\n"
}

fn go(rows: &Rows) -> String {
    let mut text = "// Code generated by `cargo xtask gen`. DO NOT EDIT.\n\npackage portcullis\n\n\
        // rows has the traits and options of known programs and subcommands, by name.\n\
        var rows = map[string][2]string{\n"
        .to_owned();
    rows.iter()
        .for_each(|(name, (traits, options))| text += &format!("\t{name:?}: {{{traits:?}, {options:?}}},\n"));
    text + "}\n"
}
