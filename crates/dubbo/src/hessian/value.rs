//! The model of values.

use std::sync::Arc;

/// A value of hessian2.
///
/// What is read is owned. References stay indices, so that a value is a tree whatever was sent: [`Value::Ref`] counts the lists, maps
/// and objects of the body in the order in which they begin, from 0. [`Value::containers`] lists them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Java's null.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `int`, and `short` and `byte`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `double`, and `float`.
    Double(f64),
    /// `java.util.Date`: milliseconds since 1970-01-01 00:00 UTC.
    Date(i64),
    /// `String`, and `char`. A lone surrogate, which Java allows, is read as U+FFFD.
    String(String),
    /// `byte[]`.
    Binary(Vec<u8>),
    /// Arrays and collections.
    List(List),
    /// Maps.
    Map(Map),
    /// Objects, and constants of enums (a class with the single field `name`).
    Object(Object),
    /// The list, map or object of this index.
    Ref(u32),
}

/// An array or a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// `[int`, `[string`, `[com.acme.Item` for arrays, a class name for collections; `None` is read as an `ArrayList`.
    pub type_name: Option<Arc<str>>,
    /// Its elements.
    pub items: Vec<Value>,
}

/// A map. Keys may be anything and may repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// A class name; `None` is read as a `HashMap`.
    pub type_name: Option<Arc<str>>,
    /// Keys and values in the order that they have in the body.
    pub entries: Vec<(Value, Value)>,
}

/// A class as a body defines it, before its first object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// Name as in Java: `com.acme.Item`, `com.acme.Item$Part`.
    pub name: String,
    /// Names of its fields, those of superclasses too.
    pub fields: Vec<String>,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its class.
    pub class: Arc<Class>,
    /// As many values as the class has fields, in their order.
    pub fields: Vec<Value>,
}

impl Object {
    /// An object of a class with these fields.
    pub fn new(class: &str, fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let (names, values) = fields.into_iter().unzip();
        Self {
            class: Arc::new(Class {
                name: class.to_owned(),
                fields: names,
            }),
            fields: values,
        }
    }

    /// The field of a name.
    pub fn get(&self, field: &str) -> Option<&Value> {
        let at = self.class.fields.iter().position(|name| name == field)?;
        self.fields.get(at)
    }
}

impl Value {
    /// A string.
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// An untyped list.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List {
            type_name: None,
            items,
        })
    }

    /// An untyped map.
    pub fn map(entries: Vec<(Self, Self)>) -> Self {
        Self::Map(Map {
            type_name: None,
            entries,
        })
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Lists, maps and objects of some values in the order in which they begin: `Value::Ref(n)` means the n-th. Give all values of a
    /// body, since indices count from its start.
    pub fn containers<'v>(values: impl IntoIterator<Item = &'v Self>) -> Vec<&'v Self> {
        let mut found = Vec::new();
        for value in values {
            value.collect(&mut found);
        }
        found
    }

    fn collect<'v>(&'v self, found: &mut Vec<&'v Self>) {
        match self {
            Self::List(list) => {
                found.push(self);
                list.items.iter().for_each(|item| item.collect(found));
            }
            Self::Map(map) => {
                found.push(self);
                for (key, value) in &map.entries {
                    key.collect(found);
                    value.collect(found);
                }
            }
            Self::Object(object) => {
                found.push(self);
                object.fields.iter().for_each(|field| field.collect(found));
            }
            _ => {}
        }
    }
}
