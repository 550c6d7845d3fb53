//! Allows the first time and denies afterwards. If every decision uses a fresh copy of the configured instance, it
//! never denies.

use std::cell::Cell;

use portcullis_sdk::{
    ActionKinds, ConfigError, Context, Descriptor, Evaluation, FilePattern, FileRights, FileRule, Never,
    Policy, Profile, Request,
};

struct Counter {
    calls: Cell<u32>,
}

impl Counter {
    fn count(&self) -> u32 {
        self.calls.set(self.calls.get() + 1);
        self.calls.get()
    }
}

impl Policy for Counter {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:counter", "0.1.0", "Allows the first time, denies afterwards")
            .handles(ActionKinds::all())
            .rule("counter.first", "the first call of this copy")
            .rule("counter.later", "a later call of the same copy")
    }

    fn configure(_: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self { calls: Cell::new(0) })
    }

    fn evaluate(&self, _request: &Request, _context: &Context) -> Evaluation {
        match self.count() {
            1 => Evaluation::allow("counter.first", "this copy was never asked before"),
            call => Evaluation::deny("counter.later", format!("call {call} of the same copy")),
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        let place = FilePattern::tree(context.cwd());
        Profile::new().file(match self.count() {
            1 => FileRule::allow("counter.first", place, FileRights::READ_WRITE),
            _ => FileRule::deny("counter.later", place, FileRights::READ_WRITE),
        })
    }
}

portcullis_sdk::export_policy!(Counter);
