//! `serve udp` and `load udp` as processes: what they promise to scripts.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Output};
use std::time::Duration;

use rungwise_host::process::{Launch, Service};
use rungwise_testkit::Pair;
use serde_json::Value;

use crate::judged::host_path;
use crate::run::{Bench, Ended, binary, kill};
use crate::tune::assert_valid;

/// A running `serve` that said it was ready.
pub(crate) struct Serving {
    pub(crate) child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub(crate) address: String,
}

impl Serving {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        Self::spawn(bench, "udp", arguments)
    }

    /// `serve WHAT`.
    pub(crate) fn spawn(bench: &Bench, what: &str, arguments: &[&str]) -> Self {
        let words = [&["serve", what, "--quiet"], arguments].concat();
        Self::ready(bench.start(&words), what)
    }

    /// A child that was just started with pipes.
    pub(crate) fn ready(mut child: Child, what: &str) -> Self {
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let prefix = format!("ready {what} ");
        let address = line.strip_prefix(&prefix).map(str::trim);
        let Some(address) = address.map(str::to_owned) else {
            panic!("'{line}': {:?}", child.wait_with_output());
        };
        Self {
            child,
            out,
            address,
        }
    }

    /// What it printed after a signal.
    pub(crate) fn end(mut self, signal: i32) -> Ended {
        kill(self.child.id().cast_signed(), signal);
        let mut stdout = Vec::new();
        self.out.read_to_end(&mut stdout).unwrap();
        let mut stderr = Vec::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_end(&mut stderr).unwrap();
        let status = self.child.wait().unwrap();
        Ended::from(Output {
            status,
            stdout,
            stderr,
        })
    }
}

impl Drop for Serving {
    /// A test that failed leaves no server to the next.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The document of a run that was measured, certified (0) or on a machine too busy for that (3).
#[track_caller]
pub(crate) fn measured(ended: &Ended) -> Value {
    assert!(
        matches!(ended.code, Some(0 | 3)),
        "{:?} {}",
        ended.code,
        ended.stderr
    );
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "load");
    // Certified or not is reported three times, and alike.
    let certified = ended.code == Some(0);
    assert_eq!(report["client"]["certified"], certified);
    assert_eq!(
        report["client"]["reasons"].as_array().unwrap().is_empty(),
        certified
    );
    assert_eq!(report["exit"], ended.code.unwrap());
    report
}

#[test]
fn load_prints_one_document_with_every_promised_field() {
    let bench = Bench::new();
    let server = Serving::start(&bench, &["--listen", "127.0.0.1:0"]);
    let pid = server.child.id().to_string();
    let load = |how: &[&str]| {
        let fixed = [
            "load",
            "udp",
            &server.address,
            "--server-pid",
            &pid,
            "--warmup",
            "50ms",
            "--sockets",
            "2",
            "--format",
            "json",
        ];
        measured(&bench.run(&[&fixed, how].concat()))
    };
    let closed = load(&["--count", "3000", "--depth", "4"]);
    assert_eq!(closed["offered_per_s"], Value::Null);
    assert_eq!(closed["sent"], 3000);
    // Over before the clocks can be read, or not: never for nothing.
    let short = load(&["--count", "5"]);
    assert_ne!(short["client"]["cpu_us_per_tx"], 0.0);
    let open = load(&["--rate", "2k/s", "--for", "1100ms"]);
    assert_eq!(open["offered_per_s"], 2000.0);
    assert_eq!(open["seconds"].as_array().unwrap().len(), 1);
    for report in [closed, open] {
        for pointer in [
            "/schema",
            "/tool/version",
            "/command/0",
            "/started",
            "/finished",
            "/exit",
            "/offered_per_s",
            "/achieved_per_s",
            "/sent",
            "/received",
            "/lost",
            "/errors",
            "/latency_us/corrected/p50",
            "/latency_us/corrected/p90",
            "/latency_us/corrected/p99",
            "/latency_us/corrected/p999",
            "/latency_us/corrected/max",
            "/latency_us/uncorrected/p50",
            "/latency_us/uncorrected/p999",
            "/client/cpu_us_per_tx",
            "/client/saturated",
            "/client/foreign_cpu",
            "/client/certified",
            "/client/reasons",
            "/seconds",
        ] {
            assert!(report.pointer(pointer).is_some(), "{pointer} in {report}");
        }
        let count = |name: &str| report[name].as_u64().unwrap();
        assert_eq!(count("sent"), count("received") + count("lost"));
    }
    server.end(libc::SIGTERM).expect(0);
}

#[test]
fn a_server_of_this_machine_is_known_by_its_socket() {
    let bench = Bench::new();
    let server = Serving::start(&bench, &["--listen", "0.0.0.0:0"]);
    let target = server.address.replace("0.0.0.0", "127.0.0.1");
    let run = |how: &[&str]| {
        let load = [&["load", "udp", &target, "--format", "json"], how].concat();
        bench.run(&load)
    };
    let report = measured(&run(&["--for", "600ms"]));
    let client = &report["client"];
    assert!(client["server_busy"].as_f64().unwrap() > 0.0, "{client:#}");
    assert!(client["foreign_cpu"].is_f64(), "{client:#}");
    // Shorter than the steps of the kernel's clocks: nothing is known of the others, so nothing is certified.
    let short = run(&["--count", "20", "--warmup", "0ms"]);
    assert_eq!(short.code, Some(3), "{}", short.stderr);
    let short = measured(&short);
    assert_eq!(short["client"]["foreign_cpu"], Value::Null);
    let reasons = short["client"]["reasons"].to_string();
    assert!(
        reasons.contains("too coarse for so short a run"),
        "{reasons}"
    );
    server.end(libc::SIGTERM).expect(0);
}

#[test]
fn a_batch_without_its_way_to_send_is_refused() {
    Bench::new()
        .run(&["serve", "udp", "--listen", "127.0.0.1:0", "--batch", "64"])
        .expect(2)
        .says(&["cannot use --batch 64", "add --io batch"]);
}

#[test]
fn what_a_load_says_of_its_generator_a_check_takes_in() {
    let bench = Bench::new();
    let server = Serving::start(&bench, &["--listen", "127.0.0.1:0"]);
    let pid = server.child.id().to_string();
    let report = bench.path("load.json");
    let report = report.to_str().unwrap();
    let fixed = ["--server-pid", &pid, "--for", "300ms", "--format", "json"];
    let load = [&["load", "udp", &server.address, "-o", report], &fixed[..]].concat();
    let ended = bench.run(&load);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    server.end(libc::SIGTERM).expect(0);
    let host = host_path("healthy");
    let ended = bench.run(&["check", &host, "--load", report, "--format", "json"]);
    let check: Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = check["findings"].as_array().unwrap();
    let client = findings
        .iter()
        .find(|finding| finding["rule"] == "client-bound")
        .unwrap();
    assert_ne!(client["outcome"], "undecided", "{client:#}");
}

#[test]
fn load_tells_who_is_to_blame_by_its_exit_code() {
    let bench = Bench::new();
    let queries = bench.write("queries", "example.org A\nexample.org AAAAA\n");
    let queries = queries.to_str().unwrap();
    bench
        .run(&["load", "udp", "127.0.0.1:9", "--dns", queries])
        .expect(2)
        .says(&["line 2", "'AAAAA' is not a DNS type"]);
    bench
        .run(&["load", "udp", "127.0.0.1:9", "--rate", "20k"])
        .expect(2)
        .says(&["20k/s"]);
    // Bound and closed again, so nobody listens there.
    let closed = std::net::UdpSocket::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .to_string();
    bench
        .run(&["load", "udp", &closed])
        .expect(4)
        .says(&["the port is closed"]);
    // Above the largest process id that a kernel hands out.
    bench
        .run(&["load", "udp", &closed, "--server-pid", "8388608"])
        .expect(4)
        .says(&["process 8388608"]);
    let ended = bench
        .run(&["load", "udp", &closed, "--source", "192.0.2.1"])
        .expect(4)
        .says(&["192.0.2.1"]);
    assert_eq!(
        ended.stderr.matches("os error").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn serve_counts_gives_the_port_back_at_once_and_tells_an_end_from_an_interruption() {
    let bench = Bench::new();
    let mut listen = "127.0.0.1:0".to_owned();
    for io in ["single", "batch", "uring"] {
        for (signal, code) in [(libc::SIGTERM, 0), (libc::SIGINT, 130)] {
            let server =
                Serving::start(&bench, &["--listen", &listen, "--io", io, "--format=json"]);
            listen.clone_from(&server.address);
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            socket.send_to(b"hello", &server.address).unwrap();
            assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 5, "{io}");
            let ended = server.end(signal).expect(code);
            let report: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_valid(&report, "serve-udp");
            assert_eq!(report["exit"], code);
            assert_eq!(report["total"]["received"], 1, "{io}");
            assert_eq!(report["total"]["sent"], 1, "{io}");
            assert_eq!(report["workers"].as_array().unwrap().len(), 1);
        }
    }
}

/// `rungwise` with these arguments in a namespace.
fn inside(namespace: &rungwise_host::namespace::Namespace, arguments: &[&str]) -> Service {
    let program = binary().display().to_string();
    let argv = std::iter::once(program).chain(arguments.iter().map(ToString::to_string));
    Service::start(&Launch {
        argv: argv.collect(),
        namespace: Some(namespace),
        ..Launch::default()
    })
    .unwrap()
}

/// Whether the client's device has an XDP program.
fn has_program(pair: &Pair) -> bool {
    let shown = pair.client.run(|| {
        std::process::Command::new("ip")
            .args(["link", "show", "dev", Pair::CLIENT_DEVICE])
            .output()
            .unwrap_or_else(|error| panic!("cannot run ip: {error}; install iproute2"))
    });
    assert!(shown.status.success());
    String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

#[test]
fn a_killed_load_by_af_xdp_leaves_no_program_on_the_device() {
    let pair = Pair::new(1).unwrap();
    let target = format!("{}:9000", Pair::SERVER);
    let server = inside(&pair.server, &["serve", "udp", "--listen", &target]);
    let ready = rungwise_host::process::Ready::Line("ready udp".to_owned());
    server.wait_ready(&ready, Duration::from_secs(20)).unwrap();
    let device = format!("{}:native", Pair::CLIENT_DEVICE);
    let common = [
        "load",
        "udp",
        &target,
        // It runs in the folder of the sources.
        "--no-keep",
        "--threads",
        "1",
        "--af-xdp",
        &device,
    ];
    let load = inside(&pair.client, &[&common[..], &["--for", "1h"]].concat());
    wait_for(|| has_program(&pair));
    kill(load.pid().cast_signed(), libc::SIGKILL);
    wait_for(|| !has_program(&pair));
    // And the next finds everything free.
    let mut next = inside(&pair.client, &[&common[..], &["--count", "1000"]].concat());
    wait_for(|| !next.alive());
    let status = next.stop(Duration::from_secs(1)).unwrap();
    assert!(
        matches!(status.code(), Some(0 | 3)),
        "{status}: {}",
        next.last_words()
    );
}

#[track_caller]
fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it did not come true"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
