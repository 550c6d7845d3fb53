//! The steps of a setup, as errors and messages name them.

use std::fmt;

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)+) => {
        /// The step of a setup that failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Stage {
            $($(#[$doc])* $name,)+
        }

        impl Stage {
            /// Returns the number of the stage in messages.
            pub fn number(self) -> u32 {
                match self { $(Self::$name => $number,)+ }
            }

            /// Returns the stage with this number.
            pub fn from_number(number: u32) -> Option<Self> {
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
    /// Reading the host's request.
    Request = 1, "the keeper did not understand the host; do both come from the same release?";
    /// Creating the session's namespaces.
    Namespaces = 2,
        "making namespaces; user namespaces must be permitted (`sysctl user.max_user_namespaces`, AppArmor, \
         and inside a container its seccomp profile)";
    /// Mapping the user into the user namespace.
    Identity = 3, "mapping the user into the user namespace; AppArmor may restrict it";
    /// Opening a place by its path.
    OpenPlace = 4, "opening the place (a symbolic link in it is refused)";
    /// Copying the mounts of a place.
    CopyMounts = 5, "copying the mounts of";
    /// Making mounts read-only, or disallowing device files on them.
    MountAttributes = 6, "restricting the mounts of";
    /// Attaching a mount to its path.
    AttachMount = 7, "mounting over";
    /// Creating a small file system.
    NewFilesystem = 8, "making a file system for";
    /// Switching the loopback device on.
    Loopback = 9, "switching the loopback device on";
    /// Setting the host name.
    HostName = 10, "setting the host name";
    /// Dropping privileges.
    Privileges = 11, "giving up capabilities";
    /// Loading the seccomp filter.
    Seccomp = 12, "loading the filter of system calls; the kernel must have seccomp";
    /// Opening the view of the files that the host uses.
    View = 13, "opening the view of the sandbox";
    /// Setting resource limits.
    Limits = 14, "setting a resource limit";
    /// Creating a process.
    Process = 15, "making a process";
    /// Mounting the command's own `/proc`.
    Proc = 16, "mounting /proc; inside a container the outer /proc must not be masked";
    /// Connecting standard input and output.
    Stdio = 17, "connecting standard input and output";
    /// Entering the working directory.
    Directory = 18, "entering the directory";
    /// Executing the program.
    Exec = 19, "executing the program";
    /// Checking that a writable place belongs to the right user.
    ForeignOwner = 20, "checking who owns";
    /// Creating and enforcing Landlock rules.
    Landlock = 21, "setting up Landlock rules";
    /// Giving the session's network its addresses.
    Address = 22, "giving the network of the sandbox its addresses";
    /// Creating the listeners at which connections end.
    Listeners = 23, "listening in the network of the sandbox";
    /// Redirecting connections to the listeners.
    Redirect = 24, "leading connections to the host; the kernel must have nf_tables with `redirect` and `inet` NAT";
    /// Starting the broker.
    Broker = 25, "starting the broker of names";
    /// Decoding the rules over names.
    Names = 26, "reading the rules over names";
    /// Creating a control group and starting a process in it.
    Group = 27, "creating a control group beside its own";
    /// Mounting the branch over the project.
    Branch = 28,
        "mounting the branch, which needs overlay mounts in user namespaces (Linux 5.11), and a state directory and a \
         project on file systems that can be layered, over";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_stage() {
        let stages: Vec<_> =
            (0..100).filter_map(|number| Some((number, Stage::from_number(number)?))).collect();
        assert_eq!(stages.len(), 28);
        for (number, stage) in stages {
            assert_eq!(stage.number(), number);
        }
    }
}
