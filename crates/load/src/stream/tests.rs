//! The engine with the smallest protocol whose replies are numbered.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::transport::Connections;
use super::{Around, Conversation, Cut, Protocol, Reply, Verdict, Workload};
use crate::engine::{Completed, Edge, Hooks, Stop};
use crate::parameters::{Length, Load as _, Schedule, Site};
use crate::values::{Count, Pins, Time};

/// A request is its ticket, eight bytes; so is its reply. A ticket of zeros is a heartbeat, which is sent back.
#[derive(Debug)]
struct Numbered;

#[derive(Debug)]
struct Talk;

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers")
    }
}

impl Protocol for Numbered {
    type Talk = Talk;
    type Dealt = ();

    fn name(&self) -> String {
        "numbers".to_owned()
    }

    fn is_numbered(&self) -> bool {
        true
    }

    fn deal(&self) {}

    fn talk(&self, _: &Arc<()>, _: u64, _: usize) -> Talk {
        Talk
    }
}

impl Conversation for Talk {
    fn begin(&mut self, to: &mut Vec<u8>) -> usize {
        to.extend_from_slice(&[0xff; 8]);
        1
    }

    fn write(&mut self, ticket: u64, to: &mut Vec<u8>) -> usize {
        to.extend_from_slice(&ticket.to_be_bytes());
        0
    }

    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str> {
        let Some(ticket) = bytes.first_chunk::<8>() else {
            return Ok(Cut {
                used: 0,
                reply: None,
            });
        };
        if *ticket == [0; 8] {
            around.out.extend_from_slice(&[0; 8]);
            return Ok(Cut {
                used: 8,
                reply: None,
            });
        }
        Ok(Cut {
            used: 8,
            reply: Some(Reply {
                of: Some(u64::from_be_bytes(*ticket)),
                verdict: Verdict::Answer(None),
            }),
        })
    }

    fn is_told_more(&self) -> bool {
        true
    }
}

/// A server that is given the numbers of a connection, several at once where they came so.
fn serve(answer: impl Fn(Vec<u64>, &mut TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let mut hello = [0; 8];
                stream.read_exact(&mut hello).unwrap();
                stream.write_all(&hello).unwrap();
                let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    kept.extend_from_slice(&buffer[..length]);
                    let whole = kept.len() / 8 * 8;
                    let numbers = kept[..whole].chunks(8);
                    let numbers =
                        numbers.map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
                    let numbers: Vec<u64> = numbers.collect();
                    kept.drain(..whole);
                    answer(numbers, &mut stream);
                }
            });
        }
    });
    address
}

fn drive(address: SocketAddr, depth: u32, timeout: Duration, count: u64) -> Completed {
    let schedule = Schedule {
        threads: Count::Fixed(2),
        pin: Pins::Off,
        rate: None,
        ramp: None,
        timeout: Time(timeout),
    };
    let connections = Connections {
        connections: 4,
        depth,
        ..Connections::default()
    };
    let site = Site {
        target: address.into(),
        ..Site::ANY
    };
    let made = (&schedule, &connections);
    let load = Workload::new(Numbered, &address.to_string(), made, &site).unwrap();
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    let length = Length {
        warmup: Duration::ZERO,
        stop: Stop::Count(count),
        seed: 1,
    };
    load.run(&length, &hooks, &mut |_| {}).unwrap()
}

fn send(stream: &mut TcpStream, numbers: impl IntoIterator<Item = u64>) {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_be_bytes).collect();
    let _ = stream.write_all(&bytes);
}

#[test]
fn replies_in_any_order_belong_to_their_requests() {
    let address = serve(|numbers, stream| {
        // The last first, with a heartbeat between them; the server's answers to ours are zeros again.
        let asked = numbers.into_iter().filter(|number| *number > 0);
        let replies: Vec<u64> = asked.rev().collect();
        send(stream, replies.first().map(|_| 0));
        send(stream, replies);
    });
    let completed = drive(address, 8, Duration::from_secs(5), 5_000);
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (5_000, 5_000, 0),
        "{:?}",
        m.errors
    );
    assert!(m.errors.is_empty(), "{:?}", m.errors);
    let stream = m.stream.as_ref().unwrap();
    assert_eq!((stream.connections, stream.reconnects), (4, 0));
}

#[test]
fn a_reply_that_never_comes_holds_up_no_other_and_second_ones_are_known() {
    let address = serve(|numbers, stream| {
        for number in numbers {
            // Every hundredth use of a place is answered too late, and its neighbour twice. Other places go on: a connection on which nothing
            // comes at all is opened anew.
            match (number >> 16) % 100 {
                50 if number & 0xffff < 4 => {
                    let mut stream = stream.try_clone().unwrap();
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(600));
                        send(&mut stream, [number]);
                    });
                }
                51 => send(stream, [number, number, 0xffff_0000_0000]),
                _ => send(stream, [number]),
            }
        }
    });
    let completed = drive(address, 8, Duration::from_millis(200), 20_000);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received + m.lost), (20_000, 20_000));
    let errors = |name: &str| m.errors.get(name).copied().unwrap_or(0);
    let lost = errors("timeout");
    assert!((4..400).contains(&lost), "{:?}", m.errors);
    assert_eq!(lost, m.lost, "no other is lost with them: {:?}", m.errors);
    assert!(
        errors("duplicate") > 0 && errors("unexpected") > 0,
        "{:?}",
        m.errors
    );
    assert_eq!(m.stream.as_ref().unwrap().reconnects, 0);
}
