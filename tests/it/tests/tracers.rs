//! A command that traces can reach neither Portcullis' own processes nor those of other commands.

use std::process::Stdio;

use anyhow::{Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(other_processes_are_not_traced);

/// Perl that attaches to all processes with these numbers but itself and its parents, and prints those that it gets.
/// On x86-64, 101 is ptrace(2), and 16 attaches, as 0x4206 does without a stop. 434 is pidfd_open(2), 438 pidfd_getfd(2), 310 and
/// 311 are process_vm_readv(2) and process_vm_writev(2), on one byte.
const ATTACH: &str = r#"perl -e '
    %own = ($$ => 1, getppid() => 1);
    $own{$_} = 1 for split /\D+/, `cat /proc/$$/task/*/children /proc/$$/status | grep -v "[a-z]" 2> /dev/null`;
    $b = "x"; $v = pack("QQ", unpack("Q", pack("p", $b)), 1);
    for $p (NUMBERS) { next if $own{$p};
        for $how (16, 0x4206) { print "GOT $p by $how\n" if syscall(101, $how, $p, 0, 0) == 0; syscall(101, 17, $p, 0, 0) }
        for $call (310, 311) { print "GOT $p by $call\n" if syscall($call, $p, $v, 1, $v, 1, 0) > 0 }
        $f = syscall(434, $p, 0); next if $f < 0;
        print "GOT $p by 438\n" if syscall(438, $f, 0, 0) >= 0 }
    print "done\n"'"#;

fn other_processes_are_not_traced(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    // A process of the user outside, and one of another command of the same session.
    let mut victim = scene.user().command("sleep".as_ref());
    let mut victim = victim.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let environment = json!({ "PATH": "/usr/bin:/bin" });
    let other = host.begin("until [ -e stop ]; do sleep 0.1; done; echo undisturbed", &environment)?;
    // The keeper, the broker, an init and its command.
    let below = Deadline::start()
        .until("processes", || Ok(Some(below(host.process_id())).filter(|all| all.len() > 4)))?;
    let below: Vec<String> = below.iter().map(u32::to_string).collect();
    let numbers = format!("1..300, {}, {}", below.join(", "), victim.id());
    let traced = host.run(&ATTACH.replace("NUMBERS", &numbers))?;
    scene.write(&scene.project().join("stop"), "")?;
    let disturbed = host.finish(other)?;
    // The control: outside, the same user gets the process, unless the machine forbids that (Yama).
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let mut control = scene.user().command("/bin/bash".as_ref());
    let control = Finished::run(control.args(["-c", &ATTACH.replace("NUMBERS", &victim.id().to_string())]));
    victim.kill()?;
    victim.wait()?;
    ensure!(traced.1 == "done\n", "{traced:?}");
    ensure!(disturbed.1 == "undisturbed\n", "{disturbed:?}");
    let control = control?;
    ensure!(!["", "0"].contains(&scope.trim()) || control.stdout.contains("GOT"), "the control: {control:?}");
    Ok(())
}

/// Returns the numbers of a process and of all below it.
fn below(top: u32) -> Vec<u32> {
    let mut found = vec![top];
    let mut index = 0;
    while let Some(process) = found.get(index).copied() {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|number| number.parse::<u32>().ok()));
        }
        index += 1;
    }
    found
}
