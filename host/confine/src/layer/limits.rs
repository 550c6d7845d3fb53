//! Bounds of resources.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{During, Failure};
use crate::{Limits, Stage};

/// Sets the bounds, never wider than those in force, and switches core dumps off.
pub(crate) fn enforce(limits: Limits) -> Result<(), Failure> {
    let Limits { open_files, processes, file_bytes, memory_bytes, cpu_seconds } = limits;
    for (resource, limit) in [
        (Resource::Core, Some(0)),
        (Resource::Nofile, open_files),
        (Resource::Nproc, processes),
        (Resource::Fsize, file_bytes),
        (Resource::As, memory_bytes),
        (Resource::Cpu, cpu_seconds),
    ] {
        if let Some(limit) = limit {
            setrlimit(resource, tighter(getrlimit(resource), limit)).during(Stage::Limits)?;
        }
    }
    Ok(())
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
