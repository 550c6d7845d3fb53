use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::Endpoint;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Upstream;
use crate::judge::{AddressRuling, Checks, ConnectionAttempt, Judge, Running, Stages};
use crate::names::Names;
use crate::unix::active_connections::ActiveConnections;
use crate::unix::ask::Asking;
use crate::unix::ask::tests::undecided;
use crate::unix::budget::Budgets;
use crate::unix::client::Client;
use crate::unix::clients::Clients;
use crate::unix::decider::Decider;
use crate::unix::held::Held;
use crate::unix::limited_addresses::LimitedAddresses;
use crate::unix::network::NetworkClients;
use crate::unix::pump::WIDE_MAX;
use crate::unix::scope::{Clearance, Shared};

/// A judge that asks about everything, and denies when the test tells it to.
struct Asks {
    decided: AtomicUsize,
    asked: AtomicUsize,
    answers: Mutex<Receiver<()>>,
    withdrawn: AtomicUsize,
}

impl Judge for Asks {
    fn decide(&self, attempt: &ConnectionAttempt) -> Judgement {
        self.decided.fetch_add(1, Ordering::Relaxed);
        Judgement::Ask(undecided(attempt.clone()))
    }

    fn review(&self, undecided: Box<Undecided>) -> Judgement {
        Judgement::Ask(undecided)
    }

    fn ask(&self, _round: u64, attempts: Vec<Undecided>) -> Vec<Judgement> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let _closed = self.answers.lock().unwrap().recv();
        attempts.iter().map(|_| Judgement::Deny(ConnectionRefusal::by_host("test", "answered"))).collect()
    }

    fn withdraw(&self, _round: u64) {
        self.withdrawn.fetch_add(1, Ordering::Relaxed);
    }

    fn address(&self, _attempt: &ConnectionAttempt, _address: IpAddr) -> AddressRuling {
        AddressRuling::Unnamed
    }

    fn budget(&self, _attempt: &ConnectionAttempt) -> u64 {
        0
    }

    fn checks(&self) -> Checks {
        Checks::default()
    }

    fn stages(&self) -> Stages {
        Stages::default()
    }

    fn upstream(&self, _attempt: &ConnectionAttempt) -> Option<Upstream> {
        None
    }

    fn broker(&self) -> Result<Option<Arc<portcullis_credential_broker::Broker>>, ConnectionRefusal> {
        Ok(None)
    }

    fn credential_used(&self, _request: &str, _name: &str, _head: &portcullis_decision::request::HttpHead) {}

    fn running(&self) -> Running {
        Running::Several
    }

    fn has_ended(&self, _command: u32) -> bool {
        false
    }

    fn overloaded(&self, _why: &str) {}

    fn ended(&self, _attempt: &ConnectionAttempt, _request: &str, _ended: &Ended) {}
}

/// A source of calls that the test feeds.
#[derive(Debug)]
struct Line {
    calls: Mutex<Receiver<Call>>,
    released: mpsc::UnboundedSender<u64>,
    redirected: mpsc::UnboundedSender<(u64, SocketAddr)>,
    refused: mpsc::UnboundedSender<u64>,
}

impl Calls for Line {
    fn next(&self) -> Option<Call> {
        self.calls.lock().unwrap().recv().ok()
    }

    fn release(&self, id: u64) {
        let _untold = self.released.send(id);
    }

    fn redirect(&self, id: u64, address: SocketAddr) {
        let _untold = self.redirected.send((id, address));
    }

    fn refuse(&self, id: u64) {
        let _untold = self.refused.send(id);
    }
}

pub(in crate::unix) struct Stand {
    pub(in crate::unix) scope: Arc<Scope>,
    judge: Arc<Asks>,
    answer: Sender<()>,
    told: Sender<Call>,
    released: mpsc::UnboundedReceiver<u64>,
    refused: mpsc::UnboundedReceiver<u64>,
    redirected: mpsc::UnboundedReceiver<(u64, SocketAddr)>,
    #[expect(dead_code, reason = "it is open as long as this")]
    client: TcpStream,
    server: TcpStream,
    wanted: Wanted,
    socket: u64,
}

impl Stand {
    /// Connects this process to itself, in place of a connection out of a network.
    pub(in crate::unix) async fn new(hold: Duration) -> Self {
        let (answer, answers) = channel();
        let judge = Arc::new(Asks {
            decided: AtomicUsize::default(),
            asked: AtomicUsize::default(),
            answers: Mutex::new(answers),
            withdrawn: AtomicUsize::default(),
        });
        let asking = Arc::new(Asking::default());
        let running = Arc::clone(&asking);
        std::thread::spawn(move || running.run());
        let decider = Decider::start().unwrap();
        let (names, budgets, carried) = (Names::default(), Budgets::default(), ActiveConnections::default());
        let room = Arc::new(tokio::sync::Semaphore::new(9));
        let [told, chunks] = [9, WIDE_MAX].map(|count| Arc::new(tokio::sync::Semaphore::new(count)));
        let shared = Arc::new(Shared {
            names,
            limited: LimitedAddresses::default(),
            budgets,
            asking,
            carried,
            decider,
            room,
            told,
            chunks,
        });
        let (clients, token) =
            (Arc::new(Clients::OfNetwork(NetworkClients::new(std::process::id(), None))), String::new());
        let scope_judge: Arc<dyn Judge> = Arc::clone(&judge) as _;
        let scope = Arc::new(Scope { shared, judge: scope_judge, held: Held::default(), clients, token });
        let (told, calls) = channel();
        let (release, released) = mpsc::unbounded_channel();
        let (refuse, refused) = mpsc::unbounded_channel();
        let (redirect, redirected) = mpsc::unbounded_channel();
        let line: Arc<dyn Calls> = Arc::new(Line {
            calls: Mutex::new(calls),
            released: release,
            redirected: redirect,
            refused: refuse,
        });
        tokio::spawn(serve(Arc::clone(&scope), hear(&scope, &line).unwrap(), hold));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        let target = Endpoint::Address(address.ip());
        let wanted = Wanted { target, port: address.port(), client: from, server: address };
        let Client::Open(socket) = scope.clients.client(from, address) else { panic!("not found") };
        Self { scope, judge, answer, told, released, refused, redirected, client, server, wanted, socket }
    }

    /// Reports a suspended call of this socket.
    fn wait(&self, id: u64) {
        self.report(id, self.wanted.server, false);
    }

    /// Reports a suspended call of this socket to a port of the loopback on which no process in the network listens.
    fn wait_unheard(&self, id: u64, address: SocketAddr) {
        self.report(id, address, true);
    }

    fn report(&self, id: u64, address: SocketAddr, is_unheard: bool) {
        let (process, socket) = (std::process::id(), self.socket);
        self.told.send(Call::Waits { id, process, command: 0, socket, address, is_unheard }).unwrap();
    }

    fn counts(&self) -> [usize; 3] {
        [&self.judge.decided, &self.judge.asked, &self.judge.withdrawn]
            .map(|count| count.load(Ordering::Relaxed))
    }

    async fn until(&self, counts: [usize; 3]) {
        for _ in 0..500 {
            if self.counts() == counts {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.counts(), counts);
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.scope.shared.asking.close();
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_call_that_is_refused_fails() {
    run(async {
        let mut stand = Stand::new(HOLD).await;
        stand.wait(7);
        // Nothing has changed since the decision, so there is no other one before the question or after it.
        stand.until([1, 1, 0]).await;
        assert!(stand.released.try_recv().is_err(), "it goes on before there is an answer");
        stand.answer.send(()).unwrap();
        assert_eq!(stand.refused.recv().await, Some(7));
        assert!(stand.released.try_recv().is_err(), "one answer to one call");
        assert_eq!(stand.counts(), [1, 1, 0]);
    });
}

#[test]
fn after_the_longest_time_the_connection_goes_on_waiting_for_the_same_answer() {
    run(async {
        let mut stand = Stand::new(Duration::from_millis(200)).await;
        stand.wait(7);
        assert_eq!(stand.released.recv().await, Some(7));
        let scope = Arc::clone(&stand.scope);
        let cleared = scope.clear(&stand.wanted, &stand.server);
        tokio::pin!(cleared);
        assert!(timeout(Duration::from_millis(200), &mut cleared).await.is_err(), "there is no answer yet");
        stand.answer.send(()).unwrap();
        let cleared = cleared.await;
        assert!(
            matches!(&cleared, Clearance::Denied(refusal) if refusal.reason == "answered"),
            "{cleared:?}"
        );
        assert_eq!(stand.counts(), [1, 1, 0]);
    });
}

#[test]
fn who_gives_up_takes_the_question_back() {
    run(async {
        let mut stand = Stand::new(HOLD).await;
        stand.wait(7);
        stand.until([1, 1, 0]).await;
        stand.told.send(Call::Gone { id: 7 }).unwrap();
        stand.until([1, 1, 1]).await;
        // The call is released in any case.
        assert_eq!(stand.released.recv().await, Some(7));
    });
}

#[test]
fn a_connection_to_another_place_is_decided_by_itself() {
    run(async {
        let mut stand = Stand::new(Duration::ZERO).await;
        stand.wait(7);
        assert_eq!(stand.released.recv().await, Some(7));
        let other = Wanted { target: Endpoint::Domain("other.test".to_owned()), ..stand.wanted.clone() };
        let scope = Arc::clone(&stand.scope);
        let before = stand.counts()[0];
        let cleared = scope.clear(&other, &stand.server);
        tokio::pin!(cleared);
        assert!(timeout(Duration::from_millis(100), &mut cleared).await.is_err());
        assert!(stand.counts()[0] > before, "the answer to one place was taken for another");
    });
}

#[test]
fn a_service_of_this_machine_is_reached_through_the_gate_only() {
    run(async {
        let mut stand = Stand::new(Duration::ZERO).await;
        let service = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = service.local_addr().unwrap();
        stand.wait_unheard(7, address);
        let (id, stand_in) = stand.redirected.recv().await.unwrap();
        assert_eq!((id, stand_in.port()), (7, address.port()));
        let names = &stand.scope.shared.names;
        assert_eq!(names.endpoint(stand_in.ip()), Some(Endpoint::Address(address.ip())));
        assert_eq!(stand.counts()[0], 1, "it was decided");
        drop(service);
        stand.wait_unheard(8, address);
        assert_eq!(stand.released.recv().await, Some(8), "the kernel says that there is no such service");
        assert_eq!(stand.counts()[0], 1, "there is nothing to decide");
    });
}
