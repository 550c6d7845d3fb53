//! Programs without a terminal.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes the program the leader of a session of its own (setsid(2)), so that it has no terminal to ask at.
pub fn without_terminal(command: &mut Command) {
    let begin_session = || {
        // SAFETY: the call takes no pointers.
        let session = unsafe { libc::setsid() };
        if session == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork(2) and execve(2), the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(begin_session) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_leads_a_session() {
        let session_of = |mut command: Command| {
            let output = command.args(["-c", "echo $$; ps -o sid= -p $$"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let numbers: Vec<u32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
            numbers
        };
        let mut free = Command::new("/bin/sh");
        without_terminal(&mut free);
        let free = session_of(free);
        assert_eq!(free[0], free[1]);
        let usual = session_of(Command::new("/bin/sh"));
        assert_ne!(usual[0], usual[1], "the control");
    }
}
