//! The limits of a command as the starter gets and sets them.

use portcullis_sandbox::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the limits as one argument.
pub(crate) fn to_argument(limits: Limits) -> String {
    let number = |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    limits.as_list().map(number).join(",")
}

/// Parses [`to_argument`]'s result; `None` if it is something else.
pub(crate) fn from_argument(argument: &str) -> Option<Limits> {
    let number = |word: &str| match word {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let list: Vec<Option<u64>> = argument.split(',').map(number).collect::<Option<_>>()?;
    Some(Limits::from_list(list.try_into().ok()?))
}

/// Sets the limits of this process, and turns core dumps off. A limit is never raised.
///
/// The memory of all processes together has no limit of this kind. `RLIMIT_NPROC` counts all processes of the user, so
/// it gets none either: a limit meant for one command would count what the user runs besides.
pub(crate) fn set(limits: Limits) -> rustix::io::Result<()> {
    let Limits { open_files, processes: _, file_bytes, memory_bytes: _, data_bytes, cpu_seconds } = limits;
    lower(Resource::Core, Some(0))?;
    lower(Resource::Nofile, open_files)?;
    lower(Resource::Fsize, file_bytes)?;
    lower(Resource::Data, data_bytes)?;
    lower(Resource::Cpu, cpu_seconds)
}

fn lower(resource: Resource, wanted: Option<u64>) -> rustix::io::Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let now = getrlimit(resource);
    let at_most = |now: Option<u64>| Some(now.map_or(wanted, |now| now.min(wanted)));
    setrlimit(resource, Rlimit { current: at_most(now.current), maximum: at_most(now.maximum) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_the_argument() {
        let limits = Limits { open_files: Some(7), cpu_seconds: Some(0), ..Limits::default() };
        assert_eq!(from_argument(&to_argument(limits)), Some(limits));
        for wrong in ["", "1", "1,2,3,4,5,x", "1,2,3,4,5,6,7"] {
            assert_eq!(from_argument(wrong), None, "{wrong}");
        }
    }
}
