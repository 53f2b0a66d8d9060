//! Any value is written and read back, in a form that is read again to the same.

use std::sync::Arc;

use proptest::prelude::*;
use rungwise_dubbo::Call;
use rungwise_dubbo::hessian::{Class, Limits, List, Map, Object, Reader, Skipper, Value, Writer};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::Int),
        (-300_000..300_000_i32).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        (-300_000..300_000_i64).prop_map(Value::Long),
        any::<f64>()
            .prop_filter("a number", |f| !f.is_nan())
            .prop_map(Value::Double),
        (-40_000_000..40_000_000_i32).prop_map(|f| Value::Double(f64::from(f) / 1000.0)),
        any::<i64>().prop_map(Value::Date),
        any::<i32>().prop_map(|minutes| Value::Date(i64::from(minutes) * 60_000)),
        any::<String>().prop_map(Value::String),
        "[a-z\u{e4}\u{4e2d}\u{1f600}]{0,1100}".prop_map(Value::String),
        proptest::collection::vec(any::<u8>(), 0..1100).prop_map(Value::Binary),
    ]
}

fn type_name() -> impl Strategy<Value = Option<Arc<str>>> {
    proptest::option::of(proptest::sample::select(vec![
        "[int",
        "java.util.TreeMap",
        "a.B",
    ]))
    .prop_map(|name| name.map(Arc::from))
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 60, 10, |inner| {
        let items = proptest::collection::vec(inner.clone(), 0..10);
        let entries = proptest::collection::vec((inner.clone(), inner.clone()), 0..4);
        let fields = proptest::collection::vec(("[ab]", inner), 0..4);
        prop_oneof![
            (type_name(), items)
                .prop_map(|(type_name, items)| Value::List(List { type_name, items })),
            (type_name(), entries)
                .prop_map(|(type_name, entries)| Value::Map(Map { type_name, entries })),
            ("[A-C]", fields)
                .prop_map(|(class, fields)| Value::Object(Object::new(&class, fields))),
        ]
    })
}

proptest! {
    #[test]
    fn values_are_read_back(values in proptest::collection::vec(value(), 1..4), references in 0..3_u32) {
        let mut values = values;
        let begun = Value::containers(&values).len() as u32;
        values.extend((0..references.min(begun)).map(Value::Ref));
        let mut writer = Writer::default();
        for value in &values {
            writer.value(value);
        }
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes, Limits::default());
        let mut skipper = Skipper::new(Limits::default());
        let mut skip = skipper.body(&bytes);
        for value in &values {
            prop_assert_eq!(&reader.value().unwrap(), value);
            skip.skip_value().unwrap();
            prop_assert_eq!(skip.at(), reader.at());
        }
        reader.end().unwrap();
        skip.end().unwrap();
    }

    #[test]
    fn calls_are_read_back(method in any::<String>(), arguments in proptest::collection::vec(value(), 0..3), attachments in proptest::collection::vec((any::<String>(), any::<String>()), 0..3)) {
        let mut call = Call::new("a.B", &method);
        call.descriptor = "Ljava/lang/Object;".repeat(arguments.len());
        call.arguments = arguments;
        for (name, value) in &attachments {
            call.attach(name, value);
        }
        prop_assert_eq!(Call::decode(&call.encode(), Limits::default()), Ok(call));
    }
}

#[test]
fn more_than_sixteen_classes_and_types_are_named_by_index() {
    let mut items = Vec::new();
    for round in 0..2 {
        for at in 0..40 {
            let class = Arc::new(Class {
                name: format!("C{at}"),
                fields: vec!["a".to_owned()],
            });
            let fields = vec![Value::Int(round)];
            items.push(Value::Object(Object { class, fields }));
            items.push(Value::List(List {
                type_name: Some(format!("[C{at}").into()),
                items: Vec::new(),
            }));
        }
    }
    let all = Value::list(items);
    let mut writer = Writer::default();
    writer.value(&all);
    let mut reader = Reader::new(writer.bytes(), Limits::default());
    assert_eq!(reader.value(), Ok(all));
}

#[test]
fn an_object_of_too_few_values_is_filled_with_nulls() {
    let class = Arc::new(Class {
        name: "A".to_owned(),
        fields: vec!["a".to_owned(), "b".to_owned()],
    });
    let short = Value::Object(Object {
        class,
        fields: vec![Value::Int(1), Value::Int(2), Value::Int(3)],
    });
    let mut writer = Writer::default();
    writer.value(&short).null();
    let mut reader = Reader::new(writer.bytes(), Limits::default());
    let Ok(Value::Object(read)) = reader.value() else {
        panic!("an object");
    };
    assert_eq!(read.fields, [Value::Int(1), Value::Int(2)]);
    assert_eq!(reader.value(), Ok(Value::Null));
}
