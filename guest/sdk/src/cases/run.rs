//! Runs cases natively.

use std::collections::BTreeSet;

use super::case::{Answer, Case, Question};
use super::format::{CasesError, read};
use crate::{
    ConfigError, ContentBlock, Effect, OutputVerdict, Policy, Profile, ToolOutput, Verdict, read_config,
    testing,
};

/// The result of a file of cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of cases that were run.
    pub run: usize,
    /// One line for each case with an unexpected answer.
    pub failures: Vec<String>,
    /// The rules that answered; compared with those in the descriptor they give the coverage.
    pub rules: BTreeSet<String>,
}

/// Runs every case of a file against a policy, without wasm.
///
/// Besides unexpected answers, an answer by a rule that the descriptor does not name is a failure.
///
/// # Errors
///
/// If the file is not a valid file of cases.
pub fn run<P: Policy>(file: &str) -> Result<Report, CasesError> {
    let declared: BTreeSet<String> = P::describe().rules.into_iter().map(|rule| rule.id).collect();
    let mut report = Report::default();
    for case in read(file)? {
        report.run += 1;
        let answer = match answer::<P>(&case) {
            Ok(answer) => answer,
            Err(failure) => {
                report.failures.push(format!("`{}`: {failure}", case.name));
                continue;
            }
        };
        report.failures.extend(case.check(&answer).err());
        if let Answer::Effect { rule, .. } = answer
            && !rule.is_empty()
        {
            if !declared.contains(&rule) {
                report.failures.push(format!("`{}`: the descriptor does not name `{rule}`", case.name));
            }
            report.rules.insert(rule);
        }
    }
    Ok(report)
}

fn answer<P: Policy>(case: &Case) -> Result<Answer, String> {
    let configured = read_config(&case.given.config).and_then(P::configure);
    let context = case.given.context();
    if case.question == Question::Configure {
        let pointers = |errors: Vec<ConfigError>| errors.into_iter().map(|error| error.pointer).collect();
        return Ok(Answer::Configured(configured.err().map_or_else(Vec::new, pointers)));
    }
    let policy = configured.map_err(|errors| format!("the configuration is refused: {errors:?}"))?;
    if let Question::Output { text, tool } = &case.question {
        let request = testing::tool(tool, "builtin");
        let content = vec![ContentBlock::Text(text.clone())];
        let output = ToolOutput { request, is_error: false, truncated: false, content };
        let answer = policy.inspect(&output, &context);
        return Ok(Answer::Effect { effect: output_name(&answer.verdict), rule: answer.cause.rule });
    }
    let request = case.request();
    if case.is_standing() {
        let stricter = request.and_then(|command| policy.for_command(&command, &context));
        return standing(&stricter.unwrap_or_else(|| policy.standing(&context)), &case.question);
    }
    if let Some(request) = request {
        let evaluation = policy.evaluate(&request, &context);
        return Ok(Answer::Effect { effect: name(&evaluation.verdict), rule: evaluation.cause.rule });
    }
    Err("this case asks nothing".into())
}

fn standing(profile: &Profile, question: &Question) -> Result<Answer, String> {
    let rule = match question {
        Question::StandingFile { path, right } => {
            let rule = profile.file_rule(path, *right).map_err(|error| error.to_string())?;
            rule.map(|rule| (rule.effect, &rule.id))
        }
        Question::StandingConnect(connection) => profile
            .network_rule(&connection.target(), connection.port, &connection.program)
            .map(|rule| (rule.effect, &rule.id)),
        Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Connect(_)
        | Question::Tool { .. }
        | Question::Output { .. }
        | Question::Configure => return Err("this is no question to the standing rules".into()),
    };
    Ok(match rule {
        Some((Effect::Allow, id)) => Answer::Effect { effect: "allow", rule: id.clone() },
        Some((Effect::Ask, id)) => Answer::Effect { effect: "ask", rule: id.clone() },
        Some((Effect::Deny, id)) => Answer::Effect { effect: "deny", rule: id.clone() },
        None => Answer::Effect { effect: "none", rule: String::new() },
    })
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Abstain => "abstain",
        Verdict::Allow(_) => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

fn output_name(verdict: &OutputVerdict) -> &'static str {
    match verdict {
        OutputVerdict::Abstain => "abstain",
        OutputVerdict::Pass => "pass",
        OutputVerdict::Replace(_) => "replace",
        OutputVerdict::Withhold => "withhold",
    }
}
