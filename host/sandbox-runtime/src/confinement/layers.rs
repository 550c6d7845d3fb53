//! Derives the report of layers from the results of the setup.

use portcullis_sandbox::{Controller, ControllerNames, Force, Layer, NoGroup, Report};

use crate::NoGate;
use crate::group::directory::Group;

/// The results of setting up a sandbox.
pub(super) struct SetupResults<'a> {
    /// The version of Landlock, 0 for none.
    pub(super) landlock: u32,
    pub(super) has_name_rules: bool,
    /// True if the kernel refuses processes above the limit, or there is no limit.
    pub(super) processes_are_bounded: bool,
    pub(super) no_gate: Option<&'a NoGate>,
    pub(super) group: &'a Result<Group, NoGroup>,
}

/// Returns the report of a sandbox of namespaces.
pub(super) fn report(found: &SetupResults<'_>) -> Report {
    let full = |layer| (layer, Force::Full);
    let network = match found.no_gate {
        None => Force::Full,
        Some(why) => Force::Partial(format!("every connection is refused: {}", why.in_full())),
    };
    let names = match found.has_name_rules {
        true => Force::Full,
        false => Force::None("the profile has no rules over names".into()),
    };
    let (group, controllers) = group_force(found.group);
    let is_bounded = found.processes_are_bounded || controllers.contains(&Controller::Processes);
    Report {
        layers: vec![
            full(Layer::Namespaces),
            (Layer::Network, network),
            full(Layer::Mounts),
            (Layer::Landlock, landlock_force(found.landlock)),
            (Layer::Names, names),
            full(Layer::Seccomp),
            full(Layer::Privileges),
            (Layer::Limits, limits_force(is_bounded)),
            (Layer::ControlGroup, group),
        ],
        controllers,
    }
}

/// Returns the report of a sandbox in which Landlock replaces namespaces.
pub(super) fn without_namespaces(group: &Result<Group, NoGroup>) -> Report {
    let none = |why: &str| Force::None(why.to_owned());
    let full = |layer| (layer, Force::Full);
    let (group, controllers) = group_force(group);
    let is_bounded = controllers.contains(&Controller::Processes);
    Report {
        layers: vec![
            (Layer::Namespaces, none("Landlock, the broker and a stricter filter stand in for them")),
            (
                Layer::Network,
                Force::Partial("every connection is refused, and so is every socket".to_owned()),
            ),
            (Layer::Mounts, none("Landlock and the broker stand in for them")),
            full(Layer::Landlock),
            full(Layer::Names),
            full(Layer::Seccomp),
            full(Layer::Privileges),
            (Layer::Limits, limits_force(is_bounded)),
            (Layer::ControlGroup, group),
        ],
        controllers,
    }
}

fn limits_force(processes_are_bounded: bool) -> Force {
    if processes_are_bounded {
        return Force::Full;
    }
    let how = "the number of processes is not bounded by the kernel (Linux 6.14), it is looked at ten times a second";
    Force::Partial(how.into())
}

fn group_force(group: &Result<Group, NoGroup>) -> (Force, Vec<Controller>) {
    match group {
        Ok(group) => (controllers_force(group.controllers()), group.controllers().to_vec()),
        Err(why) => (Force::None(why.to_string()), Vec::new()),
    }
}

fn controllers_force(controllers: &[Controller]) -> Force {
    let missing = Controller::NEEDED.into_iter().filter(|needed| !controllers.contains(needed));
    let missing: Vec<Controller> = missing.collect();
    if missing.is_empty() {
        Force::Full
    } else {
        Force::Partial(format!("without {}", ControllerNames(&missing)))
    }
}

/// Returns the features that a Landlock version lacks, with the release that added them; version 0 means no Landlock.
fn landlock_force(version: u32) -> Force {
    if version == 0 {
        let why =
            "the mounts are the only layer for files (Landlock of Linux 5.19 or later is not switched on)";
        return Force::None(why.into());
    }
    let missing: Vec<&str> = [
        (3, "truncating files (Linux 6.2)"),
        (5, "requests of devices (Linux 6.10)"),
        (6, "signals and abstract sockets (Linux 6.12)"),
    ]
    .into_iter()
    .filter_map(|(since, what)| (version < since).then_some(what))
    .collect();
    if missing.is_empty() { Force::Full } else { Force::Partial(format!("without {}", missing.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_control_group_lacks_is_said() {
        use Controller::{HugePages, Memory, Processes};
        assert_eq!(controllers_force(&[Memory, Processes]), Force::Full);
        assert_eq!(controllers_force(&[HugePages]).to_string(), "partial: without memory, pids");
        assert_eq!(controllers_force(&Controller::ALL), Force::Full);
        let (force, controllers) = group_force(&Err(NoGroup::NoControllers));
        assert!(matches!(force, Force::None(_)) && controllers.is_empty());
    }

    #[test]
    fn what_landlock_lacks_is_said() {
        assert!(matches!(landlock_force(0), Force::None(_)));
        let said = |version| landlock_force(version).to_string();
        assert_eq!(
            said(2),
            "partial: without truncating files (Linux 6.2), requests of devices (Linux 6.10), signals and \
             abstract sockets (Linux 6.12)"
        );
        assert_eq!(said(5), "partial: without signals and abstract sockets (Linux 6.12)");
        assert_eq!((said(6), said(9)), ("full".into(), "full".into()));
    }
}
