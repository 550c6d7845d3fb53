//! The answers of the WASI functions.

use wasmtime::StoreContextMut;
use wasmtime::component::{LinkerInstance, ResourceAny, ResourceDynamic, Val};

use crate::state::{HostState, LogLevel};

/// Largest number of random bytes or polled handles in one call.
const MAX_ITEMS: u64 = 64 << 10;
/// Number of bytes that an output stream accepts at once.
const WRITE_WINDOW: u64 = 4096;
/// Numbers of the standard output and standard error streams.
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

/// The error of a policy that called a forbidden function.
#[derive(Debug, thiserror::Error)]
#[error("it called `{function}`, which policies may not")]
pub(crate) struct Forbidden {
    function: String,
}

/// Defines one function.
pub(super) fn define(
    interface: &str,
    name: &str,
    linker: &mut LinkerInstance<'_, HostState>,
) -> wasmtime::Result<()> {
    let function = format!("{interface}#{name}");
    let answer = FunctionResult::for_function(interface, name);
    linker.func_new(name, move |mut store, _, arguments, results| {
        let arguments = receive(&mut store, arguments)?;
        let value = match answer {
            Some(answer) => answer.give(&mut store, &arguments)?,
            None => return Err(wasmtime::Error::new(Forbidden { function: function.clone() })),
        };
        if let (Some(place), Some(value)) = (results.first_mut(), value) {
            *place = value;
        }
        Ok(())
    })
}

/// The answer of a known function.
#[derive(Debug, Clone, Copy)]
enum FunctionResult {
    /// No value.
    Nothing,
    /// An empty list.
    EmptyList,
    /// `none`.
    NoValue,
    /// A constant number.
    Number(u64),
    /// Midnight, 1 January 1970.
    Epoch,
    /// The requested number of random bytes.
    RandomBytes,
    /// A random number.
    RandomNumber,
    /// Two random numbers.
    RandomPair,
    /// A new handle on a resource: its kind and its number.
    Handle(&'static str, u32),
    /// A stream that has ended.
    Closed,
    /// The number of bytes that may be written.
    WriteWindow,
    /// Accepts the bytes of the second argument.
    Write,
    /// Success without a value.
    Done,
    /// `true`.
    Yes,
    /// Every polled handle is ready.
    AllReady,
    /// The text of an error that cannot occur.
    NoError,
}

impl FunctionResult {
    /// Returns the answer of a known function.
    fn for_function(interface: &str, name: &str) -> Option<Self> {
        let answer = match (interface, name) {
            ("wasi:cli/environment", "get-environment" | "get-arguments")
            | ("wasi:filesystem/preopens", "get-directories") => Self::EmptyList,
            ("wasi:cli/environment", "initial-cwd" | "get-initial-cwd")
            | ("wasi:cli/terminal-stdin", "get-terminal-stdin")
            | ("wasi:cli/terminal-stdout", "get-terminal-stdout")
            | ("wasi:cli/terminal-stderr", "get-terminal-stderr")
            | ("wasi:filesystem/types", "filesystem-error-code") => Self::NoValue,
            ("wasi:cli/stdin", "get-stdin") => Self::Handle("input-stream", 0),
            ("wasi:cli/stdout", "get-stdout") => Self::Handle("output-stream", STDOUT),
            ("wasi:cli/stderr", "get-stderr") => Self::Handle("output-stream", STDERR),
            ("wasi:clocks/monotonic-clock", "now") => Self::Number(0),
            ("wasi:clocks/monotonic-clock", "resolution") => Self::Number(1),
            ("wasi:clocks/monotonic-clock", "subscribe-instant" | "subscribe-duration")
            | ("wasi:io/streams", "[method]input-stream.subscribe" | "[method]output-stream.subscribe") => {
                Self::Handle("pollable", 0)
            }
            ("wasi:clocks/wall-clock", "now" | "resolution") => Self::Epoch,
            ("wasi:random/random", "get-random-bytes")
            | ("wasi:random/insecure", "get-insecure-random-bytes") => Self::RandomBytes,
            ("wasi:random/random", "get-random-u64")
            | ("wasi:random/insecure", "get-insecure-random-u64") => Self::RandomNumber,
            ("wasi:random/insecure-seed", "insecure-seed") => Self::RandomPair,
            ("wasi:io/poll", "[method]pollable.ready") => Self::Yes,
            ("wasi:io/poll", "[method]pollable.block") => Self::Nothing,
            ("wasi:io/poll", "poll") => Self::AllReady,
            ("wasi:io/error", "[method]error.to-debug-string") => Self::NoError,
            (
                "wasi:io/streams",
                "[method]input-stream.read"
                | "[method]input-stream.blocking-read"
                | "[method]input-stream.skip"
                | "[method]input-stream.blocking-skip"
                | "[method]output-stream.splice"
                | "[method]output-stream.blocking-splice",
            ) => Self::Closed,
            ("wasi:io/streams", "[method]output-stream.check-write") => Self::WriteWindow,
            (
                "wasi:io/streams",
                "[method]output-stream.write" | "[method]output-stream.blocking-write-and-flush",
            ) => Self::Write,
            (
                "wasi:io/streams",
                "[method]output-stream.flush"
                | "[method]output-stream.blocking-flush"
                | "[method]output-stream.write-zeroes"
                | "[method]output-stream.blocking-write-zeroes-and-flush",
            ) => Self::Done,
            _ => return None,
        };
        Some(answer)
    }

    /// Computes the answer.
    fn give(
        self,
        store: &mut StoreContextMut<'_, HostState>,
        arguments: &[Argument<'_>],
    ) -> wasmtime::Result<Option<Val>> {
        let value = match self {
            Self::Nothing => return Ok(None),
            Self::EmptyList => Val::List(Vec::new()),
            Self::NoValue => Val::Option(None),
            Self::Number(number) => Val::U64(number),
            Self::Epoch => Val::Record(vec![
                ("seconds".to_owned(), Val::U64(0)),
                ("nanoseconds".to_owned(), Val::U32(0)),
            ]),
            Self::RandomBytes => random_bytes(store, arguments)?,
            Self::RandomNumber => Val::U64(store.data_mut().next_random()),
            Self::RandomPair => {
                let state = store.data_mut();
                Val::Tuple(vec![Val::U64(state.next_random()), Val::U64(state.next_random())])
            }
            Self::Handle(kind, which) => {
                store.data_mut().handles += 1;
                let resource = ResourceDynamic::new_own(which, resource_kind(kind));
                Val::Resource(resource.try_into_resource_any(store)?)
            }
            Self::Closed => Val::Result(Err(Some(Box::new(Val::Variant("closed".to_owned(), None))))),
            Self::WriteWindow => Val::Result(Ok(Some(Box::new(Val::U64(WRITE_WINDOW))))),
            Self::Write => {
                write(store.data_mut(), arguments);
                Val::Result(Ok(None))
            }
            Self::Done => Val::Result(Ok(None)),
            Self::Yes => Val::Bool(true),
            Self::AllReady => all_ready(arguments)?,
            Self::NoError => Val::String("no such stream".to_owned()),
        };
        Ok(Some(value))
    }
}

/// An argument.
///
/// Its handles are already removed from the guest's table of borrows, which must be empty at the end of the
/// call.
enum Argument<'a> {
    Handle(u32),
    Handles(usize),
    Value(&'a Val),
}

fn receive<'a>(
    store: &mut StoreContextMut<'_, HostState>,
    arguments: &'a [Val],
) -> wasmtime::Result<Vec<Argument<'a>>> {
    let mut received = Vec::with_capacity(arguments.len());
    for argument in arguments {
        received.push(if let Val::Resource(resource) = argument {
            Argument::Handle(resource.try_into_resource_dynamic(&mut *store)?.rep())
        } else if let Some(handles) = handles(argument) {
            for handle in &handles {
                handle.try_into_resource_dynamic(&mut *store)?;
            }
            Argument::Handles(handles.len())
        } else {
            Argument::Value(argument)
        });
    }
    Ok(received)
}

/// Returns the handles of a non-empty list that contains only handles.
fn handles(argument: &Val) -> Option<Vec<ResourceAny>> {
    let Val::List(items) = argument else { return None };
    let handle = |item: &Val| if let Val::Resource(handle) = item { Some(*handle) } else { None };
    items.iter().map(handle).collect::<Option<Vec<_>>>().filter(|handles| !handles.is_empty())
}

fn random_bytes(
    store: &mut StoreContextMut<'_, HostState>,
    arguments: &[Argument<'_>],
) -> wasmtime::Result<Val> {
    let count = match arguments.first() {
        Some(Argument::Value(Val::U64(count))) if *count <= MAX_ITEMS => *count,
        _ => wasmtime::bail!("it asked for more than {MAX_ITEMS} random bytes at once"),
    };
    let mut bytes = Vec::new();
    for _ in 0..count {
        let [byte, ..] = store.data_mut().next_random().to_le_bytes();
        bytes.push(Val::U8(byte));
    }
    Ok(Val::List(bytes))
}

fn write(state: &mut HostState, arguments: &[Argument<'_>]) {
    let [Argument::Handle(stream), Argument::Value(Val::List(bytes))] = arguments else { return };
    let level = if *stream == STDERR { LogLevel::Warn } else { LogLevel::Info };
    let byte = |value: &Val| if let Val::U8(byte) = value { Some(*byte) } else { None };
    let bytes: Vec<u8> = bytes.iter().filter_map(byte).collect();
    state.log.write(level, &String::from_utf8_lossy(&bytes));
}

fn all_ready(arguments: &[Argument<'_>]) -> wasmtime::Result<Val> {
    match arguments.first() {
        Some(Argument::Handles(count)) => {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            Ok(Val::List((0..count).map(Val::U32).collect()))
        }
        // By the contract of `poll`, an empty list is a trap.
        _ => wasmtime::bail!("it polled nothing"),
    }
}

/// Returns a number for each resource name.
///
/// The same resource imported by another interface gets the same number (`input-stream` in `wasi:cli/stdin`).
pub(super) fn resource_kind(name: &str) -> u32 {
    const KNOWN: [&str; 8] = [
        "input-stream",
        "output-stream",
        "pollable",
        "error",
        "terminal-input",
        "terminal-output",
        "descriptor",
        "directory-entry-stream",
    ];
    let place = KNOWN.iter().position(|known| *known == name).unwrap_or(KNOWN.len());
    u32::try_from(place).unwrap_or(u32::MAX)
}
