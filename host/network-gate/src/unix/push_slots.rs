//! The bound on the memory for bodies that are judged as a whole: pushes, GraphQL, and those that are signed.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// The pushes that are held in memory: the others wait until one of these has been read and judged.
pub(crate) static PUSHES: PushSlots = PushSlots::new(4, Duration::from_secs(30), 32 * 1024);

/// The bodies of other requests that are judged as a whole. They are shorter than pushes.
pub(crate) static BODIES: PushSlots = PushSlots::new(16, Duration::from_secs(30), 32 * 1024);

/// How often a push that comes slowly is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Places for pushes. While others wait, a push must come at some speed, or a client that sends little would keep them
/// out; while none waits, it may be as slow as it likes.
#[derive(Debug)]
pub(crate) struct PushSlots {
    places: Semaphore,
    waiting: AtomicUsize,
    /// The time for which no speed is asked.
    grace: Duration,
    /// The bytes that must have come by then, for each second.
    speed: u64,
}

/// The place of one push.
#[derive(Debug)]
pub(crate) struct PushSlot<'a> {
    slots: &'a PushSlots,
    _place: SemaphorePermit<'a>,
    since: Instant,
}

/// A body in memory, with its place.
struct Held {
    body: Vec<u8>,
    _place: PushSlot<'static>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// A push that came too slowly while others waited.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooSlow;

impl TooSlow {
    /// Why the push is refused.
    pub(crate) const WHY: &str =
        "the push is not sent: it comes too slowly, and other pushes wait for its place";
}

/// Counts one that waits, also if its wait is abandoned.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PushSlots {
    const fn new(places: usize, grace: Duration, speed: u64) -> Self {
        Self { places: Semaphore::const_new(places), waiting: AtomicUsize::new(0), grace, speed }
    }

    /// Waits for a place.
    pub(crate) async fn take(&self) -> Result<PushSlot<'_>, AcquireError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Waits(&self.waiting);
        let place = self.places.acquire().await?;
        drop(waits);
        Ok(PushSlot { slots: self, _place: place, since: Instant::now() })
    }
}

impl PushSlot<'_> {
    /// Reads the next piece of a push of which `received` bytes have come.
    pub(crate) async fn read<T>(&self, received: usize, read: impl Future<Output = T>) -> Result<T, TooSlow> {
        let mut read = pin!(read);
        loop {
            if self.is_too_slow(received) {
                return Err(TooSlow);
            }
            tokio::select! {
                piece = read.as_mut() => return Ok(piece),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn is_too_slow(&self, received: usize) -> bool {
        let held = self.since.elapsed();
        let wanted = self.slots.speed.saturating_mul(held.as_secs());
        let is_behind = u64::try_from(received).is_ok_and(|received| received < wanted);
        self.slots.waiting.load(Ordering::Relaxed) > 0 && held > self.slots.grace && is_behind
    }
}

impl PushSlot<'static> {
    /// Keeps the place for a body until all of it has been sent: a server can be slow, and a client of HTTP/2 has many
    /// requests under way at the same time.
    pub(crate) fn hold(self, body: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held { body, _place: self })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1500);

    #[tokio::test]
    async fn a_slow_push_loses_its_place_only_if_another_waits() {
        let slots = PushSlots::new(1, Duration::from_millis(1100), 1000);
        let slow = slots.take().await.unwrap();
        let dripping = timeout(SHORT, slow.read(10, pending::<()>())).await;
        assert!(dripping.is_err(), "no other waits");
        assert_eq!(slow.read(10, ready(1)).await, Ok(1));
        let (_other, lost) = tokio::join!(
            async { timeout(10 * SHORT, slots.take()).await.expect("a place").unwrap() },
            async {
                let fast = slow.read(1_000_000, ready(2)).await;
                assert_eq!(fast, Ok(2), "its speed is enough");
                let lost = timeout(SHORT, slow.read(10, pending::<()>())).await.expect("in time");
                drop(slow);
                lost
            }
        );
        assert_eq!(lost, Err(TooSlow));
    }

    #[tokio::test]
    async fn a_body_keeps_its_place_until_it_has_been_sent() {
        static ONE: PushSlots = PushSlots::new(1, Duration::from_secs(30), 1);
        let body = ONE.take().await.unwrap().hold(vec![1, 2, 3]);
        let rest = body.slice(1..);
        drop(body);
        assert!(timeout(Duration::from_millis(10), ONE.take()).await.is_err(), "a part of it is not sent");
        assert_eq!(*rest, [2, 3]);
        drop(rest);
        assert!(timeout(SHORT, ONE.take()).await.is_ok());
    }

    #[tokio::test]
    async fn who_no_longer_waits_takes_no_place_from_others() {
        let slots = PushSlots::new(1, Duration::ZERO, u64::MAX);
        let slow = slots.take().await.unwrap();
        let abandoned = timeout(Duration::from_millis(10), slots.take()).await;
        assert!(abandoned.is_err());
        assert_eq!(slow.read(0, ready(())).await, Ok(()));
    }
}
