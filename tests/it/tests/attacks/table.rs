//! The attacks that are scripts.

/// An attack: its number in the corpus, a name, who can do it where nothing stops it, and the script.
pub(super) struct Attack(pub(super) u16, pub(super) &'static str, pub(super) By, pub(super) &'static str);

/// Who can do it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Anybody,
    Root,
}
use By::{Anybody, Root};

/// Tried in a project.
#[rustfmt::skip]
pub(super) const IN_A_PROJECT: &[Attack] = &[
    // Reading.
    Attack(1, "a key in the home directory", Anybody, "cat ~/.ssh/id_rsa"),
    Attack(2, "through a link", Anybody, "ln -s ~/.ssh/id_rsa l2; cat l2"),
    Attack(3, "through a hard link", Anybody, "ln ~/.ssh/id_rsa l3; cat l3"),
    Attack(6, "the root of another process", Anybody, "cat /proc/$VICTIM/root$HOME/.ssh/id_rsa"),
    Attack(6, "the directory of another process", Anybody, "cat /proc/$VICTIM/cwd/.ssh/id_rsa"),
    Attack(7, "the environment of another process", Anybody, "tr '\\0' '\\n' < /proc/$VICTIM/environ"),
    Attack(8, "the parent of what is hidden renamed", Anybody, "mv conf conf2; cat conf2/secret"),
    Attack(11, "the machine's passwords", Root, "grep -q . /etc/shadow && reached"),
    Attack(12, "an inherited file", Anybody, "cat <&7"),
    Attack(12, "an inherited directory", Anybody, "cat /proc/self/fd/8/.ssh/id_rsa"),
    Attack(14, "the user's keys", Anybody, "call 250 0 -3 1 0 0"),
    Attack(13, "shared memory of the host", Anybody, "cat /dev/shm/$SHARED"),
    Attack(15, "file handles", Anybody, "call 304 -1 x 0"),
    // Writing.
    Attack(28, "outside", Anybody, "echo x > ../outside/f28 && reached"),
    Attack(29, "outside through a link", Anybody, "ln -s ../outside o29; echo x > o29/f && reached"),
    Attack(30, "hooks of git", Anybody, "echo x > .git/hooks/pre-commit && reached"),
    Attack(32, "hooks of git after a rename", Anybody, "mv .git .g && mkdir -p .git/hooks && reached; if [ -d .g ]; then rm -rf .git; mv .g .git; fi"),
    Attack(31, "a program for git", Anybody, "git config core.fsmonitor ./evil && reached"),
    Attack(31, "a program for git, written by hand", Anybody, "printf '[core]\\n\\tfsmonitor = ./evil\\n' >> .git/config && reached"),
    Attack(33, "git's files elsewhere", Anybody, "echo ../evil > .git/commondir; sleep 0.1; [ -s .git/commondir ] && reached; rm -f .git/commondir"),
    Attack(34, "hooks of a new repository", Anybody, "git init -q sub34 && echo x > sub34/.git/hooks/post-checkout && reached"),
    Attack(34, "a program for git in a new repository", Anybody, "git init -q sub34b; git -C sub34b config core.fsmonitor ./evil && reached"),
    Attack(35, "a repository in the index", Anybody, "git init -q sub35 && git -C sub35 commit -q --allow-empty -m x; git add sub35 2>/dev/null; echo x > sub35/.git/hooks/post-checkout && reached"),
    Attack(36, "hooks of a submodule", Anybody, "git init -q --bare .git/modules/m; echo x > .git/modules/m/hooks/post-checkout && reached"),
    Attack(36, "settings of a worktree", Anybody, "printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/config.worktree && reached"),
    Attack(37, "another repository for a directory", Anybody, "mkdir -p t37; echo 'gitdir: ../evil' > t37/.git; sleep 0.1; [ -s t37/.git ] && reached"),
    Attack(38, "filters", Anybody, "echo '* filter=x' > .git/info/attributes && reached"),
    Attack(41, "start-up files of shells", Anybody, "echo x > .bashrc && reached"),
    Attack(41, "start-up files of shells, deep down", Anybody, "echo x > a/b/c/d/.zshrc && reached"),
    Attack(42, "settings of tools", Anybody, "for f in .zshenv .bash_login .inputrc .vimrc .npmrc .pypirc; do echo x > $f && reached; done"),
    Attack(43, "settings of tools that change directories", Anybody, "for f in .envrc .tool-versions mise.toml; do echo x > $f && reached; done"),
    Attack(44, "tasks of an editor", Anybody, "mkdir -p .vscode && echo x > .vscode/tasks.json && reached"),
    Attack(44, "tasks of an editor in a directory", Anybody, "mkdir -p a/.vscode && echo x > a/.vscode/tasks.json && reached"),
    Attack(44, "tasks of an editor, moved there", Anybody, "mkdir v44; echo x > v44/tasks.json; mv v44 a/b/.vscode && reached"),
    Attack(45, "what machines build", Anybody, "mkdir -p .github/workflows && echo x > .github/workflows/x.yml && reached"),
    Attack(45, "what runs at a commit", Anybody, "mkdir -p .husky && echo x > .husky/pre-commit && reached"),
    Attack(47, "extensions of the agent in a project without them", Anybody, "mkdir -p a/.pi/extensions && echo x > a/.pi/extensions/x.ts && reached"),
    Attack(48, "settings of agents", Anybody, "mkdir -p .claude .codex .cursor; for f in .claude/settings.json .codex/config.toml .cursor/mcp.json .mcp.json AGENTS.md; do echo x > $f && reached; done"),
    Attack(47, "settings of the agent in the project", Anybody, "echo '{}' > .pi/settings.json && reached"),
    Attack(47, "renamed away", Anybody, "mv .pi .p && reached; mv .p .pi"),
    Attack(47, "looser rules", Anybody, "echo '{}' > .pi/portcullis.json && reached"),
    Attack(50, "compiled policies", Anybody, "mkdir -p ~/.cache/portcullis && echo x > ~/.cache/portcullis/p && reached"),
    Attack(50, "the log", Anybody, "mkdir -p ~/.local/state/portcullis && echo x > ~/.local/state/portcullis/l && reached"),
    Attack(51, "a directory of PATH", Anybody, "echo x > ../bin/evil && reached"),
    Attack(52, "units of systemd", Anybody, "mkdir -p ~/.config/systemd/user && echo x > ~/.config/systemd/user/x.service && reached"),
    Attack(60, "the pattern of core dumps", Root, ": >> /proc/sys/kernel/core_pattern && reached"),
    Attack(52, "files that the system executes", Root, ": > /etc/portcullis-it && rm /etc/portcullis-it && reached"),
    Attack(61, "what makes the kernel act", Root, "for f in /proc/sysrq-trigger /sys/fs/cgroup/*/release_agent /sys/power/state; do \
        [ -e $f ] && : >> $f && reached; done"),
    // Privileges.
    Attack(53, "set-user-id", Anybody, "cp /bin/true s53; chmod 4755 s53; [ -u s53 ] && reached"),
    Attack(53, "set-user-id at birth", Anybody, "perl -MFcntl -e 'sysopen F, q(t53), O_CREAT | O_WRONLY, 04755'; [ -u t53 ] && reached"),
    Attack(54, "devices", Root, "mknod n54 c 1 3 && reached"),
    Attack(54, "the kernel's messages", Root, "dd if=/dev/kmsg bs=8192 count=1 iflag=nonblock of=/dev/null status=none && reached"),
    Attack(54, "memory and disks", Root, "for f in /dev/mem /dev/kvm /dev/loop0 /proc/kcore; do head -c1 $f >/dev/null && reached; done"),
    Attack(55, "mounts", Root, "unshare -m mount --bind . . && reached"),
    Attack(56, "namespaces", Anybody, "unshare -Ur true && reached"),
    Attack(56, "mounts in a namespace", Anybody, "unshare -Urm mount --bind . . && reached"),
    Attack(57, "a sandbox in the sandbox", Anybody, "unshare -Urmpf --mount-proc true && reached"),
    Attack(58, "another root's mounts", Root, "call 155 nowhere nowhere"),
    Attack(58, "copies of mounts", Root, "call 428 -100 / 1"),
    Attack(58, "unmounting", Root, "call 166 nowhere 0"),
    Attack(58, "other namespaces", Anybody, "call 308 -1 0"),
    Attack(58, "the new mount calls", Root, "call 430 tmpfs 0"),
    Attack(59, "another root", Root, "perl -e 'print qq(REACHED) if chroot q(/)'"),
    // Processes.
    Attack(62, "signals", Anybody, "kill -0 $VICTIM && reached"),
    Attack(63, "seeing", Anybody, "[ -d /proc/$VICTIM ] && reached"),
    Attack(64, "tracing", Anybody, "call 101 0 0 0 0"),
    Attack(64, "memory", Anybody, "call 310 $$ 0 0 0 0 0"),
    Attack(65, "descriptors", Anybody, "call 438 -1 0 0"),
    Attack(69, "input for the terminal", Anybody, "call 16 0 21522 x"),
    Attack(69, "the same with bits that nobody looks at", Anybody, "call 16 0 4294988818 x"),
    Attack(69, "the selection of the terminal", Anybody, "call 16 0 21532 x"),
    Attack(78, "an inherited socket", Anybody, "echo x >&9 && reached"),
    // The kernel.
    Attack(71, "io_uring", Anybody, "call 425 1 \"$(printf '%0256d' 0)\""),
    Attack(79, "odd sockets", Anybody, "perl -e 'socket(S, 16, 3, 15) and print qq(REACHED)'"),
    Attack(79, "raw sockets", Root, "perl -e 'socket(S, 17, 3, 0) and print qq(REACHED)'"),
    Attack(79, "sockets of virtual machines", Anybody, "perl -e 'socket(S, 40, 1, 0) and print qq(REACHED)'"),
    Attack(79, "raw ICMP", Root, "perl -e 'socket(S, 2, 3, 1) and print qq(REACHED)'"),
    Attack(80, "another kernel", Root, "call 246 0 0 0 65535"),
    Attack(80, "modules", Root, "call 313 -1 x 0"),
    Attack(80, "questions for keys", Anybody, "call 249 user portcullis-none x 0"),
    Attack(80, "bpf", Anybody, "call 321 999 0 0"),
    Attack(80, "perf", Anybody, "call 298 0 0 -1 -1 0"),
    Attack(80, "faults", Anybody, "call 323 1"),
    Attack(80, "keys", Anybody, "call 248 user portcullis-it x 1 -2"),
    // Around a rule on commands: whatever is run in whatever way is held to the same.
    Attack(82, "a program in memory", Anybody, r#"perl -e '$name = "x"; $fd = syscall(319, $name, 0); open($o, ">&=", $fd); open($i, "<", "/bin/cat"); undef $/; print {$o} <$i>; $o->flush; exec {"/proc/self/fd/$fd"} "cat", "$ENV{HOME}/.ssh/id_rsa"'"#),
    Attack(82, "a copy of a program", Anybody, "cp /bin/cat c82 && ./c82 ~/.ssh/id_rsa"),
    Attack(83, "a shell in a shell", Anybody, "bash -c 'env -i HOME=$HOME /bin/sh -c \"cat ~/.ssh/id_rsa\"'"),
    Attack(83, "words from elsewhere", Anybody, "echo ~/.ssh/id_rsa | xargs cat"),
    Attack(83, "another language", Anybody, "python3 -c 'import os; print(open(os.path.expanduser(\"~/.ssh/id_rsa\")).read())'"),
    // The environment and the network.
    Attack(40, "git's variables", Anybody, "echo $GIT_DIR"),
    Attack(40, "git's settings", Anybody, "echo $GIT_CONFIG_COUNT"),
    Attack(81, "start-up files of shells", Anybody, "echo $BASH_ENV"),
    Attack(77, "the session bus", Anybody, "echo $DBUS_SESSION_BUS_ADDRESS"),
    Attack(73, "a socket in the project", Anybody, "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(q(service.sock))) and print q(REACHED)'"),
    Attack(75, "a socket outside", Anybody, "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(q(../outside/service.sock))) and print q(REACHED)'"),
    Attack(74, "an abstract socket", Anybody, "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack(q(S a*), AF_UNIX, qq(\\0$ENV{ABSTRACT}))) and print q(REACHED)'"),
    Attack(81, "injection", Anybody, "echo $NODE_OPTIONS"),
    Attack(84, "secrets", Anybody, "echo $AWS_SECRET_ACCESS_KEY$MY_TOKEN"),
    Attack(76, "agents", Anybody, "echo $SSH_AUTH_SOCK"),
    Attack(89, "a server of this machine", Anybody, "exec 3<>/dev/tcp/127.0.0.1/$PORT && reached"),
    Attack(112, "by its name", Anybody, "exec 3<>/dev/tcp/localhost/$PORT && reached"),
];

/// Tried where the agent was started in the home directory.
#[rustfmt::skip]
pub(super) const IN_THE_HOME_DIRECTORY: &[Attack] = &[
    Attack(41, "a start-up file", Anybody, "echo x >> ~/.bashrc && reached"),
    Attack(49, "who may log in", Anybody, "echo x >> ~/.ssh/authorized_keys && reached"),
    Attack(49, "the agent's keys", Anybody, "cat ~/.pi/agent/auth.json"),
    Attack(49, "an extension", Anybody, "mkdir -p ~/.pi/agent/extensions && echo x > ~/.pi/agent/extensions/x.ts && reached"),
    Attack(49, "rules that are not there yet", Anybody, "mkdir -p ~/.pi/agent/sandbox && echo x > ~/.pi/agent/sandbox/default.json && reached"),
    Attack(49, "everything renamed", Anybody, "mv ~/.pi ~/.p && reached; mv ~/.p ~/.pi"),
    Attack(50, "the log", Anybody, "mkdir -p ~/.local/state/portcullis && echo x > ~/.local/state/portcullis/l && reached"),
];

/// Tried with little of everything.
#[rustfmt::skip]
pub(super) const WITH_SMALL_LIMITS: &[Attack] = &[
    Attack(85, "many processes", Anybody, "sh -c 'i=0; while [ $i -lt 700 ]; do sleep 2 & i=$((i+1)); done' 2>/dev/null && reached; sleep 2.5"),
    Attack(86, "much memory", Anybody, "perl -e '$x = q(x) x 600_000_000; print q(REACHED)'"),
    Attack(86, "much shared memory", Anybody, "head -c 300000000 /dev/zero > /dev/shm/portcullis-it && reached; rm -f /dev/shm/portcullis-it"),
    Attack(87, "a big file", Anybody, "head -c 100000000 /dev/zero > big && reached; rm -f big"),
];

/// The rows of the corpus whose layer is files, tools, system calls, namespaces, limits, the environment or policies.
pub(super) const ROWS: &[u16] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54,
    55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81,
    82, 83, 84, 85, 86, 87, 88, 89, 90, 112, 117,
];

/// Rows that need more than a script, with the test that tries them.
pub(super) const TRIED_ELSEWHERE: &[(u16, &str)] = &[
    (4, "tests/it/tests/hard_links.rs::commands_read_no_secret_by_another_name"),
    (5, "host/confine/tests/kernel/held.rs::a_file_with_other_names_is_asked_about"),
    (9, "tests/it/tests/cli.rs::patterns_hide_what_appears_later"),
    (10, "tests/it/tests/cli.rs::patterns_hide_what_appears_later"),
    (13, "host/confine/tests/kernel/attacks.rs::objects_of_system_v_are_not_shared"),
    (16, "tests/it/tests/attacks.rs::file_tools"),
    (16, "tests/it/tests/pi_print.rs::spellings_of_a_path"),
    (17, "host/file-gate/tests/gate/races.rs::no_read_leaks_in_a_race"),
    (18, "host/file-gate/tests/gate/races.rs::no_write_leaks_in_a_race"),
    (19, "host/file-gate/tests/gate/writes.rs::a_link_to_nothing_is_what_it_creates"),
    (20, "tests/it/tests/odd_paths.rs::files_that_are_none"),
    (21, "tests/it/tests/searches.rs::names_and_lines_do_not_leak"),
    (21, "host/file-gate/tests/gate/searches.rs::no_search_leaks_in_a_race"),
    (22, "tests/it/tests/other_tools.rs::unknown_tools_are_a_question"),
    (22, "tests/it/tests/contained.rs::an_extension_gets_nowhere_and_work_goes_on"),
    (23, "tests/it/tests/protocol.rs::paths_that_are_none"),
    (23, "tests/it/tests/odd_paths.rs::lengths_and_bytes"),
    (24, "tests/it/tests/odd_paths.rs::names_that_look_alike"),
    (24, "host/session/src/visible.rs::escapes_what_acts"),
    // No kernel here has a file system that ignores case.
    (25, "host/names/tests/all/classes.rs::names_in_git_directories"),
    (26, "host/config/tests/all/resolving.rs::a_directory_named_like_a_glob_is_no_glob"),
    (27, "host/decision/src/pattern/path.rs::a_glob_bomb_is_linear"),
    (39, "host/names/tests/all/hostile.rs::the_modules_file_is_read_for_submodules_only"),
    (46, "tests/it/tests/policies.rs::what_builds_run_later_is_written_down"),
    (83, "tests/it/tests/policies.rs::shipped_policies_are_used_by_name"),
    (117, "host/policy-runtime/tests/it/hostile.rs::endless_loop"),
    (117, "host/policy-runtime/tests/it/hostile.rs::memory_bomb"),
    (117, "host/policy-runtime/tests/it/hostile.rs::deep_recursion"),
    (117, "host/policy-runtime/tests/it/hostile.rs::answers_without_meaning"),
    (117, "host/policy-runtime/tests/it/boundary.rs::words_of_an_answer_that_were_changed"),
    (64, "host/confine/tests/kernel/attacks.rs::the_init_cannot_be_looked_into"),
    (62, "tests/it/tests/against_pi.rs::kills_that_name_everybody"),
    (64, "tests/it/tests/against_pi.rs::attacked"),
    (65, "tests/it/tests/against_pi.rs::attacked"),
    (69, "tests/it/tests/against_pi.rs::the_terminal_of_pi"),
    (66, "host/confine/tests/kernel/death.rs::the_end_of_a_command_ends_what_it_left"),
    (67, "host/confine/tests/kernel/death.rs::a_killed_host_takes_all_with_it"),
    (68, "tests/it/tests/attacks.rs::nothing_is_left_of_a_session"),
    (72, "host/confine/tests/kernel/attacks.rs::foreign_calls_are_killed"),
    (90, "tests/it/tests/network.rs::nothing_is_asked_of_any_name_server"),
    (88, "tests/it/tests/machine.rs::limits_are_told_to_the_agent"),
];
