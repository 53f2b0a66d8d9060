//! Every captured frame is understood, and the stock consumers' requests are written byte for byte.

use rungwise_dubbo::hessian::{Limits, Skipper, Value};
use rungwise_dubbo::{
    Answer, Call, Event, Header, Message, Outcome, Reply, Status, Template, event, exception_text,
    heartbeat, heartbeat_reply, judge, write_frame,
};

use crate::{captured, frames, whole};

const ARGUMENT: &str = "héllo 中文 😀";
/// Hashes of captured frames that are too large to keep: the request of 32,768 units, and replies by units and version.
const REQUEST: u64 = 0xa47d_6033_7da6_7d67;
const SHORT_2: u64 = 0x312a_fc86_5a76_7371;
const SHORT_3: u64 = 0x8944_089b_5a91_93c9;
const LONG_2: u64 = 0x1970_f3c0_9640_08b4;

fn reply(name: &str) -> Reply {
    let bytes = captured(name);
    Reply::decode(&whole(&bytes), Limits::default()).unwrap()
}

fn failed(name: &str) -> (Status, String) {
    match reply(name).outcome {
        Outcome::Failed { status, text } => (status, text),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_frame_is_decoded_and_encoded_to_the_same_bytes() {
    let mut skipper = Skipper::new(Limits::default());
    for (name, bytes) in frames() {
        let frame = whole(&bytes);
        let header = frame.header;
        assert_eq!(header.serialization, 2, "{name}");
        let mut again = Vec::new();
        match header.message {
            _ if header.is_event => {
                assert_eq!(event(&frame), Ok(Event::Heartbeat), "{name}");
                again = match header.message {
                    Message::Request { .. } => heartbeat(header.id).to_vec(),
                    Message::Reply { .. } => heartbeat_reply(&header).to_vec(),
                };
            }
            Message::Request { two_way } => {
                assert!(two_way, "{name}");
                if name.contains("badbody") {
                    Call::decode(frame.body, Limits::default()).expect_err(&name);
                    continue;
                }
                let call = Call::decode(frame.body, Limits::default()).unwrap();
                assert_eq!(call.arguments.len(), 1, "{name}");
                again.extend(Template::new(&call, two_way).unwrap().with_id(header.id));
            }
            Message::Reply { status } => {
                let judged = judge(&frame, &mut skipper).unwrap();
                let reply = Reply::decode(&frame, Limits::default()).unwrap();
                let expected = match &reply.outcome {
                    Outcome::Value(_) => Answer::Value,
                    Outcome::Null => Answer::Null,
                    Outcome::Exception(_) => Answer::Exception,
                    Outcome::Failed { .. } => Answer::Failed(status),
                };
                assert_eq!(judged, expected, "{name}");
                let (status, body) = reply.encode();
                write_frame(&mut again, Message::Reply { status }, header.id, &body).unwrap();
            }
        }
        assert!(again == bytes, "{name}: encoded otherwise");
    }
}

/// What the stock consumers send for `sayHello("world")`, from nothing but its parts.
#[test]
fn requests_of_the_stock_consumers_are_written_byte_for_byte() {
    let mut call = Call::new("lab.Echo", "sayHello");
    "Ljava/lang/String;".clone_into(&mut call.descriptor);
    call.arguments = vec![Value::string("world")];
    let id = 0x30ac_717c_574b_6b6c;
    let mut newer = call.clone();
    newer
        .attach("path", "lab.Echo")
        .attach("remote.application", "cons")
        .attach("interface", "lab.Echo")
        .attach("version", "0.0.0")
        .attach("timeout", "60000");
    let mut newer = Template::new(&newer, true).unwrap();
    assert_eq!(newer.with_id(id), captured("3.3.6-consumer-request"));

    "2.0.1".clone_into(&mut call.dubbo_version);
    call.attach("path", "lab.Echo")
        .attach("interface", "lab.Echo")
        .attach("version", "0.0.0")
        .attach("timeout", "60000");
    let older = Template::new(&call, true).unwrap();
    let mut bytes = Vec::new();
    older.append(0, &mut bytes);
    assert_eq!(bytes, captured("2.5.10-consumer-request"));
    assert_eq!(older.wire_len(), bytes.len());
}

#[test]
fn a_template_changes_only_the_id() {
    let mut template = Template::new(&Call::new("a.B", "c"), false).unwrap();
    let first = template.with_id(1).to_vec();
    let other = template.with_id(u64::MAX).to_vec();
    let differ: Vec<usize> = (0..first.len())
        .filter(|at| first[*at] != other[*at])
        .collect();
    assert_eq!(differ, (4..12).collect::<Vec<_>>());
    assert_eq!(
        whole(&other).header.message,
        Message::Request { two_way: false }
    );
}

#[test]
fn attachments_are_sent_to_callers_of_2_0_2() {
    for (name, dubbo) in [
        ("3.3.6-client-minimal-response", Some("2.0.2")),
        ("3.3.6-client-version201-response", None),
        ("2.5.10-client-minimal-response", None),
    ] {
        assert_eq!(reply(name).attachment("dubbo"), dubbo, "{name}");
    }
    let bytes = captured("2.5.10-consumer-request");
    let call = Call::decode(whole(&bytes).body, Limits::default()).unwrap();
    assert_eq!(call.attachment("timeout"), Some("60000"));
    assert_eq!(call.attachment("group"), None);
}

#[test]
fn surrogates_are_joined_in_both_directions() {
    let bytes = captured("2.5.10-client-unicode-request");
    let call = Call::decode(whole(&bytes).body, Limits::default()).unwrap();
    assert_eq!(call.arguments, [Value::string(ARGUMENT)]);
    let Outcome::Value(Value::String(text)) = reply("3.3.6-client-unicode-response").outcome else {
        panic!("no string");
    };
    assert!(
        text.starts_with(&format!("Hello {ARGUMENT}{ARGUMENT}, response")),
        "{text}"
    );
}

#[test]
fn errors_are_quoted_by_status_and_text() {
    for (name, status, text) in [
        (
            "2.5.10-client-badmethod-response",
            70,
            "Failed to invoke remote proxy method nope",
        ),
        (
            "2.5.10-client-badservice-response",
            70,
            "Not found exported service: lab.Nope:21880",
        ),
        (
            "2.5.10-client-badtypes-response",
            40,
            "Fail to decode request due to",
        ),
        (
            "2.5.10-client-badbody-response",
            40,
            "Fail to decode request due to",
        ),
        (
            "2.5.10-client-exhausted-response",
            100,
            "Thread pool is EXHAUSTED!",
        ),
        ("3.3.6-client-badmethod-response", 40, "methodName=nope"),
        (
            "3.3.6-client-badservice-response",
            40,
            "Fail to decode request due to",
        ),
        (
            "3.3.6-client-badtypes-response",
            40,
            "Fail to decode request due to",
        ),
        (
            "3.3.6-client-exhausted-response",
            100,
            "Thread pool is EXHAUSTED!",
        ),
    ] {
        let (found, quoted) = failed(name);
        assert_eq!(found, Status(status), "{name}");
        assert!(quoted.contains(text), "{name}: {quoted}");
    }
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The large frames, from their parts: they are compared by length and hash (FNV-1a) and not kept.
#[test]
fn large_strings_are_cut_into_the_chunks_of_java() {
    let mut call = Call::new("lab.Echo", "sayHello");
    "Ljava/lang/String;".clone_into(&mut call.descriptor);
    call.arguments = vec![Value::string("c".repeat(32_768))];
    call.attach("path", "lab.Echo")
        .attach("interface", "lab.Echo");
    let request = Template::new(&call, true).unwrap().with_id(15).to_vec();
    assert_eq!((request.len(), fnv(&request)), (32_871, REQUEST));

    for (letter, units, id, port, attachments, length, hash) in [
        ("c", 32_768, 15, 21880, false, 65_622, SHORT_2),
        ("c", 32_768, 15, 21883, true, 65_636, SHORT_3),
        ("x", 40_000, 14, 21880, false, 80_087, LONG_2),
    ] {
        let twice = letter.repeat(2 * units);
        let text = format!("Hello {twice}, response form provider: 10.199.7.1/<unresolved>:{port}");
        let dubbo = (Value::string("dubbo"), Value::string("2.0.2"));
        let reply = Reply {
            outcome: Outcome::Value(Value::string(text)),
            attachments: attachments.then_some(dubbo).into_iter().collect(),
        };
        let (status, body) = reply.encode();
        let mut bytes = Vec::new();
        write_frame(&mut bytes, Message::Reply { status }, id, &body).unwrap();
        assert_eq!(
            (bytes.len(), fnv(&bytes)),
            (length, hash),
            "{units} to port {port}"
        );
        assert_eq!(Reply::decode(&whole(&bytes), Limits::default()), Ok(reply));
    }
}

#[test]
fn replies_of_every_flag_are_judged_and_read() {
    let mut skipper = Skipper::new(Limits::default());
    let attachments = b"H\x05dubbo\x052.0.2Z";
    let exception = b"C\x03a.B\x91\x0ddetailMessage\x60\x03why";
    for (flag, value, answer) in [
        (0x90, &exception[..], Answer::Exception),
        (0x91, b"\x01x", Answer::Value),
        (0x92, b"", Answer::Null),
        (0x93, exception, Answer::Exception),
        (0x94, b"\x01x", Answer::Value),
        (0x95, b"", Answer::Null),
    ] {
        let mut body = vec![flag];
        body.extend(value);
        if flag > 0x92 {
            body.extend(attachments);
        }
        let mut bytes = Vec::new();
        let message = Message::Reply { status: Status::OK };
        write_frame(&mut bytes, message, 9, &body).unwrap();
        let frame = whole(&bytes);
        assert_eq!(judge(&frame, &mut skipper), Ok(answer), "{flag:x}");
        let reply = Reply::decode(&frame, Limits::default()).unwrap();
        assert_eq!(reply.attachment("dubbo").is_some(), flag > 0x92);
        if let Outcome::Exception(exception) = &reply.outcome {
            assert_eq!(exception_text(exception), "a.B: why");
        }
        assert_eq!(reply.encode(), (Status::OK, body));
    }
}

#[test]
fn events_are_named() {
    let header = Header {
        message: Message::Request { two_way: false },
        is_event: true,
        serialization: 2,
        id: 1,
        body_len: 0,
    };
    for (body, expected) in [
        (&b""[..], Event::Heartbeat),
        (b"N", Event::Heartbeat),
        (b"\x01R", Event::ReadOnly),
        (b"\x01W", Event::Writable),
        (b"\x01Q", Event::Other(Value::string("Q"))),
    ] {
        let frame = rungwise_dubbo::Frame { header, body };
        assert_eq!(event(&frame), Ok(expected));
    }
    let other = rungwise_dubbo::Frame {
        header: Header {
            serialization: 8,
            ..header
        },
        body: b"\x01R",
    };
    let error = event(&other).expect_err("kryo");
    assert!(error.to_string().contains("serialization 8"), "{error}");
}
