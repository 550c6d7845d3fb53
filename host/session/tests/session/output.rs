//! Output of tools, as policies get it.

use portcullis_session::tools;

use super::*;

/// Records the requests with which it was called.
#[derive(Default)]
struct Inspecting(Mutex<Vec<Request>>);

impl Policy for Inspecting {
    fn name(&self) -> &str {
        "inspecting"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds::default()
    }
    fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        Ok(Evaluation { verdict: Verdict::Allow(Vec::new()), cause: Cause::default(), trace: vec![] })
    }
    fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn for_command(&self, _: &Request, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn inspect(&self, output: &ToolOutput, _: &Context) -> Result<Option<OutputEvaluation>, PolicyError> {
        self.0.lock().unwrap().push(output.request.clone());
        Ok(None)
    }
    fn brief(&self, _: &Context) -> Result<String, PolicyError> {
        Ok(String::new())
    }
}

#[test]
fn output_is_judged_with_the_call_it_came_from_and_not_with_what_that_asked_for() {
    let policy = Arc::new(Inspecting::default());
    let answer = Some(Answer::Refused(Refusal::User));
    let scene = scene_with(Arc::clone(&policy) as _, answer, Recorded::default(), true);
    let call = ToolCall { name: "bash".into(), provider: "builtin".into(), input: "{}".into() };
    let request = scene.session.request(Origin::Agent, Action::Tool(call.clone()));
    scene.session.authorize(request, Some("c"), &Cancel::default());
    // A call of the command itself was pending and asked about.
    let held = ToolCall { name: "held".into(), ..call.clone() };
    let held = scene.session.request(Origin::Process, Action::Tool(held));
    scene.session.authorize(held, Some("c"), &Cancel::default());
    let output = Output { call: "c", tool: call.clone(), is_error: false, content: Vec::new() };
    let _passed = tools::inspect(&scene.session, output);
    let seen = policy.0.lock().unwrap();
    assert_eq!(seen.iter().map(|request| &request.action).collect::<Vec<_>>(), [&Action::Tool(call)]);
}
