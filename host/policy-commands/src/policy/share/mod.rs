//! The commands that share packs.

mod add;
mod approval;
mod carry;
mod empty_lock;
mod list;
mod registry;
mod sign;
mod trust;

use portcullis_command_line::args::share::Share;
use portcullis_command_line::exit;

/// Runs the subcommand.
pub(super) fn run(verb: Share) -> exit::Outcome {
    match verb {
        Share::Add(add) => add::add(&add),
        Share::Update(update) => add::update(&update),
        Share::Remove(remove) => add::remove(&remove),
        Share::List(shown) => list::list(&shown),
        Share::Lock(shown) => list::check(&shown),
        Share::Sign(sign) => sign::sign(&sign),
        Share::Verify(verify) => sign::verify(&verify),
        Share::Trust(verb) => trust::run(verb),
        Share::Push(push) => registry::push(&push),
        Share::Pull(pull) => registry::pull(&pull),
        Share::Vendor(vendor) => carry::vendor(&vendor),
        Share::Save(save) => carry::save_packs(&save),
        Share::Load(load) => carry::load_packs(&load),
    }
}
