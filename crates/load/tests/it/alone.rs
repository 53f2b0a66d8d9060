//! Kinds that ask one request at a time, on a TCP server that counts what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::engine::alone::{self, Exchange, Failure, Reply};
use rungwise_load::engine::{Arrival, Completed, Edge, Hooks, Plan, Stop};
use rungwise_load::parameters::Contradiction;
use rungwise_stats::histogram::Histogram;

/// A byte to a server that answers with a byte: `!` is an error, and silence is silence.
struct Byte {
    plan: Plan,
}

impl Exchange for Byte {
    type Connection = TcpStream;

    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        Vec::new()
    }

    fn failures(&self) -> &'static [&'static str] {
        &["closed"]
    }

    fn connect(&self, _: usize) -> Result<TcpStream, Error> {
        let failed = |error| Error::Socket {
            step: "connect",
            target: self.plan.target.clone(),
            source_ip: None,
            error,
            remedy: "start the server",
        };
        let target = self.plan.target.address().unwrap();
        let stream = TcpStream::connect(target).map_err(failed)?;
        stream
            .set_read_timeout(Some(self.plan.timeout))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(failed)?;
        Ok(stream)
    }

    fn exchange(&self, stream: &mut TcpStream, number: u64) -> Result<Reply, Failure> {
        let mut byte = [number as u8];
        stream.write_all(&byte).map_err(|_| Failure::NotSent)?;
        match stream.read(&mut byte) {
            Ok(0) => Err(Failure::Named(0)),
            Ok(_) if byte == *b"!" => Ok(Reply::Error),
            Ok(_) => Ok(Reply::Answer),
            Err(_) => Err(Failure::Silent),
        }
    }
}

/// What the server does with request `n` of all.
type Behaviour = fn(u64, &mut TcpStream) -> bool;

/// A server, and how many requests it has read.
fn serve(behaviour: Behaviour) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, count) = (stream.unwrap(), count.clone());
            std::thread::spawn(move || {
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte) {
                    if !behaviour(count.fetch_add(1, Ordering::Relaxed), &mut stream) {
                        return;
                    }
                }
            });
        }
    });
    (target, asked)
}

fn drive(target: SocketAddr, arrival: Arrival, stop: Stop) -> Result<Completed, Error> {
    let workload = Byte {
        plan: Plan {
            target: target.into(),
            threads: 2,
            pins: None,
            arrival,
            timeout: Duration::from_millis(100),
            warmup: Duration::ZERO,
            stop,
        },
    };
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    alone::run(&workload, &hooks, &mut |_| {})
}

#[test]
fn each_request_of_a_count_is_sent_once_and_answered_once() {
    let (target, asked) = serve(|_, stream| stream.write_all(b"1").is_ok());
    let ended = drive(target, Arrival::Closed, Stop::Count(1001)).unwrap();
    let measured = &ended.measurement;
    assert_eq!(
        (measured.sent, measured.received, measured.lost, ended.wrong),
        (1001, 1001, 0, 0)
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1001);
    assert_eq!(ended.corrected.count(), 1001);
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
}

#[test]
fn errors_closed_connections_and_silence_are_counted_apart() {
    let (target, _) = serve(|n, stream| match n {
        10 => stream.write_all(b"!").is_ok(),
        20 => false,
        30 => true,
        _ => stream.write_all(b"1").is_ok(),
    });
    let ended = drive(target, Arrival::Closed, Stop::Count(200)).unwrap();
    let measured = &ended.measurement;
    assert_eq!(
        (measured.sent, measured.received, measured.lost, ended.wrong),
        (200, 198, 2, 1)
    );
    assert_eq!(measured.errors.get("closed"), Some(&1));
}

#[test]
fn an_open_loop_counts_the_wait_behind_a_slow_reply() {
    // One reply of 60 ms holds back the twelve requests that are due meanwhile on its connection.
    let (target, _) = serve(|n, stream| {
        if n == 50 {
            std::thread::sleep(Duration::from_millis(60));
        }
        stream.write_all(b"1").is_ok()
    });
    let rate = Arrival::Constant { per_s: 400.0 };
    let began = Instant::now();
    let ended = drive(target, rate, Stop::After(Duration::from_millis(500))).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(500));
    let measured = &ended.measurement;
    assert_eq!(measured.sent, 200);
    assert_eq!(measured.received + measured.lost, 200);
    let late = |histogram: &Histogram| -> u64 {
        let slow = histogram.buckets().filter(|(ns, _)| *ns > 20_000_000);
        slow.map(|(_, count)| count).sum()
    };
    let (corrected, uncorrected) = (late(&ended.corrected), late(&ended.uncorrected));
    assert!(
        corrected >= uncorrected + 5,
        "{corrected} of the requests waited in sum, {uncorrected} alone"
    );
}

#[test]
fn a_server_that_is_not_there_is_an_error_before_the_load() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = drive(free, Arrival::Closed, Stop::Count(1)).unwrap_err();
    assert!(error.to_string().contains("start the server"), "{error}");
}
