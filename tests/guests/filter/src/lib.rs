//! Changes what the agent does and sees, on certain words: rewrites the input of tools, redacts and withholds their
//! output.

use portcullis_sdk::{
    Action, ActionKinds, Allowance, ConfigError, ContentBlock, Context, Descriptor, Evaluation, Never, Obligation,
    OutputEvaluation, OutputVerdict, Policy, Request, ToolOutput, Verdict,
};

struct Filter;

impl Policy for Filter {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:filter", "0.1.0", "Rewrites and redacts")
            .handles(ActionKinds::TOOL | ActionKinds::COMMAND)
            .rule("filter.allowed", "Everything else is allowed")
            .rule("filter.rewritten", "The input is rewritten")
            .rule("filter.forbidden", "The input is forbidden")
            .rule("filter.redacted", "The output is redacted")
            .rule("filter.withheld", "The output is withheld")
    }

    fn configure(_config: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        let Action::Tool(tool) = &request.action else {
            return Evaluation::allow("filter.allowed", "commands are left to the sandbox");
        };
        if tool.input.contains("forbid-me") {
            return Evaluation::deny("filter.forbidden", "the word forbids it");
        }
        if tool.input.contains("rewrite-me") {
            let input = tool.input.replace("rewrite-me", "rewritten");
            return rewrite(input);
        }
        if tool.input.contains("rewrite-badly") {
            let input = tool.input.replace("rewrite-badly", "forbid-me");
            return rewrite(input);
        }
        Evaluation::allow("filter.allowed", "no word speaks against it")
    }

    fn inspect(&self, output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        let texts = || output.content.iter().map(|block| match block {
            ContentBlock::Text(text) | ContentBlock::Other(text) => text.as_str(),
            ContentBlock::Image(_) => "",
        });
        if texts().any(|text| text.contains("withhold-me")) {
            return OutputEvaluation::withhold("filter.withheld", "the word asks for it");
        }
        if !texts().any(|text| text.contains("hunter2")) {
            return OutputEvaluation::abstain();
        }
        let redacted = output.content.iter().map(|block| match block {
            ContentBlock::Text(text) => ContentBlock::Text(text.replace("hunter2", "***")),
            ContentBlock::Other(text) => ContentBlock::Other(text.replace("hunter2", "***")),
            ContentBlock::Image(image) => ContentBlock::Image(image.clone()),
        });
        let mut answer = OutputEvaluation::pass("filter.redacted", "a secret is in it");
        answer.verdict = OutputVerdict::Replace(redacted.collect());
        answer
    }
}

fn rewrite(input: String) -> Evaluation {
    let obligations = vec![Obligation::RewriteInput(input)];
    Evaluation::new(Verdict::Allow(Allowance { obligations }), "filter.rewritten", "the word asks for it")
}

portcullis_sdk::export_policy!(Filter);
