//! Compares two versions of a policy: their standing rules for all paths and hosts, and their answers to the requests
//! of cases, logs and chance.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_decision::request::Action;
use portcullis_decision::verdict::{ContentBlock, OutputVerdict, ToolOutput};
use portcullis_decision::{Context, Policy, Profile};
use portcullis_sdk::cases::{self, Given, Question};

use crate::changes::changes;
use crate::corpus::{Change, Item, PolicyAnswer};
use crate::fuzz::RandomNumbers;
use crate::loosening::{base_of, of_rules};
use crate::project::component::{Component, requests_of};
use crate::replay::{Comparison, Difference, context_here};
use crate::runtime::runtime;
use crate::simulator::Simulator;
use crate::{logged, question};

/// Number of requests between two progress reports.
const PART: usize = 64;
/// Number of random requests.
const RANDOM: usize = 100;
/// The most contexts in which standing rules are compared.
const CONTEXTS_MAX: usize = 32;

/// Compares two versions of a policy.
///
/// `progress` gets the number of finished requests and that of all.
///
/// # Errors
/// If a policy, its cases or a log cannot be read, or there is nothing to compare verdicts by.
pub fn diff(
    around: &ProcessEnv,
    [old, new]: [&Path; 2],
    config: &str,
    logs: &[PathBuf],
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<Comparison> {
    let runtime = runtime()?;
    let components = [Component::open(old)?, Component::open(new)?];
    let mut items = requests_of(&[&components[0], &components[1]])?;
    let mut lacks = BTreeMap::new();
    for log in logs {
        let now = context_here(around)?;
        for logged in logged::read(log)? {
            let context = logged.context_or(&now);
            lacks.extend(logged.lacks().map(|lacks| (logged.name.clone(), lacks)));
            items.push(Item { name: logged.name, request: logged.request, context });
        }
    }
    let [old, new] = components.each_ref().map(|component| component.load(&runtime, config));
    let (old, new) = (old?, new?);
    // Random requests alone must not look like a comparison.
    let judges = [&old, &new].iter().any(|policy| policy.handles() != Default::default());
    if items.is_empty() && judges {
        bail!("there is nothing to compare: neither policy carries cases; name a log with `--log`");
    }
    let outputs = outputs(&components)?;
    let [old, new] = [old, new].map(|policy| Simulator::new(Arc::new(policy)));
    let plain = question::context(&Given::plain());
    let mut contexts = vec![plain.clone()];
    for item in &items {
        let facts = Context { now: 0, grants: Vec::new(), ..item.context.clone() };
        if contexts.len() < CONTEXTS_MAX && !contexts.contains(&facts) {
            contexts.push(facts);
        }
    }
    items.extend(random(&plain));
    let mut found = rules(&old, &new, &contexts);
    for (place, part) in items.chunks(PART).enumerate() {
        progress(place * PART, items.len());
        found.extend(changes(&old, &new, part));
        found.extend(part.iter().flat_map(|item| for_command(&old, &new, item)));
    }
    found.extend(inspections(old.policy(), new.policy(), &outputs));
    let total = items.len() + outputs.len();
    let difference = |change: Change| Difference { lacks: lacks.get(&change.name).copied(), change };
    Ok(Comparison { differences: found.into_iter().map(difference).collect(), total })
}

/// Returns requests that the same numbers always make.
fn random(context: &Context) -> Vec<Item> {
    let mut numbers = RandomNumbers::new(1);
    let item = |number| Item {
        name: format!("random request {number}"),
        request: numbers.request(context),
        context: context.clone(),
    };
    (0..RANDOM).map(item).collect()
}

/// Returns where the new standing rules are milder, in each context; every kind of change once.
fn rules(old: &Simulator, new: &Simulator, contexts: &[Context]) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let mut seen: Vec<[Profile; 2]> = Vec::new();
    for context in contexts {
        let pair = match (old.standing(context), new.standing(context)) {
            (Ok(old), Ok(new)) => [old, new],
            // With a policy that fails, no session begins; so a failing new version allows nothing.
            (_, Err(_)) => continue,
            (Err(error), Ok(_)) => {
                let answers =
                    (PolicyAnswer::new("failed", "", &error.to_string()), PolicyAnswer::new("rules", "", ""));
                found.push(loosened("standing rules: the policy", answers));
                continue;
            }
        };
        if pair[0] == pair[1] || seen.contains(&pair) {
            continue;
        }
        let changes = of_rules(&pair[0], &pair[1], &base_of(context));
        found.extend(
            changes
                .into_iter()
                .filter(|change| !found.iter().any(|known| same(known, change)))
                .collect::<Vec<_>>(),
        );
        seen.push(pair);
    }
    found
}

fn same(one: &Change, other: &Change) -> bool {
    let part = |change: &Change| change.name.split('`').next().map(str::to_owned);
    (&one.old, &one.new, part(one)) == (&other.old, &other.new, part(other))
}

fn loosened(what: &str, (old, new): (PolicyAnswer, PolicyAnswer)) -> Change {
    Change { name: what.to_owned(), old, new, loosens: true, beside: None }
}

/// Compares the stricter rules for one command, which can only tighten.
fn for_command(old: &Simulator, new: &Simulator, item: &Item) -> Vec<Change> {
    if !matches!(item.request.action, Action::Command(_)) {
        return Vec::new();
    }
    let rules = |policy: &Simulator| policy.policy().for_command(&item.request, &item.context);
    match (rules(old), rules(new)) {
        (Ok(old), Ok(new)) if old == new => Vec::new(),
        (Ok(old), Ok(new)) => {
            let changes =
                of_rules(&old.unwrap_or_default(), &new.unwrap_or_default(), &base_of(&item.context));
            let named = |change: Change| Change {
                name: format!(
                    "{}, {}",
                    item.name,
                    change.name.replace("standing rules", "rules of the command")
                ),
                ..change
            };
            changes.into_iter().map(named).collect()
        }
        // If it fails, the command is refused.
        (_, Err(_)) => Vec::new(),
        (Err(error), Ok(_)) => {
            let answers =
                (PolicyAnswer::new("failed", "", &error.to_string()), PolicyAnswer::new("rules", "", ""));
            vec![loosened(&format!("{}, rules of the command", item.name), answers)]
        }
    }
}

/// Returns the outputs of both policies' cases.
fn outputs(components: &[Component; 2]) -> anyhow::Result<Vec<(String, ToolOutput, Context)>> {
    let mut outputs: Vec<(String, ToolOutput, Context)> = Vec::new();
    for component in components {
        for (file, text) in component.cases()? {
            let cases = cases::read(&text).with_context(|| format!("reading the cases `{file}`"))?;
            for case in cases {
                let Question::Output { text, tool } = &case.question else { continue };
                let output = ToolOutput {
                    request: question::tool(tool, &case.given),
                    is_error: false,
                    truncated: false,
                    content: vec![ContentBlock::Text(text.clone())],
                };
                let context = question::context(&case.given);
                if !outputs.iter().any(|(_, known, of)| (known, of) == (&output, &context)) {
                    outputs.push((format!("{file}: {}", case.name), output, context));
                }
            }
        }
    }
    Ok(outputs)
}

/// Compares what the policies let the model see.
fn inspections(old: &dyn Policy, new: &dyn Policy, outputs: &[(String, ToolOutput, Context)]) -> Vec<Change> {
    let mut found = Vec::new();
    if old.inspects() && !new.inspects() {
        let answers = (PolicyAnswer::new("shown", "", ""), PolicyAnswer::new("not shown", "", ""));
        found.push(loosened("the outputs of tools", answers));
    }
    for (name, output, context) in outputs {
        let [was, is] = [old, new].map(|policy| SeenOutput::by(policy, output, context));
        let loosens = was.hides_more_than(&is, output);
        if loosens || was.answer.verdict != is.answer.verdict {
            found.push(Change { name: name.clone(), old: was.answer, new: is.answer, loosens, beside: None });
        }
    }
    found
}

/// What the model sees of an output.
struct SeenOutput {
    answer: PolicyAnswer,
    /// The text; `None` if it is withheld.
    text: Option<String>,
}

impl SeenOutput {
    fn by(policy: &dyn Policy, output: &ToolOutput, context: &Context) -> Self {
        let whole = || Some(text_of(&output.content));
        match policy.inspect(output, context) {
            Err(error) => Self { answer: PolicyAnswer::new("failed", "", &error.to_string()), text: None },
            Ok(None) => Self { answer: PolicyAnswer::new("abstain", "", ""), text: whole() },
            Ok(Some(evaluation)) => {
                let (word, text) = match &evaluation.verdict {
                    OutputVerdict::Abstain => ("abstain", whole()),
                    OutputVerdict::Pass => ("pass", whole()),
                    OutputVerdict::Replace(content) => ("replace", Some(text_of(content))),
                    OutputVerdict::Withhold => ("withhold", None),
                };
                Self {
                    answer: PolicyAnswer::new(word, &evaluation.cause.rule, &evaluation.cause.reason),
                    text,
                }
            }
        }
    }

    /// Returns true if `other` shows a word of the output that this hides.
    fn hides_more_than(&self, other: &Self, output: &ToolOutput) -> bool {
        let Some(shown) = &other.text else { return false };
        let Some(own) = &self.text else { return true };
        let whole = text_of(&output.content);
        let mut words = whole.split_whitespace();
        words.any(|word| !own.contains(word) && shown.contains(word))
    }
}

fn text_of(content: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) | ContentBlock::Other(text) => text.clone(),
        ContentBlock::Image(..) => String::new(),
    };
    content.iter().map(text).collect::<Vec<_>>().join("\n")
}
