//! Calls of Dubbo against a small provider that answers well, badly, late, twice, in any order, in pieces or not at all.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Args as _, FromArgMatches as _};
use rungwise_dubbo::hessian::{Object, Value, Writer};
use rungwise_dubbo::{
    Call, Decoder, HEADER_LEN, Header, Limits, Message, Outcome, Reply, Status, heartbeat,
    write_frame,
};
use rungwise_load::Error;
use rungwise_load::dubbo::Parameters;
use rungwise_load::engine::{Completed, Edge, Hooks, Stop};
use rungwise_load::parameters::{Driven as _, Length, Site, Traffic as _};
use rungwise_model::load::Stream;

pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    /// Calls that came whole.
    called: Arc<AtomicU64>,
    /// Answers to heartbeats.
    heartbeats: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
}

/// A connection of it.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// Replies that leave when all calls that came together have been looked at, the last one first.
    held: Vec<Vec<u8>>,
    /// It answers nothing any more.
    is_mute: bool,
}

/// A call that came.
pub(crate) struct Came<'a> {
    /// Of all, from 0.
    pub(crate) number: u64,
    pub(crate) id: u64,
    body: &'a [u8],
}

/// What it does.
#[derive(Clone, Copy)]
pub(crate) enum Met<'a> {
    Call(&'a Came<'a>),
    /// The answer to a heartbeat.
    Heartbeat(&'a Header),
}

impl Peer {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }
}

/// A provider that does with each call what `behaviour` does; false closes the connection.
pub(crate) fn provide(
    behaviour: impl Fn(Met<'_>, &mut Peer) -> bool + Clone + Send + 'static,
) -> Provider {
    provide_at("127.0.0.1:0", behaviour)
}

fn provide_at(
    at: &str,
    behaviour: impl Fn(Met<'_>, &mut Peer) -> bool + Clone + Send + 'static,
) -> Provider {
    let listener = TcpListener::bind(at).unwrap();
    let provider = Provider {
        address: listener.local_addr().unwrap(),
        called: Arc::default(),
        heartbeats: Arc::default(),
        accepted: Arc::default(),
    };
    let accepted = provider.accepted.clone();
    let counters = (provider.called.clone(), provider.heartbeats.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            accepted.fetch_add(1, Ordering::Relaxed);
            let (behaviour, counters) = (behaviour.clone(), counters.clone());
            std::thread::spawn(move || talk(stream, &counters, behaviour));
        }
    });
    provider
}

fn talk(
    mut stream: TcpStream,
    (called, heartbeats): &(Arc<AtomicU64>, Arc<AtomicU64>),
    behaviour: impl Fn(Met<'_>, &mut Peer) -> bool,
) {
    let mut peer = Peer {
        stream: stream.try_clone().unwrap(),
        held: Vec::new(),
        is_mute: false,
    };
    let mut decoder = Decoder::new(64 << 20);
    while let Ok(1..) = decoder.read_from(&mut stream) {
        while let Some(frame) = decoder.next_frame().unwrap() {
            let goes_on = if frame.header.is_event {
                heartbeats.fetch_add(1, Ordering::Relaxed);
                behaviour(Met::Heartbeat(&frame.header), &mut peer)
            } else {
                assert_eq!(frame.header.message, Message::Request { two_way: true });
                let came = Came {
                    number: called.fetch_add(1, Ordering::Relaxed),
                    id: frame.header.id,
                    body: frame.body,
                };
                behaviour(Met::Call(&came), &mut peer)
            };
            if !goes_on {
                return;
            }
        }
        let held: Vec<u8> = peer.held.drain(..).rev().flatten().collect();
        if !held.is_empty() && !peer.send(&held) {
            return;
        }
    }
}

/// Does so with each call.
pub(crate) fn calls(
    each: impl Fn(&Came<'_>, &mut Peer) -> bool + Clone + Send + 'static,
) -> impl Fn(Met<'_>, &mut Peer) -> bool + Clone + Send + 'static {
    move |met, peer| match met {
        Met::Call(came) => each(came, peer),
        Met::Heartbeat(_) => true,
    }
}

pub(crate) fn frame(id: u64, outcome: Outcome) -> Vec<u8> {
    let reply = Reply {
        outcome,
        attachments: Vec::new(),
    };
    let (status, body) = reply.encode();
    raw(id, status, &body)
}

fn raw(id: u64, status: Status, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Message::Reply { status }, id, body).unwrap();
    bytes
}

pub(crate) fn value(id: u64) -> Vec<u8> {
    frame(id, Outcome::Value(Value::string("hello")))
}

pub(crate) fn failed(id: u64, status: u8, text: &str) -> Vec<u8> {
    let outcome = Outcome::Failed {
        status: Status(status),
        text: text.to_owned(),
    };
    frame(id, outcome)
}

pub(crate) fn thrown(id: u64, class: &str, message: &str) -> Vec<u8> {
    let fields = [
        ("detailMessage".to_owned(), Value::string(message)),
        ("stackTrace".to_owned(), Value::list(vec![Value::Null])),
    ];
    frame(
        id,
        Outcome::Exception(Value::Object(Object::new(class, fields))),
    )
}

/// An event of one string.
fn event(text: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.string(text);
    let body = writer.into_bytes();
    let header = Header {
        message: Message::Request { two_way: false },
        is_event: true,
        serialization: 2,
        id: 1,
        body_len: body.len() as u32,
    };
    [&header.encode()[..], &body].concat()
}

fn written(target: &str, words: &[&str]) -> Result<Parameters, clap::Error> {
    let command = Parameters::augment_args(clap::Command::new("dubbo"));
    let line = [
        "dubbo",
        target,
        "--service",
        "demo.Hello",
        "--method",
        "say",
    ];
    let line = line.into_iter().chain(words.iter().copied());
    let matches = command.try_get_matches_from(line)?;
    Parameters::from_arg_matches(&matches)
}

pub(crate) fn drive_with(
    address: SocketAddr,
    words: &[&str],
    stop: Stop,
    hooks: &Hooks<'_>,
) -> Result<Completed, Error> {
    let parameters = written(&address.to_string(), words).unwrap();
    assert_eq!(parameters.contradictions(), []);
    let site = Site {
        target: address.into(),
        cpus: &[0, 1],
        device: None,
        read: &|_: &str| Err("there are no files".to_owned()),
    };
    let length = Length {
        warmup: Duration::ZERO,
        stop,
        seed: 1,
    };
    parameters.prepare(&site)?.run(&length, hooks, &mut |_| {})
}

fn drive(provider: &Provider, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    drive_with(provider.address, words, stop, &hooks)
}

/// So many calls on four connections.
fn count(provider: &Provider, number: u64, words: &[&str]) -> Completed {
    let words = [&["--connections", "4", "--threads", "2"], words].concat();
    drive(provider, &words, Stop::Count(number)).unwrap()
}

fn errors(completed: &Completed) -> Vec<(&str, u64)> {
    let errors = completed.measurement.errors.iter();
    errors
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

fn stream(completed: &Completed) -> &Stream {
    completed.measurement.stream.as_ref().unwrap()
}

#[track_caller]
fn assert_all_answered(completed: &Completed, provider: &Provider, number: u64) {
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (number, number, 0),
        "{:?}",
        m.errors
    );
    assert_eq!(provider.called.load(Ordering::Relaxed), number);
    assert!(m.errors.is_empty(), "{:?}", m.errors);
}

#[test]
fn counts_are_those_of_the_provider_in_both_loops_at_any_depth() {
    for words in [
        &[][..],
        &["--depth", "16", "--args", r#"["a", "b"]"#],
        &["--rate", "20k/s", "--arg-string-size", "1000B"],
        &["--ramp", "1k/s..20k/s", "--depth", "8"],
        &["--arg-string-size", "70000B", "--depth", "3"],
    ] {
        let provider = provide(calls(|came, peer| {
            let outcome = match came.number % 2 {
                0 => Outcome::Null,
                _ => Outcome::Value(Value::string("ä".repeat(200))),
            };
            peer.send(&frame(came.id, outcome))
        }));
        let completed = count(&provider, 2_000, words);
        assert_all_answered(&completed, &provider, 2_000);
        let stream = stream(&completed);
        assert_eq!((stream.connections, stream.reconnects), (4, 0), "{words:?}");
        assert_eq!(provider.accepted.load(Ordering::Relaxed), 4, "{words:?}");
        assert_eq!(stream.answers["null"], 1_000, "{words:?}");
        assert_eq!(stream.answers["value"], 1_000, "{words:?}");
        assert!(stream.events.is_empty() && stream.quotes.is_empty());
        assert_eq!(stream.protocol, "Dubbo2, hessian2");
    }
}

#[test]
fn a_call_is_that_of_a_consumer() {
    let provider = provide(calls(|came, peer| {
        let call = Call::decode(came.body, Limits::default()).unwrap();
        assert_eq!(call.dubbo_version, "2.0.1");
        assert_eq!((&*call.path, &*call.method), ("demo.Hello", "say"));
        assert_eq!(call.service_version, "1.2");
        assert_eq!(call.descriptor, "Ljava/lang/String;I[J");
        assert_eq!(call.arguments[..2], [Value::string("a"), Value::Int(1)]);
        for (name, value) in [
            ("path", "demo.Hello"),
            ("interface", "other"),
            ("version", "1.2"),
            ("group", "blue"),
            ("timeout", "2500"),
            ("trace", "on=1"),
        ] {
            assert_eq!(call.attachment(name), Some(value), "{name}");
        }
        assert_eq!(call.attachments.len(), 6);
        peer.send(&value(came.id))
    }));
    let words = [
        "--args",
        r#"["a", 1, [5, 6]]"#,
        "--types",
        "String, int, long[]",
        "--version",
        "1.2",
        "--group",
        "blue",
        "--attachment",
        "trace=on=1",
        "--attachment",
        "interface=other",
        "--dubbo-version",
        "2.0.1",
        "--timeout",
        "2500ms",
    ];
    let completed = count(&provider, 20, &words);
    assert_all_answered(&completed, &provider, 20);
}

#[test]
fn ipv6_is_an_address_like_any_other() {
    let provider = provide_at("[::1]:0", calls(|came, peer| peer.send(&value(came.id))));
    let completed = count(&provider, 200, &[]);
    assert_all_answered(&completed, &provider, 200);
}

#[test]
fn replies_come_in_any_order_in_pieces_and_with_events_between_them() {
    let provider = provide(calls(|came, peer| {
        peer.held.push(value(came.id));
        if came.number % 10 == 0 {
            peer.held.push(heartbeat(came.id).to_vec());
        }
        if came.number % 100 == 5 {
            // Half a reply, with the other half after all others.
            let reply = value(came.id);
            peer.held.pop();
            peer.held.insert(0, reply);
        }
        came.number != 777 || peer.send(&event("R"))
    }));
    let completed = count(&provider, 4_000, &["--depth", "8"]);
    assert_all_answered(&completed, &provider, 4_000);
    let events = &stream(&completed).events;
    let sent = events["heartbeats"];
    assert!((390..=400).contains(&sent), "{events:?}");
    assert_eq!(events["read_only"], 1);
    let answered = provider.heartbeats.load(Ordering::Relaxed);
    assert!((sent - 40..=sent).contains(&answered), "{answered} {sent}");

    let provider = provide(calls(|came, peer| {
        let reply = frame(came.id, Outcome::Value(Value::string("x".repeat(300))));
        reply.chunks(11).all(|piece| peer.send(piece))
    }));
    let completed = count(&provider, 200, &["--depth", "4"]);
    assert_all_answered(&completed, &provider, 200);
}

#[test]
fn a_heartbeat_is_answered_while_its_connection_waits_for_a_reply() {
    for words in [&[][..], &["--rate", "400/s"]] {
        // The reply to a call comes when the heartbeat before it was answered.
        let provider = provide(|met, peer| match met {
            Met::Call(came) => peer.send(&heartbeat(came.id)),
            Met::Heartbeat(header) => {
                assert_eq!(header.message, Message::Reply { status: Status::OK });
                peer.send(&value(header.id))
            }
        });
        let completed = count(&provider, 200, words);
        assert_all_answered(&completed, &provider, 200);
        assert_eq!(stream(&completed).events["heartbeats"], 200);
        assert_eq!(provider.heartbeats.load(Ordering::Relaxed), 200);
    }
}

#[test]
fn statuses_and_exceptions_are_counted_and_quoted_and_the_connection_goes_on() {
    const LONG: &str = "com.acme.orders.inventory.service.exceptions.OutOfStockException";
    let provider = provide(calls(|came, peer| {
        let id = came.id;
        let bytes = match came.number % 10 {
            0 => failed(
                id,
                100,
                "Server side threadpool is exhausted, detail msg: Pool Size: 200\n\tat x",
            ),
            1 => failed(id, 31, "Waiting server-side response timeout"),
            2 => failed(id, 40, "Fail to decode request due to: RpcInvocation"),
            3 => failed(
                id,
                70,
                "com.alibaba.dubbo.remoting.RemotingException: Not found exported service: demo.Nix\r\n\tat a.b(C.java:1)\r\n",
            ),
            4 => failed(id, 99, ""),
            5 => thrown(
                id,
                "java.lang.IllegalStateException",
                &format!("no stock {id}"),
            ),
            6 => thrown(id, LONG, "none\nat all"),
            7 => raw(id, Status::OK, b"\x91\x05hel"),
            8 => {
                let mut bytes = value(id);
                bytes[2] = 6;
                bytes
            }
            _ => value(id),
        };
        peer.send(&bytes)
    }));
    let completed = count(&provider, 1_000, &["--depth", "2"]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (1_000, 100, 900));
    let expected = [
        ("reply_bad_request", "Fail to decode request"),
        (
            "reply_com_acme_orders_inventory_service_exceptions_outofstockexception",
            "OutOfStockException: none",
        ),
        (
            "reply_java_lang_illegalstateexception",
            "java.lang.IllegalStateException: no stock ",
        ),
        (
            "reply_malformed_body",
            "byte 2 of the body: the body ends within a value",
        ),
        ("reply_serialization", "serialization 6, only hessian2"),
        (
            "reply_server_timeout",
            "Waiting server-side response timeout",
        ),
        (
            "reply_service_error",
            "Not found exported service: demo.Nix",
        ),
        ("reply_status_99", "unknown status (status 99)"),
        ("reply_thread_pool_exhausted", "Pool Size: 200"),
    ];
    let counted: Vec<_> = expected.iter().map(|(name, _)| (*name, 100)).collect();
    assert_eq!(errors(&completed), counted);
    let stream = stream(&completed);
    assert_eq!((stream.connections, stream.reconnects), (4, 0));
    for (name, words) in expected {
        let quote = &stream.quotes[name];
        assert!(quote.text.contains(words), "{name}: {quote:?}");
        assert!(!quote.text.contains("at "), "{name}: {quote:?}");
    }
    assert_eq!(
        stream.quotes["reply_thread_pool_exhausted"].class,
        "thread pool exhausted"
    );
}

#[test]
fn second_replies_and_those_to_no_call_are_known_and_cost_nothing() {
    let provider = provide(calls(|came, peer| {
        let reply = value(came.id);
        match came.number % 100 {
            30 if came.number % 1_000 != 30 => peer.send(&reply),
            10 => peer.send(&[&reply[..], &reply].concat()),
            20 => peer.send(&[&value(u64::MAX)[..], &value(3), &reply].concat()),
            30 => {
                let mut stream = peer.stream.try_clone().unwrap();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(900));
                    let _ = stream.write_all(&reply);
                });
                true
            }
            _ => peer.send(&reply),
        }
    }));
    let completed = count(&provider, 4_000, &["--depth", "4", "--timeout", "500ms"]);
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (4_000, 3_996, 4),
        "{:?}",
        m.errors
    );
    let of = |name: &str| m.errors.get(name).copied().unwrap_or(0);
    assert_eq!(of("timeout"), 4, "{:?}", m.errors);
    // What comes after the last reply is not waited for.
    assert!((30..=40).contains(&of("duplicate")), "{:?}", m.errors);
    assert!((70..=80).contains(&of("unexpected")), "{:?}", m.errors);
    assert_eq!(stream(&completed).reconnects, 0);
}

#[test]
fn half_a_reply_and_then_silence_is_bounded_and_named() {
    let provider = provide(calls(|came, peer| match came.number % 50 {
        _ if peer.is_mute => true,
        7 => {
            peer.is_mute = true;
            peer.send(&value(came.id)[..HEADER_LEN + 2])
        }
        _ => peer.send(&value(came.id)),
    }));
    let began = Instant::now();
    let completed = count(&provider, 400, &["--timeout", "100ms"]);
    assert!(began.elapsed() < Duration::from_secs(20));
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received + m.lost), (400, 400));
    assert_eq!(m.errors["timeout"], m.lost, "{:?}", m.errors);
    let stream = stream(&completed);
    let broken = stream.broken.iter().next().unwrap();
    assert!(broken.0.contains("beginning of a reply"), "{broken:?}");
    assert!(stream.reconnects > 0);
}

#[test]
fn ends_and_resets_within_a_reply_are_counted_and_the_connection_is_opened_anew() {
    let provider = provide(calls(|came, peer| match came.number % 40 {
        9 => {
            peer.send(&value(came.id)[..HEADER_LEN + 2]);
            false
        }
        19 => false,
        29 => {
            let socket = socket2::SockRef::from(&peer.stream);
            socket.set_linger(Some(Duration::ZERO)).unwrap();
            false
        }
        _ => peer.send(&value(came.id)),
    }));
    let completed = count(&provider, 2_000, &[]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received + m.lost), (2_000, 2_000));
    assert_eq!(m.lost, 150, "{:?}", m.errors);
    let names = ["closed", "reset"];
    assert!(
        errors(&completed)
            .iter()
            .all(|(name, _)| names.contains(name)),
        "{:?}",
        m.errors
    );
    let stream = stream(&completed);
    assert!(stream.reconnects >= 145, "{}", stream.reconnects);
    let broken = stream.broken.iter().next().unwrap();
    assert!(broken.0.contains("within a reply"), "{broken:?}");
}

#[test]
fn what_is_no_reply_ends_the_connection_and_is_named() {
    let call = Call::new("demo.Hello", "say").encode();
    let mut calls_back = Vec::new();
    write_frame(
        &mut calls_back,
        Message::Request { two_way: true },
        1,
        &call,
    )
    .unwrap();
    let long = frame(1, Outcome::Value(Value::string("x".repeat(5_000))));
    for (bytes, why) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP in place"),
        (b"Unsupported command: hello\r\ndubbo>", "telnet console"),
        (
            b"\xda\xbb\x02\x14\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff",
            "--payload",
        ),
        (&long, "--payload"),
        (&calls_back, "a call in place of a reply"),
        (b"\0\0\0\0", "other bytes"),
    ] {
        let sent = bytes.to_vec();
        let provider = provide(calls(move |came, peer| {
            let reply = if came.number % 10 == 9 {
                sent.clone()
            } else {
                value(came.id)
            };
            peer.send(&reply)
        }));
        let completed = count(&provider, 100, &["--payload", "4000B"]);
        let m = &completed.measurement;
        assert_eq!((m.sent, m.received, m.lost), (100, 90, 10), "{why}");
        assert_eq!(errors(&completed), [("malformed", 10)], "{why}");
        let broken: Vec<_> = stream(&completed).broken.iter().collect();
        assert!(
            matches!(broken[..], [(name, 10)] if name.contains(why)),
            "{why}: {broken:?}"
        );
    }
}

#[test]
fn a_provider_without_any_value_is_quoted_and_a_silent_one_is_given_up() {
    let provider = provide(calls(|came, peer| {
        peer.send(&failed(came.id, 60, "no such service"))
    }));
    let completed = count(&provider, 100, &[]);
    assert_eq!(errors(&completed), [("reply_service_not_found", 100)]);
    assert!(!completed.measurement.client.certified);
    let provider = provide(calls(|_, _| true));
    let words = ["--connections", "4", "--timeout", "100ms"];
    let began = Instant::now();
    let ended = drive(&provider, &words, Stop::After(Duration::from_secs(30)));
    assert!(matches!(ended, Err(Error::NoReplies { .. })), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_cannot_be_called_is_refused_with_its_parameter() {
    for (words, key, why) in [
        (&["--args", "[1]"][..], "types", "Java type of argument 1"),
        (
            &["--args", "[1]", "--types", "int,int"],
            "args",
            "1 arguments for 2",
        ),
        (
            &["--args", "[\"a\"]", "--types", "int"],
            "args",
            "int needs an integer",
        ),
        (
            &["--args", "[]", "--arg-string-size", "1B"],
            "arg_string_size",
            "exclude",
        ),
        (
            &["--arg-string-size", "9MiB"],
            "payload",
            "more than the 8388608",
        ),
        (&["--arg-string-size", "65MiB"], "arg_string_size", "64 MiB"),
        (&["--payload", "65MiB"], "payload", "64 MiB"),
        (&["--dubbo-version", "2.x"], "dubbo_version", "2.0.2"),
        (
            &["--connections", "0"],
            "connections",
            "number of connections",
        ),
        (&["--depth", "70000"], "depth", "depth"),
        (&["--insecure"], "insecure", "without TLS"),
    ] {
        let found = written("a:1", words).unwrap().contradictions();
        let one = found.iter().find(|one| one.keys.contains(&key));
        let one = one.unwrap_or_else(|| panic!("{words:?}: {found:?}"));
        assert!(one.why.contains(why), "{words:?}: {one:?}");
    }
    for (words, why) in [
        (["--connections", "1,2,4"], "for n in 1 2 4; do"),
        (["--connections", "many"], "write it as 4"),
        (["--args", "{}"], "JSON array"),
        (["--types", "int,"], "Java types"),
        (["--attachment", "a"], "NAME=VALUE"),
    ] {
        let error = written("a:1", &words).unwrap_err().to_string();
        assert!(error.contains(why), "{words:?}: {error}");
    }
}
