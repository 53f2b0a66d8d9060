//! `check --socket` on real sockets: the slow side of each connection, and why; what is no service is refused.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rungwise_host::namespace::Namespace;
use rungwise_model::check::{CheckReport, Outcome};
use rungwise_model::service::{Cause, ServiceReport, Side};
use rungwise_testkit::{Pair, TimeLimit, skipped};
use rustix::net::sockopt;

use crate::run::{Bench, Ended, planted};
use crate::tune::assert_valid;

/// Longest that a thread of the traffic waits before it sees that it is to end.
const STEP: Duration = Duration::from_millis(50);

/// Windows until one shows what needs a machine that has time for it.
const WINDOWS: u32 = 3;

/// Threads that move data until it is dropped.
#[derive(Default)]
struct Traffic {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Traffic {
    fn repeat(&mut self, mut work: impl FnMut() + Send + 'static) {
        let ends = Arc::clone(&self.ends);
        self.threads.push(std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                work();
            }
        }));
    }

    /// Writes as much as the socket takes.
    fn writer(&mut self, mut end: TcpStream, bytes: usize) {
        let block = vec![0; bytes];
        end.set_write_timeout(Some(STEP)).unwrap();
        self.repeat(move || {
            let _ = end.write(&block);
        });
    }

    /// Reads at most so many bytes at once, and rests after each time.
    fn reader(&mut self, mut end: TcpStream, bytes: usize, rest: Duration) {
        let mut block = vec![0; bytes];
        end.set_read_timeout(Some(STEP)).unwrap();
        self.repeat(move || {
            let _ = end.read(&mut block);
            if !rest.is_zero() {
                std::thread::sleep(rest);
            }
        });
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A listener, and the ends of a connection to it: the server's and the client's.
fn connected() -> (TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    (listener, server, client)
}

fn words(socket: &str) -> Vec<&str> {
    let fixed = "check --for 2s --no-stacks --no-jvm --fail-on never --format json --socket";
    fixed.split(' ').chain([socket]).collect()
}

fn read(ended: &Ended) -> CheckReport {
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "check");
    serde_json::from_value(document).unwrap()
}

fn judged(bench: &Bench, listener: &TcpListener) -> CheckReport {
    judged_at(bench, listener.local_addr().unwrap().port())
}

fn judged_at(bench: &Bench, port: u16) -> CheckReport {
    read(&bench.run(&words(&format!(":{port}"))))
}

/// The slow side of the only connection.
#[track_caller]
fn slow(report: &CheckReport) -> (Side, Cause) {
    let service = report.service.as_ref().unwrap();
    let [judged] = &service.judged[..] else {
        panic!("{service:?}");
    };
    assert_eq!(service.connections, 1);
    assert!(service.samples > 10, "{service:?}");
    (judged.slow, judged.cause)
}

#[test]
fn a_client_that_does_not_read_is_slow_and_not_its_buffer() {
    let bench = Bench::new();
    let (listener, server, client) = connected();
    let mut traffic = Traffic::default();
    traffic.writer(server, 65_536);
    traffic.reader(client, 4096, Duration::from_millis(20));
    let report = judged(&bench, &listener);
    let service = report.service.as_ref();
    assert_eq!(
        slow(&report),
        (Side::Client, Cause::NotReading),
        "{service:?}"
    );
    // This process listens, and is judged as with --pid.
    let own = format!("pid {} (", std::process::id());
    assert!(report.target.contains(&own), "{}", report.target);
    let table = report.tables.iter().find(|table| table.id == "service");
    let [row] = &table.unwrap().rows[..] else {
        panic!("{table:?}");
    };
    for key in [
        "recvq_bytes",
        "other_recvq_most_bytes",
        "rtt_s",
        "process",
        "other_process",
    ] {
        assert!(row.get(key).is_some_and(Option::is_some), "{key}: {row:?}");
    }
}

#[test]
fn a_server_that_does_not_read_is_slow() {
    let bench = Bench::new();
    let (listener, server, client) = connected();
    let mut traffic = Traffic::default();
    traffic.writer(client, 65_536);
    traffic.reader(server, 4096, Duration::from_millis(20));
    let report = judged(&bench, &listener);
    let service = report.service.as_ref();
    assert_eq!(
        slow(&report),
        (Side::Server, Cause::NotReading),
        "{service:?}"
    );
}

#[test]
fn a_small_send_buffer_is_named_though_the_kernel_counts_nothing() {
    let bench = Bench::new();
    let (listener, server, client) = connected();
    sockopt::set_socket_send_buffer_size(&server, 4608).unwrap();
    let mut traffic = Traffic::default();
    traffic.writer(server, 65_536);
    traffic.reader(client, 65_536, Duration::ZERO);
    let expected = (Side::Server, Cause::SendBuffer);
    // It is full in half of the samples only if both threads run.
    let mut report = judged(&bench, &listener);
    for _ in 1..WINDOWS {
        if slow(&report) == expected {
            break;
        }
        report = judged(&bench, &listener);
    }
    assert_eq!(slow(&report), expected, "{:?}", report.service);
}

#[test]
fn a_small_receive_buffer_is_told_from_a_slow_reader() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let mut traffic = Traffic::default();
    traffic.writer(client, 65_536);
    traffic.reader(server, 65_536, Duration::ZERO);
    let report = judged(&bench, &listener);
    let service = report.service.as_ref();
    assert_eq!(
        slow(&report),
        (Side::Server, Cause::ReceiveBuffer),
        "{service:?}"
    );
}

#[test]
fn an_idle_connection_is_idle_and_one_that_asks_now_and_then_is_not_held_up() {
    let bench = Bench::new();
    let (listener, mut server, mut client) = connected();
    let idle = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = listener.accept().unwrap();
    let mut traffic = Traffic::default();
    server.set_read_timeout(Some(STEP)).unwrap();
    client.set_read_timeout(Some(STEP)).unwrap();
    traffic.repeat(move || {
        let mut block = [0; 100];
        if server.read_exact(&mut block).is_ok() {
            let _ = server.write_all(&block);
        }
    });
    traffic.repeat(move || {
        let mut block = [0; 100];
        let _ = client.write_all(&block);
        let _ = client.read_exact(&mut block);
        std::thread::sleep(Duration::from_millis(2));
    });
    let report = judged(&bench, &listener);
    let service = report.service.unwrap();
    let sides: Vec<Side> = service.judged.iter().map(|one| one.slow).collect();
    assert_eq!(sides, [Side::Neither, Side::Idle], "{:?}", service.judged);
    drop((idle, accepted));
}

/// CPU time of the calling thread, in nanoseconds.
fn own_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let (on_cpu, _) = text.split_once(' ').unwrap();
    on_cpu.parse().unwrap()
}

#[test]
fn a_thread_that_leaves_requests_unread_as_it_has_no_more_time_is_named() {
    let bench = Bench::new();
    let (listener, mut server, mut client) = connected();
    for end in [&server, &client] {
        end.set_nodelay(true).unwrap();
        end.set_read_timeout(Some(STEP)).unwrap();
    }
    // Four requests are under way at any time; three of them wait while one is computed.
    client.write_all(&[0; 400]).unwrap();
    let mut traffic = Traffic::default();
    let used = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&used);
    let begun = Instant::now();
    traffic.repeat(move || {
        let mut block = [0; 100];
        if server.read_exact(&mut block).is_ok() {
            let until = Instant::now() + Duration::from_millis(3);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            let _ = server.write_all(&block);
        }
        told.store(own_time(), Ordering::Relaxed);
    });
    traffic.repeat(move || {
        let mut block = [0; 100];
        if client.read_exact(&mut block).is_ok() {
            let _ = client.write_all(&block);
        }
    });
    let report = judged(&bench, &listener);
    let used = Duration::from_nanos(used.load(Ordering::Relaxed));
    let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
    if share <= 0.9 {
        skipped(format_args!(
            "others left the busy thread {share:.2} of a CPU"
        ));
        return;
    }
    assert_eq!(
        slow(&report),
        (Side::Server, Cause::BusyThread),
        "{share:.2} {:?}",
        report.service
    );
}

/// Serves one client: queues 10 MB/s in its memory, 200 MB at most, and writes as far as the socket takes it.
const PUSHER: &str = "\
import select, socket, sys
listener = socket.create_server(('127.0.0.1', 0))
print('ready', flush=True)
print(listener.getsockname()[1], flush=True)
end, _ = listener.accept()
end.setblocking(False)
queue, made = [], 0
while not select.select([sys.stdin], [], [], 0.01)[0]:
    if made < 2000:
        queue.append(b'x' * 100_000)
        made += 1
    try:
        while queue:
            queue[0] = queue[0][end.send(queue[0]):]
            if not queue[0]:
                queue.pop(0)
    except OSError:
        pass
";

/// It in a process of its own, whose memory nothing else fills, until it is dropped.
struct Pusher {
    child: std::process::Child,
    limit: Option<TimeLimit>,
    port: u16,
}

impl Pusher {
    fn start() -> Self {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", PUSHER]);
        let (child, limit, mut output) = planted(&mut command, Duration::from_mins(2));
        let mut port = String::new();
        output.read_line(&mut port).unwrap();
        Self {
            child,
            limit: Some(limit),
            port: port.trim().parse().unwrap(),
        }
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.limit = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_process_that_queues_what_its_client_does_not_take_is_found() {
    let bench = Bench::new();
    let pusher = Pusher::start();
    let client = TcpStream::connect(("127.0.0.1", pusher.port)).unwrap();
    let mut traffic = Traffic::default();
    traffic.reader(client, 4096, Duration::from_millis(20));
    let judge = || {
        let mut findings = judged_at(&bench, pusher.port).findings.into_iter();
        let found = findings.find(|one| one.rule == "write-queue-grows");
        found.unwrap()
    };
    // It grows in each part of a window only if it runs in each.
    let mut found = judge();
    for _ in 1..WINDOWS {
        if found.outcome == Outcome::Watch {
            break;
        }
        found = judge();
    }
    assert_eq!(found.outcome, Outcome::Watch, "{}", found.sentence);
    assert_eq!(found.subject, format!("process/{}", pusher.child.id()));
}

#[test]
fn the_far_end_is_found_in_another_network_namespace() {
    let bench = Bench::new();
    let Pair { server, client } = Pair::new(1).unwrap();
    let at: SocketAddr = (Pair::SERVER, 9000).into();
    let listener = server.run(move || TcpListener::bind(at)).unwrap();
    let far = client.run(move || TcpStream::connect(at)).unwrap();
    let (near, _) = listener.accept().unwrap();
    // A namespace is found by a process that lives in it.
    let mut resident = resident(&client);
    let mut traffic = Traffic::default();
    traffic.writer(near, 65_536);
    traffic.reader(far, 4096, Duration::from_millis(20));
    let command = bench.command(&words(":9000"));
    let ended = server.run(move || {
        let mut command = command;
        command.output().unwrap()
    });
    let report = read(&Ended::from(ended));
    resident.kill().unwrap();
    resident.wait().unwrap();
    let service = report.service.as_ref();
    assert_eq!(
        slow(&report),
        (Side::Client, Cause::NotReading),
        "{service:?}"
    );
    let why = &service.unwrap().judged[0].why;
    assert!(why.contains("of its receive buffer unread"), "{why}");
}

fn resident(namespace: &Namespace) -> std::process::Child {
    let sleep = || std::process::Command::new("sleep").arg("60").spawn();
    namespace.run(sleep).unwrap()
}

#[test]
fn a_client_judges_its_connections_where_no_process_listens() {
    let bench = Bench::new();
    let Pair { server, client } = Pair::new(1).unwrap();
    let at: SocketAddr = (Pair::SERVER, 9000).into();
    let listener = server.run(move || TcpListener::bind(at)).unwrap();
    let near = client.run(move || TcpStream::connect(at)).unwrap();
    let (far, _) = listener.accept().unwrap();
    let mut traffic = Traffic::default();
    traffic.writer(near, 65_536);
    traffic.reader(far, 4096, Duration::from_millis(20));
    let command = bench.command(&words("10.78.0.1:9000"));
    let ended = client.run(move || {
        let mut command = command;
        command.output().unwrap()
    });
    let report = read(&Ended::from(ended));
    let ServiceReport { ports, .. } = report.service.as_ref().unwrap();
    assert_eq!(ports, &["10.78.0.1:9000"]);
    let (side, cause) = slow(&report);
    assert_eq!(side, Side::Server);
    // Seen from the client alone: its window is closed, or nearly so.
    assert!(
        matches!(cause, Cause::NotReading | Cause::Window),
        "{cause:?}"
    );
}

#[test]
fn a_stored_document_and_a_capture_give_the_same_connections() {
    let bench = Bench::new();
    let (listener, server, client) = connected();
    let mut traffic = Traffic::default();
    traffic.writer(server, 65_536);
    traffic.reader(client, 4096, Duration::from_millis(20));
    let port = format!(":{}", listener.local_addr().unwrap().port());
    let host = "host.rungwise";
    bench
        .run(&[
            "capture",
            "--for",
            "2s",
            "--no-stacks",
            "--socket",
            &port,
            "-o",
            host,
        ])
        .expect(0);
    let check = ["check", host, "--fail-on", "never", "-q"];
    bench.run(&[&check[..], &["-o", "doc.json"]].concat());
    for format in ["text", "markdown", "html"] {
        let page = bench.run(&[&check[..], &["--format", format]].concat());
        let again = bench.run(&["report", "doc.json", "-q", "--format", format]);
        assert_eq!(page.stdout, again.expect(0).stdout, "{format}");
        let page = page.says(&["Connections of", "does not read", "client"]);
        assert!(page.stdout.contains(&port), "{format}");
    }
}

#[test]
fn what_is_no_service_is_refused_with_what_to_do() {
    let bench = Bench::new();
    for wrong in ["", "abc", ":0", ":70000", "10.0.0.1", "::1"] {
        bench
            .run(&["check", "--socket", wrong])
            .expect(2)
            .says(&["write :20880"]);
    }
    let many: Vec<String> = (1..=65).map(|port| format!("--socket=:{port}")).collect();
    let words = std::iter::once("check").chain(many.iter().map(String::as_str));
    bench
        .run(&words.collect::<Vec<_>>())
        .expect(2)
        .says(&["64 ports"]);
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let port = format!("127.0.0.1:{free}");
    bench
        .run(&["check", "--for", "1s", "--socket", &port])
        .expect(4)
        .says(&["no process listens there", "ss -tan", &port]);
    bench
        .run(&["check", "--socket", ":80", "host.rungwise"])
        .expect(2)
        .says(&["cannot be used with"]);
}

#[test]
fn a_service_without_a_connection_says_so() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!(":{}", listener.local_addr().unwrap().port());
    let ended = bench.run(&[
        "check",
        "--for",
        "300ms",
        "--no-stacks",
        "--no-jvm",
        "--socket",
        &port,
    ]);
    ended.says(&["It had no connection at the end of the window."]);
}
