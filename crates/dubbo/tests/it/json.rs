//! Arguments from JSON: the bytes that Java writes for the same values, and errors that name the place.

use rungwise_dubbo::hessian::{Value, Writer};
use rungwise_dubbo::{Error, JavaType, arguments};
use serde_json::{Value as Json, json};

use crate::written;

fn convert(types: &str, json: Json) -> Result<Vec<Value>, Error> {
    let types = JavaType::parse_list(types).unwrap();
    let Json::Array(json) = json else {
        panic!("no array of arguments");
    };
    arguments(&types, &json)
}

fn why(types: &str, json: Json) -> String {
    convert(types, json).expect_err(types).to_string()
}

#[test]
fn arguments_have_the_bytes_of_the_same_values_in_java() {
    let vectors = written();
    for (name, types, json) in [
        ("true", "boolean", json!([true])),
        ("null", "String", json!([null])),
        ("int:262144", "int", json!([262_144])),
        ("int:-16", "Integer", json!([-16])),
        ("long:16", "long", json!([16])),
        ("long:9223372036854775807", "Long", json!([i64::MAX])),
        ("short", "short", json!([-5])),
        ("byte", "java.lang.Byte", json!([100])),
        ("char", "char", json!(["x"])),
        ("double:12.25", "double", json!([12.25])),
        ("double:2.0", "double", json!([2])),
        ("float:0.1", "float", json!([0.1])),
        ("float:3.3", "Float", json!([3.3])),
        ("float:1.0E10", "float", json!([1e10])),
        (
            "date:894621091000",
            "java.util.Date",
            json!([894_621_091_000_i64]),
        ),
        ("text:empty", "CharSequence", json!([""])),
        ("bytes:3", "byte[]", json!([[1, 2, -1]])),
        (
            "list:7",
            "List",
            json!([[1, {"class": "long", "value": 2}, 3.5, "x", null, true, []]]),
        ),
        (
            "list:8",
            "java.util.Collection<Integer>",
            json!([[1, 2, 3, 4, 5, 6, 7, 8]]),
        ),
        ("linkedlist", "java.util.LinkedList", json!([["a", "b"]])),
        ("hashset", "Set<String>", json!([["a"]])),
        ("treeset", "java.util.SortedSet", json!([["a"]])),
        ("int[]", "int[]", json!([[1, 2]])),
        ("int[8]", "int...", json!([[0, 0, 0, 0, 0, 0, 0, 0]])),
        ("String[]", "String[]", json!([["a", null]])),
        ("Object[]", "Object[]", json!([[1, "a"]])),
        ("long[]", "long[]", json!([[1]])),
        ("double[]", "double[]", json!([[1.5]])),
        ("boolean[]", "boolean[]", json!([[true]])),
        ("char[]", "char[]", json!(["ab"])),
        ("short[]", "short[]", json!([[1]])),
        ("float[]", "float[]", json!([[1.5]])),
        ("int[][]", "int[][]", json!([[[1], [2]]])),
        ("Integer[]", "Integer[]", json!([[1]])),
        ("Date[]", "Date[]", json!([[0]])),
        ("map", "Map", json!([{"a": 1}])),
        ("map", "Object", json!([{"a": 1}])),
        ("linkedhashmap", "LinkedHashMap", json!([{"a": 1}])),
        (
            "treemap",
            "java.util.SortedMap<String, Integer>",
            json!([{"a": 1}]),
        ),
        ("bigdecimal", "java.math.BigDecimal", json!(["12.50"])),
        (
            "enum",
            "Vectors$Colour, Object",
            json!(["RED", {"class": "Vectors$Colour", "name": "GREEN"}]),
        ),
    ] {
        let mut writer = Writer::default();
        for value in convert(types, json).unwrap() {
            writer.value(&value);
        }
        let bytes = writer.into_bytes();
        let newest = vectors.iter().rev().find(|each| each.name == name);
        assert_eq!(bytes, newest.expect(name).bytes, "{name} as {types}");
    }
}

#[test]
fn objects_have_the_class_and_the_fields_that_json_names() {
    let values = convert(
        "com.acme.Order",
        json!([{"class": "com.acme.Rush", "lines": [{"class": "com.acme.Line", "sku": "x"}], "total": 3_000_000_000_i64,
            "when": {"class": "java.util.Date", "value": 5}, "raw": {"class": "com.acme.Box", "value": 5}}]),
    );
    let values = values.unwrap();
    let [Value::Object(order)] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(order.class.name, "com.acme.Rush");
    assert_eq!(order.get("class"), None);
    assert_eq!(order.get("total"), Some(&Value::Long(3_000_000_000)));
    assert_eq!(order.get("when"), Some(&Value::Date(5)));
    let Some(Value::Object(raw)) = order.get("raw") else {
        panic!("{order:?}");
    };
    assert_eq!(
        (raw.class.name.as_str(), raw.get("value")),
        ("com.acme.Box", Some(&Value::Int(5)))
    );
    let Some(Value::List(lines)) = order.get("lines") else {
        panic!("{order:?}");
    };
    assert!(
        matches!(&lines.items[..], [Value::Object(line)] if line.class.name == "com.acme.Line")
    );
}

#[test]
fn keys_of_maps_are_converted_to_the_key_type() {
    for (types, key) in [
        ("Map<Integer, String>", Value::Int(7)),
        ("Map<Long, String>", Value::Long(7)),
        ("Map<String, String>", Value::string("7")),
        ("Map<Character, String>", Value::string("7")),
        ("Map<?, ?>", Value::string("7")),
        ("Map", Value::string("7")),
    ] {
        let values = convert(types, json!([{"7": "x"}])).unwrap();
        assert_eq!(
            values,
            [Value::map(vec![(key, Value::string("x"))])],
            "{types}"
        );
    }
    let error = why("Map<Integer, String>", json!([{"x": "y"}]));
    assert_eq!(
        error,
        "argument 1, .x: java.lang.Integer needs an integer, found the string \"x\""
    );
}

#[test]
fn errors_name_the_argument_and_the_part() {
    for (types, json, expected) in [
        ("int, int", json!([1]), "1 arguments for 2 parameter types"),
        (
            "int",
            json!([null]),
            "argument 1: int needs an integer, found null",
        ),
        (
            "int",
            json!([1.5]),
            "argument 1: int needs an integer, found 1.5",
        ),
        (
            "byte",
            json!([300]),
            "argument 1: 300 does not fit byte (-128 to 127)",
        ),
        (
            "long",
            json!([u64::MAX]),
            "argument 1: 18446744073709551615 does not fit long",
        ),
        (
            "String, boolean",
            json!(["a", "b"]),
            "argument 2: boolean needs true or false, found the string \"b\"",
        ),
        (
            "char",
            json!(["\u{1f600}"]),
            "char needs a string of one character",
        ),
        ("float", json!([1e39]), "float needs a number up to 3.4e38"),
        (
            "String",
            json!([5]),
            "java.lang.String needs a string, found 5",
        ),
        (
            "List<List<Integer>>",
            json!([[[1], [2, "x"]]]),
            "argument 1, [1][1]: java.lang.Integer needs an integer",
        ),
        (
            "Set",
            json!([{}]),
            "java.util.Set needs an array, found an object",
        ),
        (
            "Map",
            json!([[]]),
            "java.util.Map needs an object, found an array",
        ),
        (
            "byte[]",
            json!([[1, 256]]),
            "argument 1, [1]: 256 does not fit byte",
        ),
        (
            "char[]",
            json!([["a"]]),
            "char[] needs a string, found an array",
        ),
        (
            "Date",
            json!(["2026-11-27"]),
            "java.util.Date needs milliseconds since 1970-01-01 UTC",
        ),
        (
            "java.math.BigDecimal",
            json!(["inf"]),
            "needs a number, or a string of its digits",
        ),
        (
            "java.time.LocalDate",
            json!(["2026-11-27"]),
            "java.time.LocalDate is not converted from a string; give the object that hessian-lite sends",
        ),
        ("Number", json!(["1"]), "java.lang.Number needs a number"),
        (
            "com.acme.Order",
            json!([5]),
            "com.acme.Order needs an object of its fields, or the name of an enum's constant, found 5",
        ),
        (
            "com.acme.Colour",
            json!(["dark red"]),
            "com.acme.Colour needs an object",
        ),
        (
            "com.acme.Order",
            json!([{"a": {"class": 5}}]),
            "argument 1, .a: class needs the name of a Java class, found 5",
        ),
        (
            "Object",
            json!([{"a": [0, u64::MAX]}]),
            "argument 1, .a[1]: 18446744073709551615 does not fit a long",
        ),
        (
            "Object",
            json!([{"class": "a..b", "value": 1}]),
            "\"a..b\" names no Java type",
        ),
        ("String", json!([["x".repeat(100)]]), "found an array"),
        ("int", json!(["x".repeat(100)]), "found a long string"),
    ] {
        let error = why(types, json);
        assert!(error.contains(expected), "{types}: {error}");
    }
    let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
    assert!(why("Object", json!([deep.clone()])).contains("nested deeper than 128"));
    assert!(why("com.acme.Order", json!([{"a": deep}])).contains("nested deeper than 128"));
}
