//! Converts answers of a guest to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::context::VcsParts;
use portcullis_decision::grant::{CommandPattern, GrantPattern, GrantScope, PathPattern, ToolPattern};
use portcullis_decision::request::{ActionKinds, Request};
use portcullis_decision::verdict::{
    Cause, ContentBlock, Denial, Evaluation, GrantOption, Obligation, OutputEvaluation, OutputVerdict,
    Question, Severity, ToolOutput, TraceStep, Verdict,
};

use super::bindings::exports::portcullis::policy::lifecycle;
use super::bindings::portcullis::policy::types as guest;
use super::patterns::{attribute, file_pattern, file_rights, network_pattern};
use crate::check::{self, bad};
use crate::description::{Description, RuleInfo};
use crate::error::ConfigurationFault;

pub(super) fn description(described: lifecycle::Descriptor) -> Result<Description, PolicyError> {
    let is_id = |id: &str| {
        id.split_once(':').is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
    };
    if !is_id(&described.id) {
        return Err(bad("`descriptor.id` is not `namespace:name`"));
    }
    if described.config_schema.len() > check::SCHEMA {
        return Err(PolicyError::AnswerSize {
            detail: format!("a schema of more than {} bytes", check::SCHEMA),
        });
    }
    Ok(Description {
        id: check::name(described.id, "descriptor.id")?,
        version: check::name(described.version, "descriptor.version")?,
        title: check::title(described.title),
        handles: action_kinds(described.handles),
        rules: check::list(described.rules, "descriptor.rules", check::PROFILE_ENTRIES, |rule| {
            Ok(RuleInfo {
                id: check::name(rule.id, "rule-info.id")?,
                title: check::title(rule.title),
                help: check::long_text(rule.help),
            })
        })?,
        config_schema: described.config_schema,
        capabilities: None,
        // Contract 0.1 cannot declare facts of version control, so its policies get the branch, the cheapest to read.
        depends_on: VcsParts::BRANCH,
    })
}

fn action_kinds(kinds: guest::ActionKinds) -> ActionKinds {
    let has = |kind| kinds.contains(kind);
    ActionKinds {
        file: has(guest::ActionKinds::FILE),
        command: has(guest::ActionKinds::COMMAND),
        network: has(guest::ActionKinds::NETWORK),
        network_resolved: has(guest::ActionKinds::NETWORK_RESOLVED),
        network_client_hello: has(guest::ActionKinds::NETWORK_CLIENT_HELLO),
        network_http: has(guest::ActionKinds::NETWORK_HTTP),
        socket: has(guest::ActionKinds::SOCKET),
        tool: has(guest::ActionKinds::TOOL),
        escalation: has(guest::ActionKinds::ESCALATION),
        other: has(guest::ActionKinds::OTHER),
    }
}

/// Returns the faults that `configure` reported. A rejection without faults still counts as a rejection.
pub(super) fn configuration_faults(
    errors: Vec<guest::ConfigError>,
) -> Result<Vec<ConfigurationFault>, PolicyError> {
    if errors.is_empty() {
        return Err(bad("it refuses its configuration and does not say why"));
    }
    check::list(errors, "configure", check::ENTRIES, |error| {
        Ok(ConfigurationFault { pointer: check::line(error.pointer), message: check::line(error.message) })
    })
}

pub(super) fn evaluation(answer: guest::Evaluation, request: &Request) -> Result<Evaluation, PolicyError> {
    let verdict = verdict(answer.verdict, request)?;
    let cause = cause(answer.cause, matches!(verdict, Verdict::Abstain))?;
    let trace = check::list(answer.trace, "trace", check::ENTRIES, |step| {
        Ok(TraceStep {
            rule: check::name(step.rule, "trace-step.rule")?,
            matched: step.matched,
            detail: check::line(step.detail),
        })
    })?;
    Ok(Evaluation { verdict, cause, trace })
}

/// The rule may be empty only for an abstention.
fn cause(cause: guest::Cause, is_abstention: bool) -> Result<Cause, PolicyError> {
    let rule = if is_abstention { check::optional_name } else { check::name };
    Ok(Cause {
        rule: rule(cause.rule, "cause.rule")?,
        reason: check::line(cause.reason),
        setting: check::line(cause.setting),
        severity: match cause.severity {
            guest::Severity::Info => Severity::Info,
            guest::Severity::Low => Severity::Low,
            guest::Severity::Medium => Severity::Medium,
            guest::Severity::High => Severity::High,
            guest::Severity::Critical => Severity::Critical,
        },
    })
}

fn verdict(verdict: guest::Verdict, request: &Request) -> Result<Verdict, PolicyError> {
    Ok(match verdict {
        guest::Verdict::Abstain => Verdict::Abstain,
        guest::Verdict::Allow(allowance) => {
            Verdict::Allow(check::list(allowance.obligations, "obligations", check::ENTRIES, obligation)?)
        }
        guest::Verdict::Ask(asked) => Verdict::Ask(question(asked, request)?),
        guest::Verdict::Deny(denial) => {
            Verdict::Deny(Denial { hint: denial.hint.map(check::line), overridable: denial.overridable })
        }
    })
}

/// An unknown obligation stays `other`, which the chain turns into a denial.
fn obligation(obligation: guest::Obligation) -> Result<Obligation, PolicyError> {
    Ok(match obligation {
        guest::Obligation::RewriteScript(script) => {
            Obligation::RewriteScript(check::data(script, "rewrite-script")?)
        }
        guest::Obligation::RewriteInput(input) => {
            Obligation::RewriteInput(check::data(input, "rewrite-input")?)
        }
        guest::Obligation::Notify(text) => Obligation::Notify(check::line(text)),
        guest::Obligation::Advise(text) => Obligation::Advise(check::long_text(text)),
        guest::Obligation::Other(extension) => Obligation::Other(attribute(extension)?),
    })
}

fn question(question: guest::Question, request: &Request) -> Result<Question, PolicyError> {
    Ok(Question {
        title: check::line(question.title),
        details: question.details.map(check::long_text),
        options: check::list(question.options, "question.options", check::OPTIONS, |option| {
            Ok(GrantOption {
                label: check::title(option.label),
                scope: grant_scope(option.scope),
                pattern: grant_pattern(option.pattern, request)?,
                lifetime: option.lifetime,
            })
        })?,
        timeout_ms: question.timeout_ms,
    })
}

fn grant_scope(scope: guest::GrantScope) -> GrantScope {
    match scope {
        guest::GrantScope::Once => GrantScope::Once,
        guest::GrantScope::Session => GrantScope::Session,
        guest::GrantScope::Project => GrantScope::Project,
        guest::GrantScope::User => GrantScope::User,
    }
}

fn grant_pattern(pattern: guest::GrantPattern, request: &Request) -> Result<GrantPattern, PolicyError> {
    Ok(match pattern {
        guest::GrantPattern::Exact => GrantPattern::Exact(Box::new(request.action.clone())),
        guest::GrantPattern::Path(path) => GrantPattern::Path(PathPattern {
            pattern: file_pattern(path.pattern)?,
            rights: file_rights(path.rights),
        }),
        guest::GrantPattern::Command(patterns) => GrantPattern::Command(check::list(
            patterns,
            "grant-pattern.command",
            check::ENTRIES,
            |command| {
                Ok(CommandPattern {
                    argv_prefix: check::list(command.argv_prefix, "argv-prefix", check::ENTRIES, |word| {
                        check::data(word, "argv-prefix")
                    })?,
                    open_ended: command.open_ended,
                })
            },
        )?),
        guest::GrantPattern::Network(network) => GrantPattern::Network(network_pattern(network)?),
        guest::GrantPattern::Tool(tool) => GrantPattern::Tool(ToolPattern {
            name: check::tool_name(tool.name, "tool-pattern.name")?,
            provider: check::tool_name(tool.provider, "tool-pattern.provider")?,
            input_equals: check::list(
                tool.input_equals,
                "input-equals",
                check::ENTRIES,
                |(place, value)| {
                    Ok((check::pointer(place, "input-equals")?, check::data(value, "input-equals")?))
                },
            )?,
        }),
    })
}

/// Checks that a replacement has as many blocks as the original, of the same kinds.
pub(super) fn output_evaluation(
    answer: guest::OutputEvaluation,
    output: &ToolOutput,
) -> Result<OutputEvaluation, PolicyError> {
    let verdict = match answer.verdict {
        guest::OutputVerdict::Abstain => OutputVerdict::Abstain,
        guest::OutputVerdict::Pass => OutputVerdict::Pass,
        guest::OutputVerdict::Replace(blocks) => {
            let limit = output.content.len().max(1);
            let blocks = check::list(blocks, "replace", limit, content_block)?;
            let same_kind = |(new, old): (&ContentBlock, &ContentBlock)| {
                std::mem::discriminant(new) == std::mem::discriminant(old)
            };
            if blocks.len() != output.content.len() || !blocks.iter().zip(&output.content).all(same_kind) {
                return Err(bad("`replace` has other blocks than the output"));
            }
            OutputVerdict::Replace(blocks)
        }
        guest::OutputVerdict::Withhold => OutputVerdict::Withhold,
    };
    let cause = cause(answer.cause, matches!(verdict, OutputVerdict::Abstain))?;
    Ok(OutputEvaluation { verdict, cause })
}

fn content_block(block: guest::ContentBlock) -> Result<ContentBlock, PolicyError> {
    Ok(match block {
        guest::ContentBlock::Text(text) => ContentBlock::Text(check::data(text, "content-block.text")?),
        guest::ContentBlock::Image((media_type, size)) => {
            ContentBlock::Image(check::name(media_type, "content-block.image")?, size)
        }
        guest::ContentBlock::Other(json) => ContentBlock::Other(check::data(json, "content-block.other")?),
    })
}
