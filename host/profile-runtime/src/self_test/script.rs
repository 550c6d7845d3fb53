//! The script with all attacks and controls.

use super::Scene;

/// The attacks: what each does, and a command that succeeds if the attack does.
///
/// The shell and the programs are those that every macOS has.
pub(super) const ATTACKS: &[(&str, &str)] = &[
    ("reading a hidden file", "grep -q secret \"$CLOSED/key\""),
    ("reading it through a link", "ln -s \"$CLOSED/key\" l1 && grep -q secret l1"),
    ("reading it through a second name", "ln \"$CLOSED/key\" l2 && grep -q secret l2"),
    ("listing a hidden directory", "ls \"$CLOSED\" | grep -q key"),
    ("writing outside", "echo x > \"$CLOSED/new\""),
    ("writing outside through a link", "ln -s \"$CLOSED\" l3 && echo x > l3/newer"),
    ("moving a file in from outside", "mv \"$CLOSED/file\" moved"),
    ("writing a protected name", "echo x > \"$PROJECT/$PROTECTED\""),
    ("moving a file to a protected name", "echo x > m1 && mv m1 \"$PROJECT/$PROTECTED\""),
    ("making a hook of git", "mkdir -p \"$(dirname \"$PROJECT/$HOOK\")\"; echo x > \"$PROJECT/$HOOK\""),
    ("signalling another process", "kill -0 \"$VICTIM\""),
    ("connecting past the gate", "exec 3<> \"/dev/tcp/127.0.0.1/$SERVER\""),
];

/// Ordinary work, which must succeed in the sandbox.
pub(super) const CONTROLS: &[(&str, &str)] = &[
    ("writing the temporary directory", "echo x > w1 && grep -q x w1"),
    ("writing an ordinary name", "echo x > \"$PROJECT/plain\" && rm \"$PROJECT/plain\""),
    ("signalling a process of the command", "sleep 60 & kill $!"),
    ("connecting to the gate", "exec 3<> \"/dev/tcp/127.0.0.1/$GATE\""),
];

/// The last line of the script.
pub(super) const END: &str = "coming to the end of the test";

/// The values that the script works with.
pub(super) struct Variables<'a> {
    pub(super) scene: &'a Scene<'a>,
    /// The port of a server that commands may not reach.
    pub(super) server: u16,
    /// A process that is none of the command's.
    pub(super) victim: u32,
}

impl Variables<'_> {
    pub(super) fn list(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let Scene { closed, open, project, protected: [protected, hook], gate } = self.scene;
        vec![
            ("PATH", "/usr/bin:/bin:/usr/sbin:/sbin".into()),
            ("TMPDIR", open.into()),
            ("HOME", open.into()),
            ("CLOSED", closed.into()),
            ("PROJECT", project.into()),
            ("PROTECTED", (*protected).into()),
            ("HOOK", (*hook).into()),
            ("GATE", gate.to_string().into()),
            ("SERVER", self.server.to_string().into()),
            ("VICTIM", self.victim.to_string().into()),
        ]
    }
}

/// Returns the shell with the script.
pub(super) fn argv() -> [String; 5] {
    let line =
        |&(what, script): &(&str, &str)| format!("if ( {script} ) 2>/dev/null; then echo '{what}'; fi\n");
    let lines: String = ATTACKS.iter().chain(CONTROLS).map(line).collect();
    ["/bin/bash", "--noprofile", "--norc", "-c", &format!("{lines}echo '{END}'")].map(str::to_owned)
}
