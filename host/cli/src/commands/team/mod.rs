//! `portcullis team`: the bundle of a team, for its members and its publishers.

mod carry;
mod join;
mod membership;
mod publish;
mod report;
mod status;
mod update;

use anyhow::bail;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_bootstrap::teams::{self, Unprotect};
use portcullis_command_line::args::team::Team;
use portcullis_command_line::exit::{self, Exit};

pub(crate) fn run(verb: &Team) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match verb {
        Team::Join(join) => join::join(&around, join),
        Team::Leave(shown) => join::leave(&around, shown.json),
        Team::Status(shown) => status::run(&around, shown.json),
        Team::Update(update) => update::run(&around, update),
        Team::Report(report) => report::run(&around, report),
        Team::New(new) => publish::new(&around, new),
        Team::Sign(sign) => publish::sign(&around, sign),
        Team::Publish(publish) => publish::publish(&around, publish),
        Team::Yank(yank) => publish::yank(&around, yank),
        Team::Rotate(rotate) => publish::rotate(&around, rotate),
        Team::Save(archive) => carry::save(&around, archive),
        Team::Load(archive) => carry::load(&around, archive),
        Team::Unprotected => unprotected(&around),
    }
}

/// Tells the extension whether pi may run without the sandbox.
fn unprotected(around: &ProcessEnv) -> exit::Outcome {
    match teams::may_be_unprotected(around)? {
        Unprotect::Allowed => Ok(Exit::Done),
        Unprotect::Logged => {
            say("portcullis: this machine records that pi runs without the sandbox");
            Ok(Exit::Done)
        }
        Unprotect::Forbidden => bail!(
            "`{}` forbids pi without the sandbox; ask the administrator of this machine",
            teams::machine_file().display()
        ),
    }
}
