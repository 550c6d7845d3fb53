//! The steps of a set-up, as they are named in errors and on the wire.

use std::fmt;

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)+) => {
        /// What was being done when the kernel said no.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Stage {
            $($(#[$doc])* $name,)+
        }

        #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only a keeper sends stages"))]
        impl Stage {
            pub(crate) fn number(self) -> u32 {
                match self { $(Self::$name => $number,)+ }
            }

            pub(crate) fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)+ _ => None }
            }
        }

        impl fmt::Display for Stage {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self { $(Self::$name => $text,)+ })
            }
        }
    };
}

stages! {
    /// Reading what the host sent.
    Request = 1, "the keeper did not understand the host; do both come from the same release?";
    /// Making the session's namespaces.
    Namespaces = 2,
        "making namespaces; user namespaces must be permitted (`sysctl user.max_user_namespaces`, AppArmor, \
         and inside a container its seccomp profile)";
    /// Mapping the user into the user namespace.
    Identity = 3, "mapping the user into the user namespace; AppArmor may restrict it";
    /// Opening a place by its path.
    OpenPlace = 4, "opening the place (a symbolic link in it is refused)";
    /// Taking a copy of the mounts of a place.
    CopyMounts = 5, "copying the mounts of";
    /// Making mounts read-only, or taking device files from them.
    MountAttributes = 6, "restricting the mounts of";
    /// Putting a mount in its place.
    AttachMount = 7, "mounting over";
    /// Making a small file system.
    NewFilesystem = 8, "making a file system for";
    /// Switching the loopback device on.
    Loopback = 9, "switching the loopback device on";
    /// Naming the machine.
    HostName = 10, "setting the host name";
    /// Giving up rights.
    Privileges = 11, "giving up capabilities";
    /// Loading the filter of system calls.
    Seccomp = 12, "loading the filter of system calls; the kernel must have seccomp";
    /// Opening the view that the host uses.
    View = 13, "opening the view of the sandbox";
    /// Bounding resources.
    Limits = 14, "setting a resource limit";
    /// Making a process.
    Process = 15, "making a process";
    /// Mounting the command's own `/proc`.
    Proc = 16, "mounting /proc; inside a container the outer /proc must not be masked";
    /// Connecting standard input and output.
    Stdio = 17, "connecting standard input and output";
    /// Entering the directory to start in.
    Directory = 18, "entering the directory";
    /// Replacing the process by the program.
    Exec = 19, "executing the program";
    /// Checking that a writable place can be written.
    ForeignOwner = 20, "checking who owns";
    /// Making and enforcing rules for files below the mounts.
    Landlock = 21, "setting up Landlock rules";
    /// Giving the session's network an address.
    Address = 22, "giving the network of the sandbox its addresses";
    /// Making the listeners at which connections end.
    Listeners = 23, "listening in the network of the sandbox";
    /// Leading connections to them.
    Redirect = 24, "leading connections to the host; the kernel must have nf_tables with `redirect` and `inet` NAT";
    /// Starting the broker that decides about names.
    Broker = 25, "starting the broker of names";
    /// Reading the rules over names.
    Names = 26, "reading the rules over names";
    /// Making a control group and starting a process in it.
    Group = 27, "making a control group beside the own one";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_stage() {
        let stages: Vec<_> =
            (0..100).filter_map(|number| Some((number, Stage::from_number(number)?))).collect();
        assert_eq!(stages.len(), 27);
        for (number, stage) in stages {
            assert_eq!(stage.number(), number);
        }
    }
}
