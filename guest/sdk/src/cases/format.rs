//! The TOML format of cases.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use super::case::{Case, Connection, Expected, Given, Operation, Question};
use crate::{Attribute, Origin, Right};

/// Why a file is not a valid file of cases.
#[derive(Debug, Error)]
pub enum CasesError {
    /// It is not TOML of the right shape.
    #[error("the cases cannot be read")]
    Toml(#[source] Box<toml::de::Error>),
    /// An invalid case.
    #[error("the case `{name}` {detail}")]
    Case {
        /// Its name.
        name: String,
        /// What is wrong, and how to write it.
        detail: String,
    },
}

/// Reads a file of cases; lists of inputs become one case each.
///
/// # Errors
///
/// If the file is malformed or contains an unknown key, or a case asks nothing or several things.
pub fn read(file: &str) -> Result<Vec<Case>, CasesError> {
    let document: Document = toml::from_str(file).map_err(|error| CasesError::Toml(Box::new(error)))?;
    let given = &document.given;
    let mut cases = Vec::new();
    for raw in document.case {
        raw.spread(given, &mut cases)?;
    }
    for raw in document.standing {
        raw.spread(given, &mut cases)?;
    }
    for raw in document.output {
        let RawOutput { name, given: own, text, tool, expect, rule } = raw;
        let question = Question::Output { text, tool };
        let expected = Expected::Effect { effect: expect.name().into(), rule };
        cases.push(Case { name, given: own.over(given), question, expected });
    }
    for raw in document.configure {
        let given = RawGiven { config: Some(raw.config), ..RawGiven::default() }.over(given);
        let (question, expected) = (Question::Configure, Expected::Refused(raw.refuse));
        cases.push(Case { name: raw.name, given, question, expected });
    }
    Ok(cases)
}

impl Given {
    /// Returns the default surroundings of a case.
    pub fn plain() -> Self {
        RawGiven::default().over(&RawGiven::default())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    given: RawGiven,
    #[serde(default)]
    case: Vec<RawCase>,
    #[serde(default)]
    standing: Vec<RawStanding>,
    #[serde(default)]
    output: Vec<RawOutput>,
    #[serde(default)]
    configure: Vec<RawConfigure>,
}

#[derive(Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawGiven {
    config: Option<serde_json::Value>,
    cwd: Option<String>,
    home: Option<String>,
    temp: Option<String>,
    agent_directory: Option<String>,
    path: Option<Vec<String>>,
    toolchains: Option<Vec<String>>,
    interactive: Option<bool>,
    sub_agent: Option<String>,
    branch: Option<String>,
    attributes: Option<BTreeMap<String, serde_json::Value>>,
    during: Option<String>,
}

impl RawGiven {
    /// Fills missing values from `base`, and the rest with defaults.
    fn over(self, base: &Self) -> Given {
        let base = base.clone();
        let config = self.config.or(base.config);
        let attributes = self.attributes.or(base.attributes).unwrap_or_default();
        Given {
            config: config.map_or_else(|| "{}".into(), |config| config.to_string()),
            cwd: self.cwd.or(base.cwd).unwrap_or_else(|| "/srv/app".into()),
            home: self.home.or(base.home).unwrap_or_else(|| "/home/u".into()),
            temp: self.temp.or(base.temp).unwrap_or_else(|| "/tmp".into()),
            agent_directory: self
                .agent_directory
                .or(base.agent_directory)
                .unwrap_or_else(|| "/home/u/.pi/agent".into()),
            path: self.path.or(base.path).unwrap_or_else(|| vec!["/usr/bin".into(), "/bin".into()]),
            toolchains: self.toolchains.or(base.toolchains).unwrap_or_default(),
            interactive: self.interactive.or(base.interactive).unwrap_or(true),
            sub_agent: self.sub_agent.or(base.sub_agent).unwrap_or_default(),
            branch: self.branch.or(base.branch),
            attributes: attributes
                .into_iter()
                .map(|(name, value)| Attribute { name, value: value.to_string() })
                .collect(),
            during: self.during.or(base.during),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(input) => vec![input],
            Self::More(inputs) => inputs,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawCase {
    name: String,
    #[serde(default)]
    given: RawGiven,
    read: Option<OneOrMore>,
    write: Option<OneOrMore>,
    edit: Option<OneOrMore>,
    list: Option<OneOrMore>,
    search: Option<OneOrMore>,
    delete: Option<OneOrMore>,
    create_directory: Option<OneOrMore>,
    command: Option<OneOrMore>,
    user_command: Option<OneOrMore>,
    escalation: Option<OneOrMore>,
    connect: Option<OneOrMore>,
    tool: Option<OneOrMore>,
    canonical: Option<String>,
    #[serde(default)]
    directory: bool,
    content: Option<String>,
    provider: Option<String>,
    input: Option<String>,
    program: Option<String>,
    expect: Verdict,
    rule: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStanding {
    name: String,
    #[serde(default)]
    given: RawGiven,
    read: Option<OneOrMore>,
    write: Option<OneOrMore>,
    execute: Option<OneOrMore>,
    connect: Option<OneOrMore>,
    program: Option<String>,
    expect: Effect,
    rule: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutput {
    name: String,
    #[serde(default)]
    given: RawGiven,
    text: String,
    #[serde(default = "bash")]
    tool: String,
    expect: OutputEffect,
    rule: Option<String>,
}

fn bash() -> String {
    "bash".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfigure {
    name: String,
    config: serde_json::Value,
    refuse: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Abstain,
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    None,
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OutputEffect {
    Abstain,
    Pass,
    Replace,
    Withhold,
}

impl OutputEffect {
    fn name(self) -> &'static str {
        match self {
            Self::Abstain => "abstain",
            Self::Pass => "pass",
            Self::Replace => "replace",
            Self::Withhold => "withhold",
        }
    }
}

/// The question of a case, before its input is filled in.
type Asked<'a> = Box<dyn Fn(String) -> Result<Question, String> + 'a>;

impl RawCase {
    fn spread(mut self, given: &RawGiven, cases: &mut Vec<Case>) -> Result<(), CasesError> {
        let effect = match self.expect {
            Verdict::Abstain => "abstain",
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        };
        let given = std::mem::take(&mut self.given).over(given);
        let expected = Expected::Effect { effect: effect.into(), rule: self.rule.take() };
        let name = self.name.clone();
        spread(&name, &given, &expected, self.asked(), cases)
    }

    fn asked(self) -> Vec<(Vec<String>, Asked<'static>)> {
        let Self { canonical, directory, content, provider, input, program, .. } = self;
        let content = content.unwrap_or_else(|| "x".into());
        let file = |operation| -> Asked<'static> {
            let (canonical, content) = (canonical.clone(), content.clone());
            Box::new(move |path| {
                let canonical = canonical.clone().unwrap_or_else(|| path.clone());
                Ok(Question::File { operation, path, canonical, directory, content: content.clone() })
            })
        };
        let command =
            |origin| -> Asked<'static> { Box::new(move |script| Ok(Question::Command { script, origin })) };
        let provider = provider.unwrap_or_else(|| "extension:test".into());
        let input = input.unwrap_or_else(|| "{}".into());
        present([
            (self.read, file(Operation::Read)),
            (self.write, file(Operation::Write)),
            (self.edit, file(Operation::Edit)),
            (self.list, file(Operation::List)),
            (self.search, file(Operation::Search)),
            (self.delete, file(Operation::Delete)),
            (self.create_directory, file(Operation::CreateDirectory)),
            (self.command, command(Origin::Agent)),
            (self.user_command, command(Origin::User)),
            (self.escalation, Box::new(|script| Ok(Question::Escalation { script }))),
            (
                self.connect,
                Box::new(move |entry| connection(&entry, program.as_deref()).map(Question::Connect)),
            ),
            (
                self.tool,
                Box::new(move |name| {
                    Ok(Question::Tool { name, provider: provider.clone(), input: input.clone() })
                }),
            ),
        ])
    }
}

impl RawStanding {
    fn spread(self, given: &RawGiven, cases: &mut Vec<Case>) -> Result<(), CasesError> {
        let effect = match self.expect {
            Effect::None => "none",
            Effect::Allow => "allow",
            Effect::Ask => "ask",
            Effect::Deny => "deny",
        };
        let given = self.given.over(given);
        let expected = Expected::Effect { effect: effect.into(), rule: self.rule };
        let program = self.program;
        let file =
            |right| -> Asked<'static> { Box::new(move |path| Ok(Question::StandingFile { path, right })) };
        let asked = present([
            (self.read, file(Right::Read)),
            (self.write, file(Right::Write)),
            (self.execute, file(Right::Execute)),
            (
                self.connect,
                Box::new(move |entry| connection(&entry, program.as_deref()).map(Question::StandingConnect)),
            ),
        ]);
        spread(&self.name, &given, &expected, asked, cases)
    }
}

fn present<const N: usize>(
    keys: [(Option<OneOrMore>, Asked<'static>); N],
) -> Vec<(Vec<String>, Asked<'static>)> {
    keys.into_iter().filter_map(|(inputs, asked)| Some((inputs?.into_vec(), asked))).collect()
}

fn spread(
    name: &str,
    given: &Given,
    expected: &Expected,
    asked: Vec<(Vec<String>, Asked<'static>)>,
    cases: &mut Vec<Case>,
) -> Result<(), CasesError> {
    let refused = |detail: String| CasesError::Case { name: name.to_owned(), detail };
    let [(inputs, asked)]: [_; 1] = asked
        .try_into()
        .map_err(|_| refused("must ask exactly one thing, such as `read` or `command`".into()))?;
    if inputs.is_empty() {
        return Err(refused("has an empty list of inputs; name one at least".into()));
    }
    let several = inputs.len() > 1;
    for input in inputs {
        let name = if several { format!("{name}: {input}") } else { name.to_owned() };
        let question = asked(input).map_err(refused)?;
        cases.push(Case { name, given: given.clone(), question, expected: expected.clone() });
    }
    Ok(())
}

/// Parses `host:port`; IPv6 addresses need brackets.
fn connection(entry: &str, program: Option<&str>) -> Result<Connection, String> {
    let parsed = entry.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parsed.ok_or_else(|| format!("connects to `{entry}`; write `host:port`"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Connection { host, port, program: program.unwrap_or("/usr/bin/curl").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_asks_exactly_one_thing() {
        for (case, wrong) in [
            ("read = '/a'\nexpect = 'allow'", false),
            ("read = '/a'\nwrite = '/b'\nexpect = 'allow'", true),
            ("expect = 'allow'", true),
            ("read = []\nexpect = 'allow'", true),
            ("connect = 'a.test'\nexpect = 'allow'", true),
            ("connect = '[::1]:80'\nexpect = 'allow'", false),
            ("read = '/a'\nexpect = 'maybe'", true),
            ("read = '/a'\nexpcet = 'allow'", true),
        ] {
            assert_eq!(read(&format!("[[case]]\nname = 'x'\n{case}")).is_err(), wrong, "{case}");
        }
    }

    #[test]
    fn a_case_overrules_what_is_given() {
        let file = "given = { cwd = '/a', home = '/h' }\n[[case]]\nname = 'x'\ngiven = { cwd = '/b' }\n\
                    command = 'ls'\nexpect = 'ask'";
        let cases = read(file).unwrap();
        assert_eq!((cases[0].given.cwd.as_str(), cases[0].given.home.as_str()), ("/b", "/h"));
    }
}
