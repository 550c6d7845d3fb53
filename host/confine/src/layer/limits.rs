//! Bounds of resources.

use portcullis_sys::launch::Script;
use rustix::process::{Resource, Rlimit, getrlimit};

use crate::{Limits, Stage};

/// In the order of [`Limits::as_list`].
const IN_ORDER: [Resource; 5] =
    [Resource::Nofile, Resource::Nproc, Resource::Fsize, Resource::As, Resource::Cpu];

/// Has a command set the bounds of its session and its own, never wider than those in force here, and switch
/// core dumps off.
pub(crate) fn prepare_for_command(script: &mut Script<'_>, session: Limits, own: Limits) {
    let always = std::iter::once((Resource::Core, [Some(0), None]));
    let both = session.as_list().into_iter().zip(own.as_list()).map(|(session, own)| [session, own]);
    for (resource, limits) in always.chain(IN_ORDER.into_iter().zip(both)) {
        let given = limits.into_iter().flatten();
        let Some(limit) = given.min() else { continue };
        let Rlimit { current, maximum } = tighter(getrlimit(resource), limit);
        let number = |bound: Option<u64>| bound.unwrap_or(u64::MAX);
        script.limit(Stage::Limits.number(), resource as u32, number(current), number(maximum));
    }
}

fn tighter(old: Rlimit, limit: u64) -> Rlimit {
    let bound = |old: Option<u64>| Some(old.map_or(limit, |old| old.min(limit)));
    Rlimit { current: bound(old.current), maximum: bound(old.maximum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_never_widened() {
        let old = Rlimit { current: Some(5), maximum: None };
        assert_eq!(tighter(old, 9), Rlimit { current: Some(5), maximum: Some(9) });
        assert_eq!(tighter(old, 3), Rlimit { current: Some(3), maximum: Some(3) });
    }
}
