//! The credentials of a session in memory: those in use, and all that were ever read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::masker::{Masker, Wanted};
use super::secret::{Secret, Secrets};

/// The shortest time between two readings of one credential.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// All credentials that a session has ever read. Every answer of a declared host is searched for all of them: a server
/// can repeat one that it no longer takes, or that the settings no longer have, and servers of two hosts can be one.
#[derive(Clone, Default)]
pub struct SeenSecrets(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    all: Vec<Arc<Secret>>,
    wanted: Wanted,
}

impl std::fmt::Debug for SeenSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SeenSecrets").finish_non_exhaustive()
    }
}

impl SeenSecrets {
    fn add(&self, secret: &Arc<Secret>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.all.iter().any(|known| known.texts().eq(secret.texts())) {
            seen.all.push(Arc::clone(secret));
            seen.wanted.set(seen.all.iter().map(|secret| &**secret));
        }
    }

    fn masker(&self) -> Masker {
        Masker::new(&self.0.lock().unwrap_or_else(PoisonError::into_inner).wanted)
    }
}

/// The credentials that were read, used until a server refuses them.
pub struct Loaded {
    secrets: Box<dyn Secrets>,
    known: Mutex<HashMap<String, Known>>,
    seen: SeenSecrets,
    /// Held while one is read, so that a source is asked once and not by every request. Those that wait hold no thread,
    /// of which the gate has few.
    pub reading: Arc<tokio::sync::Mutex<()>>,
}

/// A credential in use.
struct Known {
    secret: Arc<Secret>,
    read_at: Instant,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Loaded").finish_non_exhaustive()
    }
}

impl Loaded {
    pub(super) fn new(secrets: Box<dyn Secrets>, seen: SeenSecrets) -> Self {
        Self { secrets, known: Mutex::default(), seen, reading: Arc::default() }
    }

    /// Returns a credential, and reads it first if need be. May block; the caller holds `reading`.
    pub fn secret(&self, name: &str) -> Result<Arc<Secret>, String> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        let read = Arc::new(self.secrets.read(name)?);
        self.seen.add(&read);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), Known { secret: Arc::clone(&read), read_at: Instant::now() });
        Ok(read)
    }

    /// Returns a masker of all credentials that the session has ever read.
    pub fn masker(&self) -> Masker {
        self.seen.masker()
    }

    /// Returns a credential that has been read. Does not block.
    pub fn known(&self, name: &str) -> Option<Arc<Secret>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(name).map(|known| Arc::clone(&known.secret));
        known.filter(|secret| !secret.has_expired(SystemTime::now()))
    }

    /// Has the credential read again for the next request, because a server refused it at this time.
    pub fn refused(&self, name: &str, now: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A command can provoke refusals; its source must not be asked each time.
        if known.get(name).is_some_and(|known| now.duration_since(known.read_at) >= READ_AGAIN) {
            known.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    struct Counted(std::sync::atomic::AtomicUsize);

    impl Secrets for Counted {
        fn read(&self, name: &str) -> Result<Secret, String> {
            let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(Secret::new(Zeroizing::new(format!("{name}-{count}-abcdef"))).unwrap())
        }
    }

    fn masked(loaded: &Loaded, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        loaded.masker().mask(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_source_is_read_once_until_a_server_refuses() {
        let loaded = Loaded::new(Box::new(Counted(0.into())), SeenSecrets::default());
        assert!(loaded.known("a").is_none());
        assert_eq!(loaded.secret("a").unwrap().text(), Some("a-0-abcdef"));
        assert_eq!(loaded.secret("a").unwrap().text(), Some("a-0-abcdef"));
        loaded.refused("a", Instant::now());
        assert_eq!(loaded.secret("a").unwrap().text(), Some("a-0-abcdef"), "too early to ask again");
        loaded.refused("a", Instant::now() + READ_AGAIN);
        assert_eq!(loaded.secret("a").unwrap().text(), Some("a-1-abcdef"));
        assert_eq!(masked(&loaded, "a-0-abcdef a-1-abcdef b-1-abcdef"), "********** ********** b-1-abcdef");
    }

    #[test]
    fn a_credential_stays_masked_after_the_settings_have_changed() {
        let seen = SeenSecrets::default();
        Loaded::new(Box::new(Counted(0.into())), seen.clone()).secret("a").unwrap();
        let after = Loaded::new(Box::new(Counted(9.into())), seen);
        assert_eq!(masked(&after, "a-0-abcdef a-9-abcdef"), "********** a-9-abcdef");
    }
}
