//! Requests that differ, against a small server that keeps each byte that it was sent.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args as _, FromArgMatches as _};
use rungwise_load::Error;
use rungwise_load::engine::{Completed, Hooks, Stop};
use rungwise_load::http::Parameters;
use rungwise_load::parameters::{Driven as _, Length, Load, Site, Traffic as _};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The connection, in the order of their arrival.
    pub(crate) connection: usize,
    head: String,
    pub(crate) body: String,
    /// When its connection was accepted, and when it was answered.
    pub(crate) accepted: Instant,
    pub(crate) at: Instant,
}

impl Seen {
    fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.line().split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut headers = lines.filter_map(|line| line.split_once(": "));
        headers
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value)
    }
}

/// What a server answers to a request; the whole response.
type Answers = dyn Fn(&Seen) -> String + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) fn start(answers: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Self {
        let answers: Arc<Answers> = Arc::new(answers);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
        };
        let seen = server.seen.clone();
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (stream, seen) = (stream.unwrap(), seen.clone());
                let answers = answers.clone();
                std::thread::spawn(move || serve(connection, stream, &seen, &*answers));
            }
        });
        server
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(connection: usize, mut stream: TcpStream, seen: &Mutex<Vec<Seen>>, answers: &Answers) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let accepted = Instant::now();
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let one = Seen {
            connection,
            head,
            body: String::from_utf8(body).unwrap(),
            accepted,
            at: Instant::now(),
        };
        let answer = answers(&one);
        seen.lock().unwrap().push(one);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn ok(_: &Seen) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
}

/// The words after `rungwise load http` as parameters.
fn parameters(server: &Server, path: &str, words: &[&str]) -> Parameters {
    let command = Parameters::augment_args(clap::Command::new("http"));
    let url = format!("http://{}{path}", server.address);
    let line = ["http", &url].into_iter().chain(words.iter().copied());
    let matches = command.try_get_matches_from(line).unwrap();
    Parameters::from_arg_matches(&matches).unwrap()
}

/// The traffic of these words; files are given by name and content.
pub(crate) fn load(
    server: &Server,
    (path, words): (&str, &[&str]),
    files: &[(&str, &str)],
) -> Result<Box<dyn Load>, Error> {
    let parameters = parameters(server, path, words);
    assert_eq!(parameters.contradictions(), []);
    let site = Site {
        target: server.address.into(),
        cpus: &[0, 1],
        device: None,
        read: &|name| {
            let mut files = files.iter();
            let file = files.find(|(file, _)| *file == name);
            let content = file.map(|(_, content)| content.as_bytes().to_vec());
            content.ok_or_else(|| format!("there is no file {name}"))
        },
    };
    parameters.prepare(&site)
}

/// Sends so many requests.
fn sent(
    server: &Server,
    words: (&str, &[&str]),
    files: &[(&str, &str)],
    (number, seed): (u64, u64),
) -> Result<Completed, Error> {
    run(&*load(server, words, files)?, Stop::Count(number), seed)
}

/// Drives a load until `stop`.
pub(crate) fn run(load: &dyn Load, stop: Stop, seed: u64) -> Result<Completed, Error> {
    let length = Length {
        warmup: Duration::ZERO,
        stop,
        seed,
    };
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    load.run(&length, &hooks, &mut |_| {})
}

const USERS: (&str, &str) = ("users.csv", "name,key\nann,k1\nbob,k 2\ncy,k3\n");

#[test]
fn the_bytes_of_a_rendered_request_are_exactly_as_written() {
    let server = Server::start(ok);
    let words = [
        "--connections",
        "1",
        "--data",
        "users.csv",
        "--header",
        "X-Name: <${csv:name}>",
        "--header",
        "User-Agent: t",
        "--body",
        "text:{\"n\": ${counter}, \"who\": {\"name\": \"${csv:name}\"}, \"cost\": \"$${x} $5\"}",
    ];
    let path = "/a/${counter:10}?k=${csv:key}&u={x}";
    let completed = sent(&server, (path, &words), &[USERS], (4, 1)).unwrap();
    assert_eq!(completed.measurement.received, 4);
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    for (at, one) in seen.iter().enumerate() {
        // Rows begin again after the last.
        let (name, key) = [("ann", "k1"), ("bob", "k%202"), ("cy", "k3")][at % 3];
        let body = format!(
            "{{\"n\": {}, \"who\": {{\"name\": \"{name}\"}}, \"cost\": \"${{x}} $5\"}}",
            at + 1
        );
        let head = format!(
            "POST /a/{}?k={key}&u={{x}} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\nX-Name: <{name}>\r\nUser-Agent: t\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n",
            at + 10,
            server.address,
            body.len()
        );
        assert_eq!((&one.head, &one.body), (&head, &body));
    }
}

#[test]
fn each_number_and_each_row_is_sent_once_by_all_threads_in_both_loops() {
    let rows: Vec<String> = (0..500).map(|row| format!("r{row}")).collect();
    let table = format!("row\n{}\n", rows.join("\n"));
    for words in [&["--threads", "2"][..], &["--rate", "3000/s"]] {
        let server = Server::start(ok);
        let words = [
            words,
            &[
                "--connections",
                "8",
                "--data",
                "rows.csv",
                "--header",
                "X-Row: ${csv:row}",
            ],
        ]
        .concat();
        let files = [("rows.csv", &*table)];
        let completed = sent(&server, ("/${counter}", &words), &files, (1000, 1)).unwrap();
        let m = &completed.measurement;
        assert_eq!((m.sent, m.received), (1000, 1000), "{:?}", m.errors);
        let seen = server.seen();
        let numbers: BTreeSet<u64> = (seen.iter())
            .map(|one| one.path()[1..].parse().unwrap())
            .collect();
        assert_eq!(numbers, (1..=1000).collect());
        // Each row twice: the table was dealt two times.
        let mut dealt: Vec<&str> = (seen.iter())
            .map(|one| one.header("X-Row").unwrap())
            .collect();
        dealt.sort_unstable();
        let mut expected: Vec<&str> = rows.iter().chain(&rows).map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(dealt, expected);
        let connections: BTreeSet<usize> = seen.iter().map(|one| one.connection).collect();
        assert!(connections.len() > 1, "one connection would be no test");
    }
}

#[test]
fn the_seed_determines_what_a_connection_draws() {
    let drawn = |seed| {
        let server = Server::start(ok);
        let path = "/${random:1..1000000}/${uuid}/${choice:a|b}";
        sent(&server, (path, &["--connections", "1"]), &[], (50, seed)).unwrap();
        let seen = server.seen();
        let paths: Vec<String> = seen.iter().map(|one| one.path().to_owned()).collect();
        paths
    };
    let first = drawn(1);
    assert_eq!(first, drawn(1));
    let distinct: BTreeSet<&String> = first.iter().collect();
    assert_eq!(distinct.len(), 50);
    assert_ne!(first, drawn(2));
}

#[test]
fn a_long_rendered_body_arrives_whole_though_the_kernel_takes_it_in_pieces() {
    let server = Server::start(ok);
    let body = format!("text:${{counter}}{}${{counter}}", "x".repeat(4 << 20));
    let words = ["--connections", "2", "--body", &body, "--timeout", "20s"];
    let completed = sent(&server, ("/", &words), &[], (6, 1)).unwrap();
    assert_eq!(completed.measurement.received, 6);
    for one in server.seen() {
        let (number, rest) = one.body.split_at(1);
        assert_eq!(rest.len(), (4 << 20) + 1);
        assert!(rest.ends_with(number));
    }
}

#[test]
fn bytes_that_are_no_text_are_sent_as_they_are() {
    let server = Server::start(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let parameters = parameters(&server, "/", &["--body", "b.bin", "--connections", "1"]);
    let site = Site {
        target: server.address.into(),
        cpus: &[0],
        device: None,
        read: &|_| Ok(b"\xff${nothing}".to_vec()),
    };
    assert!(parameters.prepare(&site).is_ok());
}

#[test]
fn placeholders_without_a_value_are_refused_with_the_remedy() {
    let server = Server::start(ok);
    for (path, words, key, said) in [
        ("/${conter}", &[][..], "url", "did you mean 'counter'?"),
        (
            "/",
            &["--header", "X: ${csv:a}"],
            "headers",
            "--data FILE.csv",
        ),
        (
            "/",
            &["--body", "text:${random}"],
            "body",
            "${random:1..100}",
        ),
    ] {
        let found = parameters(&server, path, words).contradictions();
        assert!(
            found
                .iter()
                .any(|one| one.keys == [key] && one.why.contains(said)),
            "{path} {words:?}: {found:?}"
        );
    }
    let refused = |path: &str, words: &[&str], table: &str| {
        let words = [words, &["--data", "t.csv"]].concat();
        let error = sent(&server, (path, &words), &[("t.csv", table)], (1, 1)).unwrap_err();
        error.to_string()
    };
    let unknown = refused("/${csv:nmae}", &[], "name\nann\n");
    assert!(unknown.contains("did you mean 'name'?"), "{unknown}");
    let broken = refused(
        "/",
        &["--header", "X: ${csv:name}"],
        "name\nann\n\"a\nb\"\n",
    );
    assert!(broken.contains("row 2 of t.csv, column 'name'"), "{broken}");
    assert_eq!(server.seen().len(), 0);
}

/// Sets a cookie that names the connection, and one that is for half of the paths.
fn sets_cookies(seen: &Seen) -> String {
    let (id, path) = (seen.connection, seen.path());
    let set = match (seen.header("Cookie"), path) {
        (None, "/1") => format!("Set-Cookie: id={id}\r\nSet-Cookie: tls=1; Secure\r\n"),
        (_, "/20") => "Set-Cookie: id=; Max-Age=0\r\n".to_owned(),
        (_, "/10") => {
            "Set-Cookie: two=2; Path=/1\r\nset-cookie: x=1; Domain=other.example\r\n".to_owned()
        }
        _ => String::new(),
    };
    format!("HTTP/1.1 200 OK\r\n{set}Content-Length: 0\r\n\r\n")
}

#[test]
fn each_connection_keeps_the_cookies_that_it_got() {
    let server = Server::start(|seen| {
        let (id, known) = (seen.connection, seen.header("Cookie").is_some());
        let set = if known {
            String::new()
        } else {
            format!("Set-Cookie: id={id}; Path=/\r\n")
        };
        format!("HTTP/1.1 200 OK\r\n{set}Content-Length: 0\r\n\r\n")
    });
    for words in [&["--threads", "2"][..], &["--rate", "2000/s"]] {
        let before = server.seen().len();
        let words = [words, &["--connections", "4", "--cookies"]].concat();
        let completed = sent(&server, ("/a", &words), &[], (400, 1)).unwrap();
        assert_eq!(completed.measurement.received, 400);
        let mut asked = BTreeSet::new();
        for one in server.seen().split_off(before) {
            let own = format!("id={}", one.connection);
            let expected = (!asked.insert(one.connection)).then_some(&*own);
            assert_eq!(one.header("Cookie"), expected, "{one:?}");
        }
        assert_eq!(asked.len(), 4);
    }
    // Without the option nothing is kept.
    let before = server.seen().len();
    sent(&server, ("/a", &["--connections", "1"]), &[], (5, 1)).unwrap();
    assert!(
        server
            .seen()
            .split_off(before)
            .iter()
            .all(|one| one.header("Cookie").is_none())
    );
}

#[test]
fn cookies_follow_path_age_domain_and_secure() {
    let server = Server::start(sets_cookies);
    let words = ["--connections", "1", "--cookies"];
    sent(&server, ("/${counter}", &words), &[], (25, 1)).unwrap();
    for (at, one) in server.seen().iter().enumerate() {
        let id = format!("id={}", one.connection);
        let expected = match at + 1 {
            // A path is a prefix only up to a slash.
            2..=20 => Some(&*id),
            _ => None,
        };
        assert_eq!(one.header("Cookie"), expected, "{one:?}");
    }
}

#[test]
fn a_user_keeps_its_cookies_over_connections() {
    let server = Server::start(|seen| {
        let set = if seen.header("Cookie").is_none() {
            "Set-Cookie: a=b\r\n"
        } else {
            ""
        };
        format!("HTTP/1.1 200 OK\r\n{set}Content-Length: 0\r\n\r\n")
    });
    let words = ["--connections", "1", "--cookies", "--no-keepalive"];
    sent(&server, ("/", &words), &[], (20, 1)).unwrap();
    let seen = server.seen();
    let with = seen
        .iter()
        .filter(|one| one.header("Cookie") == Some("a=b"));
    assert_eq!((seen.len(), with.count()), (20, 19));
}

const LIST: &str = r#"
{"path": "/login", "body": {"user": "${csv:name}", "n": 1.50}, "expect": "status=201"}
{"path": "/items?of=${csv:name}", "name": "items", "headers": {"X-B": "${counter}", "Accept": "a/b"}}
{"path": "/gone", "method": "DELETE"}
{"url": "http://TARGET/items/${csv:key}", "name": "items", "expect": "status=200,body~ok"}
"#;

fn shop(seen: &Seen) -> String {
    let path = seen.path();
    let status = match path {
        "/login" => "201 Created",
        "/gone" => "410 Gone",
        _ => "200 OK",
    };
    format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok")
}

#[test]
fn a_list_is_sent_in_order_on_each_connection_and_counted_by_name() {
    for words in [&["--threads", "2"][..], &["--rate", "1500/s"]] {
        let server = Server::start(shop);
        let words = [
            words,
            &[
                "--connections",
                "3",
                "--requests",
                "r.jsonl",
                "--data",
                "users.csv",
                "--header",
                "Accept: c/d",
            ],
        ]
        .concat();
        let list = LIST.replace("TARGET", &server.address.to_string());
        let files = [("r.jsonl", &*list), USERS];
        let completed = sent(&server, ("/", &words), &files, (600, 1)).unwrap();
        let m = &completed.measurement;
        let http = m.http.as_ref().unwrap();
        let seen = server.seen();
        let gone = seen.iter().filter(|one| one.path() == "/gone").count() as u64;
        assert_eq!(
            (m.sent, m.received, m.lost),
            (600, 600 - gone, gone),
            "{:?}",
            m.errors
        );
        let by_name: Vec<(&str, u64, u64)> = (http.requests.iter())
            .map(|one| (&*one.name, one.sent, one.errors))
            .collect();
        let number = |path: &str| {
            seen.iter()
                .filter(|one| one.path().starts_with(path))
                .count() as u64
        };
        assert_eq!(
            by_name,
            [
                ("POST /login", number("/login"), 0),
                ("items", number("/items"), 0),
                ("DELETE /gone", gone, gone)
            ]
        );
        for one in &http.requests {
            assert_eq!(
                one.p99_us >= one.p50_us && one.p50_us > 0.0,
                one.errors == 0,
                "{one:?}"
            );
        }
        let mut users = Vec::new();
        for connection in 0..3 {
            let own: Vec<&Seen> = seen
                .iter()
                .filter(|one| one.connection == connection)
                .collect();
            assert!(own.len() > 8, "{}", own.len());
            for pass in own.chunks(4) {
                let name = pass[0].body.split('"').nth(3).unwrap();
                users.push(name.to_owned());
                assert_eq!(pass[0].line(), "POST /login HTTP/1.1");
                assert_eq!(pass[0].header("Content-Type"), Some("application/json"));
                assert_eq!(
                    pass[0].body,
                    format!("{{\"user\": \"{name}\", \"n\": 1.50}}")
                );
                let key = match name {
                    "ann" => "k1",
                    "bob" => "k%202",
                    _ => "k3",
                };
                // One row for a pass through the list.
                let rest = [
                    format!("GET /items?of={name} HTTP/1.1"),
                    "DELETE /gone HTTP/1.1".to_owned(),
                    format!("GET /items/{key} HTTP/1.1"),
                ];
                for (one, line) in pass[1..].iter().zip(&rest) {
                    assert_eq!(one.line(), line);
                }
                if let Some(items) = pass.get(1) {
                    assert_eq!(items.header("Accept"), Some("a/b"));
                }
                assert_eq!(pass[0].header("Accept"), Some("c/d"));
            }
        }
        // Rows are dealt in order: each as often as the others, or once more.
        let dealt =
            ["ann", "bob", "cy"].map(|name| users.iter().filter(|user| *user == name).count());
        assert!(
            dealt[0] - dealt[2] <= 1 && dealt[0] >= dealt[1] && dealt[1] >= dealt[2],
            "{dealt:?}"
        );
    }
}

#[test]
fn a_pause_is_kept_and_is_no_latency() {
    let list = "{\"path\": \"/a\"}\n{\"path\": \"/b\", \"pause\": \"60ms\"}\n";
    for words in [&["--threads", "2"][..], &["--rate", "1000/s"]] {
        let server = Server::start(ok);
        let words = [words, &["--connections", "2", "--requests", "r.jsonl"]].concat();
        let began = Instant::now();
        let completed = sent(&server, ("/", &words), &[("r.jsonl", list)], (12, 1)).unwrap();
        let m = &completed.measurement;
        assert_eq!(m.received, 12, "{:?}", m.errors);
        // Twelve requests on two connections: three passes with a pause each.
        assert!(
            began.elapsed() >= Duration::from_millis(3 * 60),
            "{:?}",
            began.elapsed()
        );
        let uncorrected = m.latency_us.uncorrected.p50;
        assert!(uncorrected < 60_000.0, "{uncorrected}");
        let corrected = m.latency_us.corrected;
        if words.contains(&"--rate") {
            // An open loop does not wait for users that pause: its requests were due.
            assert!(corrected.p90 > 60_000.0, "{corrected:?}");
        } else {
            assert!(corrected.p50 < 60_000.0, "{corrected:?}");
        }
    }
}

#[test]
fn a_list_that_cannot_be_sent_is_refused_with_its_line() {
    let server = Server::start(ok);
    let refused = |list: &str, words: &[&str]| {
        let words = [words, &["--requests", "r.jsonl"]].concat();
        let error = sent(&server, ("/", &words), &[("r.jsonl", list)], (1, 1)).unwrap_err();
        error.to_string()
    };
    for (list, words, said) in [
        (
            "{\"path\": \"/\"}\n{\"pth\": \"/\"}",
            &[][..],
            "r.jsonl, line 2, column 6",
        ),
        (
            "{\"url\": \"http://other.example/\"}",
            &[],
            "another host than the target",
        ),
        (
            "{\"path\": \"/${conter}\"}",
            &[],
            "request 1 of r.jsonl, GET /${conter}: unknown placeholder",
        ),
        (
            "{\"path\": \"/\", \"method\": \"HEAD\"}",
            &["--expect", "body~x"],
            "HEAD has no body",
        ),
        (
            "{\"path\": \"/\", \"headers\": {\"cookie\": \"a=1\"}}",
            &["--cookies"],
            "remove one of the two",
        ),
    ] {
        let why = refused(list, words);
        assert!(why.contains(said), "{list}: {why}");
    }
    for (path, words) in [
        ("/", &["--method", "PUT"][..]),
        ("/", &["--body", "text:a"]),
        ("/a", &[]),
    ] {
        let words = [words, &["--requests", "r.jsonl"]].concat();
        let found = parameters(&server, path, &words).contradictions();
        assert!(
            found.iter().any(|one| one.why.contains("list of requests")),
            "{words:?} {found:?}"
        );
    }
    assert_eq!(server.seen().len(), 0);
}
