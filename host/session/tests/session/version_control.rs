//! Standing rules that depend on the branch: asked for again when it changes, and only then.

use portcullis_decision::context::VcsParts;
use portcullis_decision::profile::FileRule;

use super::*;

/// Denies reading `inside.txt` on the branch `main`, and has no answer on the branch `boom`.
struct OnBranch {
    parts: VcsParts,
    asked: AtomicUsize,
}

impl OnBranch {
    fn new(parts: VcsParts) -> Arc<Self> {
        Arc::new(Self { parts, asked: AtomicUsize::new(0) })
    }
}

impl Policy for OnBranch {
    fn name(&self) -> &str {
        "on-branch"
    }
    fn digest(&self) -> &str {
        "d"
    }
    fn handles(&self) -> ActionKinds {
        ActionKinds::default()
    }
    fn vcs_parts(&self) -> VcsParts {
        self.parts
    }
    fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
        Ok(Evaluation { verdict: Verdict::Abstain, cause: Cause::default(), trace: vec![] })
    }
    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let root = context.workspace.roots.first().unwrap();
        match context.workspace.vcs.as_ref().and_then(|vcs| vcs.branch.as_deref()) {
            Some("main") => {
                let rule = FileRule {
                    id: "main".into(),
                    pattern: FilePattern::exact(&format!("{root}/inside.txt")).unwrap(),
                    rights: FileRights { read: true, ..FileRights::default() },
                    effect: Effect::Deny,
                    conceal: false,
                    condition: String::new(),
                    reason: "main is protected".into(),
                    setting: String::new(),
                };
                Ok(Some(Profile { files: vec![rule], ..Profile::default() }))
            }
            Some("boom") => Err(PolicyError::Trap { detail: "unreachable".into() }),
            _ => Ok(None),
        }
    }
    fn for_command(&self, _: &Request, _: &Context) -> Result<Option<Profile>, PolicyError> {
        Ok(None)
    }
    fn inspect(&self, _: &ToolOutput, _: &Context) -> Result<Option<OutputEvaluation>, PolicyError> {
        Ok(None)
    }
    fn brief(&self, _: &Context) -> Result<String, PolicyError> {
        Ok(String::new())
    }
}

fn switch(scene: &Scene, branch: &str) {
    let git = scene.project.join(".git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
}

fn is_readable(scene: &Scene) -> bool {
    read(scene, &scene.project.join("inside.txt")).is_ok()
}

#[test]
fn rules_follow_the_branch() {
    let policy = OnBranch::new(VcsParts::BRANCH);
    let scene = scene_with(Arc::clone(&policy) as _, None, Recorded::default(), false);
    assert!(is_readable(&scene), "there is no repository");
    switch(&scene, "main");
    assert!(!is_readable(&scene));
    switch(&scene, "topic");
    assert!(is_readable(&scene));
    let asked = policy.asked.load(Ordering::SeqCst);
    assert!((0..5).all(|_| is_readable(&scene)));
    assert_eq!(policy.asked.load(Ordering::SeqCst), asked, "nothing has changed");
}

#[test]
fn a_policy_without_rules_for_a_branch_denies_everything_until_the_next_switch() {
    let scene = scene_with(OnBranch::new(VcsParts::BRANCH), None, Recorded::default(), false);
    switch(&scene, "topic");
    assert!(is_readable(&scene));
    switch(&scene, "boom");
    assert!(!is_readable(&scene));
    assert!(!is_readable(&scene), "the failure is not forgotten");
    let outside = scene.project.parent().unwrap().join("outside.txt");
    assert!(read(&scene, &outside).is_err());
    switch(&scene, "topic");
    assert!(is_readable(&scene));
}

#[test]
fn rules_that_depend_on_nothing_stay() {
    let policy = OnBranch::new(VcsParts::default());
    let scene = scene_with(Arc::clone(&policy) as _, None, Recorded::default(), false);
    switch(&scene, "main");
    assert!(is_readable(&scene), "it was told nothing of the branch");
    assert_eq!(policy.asked.load(Ordering::SeqCst), 1);
}
