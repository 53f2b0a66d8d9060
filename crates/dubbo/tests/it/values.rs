//! Values as Java writes them: both versions of hessian-lite are read, and our writer gives their bytes.

use rungwise_dubbo::hessian::{Limits, Reader, Skipper, Value, Writer};
use rungwise_dubbo::{Problem, exception_text};

use crate::{Written, problem, written};

fn all(bytes: &[u8]) -> Vec<Value> {
    let mut reader = Reader::new(bytes, Limits::default());
    let mut values = Vec::new();
    while !reader.is_end() {
        values.push(reader.value().unwrap());
    }
    values
}

fn of(name: &str) -> Vec<Value> {
    let found = written().into_iter().find(|each| each.name == name);
    all(&found.expect(name).bytes)
}

#[test]
fn the_writer_gives_the_bytes_of_java() {
    for Written { name, bytes, .. } in written() {
        let mut writer = Writer::default();
        for value in all(&bytes) {
            writer.value(&value);
        }
        assert_eq!(writer.into_bytes(), bytes, "{name}");
    }
}

#[test]
fn scalars_have_the_value_that_java_wrote() {
    let mut seen = 0;
    for Written {
        name,
        version,
        bytes,
    } in written()
    {
        let Some((kind, text)) = name.split_once(':') else {
            continue;
        };
        let expected = match kind {
            "int" => Value::Int(text.parse().unwrap()),
            "long" => Value::Long(text.parse().unwrap()),
            "date" => Value::Date(text.parse().unwrap()),
            "double" if text != "NaN" => Value::Double(text.parse().unwrap()),
            "float" if version == "2.5.10" => Value::Double(text.parse::<f32>().unwrap().into()),
            "float" => Value::Double(text.parse().unwrap()),
            _ => continue,
        };
        assert_eq!(all(&bytes), [expected], "{name}");
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
    let [Value::Double(double)] = of("double:NaN")[..] else {
        panic!("no double");
    };
    assert!(double.is_nan());
    let text = "h\u{e9}llo \u{4e2d}\u{6587} \u{1f600} \0\u{7ff}\u{800}\u{ffff}";
    assert_eq!(of("text:mixed"), [Value::string(text)]);
    assert_eq!(of("bytes:3"), [Value::Binary(vec![1, 2, 255])]);
}

#[test]
fn objects_share_their_class_and_references_lead_back() {
    let values = of("objects");
    let [Value::Object(first), Value::Object(second)] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(first.class, second.class);
    assert_eq!(first.class.name, "Vectors$Line");
    assert_eq!(second.get("count"), Some(&Value::Int(2)));
    assert_eq!(second.get("colour"), None);

    let values = of("object-cycle");
    let [Value::Object(cycle)] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(cycle.get("next"), Some(&Value::Ref(0)));
    assert_eq!(Value::containers(&values)[0], &values[0]);

    let values = of("shared");
    let containers = Value::containers(&values);
    assert_eq!(values[1], Value::Ref(0));
    assert_eq!(containers, [&values[0], &values[2]]);
}

#[test]
fn exceptions_are_quoted_by_class_and_message() {
    for (name, text) in [
        ("exception", "java.lang.IllegalStateException: no stock"),
        ("exception-cause", "java.lang.IllegalStateException: outer"),
        ("exception-null", "java.lang.NullPointerException"),
    ] {
        let values = of(name);
        assert_eq!(exception_text(&values[0]), text);
    }
    assert_eq!(exception_text(&Value::string("as text")), "as text");
    assert_eq!(
        exception_text(&Value::Null),
        "an exception that is no object"
    );
    let entry = (Value::string("detailMessage"), Value::string("b"));
    assert_eq!(exception_text(&Value::map(vec![entry])), "an exception: b");
}

/// Forms that the writer never chooses, and other implementations may.
#[test]
fn longer_forms_and_unknown_lengths_are_read() {
    for (bytes, expected) in [
        (&b"I\0\0\0\x05"[..], Value::Int(5)),
        (b"L\0\0\0\0\0\0\0\x05", Value::Long(5)),
        (b"Y\0\0\0\x05", Value::Long(5)),
        (b"D\0\0\0\0\0\0\0\0", Value::Double(0.0)),
        (b"S\0\x01a", Value::string("a")),
        (b"R\0\x01aR\0\0R\0\x01b\x01c", Value::string("abc")),
        (b"A\0\x01aA\0\x01b\x21c", Value::Binary(b"abc".to_vec())),
        (b"B\0\x01a", Value::Binary(b"a".to_vec())),
        (
            b"W\x91\x92Z",
            Value::list(vec![Value::Int(1), Value::Int(2)]),
        ),
        (
            b"X\x92\x91\x92",
            Value::list(vec![Value::Int(1), Value::Int(2)]),
        ),
        (b"X\xc8\x01N", Value::list(vec![Value::Null])),
    ] {
        assert_eq!(all(bytes), [expected]);
    }
    for typed in [
        &b"U\x04[int\x91Z"[..],
        b"V\x04[int\x91\x91",
        b"q\x04[int\x91",
    ] {
        let values = all(typed);
        let [Value::List(list)] = &values[..] else {
            panic!("{values:?}");
        };
        assert_eq!(list.type_name.as_deref(), Some("[int"));
        assert_eq!(list.items, [Value::Int(1)]);
    }
    // A class may be defined long before its first object, and `O` names it by any int.
    let values = all(b"\x79C\x01A\x90O\xc8\x00\x60");
    assert_eq!(Value::containers(&values).len(), 3);
}

/// Surrogates may be cut apart by chunks, and Java allows lone ones.
#[test]
fn surrogates_are_joined_across_chunks_and_lone_ones_replaced() {
    let (high, low) = (b"\xed\xa0\xbd", b"\xed\xb8\x80");
    let text = |parts: &[&[u8]]| all(&parts.concat());
    assert_eq!(
        text(&[b"R\0\x01", high, b"\x01", low]),
        [Value::string("\u{1f600}")]
    );
    assert_eq!(text(&[b"\x02", high, b"a"]), [Value::string("\u{fffd}a")]);
    assert_eq!(
        text(&[b"\x02", high, high]),
        [Value::string("\u{fffd}\u{fffd}")]
    );
    assert_eq!(
        text(&[b"\x02", low, high]),
        [Value::string("\u{fffd}\u{fffd}")]
    );
    assert_eq!(
        text(&[b"\x03", high, low, low]),
        [Value::string("\u{1f600}\u{fffd}")]
    );
    assert_eq!(
        text(&[b"\x02", high, b"\xc3\xa4"]),
        [Value::string("\u{fffd}ä")]
    );
}

#[test]
fn chunks_end_between_characters() {
    // The last unit of the first chunk would be the first half of the emoji.
    let text = format!("{}\u{1f600}b", "a".repeat(32_767));
    let mut writer = Writer::default();
    writer.string(&text);
    let bytes = writer.into_bytes();
    assert_eq!(bytes[..3], [b'R', 0x7f, 0xff]);
    assert_eq!(all(&bytes), [Value::string(text)]);
    for part in ["a", "ä", "中", "\u{1f600}", "aä中\u{1f600}"] {
        for lead in 0..3 {
            let text = format!("{}{}", "a".repeat(lead), part.repeat(70_000));
            let mut writer = Writer::default();
            writer.string(&text);
            assert_eq!(all(writer.bytes()), [Value::string(text)]);
        }
    }
    let binary = vec![7; 200_000];
    let mut writer = Writer::default();
    writer.binary(&binary);
    assert_eq!(all(writer.bytes()), [Value::Binary(binary)]);
}

#[test]
fn a_negative_zero_keeps_its_sign() {
    let mut writer = Writer::default();
    writer.double(-0.0);
    let [Value::Double(zero)] = all(writer.bytes())[..] else {
        panic!("no double");
    };
    assert!(zero.is_sign_negative());
}

#[test]
fn a_value_cut_at_any_byte_is_truncated() {
    let mut skipper = Skipper::new(Limits::default());
    for Written { name, bytes, .. } in written() {
        let values = all(&bytes).len();
        for length in 0..bytes.len() {
            let cut = &bytes[..length];
            let mut reader = Reader::new(cut, Limits::default());
            let mut skip = skipper.body(cut);
            let read = (0..values).try_for_each(|_| reader.value().map(drop));
            let skipped = (0..values).try_for_each(|_| skip.skip_value());
            assert_eq!(read, skipped, "{name} {length}");
            assert_eq!(problem(read), Problem::Truncated, "{name} {length}");
        }
    }
}
