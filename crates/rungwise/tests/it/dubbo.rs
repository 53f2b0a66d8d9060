//! `load dubbo` against the provider of the lab `dubbo-burst`: Dubbo 2.5.10 on a real JVM, which counts its calls.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rungwise_dubbo::hessian::Value as Hessian;
use rungwise_dubbo::{Call, Decoder, Limits, Outcome, Reply, Template};
use rungwise_host::process::locate;
use rungwise_testkit::{Pair, skipped};
use serde_json::Value;

use crate::run::{Bench, Ended, kill};
use crate::tune::assert_valid;

/// The lab's sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/dubbo-burst");

/// The folder with the provider's jars, built by Maven when its sources have changed.
fn built() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dubbo-burst");
    let jar = folder.join("target/hello.jar");
    let is_old = || {
        let made = std::fs::metadata(&jar).and_then(|jar| jar.modified()).ok();
        let newest = newest(Path::new(SOURCES));
        made.is_none_or(|made| made < newest)
    };
    if is_old() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let copied = Command::new("cp")
            .args(["-r", "pom.xml", "src"])
            .arg(&folder)
            .current_dir(SOURCES)
            .status();
        assert!(copied.unwrap().success());
        let build = Command::new("mvn")
            .args(["-B", "-q", "package"])
            .current_dir(&folder)
            .output();
        let build = Ended::from(build.unwrap());
        build.expect(0);
    }
    folder
}

fn newest(folder: &Path) -> std::time::SystemTime {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    let times = entries.map(|entry| {
        if entry.file_type().unwrap().is_dir() {
            newest(&entry.path())
        } else {
            entry.metadata().unwrap().modified().unwrap()
        }
    });
    times.max().unwrap_or(std::time::UNIX_EPOCH)
}

/// A provider that listens in a network namespace: it binds no address of loopback, and otherwise all of the machine's.
struct Provider {
    child: Child,
    pair: Pair,
}

const PORT: u16 = 20_880;

impl Provider {
    /// One with so many threads and this body limit, whose calls take `longest_ms` at most. None where there is no Maven or no Java.
    fn start(bench: &Bench, threads: u32, longest_ms: u32, payload: u32) -> Option<Self> {
        for program in ["mvn", "javac"] {
            if locate(program).is_none() {
                skipped(format_args!(
                    "no {program} in PATH; cargo xtask test installs one"
                ));
                return None;
            }
        }
        let built = built();
        let pair = Pair::new(1).unwrap();
        let host = Pair::SERVER.to_string();
        let settings = format!(
            "host={host}\nport={PORT}\nthreads={threads}\niothreads=3\ndispatcher=all\npayload={payload}\nlongest_ms={longest_ms}\n"
        );
        let settings = bench.write("provider.properties", &settings);
        let jars = format!("{0}/target/hello.jar:{0}/target/lib/*", built.display());
        // Dubbo writes a dump into the home of its user when the pool is full.
        let home = format!("-Duser.home={}", bench.dir.path().display());
        let mut command = Command::new("java");
        command
            .args(["-Xmx256m", "-XX:+UseSerialGC", &home])
            // How long a provider that shuts down waits for consumers to hear of it from a registry; there is none.
            .arg("-Ddubbo.service.shutdown.wait=300")
            .args(["--add-opens", "java.base/java.lang=ALL-UNNAMED"])
            .args(["--add-opens", "java.base/java.math=ALL-UNNAMED"])
            .args(["-cp", &jars, "demo.Provider"])
            .arg(settings)
            .env("DUBBO_IP_TO_BIND", &host)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = pair.server.run(move || command.spawn()).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.is_ok_and(|line| line == "ready")),
            "{:?}",
            child.wait()
        );
        // Its log goes on.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, pair })
    }

    /// Calls of `sayHello` that it has counted.
    fn served(&self) -> i64 {
        let connect = || TcpStream::connect((Pair::SERVER, PORT));
        let mut stream = self.pair.client.run(connect).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let call = Call::new("demo.HelloService", "served");
        let mut request = Template::new(&call, true).unwrap();
        std::io::Write::write_all(&mut stream, request.with_id(1)).unwrap();
        let mut decoder = Decoder::new(1 << 20);
        loop {
            assert_ne!(decoder.read_from(&mut stream).unwrap(), 0);
            let Some(frame) = decoder.next_frame().unwrap() else {
                continue;
            };
            match Reply::decode(&frame, Limits::default()).unwrap().outcome {
                Outcome::Value(Hessian::List(list)) => match list.items[0] {
                    Hessian::Long(calls) => return calls,
                    ref other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }

    /// What a load prints that is run in the other namespace.
    fn run(&self, bench: &Bench, more: &[&str]) -> Ended {
        let mut command = bench.command(&words(more));
        Ended::from(self.pair.client.run(move || command.output()).unwrap())
    }

    fn load(&self, bench: &Bench, more: &[&str]) -> Value {
        document(&self.run(bench, more))
    }
}

/// Of a load of it, with `--service` where `more` has none.
fn words<'w>(more: &[&'w str]) -> Vec<&'w str> {
    let own = ["load", "dubbo", "10.78.0.1:20880"];
    let service: &[&str] = if more.contains(&"--service") {
        &[]
    } else {
        &["--service", "demo.HelloService"]
    };
    let run = ["--warmup", "0s", "--format", "json"];
    [&own, service, &run, more].concat()
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn document(ended: &Ended) -> Value {
    assert!(
        matches!(ended.code, Some(0 | 3)),
        "{:?} {} {}",
        ended.code,
        ended.stdout,
        ended.stderr
    );
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "load");
    document
}

#[test]
fn calls_of_a_real_provider_are_those_that_it_counts() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, 200, 4, 8 << 20) else {
        return;
    };
    let mut served = provider.served();
    assert_eq!(served, 0);
    for (number, more) in [
        (500, &["--connections", "2", "--depth", "4"][..]),
        (300, &["--connections", "4", "--rate", "500/s"]),
        (
            100,
            &["--dubbo-version", "2.0.1", "--attachment", "trace=on"],
        ),
    ] {
        let count = number.to_string();
        let call = ["--method", "sayHello", "--count", &count];
        let size = ["--arg-string-size", "50KiB"];
        let report = provider.load(&bench, &[&call[..], &size, more].concat());
        assert_eq!(report["sent"], number, "{more:?} {report:#}");
        assert_eq!(report["received"], number, "{more:?} {report:#}");
        assert_eq!(report["errors"], serde_json::json!({}), "{more:?}");
        assert_eq!(report["stream"]["answers"]["value"], number, "{more:?}");
        // The reply is the argument twice.
        let bytes = report["stream"]["received_bytes"].as_i64().unwrap();
        assert!(bytes > number * 2 * 51_200 && bytes < number * 2 * 51_200 + number * 100);
        let after = provider.served();
        assert_eq!(after - served, number, "{more:?}");
        served = after;
    }
}

#[test]
fn what_a_real_provider_refuses_is_counted_in_its_own_words() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, 8, 20, 100_000) else {
        return;
    };
    for (more, class, words) in [
        (
            &[
                "--service",
                "demo.Nix",
                "--method",
                "sayHello",
                "--args",
                "[\"a\"]",
            ][..],
            "reply_service_error",
            "Not found exported service: demo.Nix",
        ),
        (&["--method", "nix"], "reply_service_error", "nix"),
        (
            &[
                "--method",
                "sayHello",
                "--args",
                "[{}]",
                "--types",
                "com.acme.Nix",
            ],
            "reply_bad_request",
            "RpcInvocation",
        ),
    ] {
        let report = provider.load(
            &bench,
            &[more, &["--connections", "2", "--count", "20"]].concat(),
        );
        assert_eq!(report["received"], 0, "{more:?}");
        assert_eq!(report["errors"][class], 20, "{more:?} {report:#}");
        let quote = report["stream"]["quotes"][class]["text"].as_str().unwrap();
        assert!(quote.contains(words), "{more:?} {quote}");
    }
    // 256 calls at the same time for 8 threads, without a queue.
    let full = ["--method", "sayHello", "--args", "[\"a\"]", "--depth", "64"];
    let more = ["--connections", "4", "--count", "2000"];
    let report = provider.load(&bench, &[&full[..], &more].concat());
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let exhausted = number("/errors/reply_thread_pool_exhausted");
    assert!(exhausted > 0, "{report:#}");
    assert_eq!(number("/received") + exhausted, 2_000, "{report:#}");
    assert_eq!(provider.served(), number("/received"));
    let quotes = &report["stream"]["quotes"]["reply_thread_pool_exhausted"];
    assert_eq!(quotes["class"], "thread pool exhausted");
    assert!(
        quotes["text"].as_str().unwrap().contains("xhausted"),
        "{quotes}"
    );
    // Above its payload: it answers nothing that could be matched, and the run ends all the same.
    let began = Instant::now();
    let large = ["--method", "sayHello", "--arg-string-size", "200000B"];
    let more = ["--connections", "1", "--timeout", "300ms", "--for", "2s"];
    let ended = provider.run(&bench, &[&large[..], &more].concat());
    assert!(matches!(ended.code, Some(3 | 4)), "{}", ended.stdout);
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_provider_that_shuts_down_or_is_killed_under_load_ends_it_in_time() {
    let bench = Bench::new();
    for (signal, event) in [(libc::SIGTERM, true), (libc::SIGKILL, false)] {
        let Some(mut provider) = Provider::start(&bench, 200, 4, 8 << 20) else {
            return;
        };
        let more = ["--method", "sayHello", "--args", "[\"a\"]"];
        let run = ["--connections", "4", "--for", "3s", "--timeout", "500ms"];
        let load = {
            let mut command = bench.command(&words(&[&more[..], &run].concat()));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            provider.pair.client.run(move || command.spawn()).unwrap()
        };
        while provider.served() < 100 {
            std::thread::yield_now();
        }
        let began = Instant::now();
        kill(provider.child.id().cast_signed(), signal);
        let ended = Ended::from(load.wait_with_output().unwrap());
        assert!(began.elapsed() < Duration::from_secs(20));
        let report = document(&ended);
        assert!(report["received"].as_i64().unwrap() >= 50, "{report:#}");
        let errors = report["errors"].as_object().unwrap();
        assert!(
            ["closed", "reset", "connect", "refused", "timeout"]
                .iter()
                .any(|kind| errors.contains_key(*kind)),
            "{errors:?}"
        );
        let read_only = &report["stream"]["events"]["read_only"];
        assert_eq!(read_only.as_i64().unwrap_or(0) > 0, event, "{report:#}");
        provider.child.wait().unwrap();
    }
}
