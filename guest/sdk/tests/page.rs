//! The code that `docs/policy-authors.md` shows, word for word, and the test that it is the same.

#![cfg(all(feature = "cases", not(target_arch = "wasm32")))]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]
#![expect(unused_must_use, reason = "it is the code of a page")]

const PAGE: &str = include_str!("../../../docs/policy-authors.md");
const HERE: &str = include_str!("page.rs");

#[rustfmt::skip]
mod policy {
    use portcullis_sdk::{
        ConfigError, Context, Descriptor, FilePattern, FileRights, FileRule, Never, Policy, Profile,
    };

    struct KeepTheLicence;

    impl Policy for KeepTheLicence {
        type Config = Never;

        fn describe() -> Descriptor {
            Descriptor::new("local:keep-the-licence", "0.1.0", "The licence stays as it is")
                .rule("licence.keep", "Nobody changes LICENSE")
        }

        fn configure(_: Never) -> Result<Self, Vec<ConfigError>> {
            Ok(Self)
        }

        fn standing(&self, context: &Context) -> Profile {
            let licence = FilePattern::exact(format!("{}/LICENSE", context.cwd()));
            Profile::new().file(
                FileRule::deny("licence.keep", licence, FileRights::WRITE)
                    .reason("the licence stays as it is"),
            )
        }
    }

    portcullis_sdk::export_policy!(KeepTheLicence);

    use portcullis_sdk::Right;

    #[test]
    fn the_licence_is_kept() {
        let context = portcullis_sdk::testing::context("/srv/app");
        let profile = KeepTheLicence.standing(&context);
        let rule = profile.file_rule("/srv/app/LICENSE", Right::Write).unwrap();
        assert_eq!(rule.map(|rule| rule.id.as_str()), Some("licence.keep"));
    }

    #[test]
    fn cases() {
        let report = portcullis_sdk::cases::run::<KeepTheLicence>(include_str!("../tests/cases.toml")).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
    }
}

#[rustfmt::skip]
mod commands {
    use portcullis_sdk::{Evaluation, Request, testing};

    fn forced(request: &Request) -> Evaluation {
        if request.runs("git push --force") {
            return Evaluation::deny("git.force", "it overwrites what was pushed");
        }
        if request.could_run("git push --force") {
            return Evaluation::ask("git.force", "it may overwrite what was pushed", "Run it all the same?");
        }
        Evaluation::abstain()
    }

    #[test]
    fn a_spelling_is_recognized() {
        let context = testing::context("/srv/app");
        let denied = Evaluation::deny("git.force", "it overwrites what was pushed");
        assert_eq!(forced(&testing::command(&context, "git -C x push origin main -fu")), denied);
        assert_eq!(forced(&testing::command(&context, "git status")), Evaluation::abstain());
    }
}

#[rustfmt::skip]
mod verdicts {
    use portcullis_sdk::{Evaluation, GrantOption, GrantScope, NetworkPattern};

    #[test]
    fn each_can_be_made() {
        let pattern = NetworkPattern::everything();
        Evaluation::abstain();
        Evaluation::allow("fs.workspace", "lies in the workspace");
        Evaluation::deny("cmd.publish", "publishing is for people").hint("ask the user to run it");
        Evaluation::ask("net.unlisted", "the host is new", "Let commands connect to `example.com:443`?")
            .offer(GrantOption::exact("This once", GrantScope::Once))
            .offer(GrantOption::network("This session", GrantScope::Session, pattern));
    }
}

/// Returns the lines of a text without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let blocks = PAGE.split(begin.as_str()).skip(1);
    blocks.map(|rest| rest.split_once("```").unwrap().0).collect()
}

#[test]
fn the_page_shows_what_is_compiled() {
    let here = lines(HERE);
    let blocks = blocks("rust");
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        let wanted = lines(block);
        assert!(here.windows(wanted.len()).any(|part| part == wanted), "the page differs: {block}");
    }
}

#[test]
fn the_page_shows_the_cases_that_run() {
    assert!(blocks("toml").contains(&include_str!("cases.toml")));
}
