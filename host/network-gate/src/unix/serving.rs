//! Listeners that are served until they are dropped.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::unix::refuse::{self, News};
use crate::unix::scope::Scope;

/// The delay before a retry when accept(2) fails, as it does when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);
/// The message for connections over the limit.
const FULL: &str = "too many connections are open in this session; raise the limit of open files (`ulimit -Hn`) or \
                    end some of them";

/// A server that runs until it is dropped.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes a listener of the system one of this runtime.
pub(crate) fn usable(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Accepts connections and serves each in its own task.
pub(crate) async fn accept<Served>(
    listener: TcpListener,
    scope: Arc<Scope>,
    serve: impl Fn(Arc<Scope>, TcpStream, SocketAddr) -> Served,
) where
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut turned_away = JoinSet::new();
    let full = || Arc::clone(&scope.shared.told).try_acquire_owned();
    loop {
        tokio::select! {
            accepted = listener.accept() => match (accepted, Arc::clone(&scope.shared.room).try_acquire_owned()) {
                (Ok((client, from)), Ok(place)) => {
                    let served = serve(Arc::clone(&scope), client, from);
                    connections.spawn(async move {
                        served.await;
                        drop(place);
                    });
                }
                (Ok((client, _)), Err(_)) => match full() {
                    Ok(place) => {
                        scope.judge.overloaded(FULL);
                        turned_away.spawn(async move {
                            refuse::tell(client, &[], News::Denied, FULL).await;
                            drop(place);
                        });
                    }
                    Err(_) => refuse::reset(&client),
                },
                (Err(_), _) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            Some(_) = turned_away.join_next(), if !turned_away.is_empty() => {}
        }
    }
}
