//! The addresses of hosts to which only some requests may be sent.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::unix::lookup::{self, Unfound};

/// How long the addresses of a host are used before it is looked up again.
const FRESH: Duration = Duration::from_secs(60);
/// How long a lookup may take.
const LOOKUP: Duration = Duration::from_secs(3);

/// The addresses that limited hosts have had in this session, by name.
#[derive(Debug, Default)]
pub(crate) struct LimitedAddresses(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    looked_up: Instant,
    /// With earlier ones: a host can have more addresses than one answer has.
    addresses: Vec<IpAddr>,
}

impl LimitedAddresses {
    /// Returns the addresses of each name, all of which are looked up at the same time.
    pub(super) async fn look_up(&self, names: &[String]) -> Vec<(String, Result<Vec<IpAddr>, Unfound>)> {
        let mut all = Vec::new();
        let mut running = JoinSet::new();
        for name in names {
            match self.fresh(name) {
                Some(addresses) => all.push((name.clone(), Ok(addresses))),
                None => {
                    let name = name.clone();
                    running.spawn(async move {
                        let found = lookup::addresses(&name, 0, LOOKUP).await;
                        (name, found)
                    });
                }
            }
        }
        while let Some(ended) = running.join_next().await {
            let failed = |error| ("a host".to_owned(), Err(Unfound::Unable(io::Error::other(error))));
            let (name, found) = ended.unwrap_or_else(failed);
            let found = found.map(|found| found.into_iter().map(|one| one.ip()).collect());
            let merged = self.merge(&name, found);
            all.push((name, merged));
        }
        all
    }

    /// Notes the addresses to which the gate connects for a name.
    pub(super) fn note(&self, name: &str, found: &[SocketAddr]) {
        // An answer never fails.
        let _merged = self.merge(name, Ok(found.iter().map(SocketAddr::ip).collect()));
    }

    fn fresh(&self, name: &str) -> Option<Vec<IpAddr>> {
        let table = self.table();
        let known = table.get(name).filter(|known| known.looked_up.elapsed() < FRESH)?;
        Some(known.addresses.clone())
    }

    /// Adds an answer to the earlier ones. A failed lookup leaves those.
    fn merge(&self, name: &str, found: Result<Vec<IpAddr>, Unfound>) -> Result<Vec<IpAddr>, Unfound> {
        let mut table = self.table();
        let earlier = table.get(name).map(|known| known.addresses.clone()).unwrap_or_default();
        let mut addresses = match found {
            Ok(found) => found,
            Err(_) if !earlier.is_empty() => return Ok(earlier),
            Err(unfound) => return Err(unfound),
        };
        addresses.extend(earlier);
        addresses.sort();
        addresses.dedup();
        let known = Known { looked_up: Instant::now(), addresses: addresses.clone() };
        table.insert(name.to_owned(), known);
        Ok(addresses)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn addresses_of_earlier_answers_still_count() {
        let known = LimitedAddresses::default();
        let failed = || Err(Unfound::Unanswered(ErrorKind::TimedOut.into()));
        assert!(known.merge("a.test", failed()).is_err());
        let first = known.merge("a.test", Ok(vec![address("192.0.2.1")])).unwrap();
        let second = known.merge("a.test", Ok(vec![address("192.0.2.2")])).unwrap();
        assert_eq!((first.len(), second.len()), (1, 2));
        assert_eq!(known.merge("a.test", failed()).unwrap(), second);
        assert_eq!(known.fresh("a.test"), Some(second));
        assert_eq!(known.fresh("b.test"), None);
        known.note("a.test", &[SocketAddr::new(address("192.0.2.3"), 443)]);
        assert_eq!(known.fresh("a.test").unwrap().len(), 3, "the gate uses a third one");
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
}
