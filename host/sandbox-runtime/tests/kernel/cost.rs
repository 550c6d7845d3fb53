//! Measures the cost of starting a command, against the system's own way; this is no test.
//!
//! `cargo test --release --test kernel __measure`

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::kit::{self, Session};

/// The argument with which this program measures.
pub(crate) const MEASURE: &str = "__measure";

const ROUNDS: usize = 300;
/// Commands in flight when throughput is measured.
const AT_ONCE: usize = 8;

pub(crate) fn measure() -> ExitCode {
    let session = Session::new();
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The order changes every round, so that neither profits from caches that the other has warmed.
        if round % 2 == 0 {
            inside.push(time(|| launch(&session)));
            outside.push(time(spawn));
        } else {
            outside.push(time(spawn));
            inside.push(time(|| launch(&session)));
        }
    }
    let place = kit::make_place();
    let wanted = kit::profile(place.path());
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let mut confinement = None;
        starts.push(time(|| confinement = Some(kit::start(&wanted))));
        ends.push(time(|| drop(confinement)));
    }
    let (inside, outside) = (quarter(inside), quarter(outside));
    println!("one command, first quartile: {inside:?}, spawned without a sandbox: {outside:?}");
    println!("ratio {:.2}", inside.as_secs_f64() / outside.as_secs_f64());
    let (inside, outside) = (at_once(|| launch(&session)), at_once(spawn));
    println!("{AT_ONCE} at once: {:.2} of the throughput without a sandbox", outside / inside);
    println!("start of a session: {:?}, its end: {:?}", quarter(starts), quarter(ends));
    ExitCode::SUCCESS
}

fn launch(session: &Session) {
    let command = session.command(&["/bin/true"]);
    let stdio = [kit::null(), kit::null(), kit::null()];
    assert_eq!(session.confinement.launch(command, stdio).expect("starts").wait().shell_code(), 0);
}

fn spawn() {
    let null = Stdio::null;
    let status = Command::new("/bin/true").stdin(null()).stdout(null()).stderr(null()).status();
    assert!(status.expect("runs").success());
}

/// Returns the seconds that several threads take to do something often.
fn at_once(what: impl Fn() + Sync) -> f64 {
    let all = || {
        std::thread::scope(|scope| {
            (0..AT_ONCE).for_each(|_| drop(scope.spawn(|| (0..ROUNDS / 4).for_each(|_| what()))));
        });
    };
    time(all).as_secs_f64()
}

fn time(what: impl FnOnce()) -> Duration {
    let start = Instant::now();
    what();
    start.elapsed()
}

fn quarter(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 4]
}
