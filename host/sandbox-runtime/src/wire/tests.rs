use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{FileId, Hold, MountStep, Opening, PathKind, Reads, Stage, WayOut, Writable};

use super::*;

fn setup() -> Setup {
    let opening = |path: &str, kind| Opening { path: path.into(), kind, is_closed: false };
    let closed = Opening { is_closed: true, ..opening("c", PathKind::Directory) };
    let openings = vec![opening("a/b", PathKind::Directory), opening("f", PathKind::File), closed];
    let steps = vec![
        MountStep::Prepare { directory: "/t".into(), openings: openings.clone() },
        MountStep::Pin { path: "/p".into() },
        MountStep::Devices { given: vec!["/dev/kvm".into(), "/dev/dri".into()] },
        MountStep::Processes,
        MountStep::Temp { directory: "/t".into() },
        MountStep::Show { path: "/r".into(), writable: Writable::No },
        MountStep::Show { path: OsString::from_vec(vec![b'/', 0xff, b'\n']).into(), writable: Writable::Yes },
        MountStep::HideDirectory { path: "/h".into(), openings },
        MountStep::HideFile { path: "/h.key".into() },
        MountStep::Resolver { path: "/etc/resolv.conf".into() },
    ];
    let limits = Limits { open_files: Some(7), cpu_seconds: Some(u64::MAX), ..Limits::default() };
    let network = Network::Gated(WayOut { host_ports: vec![1, u16::MAX], hold: Hold::Accept });
    let names = NameRules {
        data: vec![0, 0xff],
        workspace: "/w".into(),
        homes: vec!["/home/u".into()],
        spared: vec!["/tmp".into()],
        lifted: vec!["a".into()],
        links: vec![UserLink { name: "/w/.envrc".into(), target: "/w/rc".into() }],
        leading_nowhere: vec!["/w/build".into()],
        reads: Reads::Judged,
        kept_back: vec![FileId { device: (8, 1), inode: u64::MAX }],
    };
    let (plan, hostname, names) = (Plan::from_steps(steps), "box".into(), Some(names));
    let acting = Some(Owner { uid: 1000, gid: 100 });
    let open_files = Some(1024);
    Setup { plan, hostname, limits, open_files, acting, network, names, session: 7, view: 8 }
}

fn command() -> Command {
    Command {
        argv: vec!["sh".into(), OsString::from_vec(vec![0xfe, b' ']), OsString::new()],
        env: vec![("A".into(), "1".into()), ("A".into(), "".into())],
        cwd: "/w".into(),
        limits: Limits { processes: Some(0), ..Limits::default() },
        terminal: Terminal::Input,
    }
}

#[test]
fn a_setup_survives_the_journey() {
    for setup in [setup(), Setup { network: Network::Closed, ..setup() }] {
        assert_eq!(Setup::decode(&setup.encode()).expect("decodes"), setup);
    }
}

#[test]
fn requests_survive_the_journey() {
    let launch = Request::decode(&Request::encode_launch(u64::MAX, &command())).expect("decodes");
    assert_eq!(launch, Request::Launch { id: u64::MAX, command: command() });
    let signal = Request::decode(&Request::encode_signal(1, -3)).expect("decodes");
    assert_eq!(signal, Request::Signal { id: 1, signal: -3 });
    assert_eq!(Request::decode(&Request::encode_kill(2)).expect("decodes"), Request::Kill { id: 2 });
}

#[test]
fn events_survive_the_journey() {
    let refusal = StepRefusal { stage: Stage::Proc, errno: 1 };
    for event in [
        Event::Keeper,
        Event::Ready { landlock: 7, processes_are_bounded: true, no_group: 0, no_gate: None },
        Event::Ready { landlock: 0, processes_are_bounded: false, no_group: 13, no_gate: Some(refusal) },
        Event::Failed { refusal, path: "/x".into() },
        Event::Started { id: 3 },
        Event::NotStarted { id: 4, refusal },
        Event::Ended { id: 5, ending: CommandEnd::Code(3), breach: None },
        Event::Ended { id: 6, ending: CommandEnd::Signal(9), breach: Some(Breach::Memory) },
    ] {
        assert_eq!(Event::decode(&event.encode()).expect("decodes"), event);
    }
}

#[test]
fn a_message_cut_short_or_too_long_is_garbled() {
    let whole = Request::encode_launch(1, &command());
    for length in 0..whole.len() {
        assert!(Request::decode(&whole[..length]).is_err(), "cut at {length}");
    }
    assert!(Request::decode(&[whole, vec![0]].concat()).is_err());
    let whole = setup().encode();
    for length in 0..whole.len() {
        assert!(Setup::decode(&whole[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn lengths_that_lie_are_garbled() {
    let mut lie = Request::encode_kill(1);
    lie[0] = 1;
    lie.extend_from_slice(&u64::MAX.to_le_bytes());
    assert!(Request::decode(&lie).is_err());
}
