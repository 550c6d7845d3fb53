//! Root works in another user's project.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use portcullis_sandbox::Owner;
use portcullis_sandbox_runtime::StartError;

use crate::Test;
use crate::kit::{self, Session};

pub(crate) const TESTS: &[Test] = &[
    ("owner::root_acts_as_the_owner", root_acts_as_the_owner),
    ("owner::root_without_an_owner_is_told", root_without_an_owner_is_told),
    ("owner::nobody_else_can_act_as_another", nobody_else_can_act_as_another),
];

const OTHER: Owner = Owner { uid: 1234, gid: 4321 };

fn give(session: &std::path::Path) {
    for name in ["work", "work/sub", "work/file", "work/sub/file", "temp"] {
        chown(session.join(name), Some(OTHER.uid), Some(OTHER.gid)).expect("given away");
    }
}

fn root_acts_as_the_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let session = Session::with(|place, wanted| {
        give(place);
        fs::write(place.join("roots"), "secret\n").expect("a file");
        fs::set_permissions(place.join("roots"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("mode");
        wanted.acting = Some(OTHER);
        wanted.limits.processes = Some(500);
    });
    if !session.confinement.report().controllers.is_empty() {
        // Runtimes read their limits in the control group; commands cannot open its directory, which would let them
        // lock it.
        let group = "$(grep ' - cgroup2 ' /proc/self/mountinfo | cut -d' ' -f5 | head -1)$(sed -n s/^0:://p /proc/self/cgroup)";
        session.allows(&format!("cat \"{group}/cgroup.controllers\""));
        session.sh(&format!("ls \"{group}\"")).assert_fails();
    }
    session.sh("id -u; id -g; id -G").assert(0, "1234\n4321\n4321");
    session.allows("echo x >> file && mkdir new && echo y > new/f && mv new old && rm sub/file");
    for name in ["work/old", "work/old/f"] {
        let made = fs::metadata(session.path(name)).expect("made");
        assert_eq!((made.uid(), made.gid()), (OTHER.uid, OTHER.gid), "{name}");
    }
    session.allows("echo x > /tmp/f && echo x > /dev/shm/f && test \"$(stat -c %u /proc/self/)\" = 1234");
    // Root's own files stay root's.
    session.refuses("cat $P/roots");
    session.sh("setpriv --reuid 0 true").assert_fails();
    session.sh("grep CapEff /proc/self/status").assert(0, "CapEff:\t0000000000000000");
    session.sh("grep CapBnd /proc/self/status").assert(0, "CapBnd:\t0000000000000000");
    session.sh("exec 2>/dev/null; kill -9 1; echo alive").assert(0, "alive");
    for file in ["/proc/1/environ", "/proc/1/maps", "/proc/1/cwd"] {
        session.sh(&format!("cat {file} || ls {file}/.")).assert_fails();
    }
    if crate::exists("/usr/bin/git") {
        session.allows(
            "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        );
    }
}

fn root_without_an_owner_is_told() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = kit::make_place();
    give(place.path());
    let error =
        portcullis_sandbox_runtime::Confinement::start(&kit::own_program(), &kit::profile(place.path()));
    assert!(matches!(error, Err(StartError::ForeignOwner { .. })), "{error:?}");
}

fn nobody_else_can_act_as_another() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let place = kit::make_place();
    let mut wanted = kit::profile(place.path());
    wanted.acting = Some(OTHER);
    assert!(portcullis_sandbox_runtime::Confinement::start(&kit::own_program(), &wanted).is_err());
}
