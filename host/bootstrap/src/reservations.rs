//! Reservations of all sessions of one user, in a file of the state directory, which no agent can write.
//!
//! A claim belongs to a session and is in force while that session's directory is locked (see `scratch`): the kernel
//! releases the lock however the host ends. Changes are made under a separate lock and replace the file, so that
//! readers always see a consistent state.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::reservation::{Claim, overlap};
use portcullis_session::{ClaimError, Reservations};
use serde::{Deserialize, Serialize};

use crate::scratch;

/// Maximum number of claims of one session, and of all sessions. Each request carries the claims that concern it.
const MOST_OF_ONE: usize = 64;
const MOST: usize = 512;
/// Maximum size of the file, in bytes.
const FILE_MAX: u64 = 4 << 20;

/// The claims as one session sees them.
#[derive(Debug)]
pub(crate) struct SharedReservations {
    /// The directory of the file.
    directory: PathBuf,
    /// The directory of all sessions.
    sessions: PathBuf,
    session: String,
    agent: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    claims: Vec<StoredClaim>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredClaim {
    #[serde(with = "path_text::as_text")]
    path: PathBuf,
    agent: String,
    session: String,
    /// The call with which it ends; empty if it ends with the session.
    #[serde(default)]
    call: String,
}

impl SharedReservations {
    /// Returns the reservations in the state directory `state`, for the agent `agent` of the session `session`.
    pub(crate) fn new(state: &Path, session: &str, agent: &str) -> Self {
        let agent = if agent.is_empty() { "main" } else { agent };
        Self {
            directory: state.join("reservations"),
            sessions: state.join("sessions"),
            session: session.to_owned(),
            agent: agent.to_owned(),
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.join("claims.json")
    }

    /// Reads the claims of running sessions.
    fn read(&self) -> io::Result<Vec<StoredClaim>> {
        let opened = match File::open(self.file()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut text = String::new();
        let _size = opened.take(FILE_MAX).read_to_string(&mut text)?;
        let Stored { mut claims } = serde_json::from_str(&text)?;
        let mut known: Vec<(String, bool)> = vec![(self.session.clone(), true)];
        claims.retain(|claim| match known.iter().find(|(session, _)| *session == claim.session) {
            Some((_, lives)) => *lives,
            None => {
                let lives = scratch::is_alive(&self.sessions, &claim.session);
                known.push((claim.session.clone(), lives));
                lives
            }
        });
        Ok(claims)
    }

    /// Changes the claims atomically for all sessions.
    fn change<T>(
        &self,
        act: impl FnOnce(&mut Vec<StoredClaim>) -> Result<T, ClaimError>,
    ) -> Result<T, ClaimError> {
        let failed = |error: io::Error| {
            ClaimError::Failed(format!("the reservations in `{}`: {error}", self.directory.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        let turn = private(&self.directory.join("lock")).map_err(failed)?;
        turn.lock().map_err(failed)?;
        let mut claims = self.read().map_err(failed)?;
        let done = act(&mut claims)?;
        self.write(claims).map_err(failed)?;
        Ok(done)
    }

    fn write(&self, claims: Vec<StoredClaim>) -> io::Result<()> {
        let new = self.directory.join("claims.new");
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(serde_json::to_string(&Stored { claims })?.as_bytes())?;
        std::fs::rename(new, self.file())
    }

    fn describe(&self, claim: &StoredClaim) -> Claim {
        let own = claim.session == self.session;
        Claim { path: claim.path.clone(), agent: claim.agent.clone(), own }
    }
}

impl Reservations for SharedReservations {
    fn claims(&self) -> Result<Vec<Claim>, String> {
        let claims = self.read().map_err(|error| format!("reading `{}`: {error}", self.file().display()))?;
        Ok(claims.iter().map(|claim| self.describe(claim)).collect())
    }

    fn claim(&self, paths: &[PathBuf], call: Option<&str>) -> Result<(), ClaimError> {
        self.change(|claims| {
            let others = claims.iter().filter(|claim| claim.session != self.session);
            let taken = |claim: &&StoredClaim| paths.iter().any(|path| overlap(path, &claim.path));
            if let Some(claim) = others.clone().find(taken) {
                return Err(ClaimError::Taken(self.describe(claim)));
            }
            let call = call.unwrap_or_default();
            for path in paths {
                let same = |claim: &StoredClaim| {
                    claim.session == self.session && claim.path == *path && claim.call == call
                };
                if !claims.iter().any(same) {
                    claims.push(StoredClaim {
                        path: path.clone(),
                        agent: self.agent.clone(),
                        session: self.session.clone(),
                        call: call.to_owned(),
                    });
                }
            }
            let of_this = claims.iter().filter(|claim| claim.session == self.session).count();
            if of_this > MOST_OF_ONE || claims.len() > MOST {
                return Err(ClaimError::Failed(format!(
                    "there are too many reservations: at most {MOST_OF_ONE} of one session and {MOST} of all; \
                     release some"
                )));
            }
            Ok(())
        })
    }

    fn release(&self, paths: &[PathBuf]) -> Result<(), String> {
        let is_meant = |claim: &StoredClaim| paths.iter().any(|path| claim.path.starts_with(path));
        self.give_back(|claim| claim.call.is_empty() && is_meant(claim))
    }

    fn end_call(&self, call: &str) -> Result<(), String> {
        self.give_back(|claim| claim.call == call)
    }
}

impl SharedReservations {
    fn give_back(&self, which: impl Fn(&StoredClaim) -> bool) -> Result<(), String> {
        let changed = self.change(|claims| {
            claims.retain(|claim| claim.session != self.session || !which(claim));
            Ok(())
        });
        changed.map_err(|error| error.to_string())
    }
}

fn private(file: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    struct Agents {
        state: tempfile::TempDir,
    }

    impl Agents {
        fn begin(&self, session: &str, agent: &str) -> (Scratch, SharedReservations) {
            let scratch = Scratch::make(&self.state.path().join("sessions"), session).expect("a session");
            (scratch, SharedReservations::new(self.state.path(), session, agent))
        }
    }

    fn agents() -> Agents {
        Agents { state: tempfile::tempdir().expect("a directory") }
    }

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    fn taken(result: Result<(), ClaimError>) -> String {
        let Err(ClaimError::Taken(claim)) = result else { panic!("{result:?}") };
        format!("{} {}", claim.path.display(), claim.agent)
    }

    #[test]
    fn a_claim_excludes_others_until_it_is_given_back() {
        let agents = agents();
        let (_a, ann) = agents.begin("0000000000000001", "ann");
        let (_b, bob) = agents.begin("0000000000000002", "");
        ann.claim(&paths(&["/p/src", "/p/x"]), None).expect("claimed");
        ann.claim(&paths(&["/p/src/deep"]), None).expect("within one's own");
        assert_eq!(taken(bob.claim(&paths(&["/p/y", "/p/src/a.rs"]), None)), "/p/src ann");
        assert_eq!(taken(bob.claim(&paths(&["/p"]), Some("r1"))), "/p/src ann");
        assert!(
            bob.claims().expect("read").iter().all(|claim| !claim.own),
            "nothing of a refused claim stays"
        );
        bob.claim(&paths(&["/p/srcs"]), None).expect("a neighbour");
        assert_eq!(taken(ann.claim(&paths(&["/p/srcs"]), None)), "/p/srcs main");
        ann.release(&paths(&["/p/src"])).expect("released");
        bob.claim(&paths(&["/p/src/a.rs"]), None).expect("free again");
        assert_eq!(taken(bob.claim(&paths(&["/p/x"]), None)), "/p/x ann");
        // A session cannot release the claims of another.
        bob.release(&paths(&["/"])).expect("released");
        assert_eq!(taken(bob.claim(&paths(&["/p/x"]), None)), "/p/x ann");
    }

    #[test]
    fn a_call_gives_back_its_own_only() {
        let agents = agents();
        let (_a, ann) = agents.begin("0000000000000001", "ann");
        let (_b, bob) = agents.begin("0000000000000002", "bob");
        ann.claim(&paths(&["/p/a"]), None).expect("claimed");
        ann.claim(&paths(&["/p/a"]), Some("r1")).expect("claimed");
        ann.claim(&paths(&["/p/b"]), Some("r1")).expect("claimed");
        ann.release(&paths(&["/p/b"])).expect("released");
        assert_eq!(taken(bob.claim(&paths(&["/p/b"]), None)), "/p/b ann");
        ann.end_call("r1").expect("ended");
        bob.claim(&paths(&["/p/b"]), None).expect("free");
        assert_eq!(taken(bob.claim(&paths(&["/p/a"]), None)), "/p/a ann");
    }

    #[test]
    fn what_ended_sessions_claimed_is_free() {
        let agents = agents();
        let (a, ann) = agents.begin("0000000000000001", "ann");
        let (_b, bob) = agents.begin("0000000000000002", "bob");
        ann.claim(&paths(&["/p/a"]), None).expect("claimed");
        assert_eq!(taken(bob.claim(&paths(&["/p/a"]), None)), "/p/a ann");
        drop(a);
        bob.claim(&paths(&["/p/a"]), None).expect("free");
        assert_eq!(bob.claims().expect("read").len(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_no_empty_list() {
        let agents = agents();
        let (_a, ann) = agents.begin("0000000000000001", "ann");
        ann.claim(&paths(&["/p/a"]), None).expect("claimed");
        std::fs::write(ann.file(), "{").expect("written");
        assert!(ann.claims().is_err());
        assert!(matches!(ann.claim(&paths(&["/p/b"]), None), Err(ClaimError::Failed(_))));
        assert!(ann.release(&paths(&["/"])).is_err());
    }

    #[test]
    fn nobody_claims_without_end() {
        let agents = agents();
        let (_a, ann) = agents.begin("0000000000000001", "ann");
        for number in 0..MOST_OF_ONE {
            ann.claim(&[PathBuf::from(format!("/p/{number}"))], None).expect("claimed");
        }
        assert!(matches!(ann.claim(&paths(&["/p/more"]), None), Err(ClaimError::Failed(_))));
        assert_eq!(ann.claims().expect("read").len(), MOST_OF_ONE);
    }

    #[test]
    fn one_of_many_at_once_wins() {
        let agents = agents();
        let sessions: Vec<_> =
            (0..8).map(|number| agents.begin(&format!("{number:016x}"), &number.to_string())).collect();
        let won = std::thread::scope(|scope| {
            let race = |each: &'static str| {
                let tries: Vec<_> = sessions
                    .iter()
                    .map(|(_, own)| scope.spawn(move || own.claim(&[PathBuf::from(each)], None).is_ok()))
                    .collect();
                tries.into_iter().map(|one| one.join().expect("no panic")).filter(|won| *won).count()
            };
            ["/p/a", "/p/b", "/p/c"].map(race)
        });
        assert_eq!(won, [1, 1, 1]);
    }
}
