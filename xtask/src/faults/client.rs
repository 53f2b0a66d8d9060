//! The paced client: requests over TCP at a fixed rate, whatever the service does.
//!
//! An open loop: each connection has its own timetable, and latency counts from the intended start, so that a service that stops is seen
//! as long replies and not as fewer requests. Threads and blocking sockets, because at a few thousand requests a second they are cheap and
//! simple. Run as a process of its own in the client's namespace: `xtask faults-load`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::score::Seen;

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(1);

/// What to send, how often, and how a reply ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Where the service listens.
    pub address: SocketAddr,
    /// Of all connections together, per second.
    pub rate: f64,
    /// One thread each.
    pub connections: u32,
    /// How long.
    pub seconds: f64,
    /// What is sent.
    pub request: String,
    /// The end of a reply; without it, replies are HTTP with a Content-Length.
    pub until: Option<String>,
    /// A connection per request.
    pub fresh: bool,
    /// All connections send at the same time.
    pub burst: bool,
    /// Waits so long before it reads a reply.
    pub read_after: Duration,
}

/// Drives the service and gives what was seen.
pub fn drive(order: &Order) -> Seen {
    let began = Instant::now() + Duration::from_millis(50);
    let end = began + Duration::from_secs_f64(order.seconds);
    let threads: Vec<_> = (0..order.connections)
        .map(|number| {
            let order = order.clone();
            std::thread::spawn(move || one_connection(&order, number, began, end))
        })
        .collect();
    let mut latencies = Vec::new();
    let mut failed = 0;
    for thread in threads {
        if let Ok((good, bad)) = thread.join() {
            latencies.extend(good);
            failed += bad;
        }
    }
    seen(latencies, failed, order.seconds)
}

/// Latencies in milliseconds and failures of a run that lasted so long.
pub(super) fn seen(mut latencies: Vec<f64>, failed: usize, seconds: f64) -> Seen {
    latencies.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (latencies.len() as f64 * share) as usize;
        latencies.get(rank.min(latencies.len().saturating_sub(1)))
    };
    Seen {
        rate: latencies.len() as f64 / seconds,
        errors: failed as f64 / (latencies.len() + failed).max(1) as f64,
        p50_ms: at(0.5).copied().unwrap_or_default(),
        p99_ms: at(0.99).copied().unwrap_or_default(),
    }
}

/// Latencies of the good replies, and how many requests failed.
fn one_connection(order: &Order, number: u32, began: Instant, end: Instant) -> (Vec<f64>, usize) {
    let interval = Duration::from_secs_f64(f64::from(order.connections) / order.rate);
    let phase = if order.burst {
        Duration::ZERO
    } else {
        interval * number / order.connections
    };
    let mut intended = began + phase;
    let (mut good, mut failed) = (Vec::new(), 0);
    let mut connection: Option<TcpStream> = None;
    let mut reply = vec![0; 256 * 1024];
    while intended < end {
        let now = Instant::now();
        if now >= end {
            break;
        }
        std::thread::sleep(intended.saturating_duration_since(now));
        if order.fresh {
            connection = None;
        }
        if exchange(order, &mut connection, &mut reply).is_ok() {
            good.push(intended.elapsed().as_secs_f64() * 1e3);
        } else {
            failed += 1;
            connection = None;
            // A service that refuses is not asked faster than one that answers.
            std::thread::sleep(Duration::from_millis(10));
        }
        intended += interval;
    }
    (good, failed)
}

fn exchange(order: &Order, connection: &mut Option<TcpStream>, reply: &mut [u8]) -> Result<()> {
    let stream = match connection {
        Some(stream) => stream,
        None => connection.insert(connect(order)?),
    };
    stream.write_all(order.request.as_bytes())?;
    if !order.read_after.is_zero() {
        std::thread::sleep(order.read_after);
    }
    let deadline = Instant::now() + PATIENCE;
    // Only what decides where the reply ends is kept: the head of HTTP, or the last bytes.
    let (mut kept, mut length) = (0, None);
    loop {
        anyhow::ensure!(Instant::now() < deadline, "no whole reply in time");
        let count = stream.read(&mut reply[kept..])?;
        anyhow::ensure!(count > 0, "the service closed the connection");
        kept += count;
        if let Some(until) = &order.until {
            if reply[..kept].ends_with(until.as_bytes()) {
                anyhow::ensure!(!reply.starts_with(b"ERR") && reply[0] != b'-', "refused");
                return Ok(());
            }
            if kept == reply.len() {
                kept = until.len();
                let from = reply.len() - kept;
                reply.copy_within(from.., 0);
            }
            continue;
        }
        let left = match length {
            Some(left) => left,
            None => match head(&reply[..kept])? {
                Some(whole) => whole,
                None => continue,
            },
        };
        if kept >= left {
            return Ok(());
        }
        length = Some(left - kept);
        kept = 0;
    }
}

/// Bytes of a whole HTTP reply by its head, once the head is complete; fails unless the status is 200.
fn head(reply: &[u8]) -> Result<Option<usize>> {
    let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&reply[..end])?;
    anyhow::ensure!(text.starts_with("HTTP/1.1 200"), "refused");
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.context("a reply without Content-Length")?;
    Ok(Some(end + 4 + length))
}

fn connect(order: &Order) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&order.address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn served(replies: &'static [&'static str], order: impl Fn(SocketAddr) -> Order) -> Seen {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut request = [0; 64];
                    let mut turns = replies.iter().cycle();
                    while stream.read(&mut request).is_ok_and(|count| count > 0) {
                        if stream.write_all(turns.next().unwrap().as_bytes()).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        drive(&order(address))
    }

    fn order(address: SocketAddr) -> Order {
        Order {
            address,
            rate: 200.0,
            connections: 2,
            seconds: 0.3,
            request: "GET x\r\n".to_owned(),
            until: Some("END\r\n".to_owned()),
            fresh: false,
            burst: false,
            read_after: Duration::ZERO,
        }
    }

    #[test]
    fn the_rate_is_what_was_ordered_and_no_reply_fails() {
        let seen = served(&["value END\r\n"], order);
        assert_eq!(seen.errors.to_bits(), 0.0_f64.to_bits(), "{seen:?}");
        assert!(seen.rate <= 201.0 && seen.rate > 0.0, "{seen:?}");
    }

    #[test]
    fn refusals_are_failures() {
        let seen = served(&["END\r\n", "ERR no END\r\n"], order);
        assert!((0.2..0.8).contains(&seen.errors), "{seen:?}");
    }

    #[test]
    fn a_port_that_nobody_listens_on_is_all_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let seen = drive(&order(address));
        assert_eq!((seen.rate, seen.errors), (0.0, 1.0));
    }

    #[test]
    fn the_head_of_http_says_how_long_a_reply_is() {
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(head(text.as_bytes()).unwrap(), Some(text.len()));
        assert_eq!(head(&text.as_bytes()[..20]).unwrap(), None);
        assert!(head(b"HTTP/1.1 503 Busy\r\n\r\n").is_err());
        assert!(head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
