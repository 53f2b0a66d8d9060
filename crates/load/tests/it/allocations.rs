//! No allocation per transaction, shown by an allocator that counts for the generator threads alone.
#![expect(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rungwise_load::engine::{Completed, Stop};
use rungwise_load::parameters::{Driven, Length, Traffic};
use rungwise_load::udp::{Arrival, Edge, Hooks, Workload, run};
use rungwise_load::{memcached, redis};
use rungwise_testkit::Pair;

use crate::af_xdp::{by_queues, echo_telling};
use crate::dubbo;
use crate::http;
use crate::http2_server;
use crate::requests;
use crate::server::{Server, reply, workload};
use crate::tcp;

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// There is one counter, for one test at a time.
static COUNTER: Mutex<()> = Mutex::new(());

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if WATCHED.try_with(Cell::get).unwrap_or(false) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests of a run; it is counted between the first and the last of [`STEADY`]. In an open loop each of two threads has
/// half of them, so none has ended before the last.
const COUNT_OF_RUN: u64 = 24_000;
const STEADY: [u64; 2] = [1_000, 11_000];

/// What the generator's threads had allocated when a server saw the first and the last request of the steady part.
#[derive(Default)]
struct Marks {
    at: [AtomicU64; 2],
    seen: AtomicU64,
}

impl Marks {
    /// One more request was seen.
    fn pass(&self) {
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        for (mark, when) in self.at.iter().zip(STEADY) {
            if number == when {
                mark.store(COUNT.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}

/// Drives a load of `threads` threads in both kinds of loop. Between the marks nothing is allocated, however many transactions lie there;
/// a run of more than a second hands over a histogram per second and thread.
fn nothing_is_allocated_on_the_way(
    marks: &Marks,
    threads: usize,
    enter: &(dyn Fn() -> io::Result<()> + Sync),
    drive: &dyn Fn(Arrival, &Hooks<'_>) -> Completed,
) {
    let _alone = COUNTER.lock().unwrap_or_else(PoisonError::into_inner);
    for arrival in [Arrival::Closed, Arrival::Constant { per_s: 40_000.0 }] {
        marks.seen.store(0, Ordering::Relaxed);
        let hooks = Hooks {
            thread_start: &|_| {
                WATCHED.set(true);
                enter()
            },
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        };
        let before = COUNT.load(Ordering::Relaxed);
        let began = Instant::now();
        let completed = drive(arrival, &hooks);
        // A thread that got no CPU before the first mark lays out its few things after it; each second hands over a histogram.
        let seconds = began.elapsed().as_secs() + 1;
        assert!(completed.measurement.received > STEADY[1]);
        let [first, last] = marks.at.each_ref().map(|mark| mark.load(Ordering::Relaxed));
        assert!(first > before, "the counter counts what a thread lays out");
        assert!(
            last - first <= 20 * seconds * threads as u64,
            "{arrival:?}: {} allocations in 10 000 transactions, {seconds} s",
            last - first
        );
    }
}

fn of_udp(workload: &Workload) -> impl Fn(Arrival, &Hooks<'_>) -> Completed {
    |arrival, hooks| {
        let workload = Workload {
            arrival,
            ..workload.clone()
        };
        run(&workload, hooks).unwrap()
    }
}

#[test]
fn ten_thousand_transactions_allocate_nothing() {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = Server::start(move |_, request, socket, from| {
        passed.pass();
        reply(socket, request, from);
    });
    let workload = workload(server.address, COUNT_OF_RUN);
    nothing_is_allocated_on_the_way(&marks, workload.threads, &|| Ok(()), &of_udp(&workload));
}

#[test]
fn nor_do_they_by_the_queues_of_a_device() {
    let pair = Pair::new(2).unwrap();
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = echo_telling(&pair, move || passed.pass());
    let enter = pair.client.enter_fn();
    let workload = by_queues(server.local_addr(), COUNT_OF_RUN);
    nothing_is_allocated_on_the_way(&marks, workload.threads, &enter, &of_udp(&workload));
}

#[test]
fn nor_do_ten_thousand_http_requests() {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = http::serve(move |number, body, stream| {
        passed.pass();
        http::ok(number, body, stream)
    });
    let drive = |arrival, hooks: &Hooks<'_>| {
        let mut words = vec![
            "--connections",
            "16",
            "--threads",
            "2",
            "--expect",
            "body~ok",
        ];
        if let Arrival::Constant { .. } = arrival {
            words.extend(["--rate", "40k/s"]);
        }
        let stop = Stop::Count(COUNT_OF_RUN);
        http::drive_with(&server, &words, stop, hooks).unwrap()
    };
    nothing_is_allocated_on_the_way(&marks, 2, &|| Ok(()), &drive);
}

#[test]
fn nor_do_those_over_tcp() {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = tcp::serve(108, move |number, request, stream| {
        passed.pass();
        tcp::echo(number, request, stream)
    });
    let drive = |arrival, hooks: &Hooks<'_>| {
        let mut words = vec!["--connections", "8", "--depth", "4", "--threads", "2"];
        words.extend(["--frames", "length-prefixed", "--prefix-bytes", "8"]);
        words.extend([
            "--request",
            "text:${uuid} ${bytes:50B} ${random:1000..9999}${choice:abcdefgh|ABCDEFGH}",
        ]);
        if let Arrival::Constant { .. } = arrival {
            words.extend(["--rate", "40k/s"]);
        }
        let stop = Stop::Count(COUNT_OF_RUN);
        tcp::drive_with::<rungwise_load::tcp::Parameters>(server.address, &words, stop, hooks)
            .unwrap()
    };
    nothing_is_allocated_on_the_way(&marks, 2, &|| Ok(()), &drive);
}

/// Drives a load of this kind, whose requests have this size, to a server that always gives the same reply.
fn stream_allocates_nothing<P: clap::Args + Traffic + Driven>(
    size: usize,
    own: &[&str],
    reply: &'static str,
) {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = tcp::serve(size, move |_, _, stream| {
        passed.pass();
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let drive = |arrival, hooks: &Hooks<'_>| {
        let mut words = vec!["--connections", "8", "--depth", "4", "--threads", "2"];
        words.extend(own);
        if let Arrival::Constant { .. } = arrival {
            words.extend(["--rate", "40k/s"]);
        }
        let stop = Stop::Count(COUNT_OF_RUN);
        tcp::drive_with::<P>(server.address, &words, stop, hooks).unwrap()
    };
    nothing_is_allocated_on_the_way(&marks, 2, &|| Ok(()), &drive);
}

#[test]
fn nor_do_commands_to_redis() {
    let how = [
        "--command",
        "SET key:${random:1000..9999} ${bytes:50B}${choice:a|b}",
        "--command",
        "GET key:${random:1000..9999} ${bytes:50B}${choice:a|b}",
    ];
    let reply = "*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n";
    stream_allocates_nothing::<redis::Parameters>(85, &how, reply);
}

#[test]
fn nor_do_requests_to_memcached() {
    let how = ["--keys", "1", "--sets", "0"];
    let reply = "VALUE rungwise:1 0 2\r\nok\r\nEND\r\n";
    stream_allocates_nothing::<memcached::Parameters>(16, &how, reply);
}

#[test]
fn nor_do_calls_of_dubbo_with_heartbeats_and_errors() {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let provider = dubbo::provide(dubbo::calls(move |came, peer| {
        passed.pass();
        let id = came.id;
        // In no regular order: each connection has seen all of them when counting begins.
        let mixed = came.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let reply = match mixed % 11 {
            1 => dubbo::failed(id, 100, "the pool is exhausted"),
            2 => dubbo::thrown(id, "java.lang.IllegalStateException", &id.to_string()),
            3 => [&rungwise_dubbo::heartbeat(id)[..], &dubbo::value(id)].concat(),
            _ => dubbo::value(id),
        };
        peer.send(&reply)
    }));
    let drive = |arrival, hooks: &Hooks<'_>| {
        let mut words = vec!["--connections", "8", "--depth", "4", "--threads", "2"];
        words.extend(["--arg-string-size", "200B"]);
        if let Arrival::Constant { .. } = arrival {
            words.extend(["--rate", "40k/s"]);
        }
        let stop = Stop::Count(COUNT_OF_RUN);
        dubbo::drive_with(provider.address, &words, stop, hooks).unwrap()
    };
    nothing_is_allocated_on_the_way(&marks, 2, &|| Ok(()), &drive);
}

#[test]
fn nor_do_those_by_http2() {
    let marks = Arc::new(Marks::default());
    let passed = Arc::clone(&marks);
    let server = http2_server::serve(move |_, stream, peer| {
        passed.pass();
        peer.ok(stream)
    });
    let drive = |arrival, hooks: &Hooks<'_>| {
        let mut words = vec!["--connections", "4", "--streams", "10", "--threads", "2"];
        words.extend([
            "--expect",
            "body~ok",
            "--body",
            "text:${counter}",
            "--cookies",
        ]);
        if let Arrival::Constant { .. } = arrival {
            words.extend(["--rate", "40k/s"]);
        }
        let stop = Stop::Count(COUNT_OF_RUN);
        http2_server::drive_with(&server, &words, stop, hooks).unwrap()
    };
    nothing_is_allocated_on_the_way(&marks, 2, &|| Ok(()), &drive);
}

#[test]
fn requests_that_are_rendered_allocate_nothing() {
    let _alone = COUNTER.lock().unwrap_or_else(PoisonError::into_inner);
    let words = [
        "--connections",
        "4",
        "--threads",
        "2",
        "--cookies",
        "--data",
        "users.csv",
        "--header",
        "X-Name: ${csv:name}",
        "--body",
        "text:{\"id\": ${counter:1000000}, \"of\": ${random:100..999}, \"key\": \"${uuid}\", \"kind\": \"${choice:a|b}\"}",
    ];
    for open in [&[][..], &["--rate", "8000/s"]] {
        let marks = Arc::new(Marks::default());
        let passed = Arc::clone(&marks);
        let server = requests::Server::start(move |seen| {
            passed.pass();
            let path = seen.path();
            format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: last={path}; Path=/; Expires=Wed, 09 Jun 2100 10:18:14 GMT\r\nContent-Length: 0\r\n\r\n"
            )
        });
        let words = [&words, open].concat();
        let files = [("users.csv", "name\nann\ncyd\n")];
        let load = requests::load(&server, ("/${csv:name}", &words), &files).unwrap();
        let hooks = Hooks {
            thread_start: &|_| {
                WATCHED.set(true);
                Ok(())
            },
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        };
        let length = Length {
            warmup: Duration::ZERO,
            stop: Stop::Count(COUNT_OF_RUN),
            seed: 1,
        };
        let before = COUNT.load(Ordering::Relaxed);
        let began = Instant::now();
        let completed = load.run(&length, &hooks, &mut |_| {}).unwrap();
        // A thread that got no CPU before the first mark lays out its few things after it; each second hands over a histogram.
        let seconds = began.elapsed().as_secs() + 1;
        let m = &completed.measurement;
        assert!(m.received > STEADY[1], "{:?}", m.errors);
        let [first, last] = marks.at.each_ref().map(|mark| mark.load(Ordering::Relaxed));
        assert!(first > before, "the counter counts what a thread lays out");
        // A run of more than a second hands over a histogram per second and thread.
        assert!(
            last - first <= 20 * seconds,
            "{} allocations in 10 000 requests, {seconds} s",
            last - first
        );
    }
}
