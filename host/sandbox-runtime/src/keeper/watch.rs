//! Checks, ten times a second, limits that the kernel does not enforce for a whole command.
//!
//! Processes that a command left running belong to it as long as its init lives, and are found as descendants of that
//! init: orphans become the init's children.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use portcullis_sandbox::{IsolationMode, Limits};
use portcullis_sys::memory::remove_segment;
use portcullis_sys::process::page_size;
use rustix::event::Timespec;

use crate::Breach;

/// The interval between checks.
const EVERY: Duration = Duration::from_millis(100);
/// A check takes at most this fraction of the time, so that thousands of processes do not keep the keeper busy.
const SHARE: u32 = 10;

/// A command at its process limit often has lost some processes again when it is checked.
const NEAR: u64 = 4;

/// The schedule of checks.
#[derive(Debug)]
pub(super) struct Watch {
    next: Instant,
    page: u64,
    /// Whether System V segments are the session's own.
    has_own_segments: bool,
}

/// The watched state of one command.
#[derive(Debug)]
pub(super) struct WatchedCommand {
    /// The pid of the init, as in this process's `/proc`.
    pub(super) init: i32,
    pub(super) limits: Limits,
    pub(super) breach: Option<Breach>,
}

/// The data that `/proc` gives about one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    threads: u64,
    pages: u64,
}

/// The resources that all processes of a command use.
#[derive(Debug, Default)]
struct Usage {
    threads: u64,
    pages: u64,
    processes: Vec<i32>,
}

impl WatchedCommand {
    fn is_bounded(&self) -> bool {
        self.limits.memory_bytes.is_some() || self.limits.processes.is_some()
    }
}

impl Watch {
    pub(super) fn new(isolation: IsolationMode) -> Self {
        Self {
            next: Instant::now(),
            page: page_size(),
            has_own_segments: isolation == IsolationMode::Namespaces,
        }
    }

    /// Returns how long to wait for other events; `None` if no command has limits.
    pub(super) fn pause<'a>(
        &self,
        mut commands: impl Iterator<Item = &'a WatchedCommand>,
    ) -> Option<Timespec> {
        if !commands.any(WatchedCommand::is_bounded) {
            return None;
        }
        // A command that has just started gets the whole interval: most end within it and cost nothing.
        let left = self.next.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        Timespec::try_from(left).ok()
    }

    /// Postpones the next check, if no command ran until this one.
    pub(super) fn rest(&mut self) {
        self.next = Instant::now() + EVERY;
    }

    /// Performs a check if it is due, and notes which limits commands have exceeded. `is_refused` says whether the
    /// kernel itself refuses processes above the limit.
    pub(super) fn look<'a>(
        &mut self,
        commands: impl Iterator<Item = &'a mut WatchedCommand>,
        is_refused: bool,
    ) {
        let start = Instant::now();
        if start < self.next {
            return;
        }
        let mut commands: Vec<&mut WatchedCommand> =
            commands.filter(|command| command.is_bounded()).collect();
        if !commands.is_empty() {
            let processes = processes();
            let usage = usage(&processes, &commands.iter().map(|command| command.init).collect::<Vec<_>>());
            // The kernel counts all processes in the session, including the supervisor's own.
            let together = processes.values().map(|process| process.threads).sum();
            let segments = if self.has_own_segments { segments() } else { Vec::new() };
            let detached =
                segments.iter().filter(|segment| segment.users == 0).map(|segment| segment.bytes).sum();
            for command in &mut commands {
                let Some(usage) = usage.get(&command.init) else { continue };
                let together = is_refused.then_some(together);
                command.breach = self.breach(command, usage, together, detached).or(command.breach);
            }
        }
        let end = Instant::now();
        self.next = end + EVERY.max((end - start) * SHARE);
    }

    /// Returns the limit that a command exceeds. `together` counts all processes in the session, if the kernel itself
    /// refuses more; `detached` is the memory of segments that no process has mapped.
    fn breach(
        &self,
        command: &WatchedCommand,
        usage: &Usage,
        together: Option<u64>,
        detached: u64,
    ) -> Option<Breach> {
        let is_above = |bytes: u64| command.limits.memory_bytes.is_some_and(|limit| bytes > limit);
        let files = || files_in_memory(&usage.processes).saturating_add(detached);
        // The first sum counts shared memory once per process; the second is exact, and slow.
        if command.limits.memory_bytes.is_some()
            && is_above(usage.pages.saturating_mul(self.page).saturating_add(files()))
            && is_above(exact(&usage.processes, files()))
        {
            return Some(Breach::Memory);
        }
        let limit = command.limits.processes?;
        match together {
            Some(count) if count + NEAR >= limit => Some(Breach::Processes),
            None if usage.threads > limit => Some(Breach::TooManyProcesses),
            Some(_) | None => None,
        }
    }
}

fn processes() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|pid| {
            // A process that has just ended need not be counted.
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&text)?))
        })
        .collect()
}

/// Parses a line as in proc_pid_stat(5): the name, which may contain any character, ends with the last bracket.
fn parse(text: &str) -> Option<Process> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let threads = fields.nth(15)?.parse().ok()?;
    let pages = fields.nth(3)?.parse().ok()?;
    Some(Process { parent, threads, pages })
}

/// Adds up the descendants of each init. The init itself is not counted: its memory is the keeper's.
fn usage(processes: &HashMap<i32, Process>, inits: &[i32]) -> HashMap<i32, Usage> {
    let mut all: HashMap<i32, Usage> = inits.iter().map(|init| (*init, Usage::default())).collect();
    for (pid, process) in processes {
        let Some(init) = above(processes, *pid, inits) else { continue };
        let usage = all.entry(init).or_default();
        usage.threads += process.threads;
        usage.pages = usage.pages.saturating_add(process.pages);
        usage.processes.push(*pid);
    }
    all
}

/// Returns the init that a process descends from.
fn above(processes: &HashMap<i32, Process>, pid: i32, inits: &[i32]) -> Option<i32> {
    let mut at = pid;
    // Parents may change while they are read; there are never more steps than processes.
    for _ in 0..processes.len() {
        at = processes.get(&at)?.parent;
        if inits.contains(&at) {
            return Some(at);
        }
    }
    None
}

/// Returns the bytes that processes use, with shared memory divided among them, plus those of memfds that they hold
/// without mapping them.
///
/// Mapped parts of a memfd are counted by their process as well, so the greater of the two counts. Shares move from one
/// process to another when one starts or ends, and would then count twice. Each process is therefore read twice, and
/// its smaller share counts.
fn exact(processes: &[i32], files: u64) -> u64 {
    let read = || processes.iter().map(|pid| Share::read(*pid)).collect::<Vec<_>>();
    let (first, second) = (read(), read());
    let shares = || first.iter().zip(&second);
    let own: u64 = shares().map(|(first, second)| first.own.min(second.own)).sum();
    let in_files: u64 = shares().map(|(first, second)| first.in_files.min(second.in_files)).sum();
    own.saturating_add(in_files.max(files))
}

/// A process's proportional share of shared memory, plus its private memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Share {
    own: u64,
    /// The part in mapped memfds.
    in_files: u64,
}

impl Share {
    /// Reads the share of a process; zero if it has ended.
    fn read(pid: i32) -> Self {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default())
    }

    /// Parses the text as in proc_pid_smaps(5).
    fn parse(text: &str) -> Self {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1024)
        };
        let in_files = bytes("Pss_Shmem:").unwrap_or_default();
        Self { own: bytes("Pss:").unwrap_or_default().saturating_sub(in_files), in_files }
    }
}

/// Returns the bytes of the memfds that processes have open, each counted once.
fn files_in_memory(processes: &[i32]) -> u64 {
    let mut seen = HashSet::new();
    let open = processes.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok()).flatten();
    let files = open.flatten().map(|entry| entry.path()).filter(|path| {
        fs::read_link(path).is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    });
    // A file that was just closed takes no memory.
    let found = files.filter_map(|path| fs::metadata(path).ok());
    found
        .filter(|file| seen.insert((file.dev(), file.ino())))
        .map(|file| file.blocks().saturating_mul(512))
        .sum()
}

/// A segment of System V shared memory in the session's ipc namespace.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    id: i32,
    /// The bytes in memory and in swap.
    bytes: u64,
    /// The number of processes that have it mapped.
    users: u64,
}

fn segments() -> Vec<Segment> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    text.lines().skip(1).filter_map(parse_segment).collect()
}

/// Parses a line as in proc_sysvipc(5): the columns up to `ctime`, then `rss` and `swap`.
fn parse_segment(line: &str) -> Option<Segment> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let bytes = number(14)?.saturating_add(number(15)?);
    Some(Segment { id: fields.get(1)?.parse().ok()?, bytes, users: number(6)? })
}

/// Removes the segments that commands have left; otherwise they would exist for the rest of the session.
pub(super) fn remove_segments() {
    for segment in segments() {
        // If it fails, another process has removed the segment.
        let _gone = remove_segment(segment.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes_do_not_mislead() {
        let text =
            "7 (a) R 1 (b)) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 55 1000 77 18446744073709551615";
        assert_eq!(parse(text), Some(Process { parent: 3, threads: 9, pages: 77 }));
        assert_eq!(parse("7 (a) S 3"), None);
    }

    #[test]
    fn everything_below_an_init_counts() {
        let process = |parent, threads, pages| Process { parent, threads, pages };
        let processes = HashMap::from([
            (1, process(0, 1, 500)),
            (10, process(1, 1, 500)),
            (11, process(10, 1, 5)),
            (12, process(11, 4, 7)),
            (20, process(1, 1, 500)),
            (21, process(20, 2, 3)),
            (99, process(98, 1, 1)),
        ]);
        let usage = usage(&processes, &[10, 20]);
        assert_eq!((usage[&10].threads, usage[&10].pages), (5, 12));
        assert_eq!((usage[&20].threads, usage[&20].pages), (2, 3));
    }

    #[test]
    fn this_process_is_seen() {
        let own = i32::try_from(std::process::id()).expect("a number");
        let seen = processes();
        assert!(seen.get(&own).is_some_and(|process| process.threads >= 1 && process.pages > 0));
        assert!(Share::read(own).own > 0);
    }

    #[test]
    fn memory_in_files_counts_once() {
        let text = "1000-2000 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss:     500 kB\nPss_Anon: 200 kB\nPss_Shmem:  300 kB\n";
        assert_eq!(Share::parse(text), Share { own: 200 << 10, in_files: 300 << 10 });
        assert_eq!(Share::parse(""), Share::default());
        assert_eq!(exact(&[], 5), 5);
        let own = i32::try_from(std::process::id()).expect("a number");
        let file = rustix::fs::memfd_create("counted", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let mut file = fs::File::from(file);
        let before = files_in_memory(&[own]);
        std::io::Write::write_all(&mut file, &[1; 100_000]).expect("written");
        let copy = file.try_clone().expect("a copy");
        assert!((100_000..200_000).contains(&(files_in_memory(&[own, own]) - before)));
        drop(copy);
    }

    #[test]
    fn segments_are_read() {
        let line = "         0     32768  1600             52428800   101   102  2  1000  1000  1000  1000 \
                    1700000000 1700000000 1700000000              4096                 8192";
        assert_eq!(parse_segment(line), Some(Segment { id: 32768, bytes: 12288, users: 2 }));
        assert_eq!(parse_segment("key shmid"), None);
    }

    #[test]
    fn what_is_above_a_limit_is_said() {
        let watch = Watch::new(IsolationMode::Namespaces);
        let limits = Limits { processes: Some(4), memory_bytes: Some(1 << 40), ..Limits::default() };
        let command = WatchedCommand { init: 1, limits, breach: None };
        let usage = |threads| Usage { threads, ..Usage::default() };
        assert_eq!(watch.breach(&command, &usage(2), Some(3), 0), Some(Breach::Processes));
        let limits = Limits { processes: Some(40), ..Limits::default() };
        let roomy = WatchedCommand { init: 1, limits, breach: None };
        assert_eq!(watch.breach(&roomy, &usage(20), Some(30), 0), None);
        assert_eq!(watch.breach(&command, &usage(4), None, 0), None);
        assert_eq!(watch.breach(&command, &usage(5), None, 0), Some(Breach::TooManyProcesses));
    }
}
