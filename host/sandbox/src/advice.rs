//! From the result of a probe to its cause and remedy.

use std::path::Path;

use crate::controllers::NoGroup;
use crate::facts::Facts;
use crate::primitive::{Finding, Primitive, Refused};

/// Why a mechanism is not available, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The cause, as far as it can be determined.
    pub cause: String,
    /// The remedy, as commands where possible.
    pub remedy: String,
}

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;

/// Returns the advice on one finding; `None` if the probe succeeded.
#[must_use]
pub fn advice(finding: &Finding, facts: &Facts) -> Option<Advice> {
    let refused = finding.outcome.as_ref().err()?;
    let (cause, remedy) = match finding.primitive {
        Primitive::Landlock => landlock(facts),
        Primitive::Scopes => (
            format!("Linux {} has no Landlock, or none that restricts signals", facts.release),
            "Linux 6.12 or later with Landlock; it is needed only where namespaces are refused".to_owned(),
        ),
        Primitive::ProcessLimit => (
            format!(
                "Linux {} has one limit for the whole machine; each namespace has its own since 6.14",
                facts.release
            ),
            "a newer kernel; until then processes are counted ten times a second".to_owned(),
        ),
        Primitive::ControlGroup => control_group(refused, facts),
        Primitive::Listener if refused.errno == EBUSY => (
            "a program around this one listens to system calls already, and there can be only one".to_owned(),
            "start Portcullis outside of it (a container runtime that observes, another sandbox, another agent)"
                .to_owned(),
        ),
        Primitive::Listener => (
            format!("Linux {} does not hand system calls over as it must", facts.release),
            "Linux 5.19 or later with CONFIG_SECCOMP_FILTER".to_owned(),
        ),
        Primitive::Filter => (
            "the kernel refuses filters of system calls".to_owned(),
            "a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        ),
        Primitive::Proc if refused.doing.contains("/proc") => proc(facts),
        Primitive::UserNamespace
        | Primitive::Mounts
        | Primitive::Proc
        | Primitive::Network
        | Primitive::Objects => namespaces(refused, facts),
    };
    Some(Advice { cause, remedy })
}

fn namespaces(refused: &Refused, facts: &Facts) -> (String, String) {
    let is_denied = matches!(refused.errno, EPERM | EACCES);
    if refused.errno == ENOSPC {
        let most = facts.max_user_namespaces.map(|most| format!(" (user.max_user_namespaces is {most})"));
        return (
            format!("there are as many user namespaces as may be{}", most.unwrap_or_default()),
            "sudo sysctl -w user.max_user_namespaces=15000".to_owned(),
        );
    }
    if is_denied && facts.apparmor_restricts == Some(1) {
        return (
            "AppArmor takes the rights from user namespaces of programs that it does not know \
             (kernel.apparmor_restrict_unprivileged_userns is 1)"
                .to_owned(),
            "sudo portcullis doctor --write-apparmor /etc/apparmor.d/portcullis && \
             sudo apparmor_parser -r /etc/apparmor.d/portcullis"
                .to_owned(),
        );
    }
    if is_denied && facts.userns_clone == Some(0) {
        return (
            "the system keeps user namespaces for root (kernel.unprivileged_userns_clone is 0)".to_owned(),
            "sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned(),
        );
    }
    if let Some(container) = facts.container.as_ref().filter(|_| is_denied) {
        return (
            format!("this is a container ({container}), and its filter of system calls refuses namespaces and mounts"),
            "start the container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, \
             or with a seccomp profile that permits clone, unshare, mount and the new mount calls"
                .to_owned(),
        );
    }
    if facts.is_filtered && (is_denied || refused.errno == ENOSYS) {
        return (
            "a filter of system calls around this process refuses it".to_owned(),
            "start Portcullis outside of what made that filter (a container, a service with SystemCallFilter, \
             another sandbox)"
                .to_owned(),
        );
    }
    if facts.is_wsl {
        return (
            format!("the kernel of this WSL is {}", facts.release),
            "in Windows: `wsl --update` (version 2 with Linux 5.15 or later)".to_owned(),
        );
    }
    match refused.errno {
        ENOSYS => (
            format!("Linux {} does not have the call", facts.release),
            "Linux 5.12 or later with CONFIG_USER_NS".to_owned(),
        ),
        _ => (
            "the kernel or a security module refuses it".to_owned(),
            "look for the refusal in the kernel's log: `sudo dmesg | tail`".to_owned(),
        ),
    }
}

fn proc(facts: &Facts) -> (String, String) {
    if facts.proc_is_masked || facts.container.is_some() {
        return (
            "parts of this machine's /proc are covered, as in a container, so the kernel gives no fresh one"
                .to_owned(),
            "start the container with `--security-opt systempaths=unconfined` (podman: `--security-opt \
             unmask=ALL`)"
                .to_owned(),
        );
    }
    (
        "the kernel gives no fresh /proc".to_owned(),
        "look for the refusal in the kernel's log: `sudo dmesg | tail`".to_owned(),
    )
}

fn control_group(refused: &Refused, facts: &Facts) -> (String, String) {
    let refusal = NoGroup::Refused { doing: "making a control group", errno: refused.errno };
    let why = facts.no_group.as_ref().unwrap_or(&refusal);
    let without = "until then memory and processes are looked at ten times a second";
    (why.to_string(), why.remedy().map(|remedy| format!("{remedy}; {without}")).unwrap_or_default())
}

fn landlock(facts: &Facts) -> (String, String) {
    match &facts.security_modules {
        Some(modules) if !modules.split(',').any(|module| module == "landlock") => (
            format!("Landlock is not among the security modules that are switched on ({modules})"),
            format!("add `lsm=landlock,{modules}` to the kernel's command line"),
        ),
        _ => (
            format!("Linux {} has no Landlock that is of use, or a filter hides it", facts.release),
            "Linux 5.19 or later with CONFIG_SECURITY_LANDLOCK".to_owned(),
        ),
    }
}

/// Returns an AppArmor profile that lets the program create user namespaces and restricts nothing else.
///
/// # Errors
/// If the path contains characters that a profile cannot express.
pub fn apparmor_profile(program: &Path) -> Result<String, &'static str> {
    let path = program.to_str().ok_or("the path of the program is not text")?;
    // Inside quotes these would end the string or act as a pattern. `@` alone, as npm has it, means itself.
    if path.contains(['"', '\\', '\n', '*', '?', '[', ']', '{', '}', '^', '$']) {
        return Err(
            "the path of the program has characters that mean something in a profile; move the program",
        );
    }
    Ok(format!(
        "# Lets Portcullis make user namespaces, in which it confines commands. Nothing else changes for it.\n\
         # Load it with `apparmor_parser -r FILE`; kept in /etc/apparmor.d it is loaded at every start.\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\n\
         profile portcullis \"{path}\" flags=(unconfined) {{\n  userns,\n\n  include if exists <local/portcullis>\n}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(primitive: Primitive, doing: &str, errno: i32) -> Finding {
        Finding { primitive, outcome: Err(Refused { doing: doing.to_owned(), errno }) }
    }

    #[test]
    fn causes_are_told_apart() {
        let none = Facts::default();
        let ubuntu = Facts { apparmor_restricts: Some(1), ..Facts::default() };
        let debian = Facts { userns_clone: Some(0), ..Facts::default() };
        let docker = Facts { container: Some("docker".into()), is_filtered: true, ..Facts::default() };
        let filtered = Facts { is_filtered: true, ..Facts::default() };
        let limited = Facts { max_user_namespaces: Some(0), ..Facts::default() };
        let wsl = Facts { is_wsl: true, ..Facts::default() };
        for (facts, errno, cause, remedy) in [
            (&ubuntu, EPERM, "AppArmor", "--write-apparmor"),
            (&ubuntu, EACCES, "AppArmor", "--write-apparmor"),
            (
                &debian,
                EPERM,
                "unprivileged_userns_clone is 0",
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (&docker, EPERM, "docker", "--security-opt seccomp="),
            (&filtered, ENOSYS, "filter of system calls", "outside"),
            (&limited, ENOSPC, "max_user_namespaces is 0", "sysctl -w user.max_user_namespaces"),
            (&wsl, EPERM, "WSL", "wsl --update"),
            (&none, ENOSYS, "does not have the call", "5.12"),
            (&none, EPERM, "security module", "dmesg"),
        ] {
            let advice = advice(&finding(Primitive::UserNamespace, "making namespaces", errno), facts);
            let advice = advice.expect("advice");
            assert!(advice.cause.contains(cause), "{advice:?}");
            assert!(advice.remedy.contains(remedy), "{advice:?}");
        }
    }

    #[test]
    fn a_masked_proc_is_told_from_missing_namespaces() {
        let facts = Facts { proc_is_masked: true, ..Facts::default() };
        let masked = advice(&finding(Primitive::Proc, "mounting /proc", EPERM), &facts).expect("advice");
        assert!(masked.remedy.contains("systempaths"), "{masked:?}");
        let other = advice(&finding(Primitive::Proc, "making namespaces", ENOSPC), &facts).expect("advice");
        assert!(other.remedy.contains("max_user_namespaces"), "{other:?}");
    }

    #[test]
    fn landlock_is_switched_on_where_modules_are() {
        let facts = Facts { security_modules: Some("lockdown,yama".into()), ..Facts::default() };
        let advice = advice(&finding(Primitive::Landlock, "x", ENOSYS), &facts).expect("advice");
        assert!(advice.remedy.contains("lsm=landlock,lockdown,yama"), "{advice:?}");
    }

    #[test]
    fn a_missing_control_group_says_what_to_do() {
        let told = |no_group, errno| {
            let facts = Facts { no_group, ..Facts::default() };
            advice(&finding(Primitive::ControlGroup, "x", errno), &facts).expect("advice")
        };
        let foreign = told(Some(NoGroup::NotDelegated("/sys/fs/cgroup/s".into())), EACCES);
        assert!(foreign.cause.contains("`/sys/fs/cgroup/s` is not delegated"), "{foreign:?}");
        assert!(foreign.remedy.contains("systemd-run --user --scope pi"), "{foreign:?}");
        let full = told(Some(NoGroup::Occupied("/sys/fs/cgroup".into())), EBUSY);
        assert!(full.remedy.contains("DelegateSubgroup"), "{full:?}");
        assert!(told(Some(NoGroup::NoControllers), ENOSYS).remedy.contains("cgroup_no_v1"));
        // There is a place for a group, and the kernel refuses to make one in it.
        let old = told(None, ENOSYS);
        assert!(
            old.cause.contains("making a control group: Function not") && old.remedy.contains("5.7"),
            "{old:?}"
        );
    }

    #[test]
    fn another_listener_is_named() {
        let facts = Facts::default();
        let busy = advice(&finding(Primitive::Listener, "x", EBUSY), &facts).expect("advice");
        assert!(busy.cause.contains("listens"), "{busy:?}");
        let old = advice(&finding(Primitive::Listener, "x", 22), &facts).expect("advice");
        assert!(old.remedy.contains("5.19"), "{old:?}");
    }

    #[test]
    fn what_is_there_needs_no_advice() {
        let fine = Finding { primitive: Primitive::Mounts, outcome: Ok(String::new()) };
        assert_eq!(advice(&fine, &Facts::default()), None);
    }

    #[test]
    fn a_profile_names_the_program() {
        let profile = apparmor_profile(Path::new("/home/u/my bin/portcullis")).expect("a profile");
        assert!(
            profile
                .contains("profile portcullis \"/home/u/my bin/portcullis\" flags=(unconfined) {\n  userns,")
        );
        for wrong in ["/a\"b", "/a*", "/a{b}"] {
            assert!(apparmor_profile(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
