//! The description of all types that every chunk has: which fields an event has, in which order and unit.
//!
//! Source: `jdk.jfr.internal.MetadataReader` of OpenJDK 17. Strings come first, then a tree of elements whose names and attributes
//! are numbers of strings.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bytes::Cursor;

/// Elements within elements; the JVM writes four levels.
const DEEPEST: usize = 16;
/// Steps of all layouts of a chunk; a JVM has some thousand. More come from classes made to contain one another.
const MOST_STEPS: usize = 200_000;

/// The unit that a field is annotated with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    Plain,
    /// A time in ticks; given in nanoseconds since 1970.
    TimeTicks,
    /// A time in milliseconds since 1970; given in nanoseconds.
    TimeMillis,
    /// A duration in ticks; given in nanoseconds.
    SpanTicks,
    /// A duration, and the nanoseconds of its unit.
    Span(i64),
}

/// What is read to get over a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// boolean, byte
    Byte,
    /// char, short, int, long; and the bits that count
    Int(u32),
    F32,
    F64,
    Text,
    /// A key in the constant pool of the class with this index.
    Constant(usize),
    /// A count, and as many elements of these fields.
    Array(Arc<[Step]>),
}

/// A field, those of contained structures with a dot in their names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) unit: Unit,
}

/// All types of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
    by_id: HashMap<i64, usize>,
    /// Index of `java.lang.String`.
    pub(crate) string: Option<usize>,
    /// What a value of each class consists of; `None` where classes contain one another without end.
    layouts: Vec<Option<Arc<[Step]>>>,
}

#[derive(Debug)]
struct Class {
    id: i64,
    name: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    class: i64,
    is_constant: bool,
    is_array: bool,
    unit: Unit,
}

impl Classes {
    /// Reads the body of a metadata event, behind its size and type.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        for _start_duration_id in 0..3 {
            cursor.int()?;
        }
        let count = cursor.count().filter(|count| *count <= cursor.left())?;
        let mut strings = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            let text = cursor.text()?;
            strings.push(text.decoded().unwrap_or_default().into_owned());
        }
        let root = Element::parse(&mut cursor, &strings, 0)?;
        let mut classes = Self::default();
        let units = units(&root);
        root.each("class", &mut |element| {
            // Of two with the same id the first stays.
            if let Some(class) = Class::of(element, &units)
                && !classes.by_id.contains_key(&class.id)
            {
                classes.by_id.insert(class.id, classes.all.len());
                classes.all.push(class);
            }
        });
        classes.string = classes
            .all
            .iter()
            .position(|class| class.name == "java.lang.String");
        let mut left = MOST_STEPS;
        classes.layouts = (0..classes.all.len())
            .map(|index| {
                let mut steps = Vec::new();
                classes.unfold(index, "", Unit::Plain, &mut steps, &mut left, 0)?;
                Some(steps.into())
            })
            .collect();
        (!classes.all.is_empty()).then_some(classes)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn index(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn id(&self, index: usize) -> i64 {
        self.all[index].id
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.all[index].name
    }

    pub(crate) fn layout(&self, index: usize) -> Option<&[Step]> {
        self.layouts.get(index)?.as_deref()
    }

    /// Appends what a value of this class consists of.
    fn unfold(
        &self,
        class: usize,
        name: &str,
        unit: Unit,
        steps: &mut Vec<Step>,
        left: &mut usize,
        depth: usize,
    ) -> Option<()> {
        *left = left.checked_sub(1)?;
        let plain = match self.name(class) {
            "boolean" | "byte" => Some(What::Byte),
            "char" | "short" => Some(What::Int(16)),
            "int" => Some(What::Int(32)),
            "long" => Some(What::Int(64)),
            "float" => Some(What::F32),
            "double" => Some(What::F64),
            "java.lang.String" => Some(What::Text),
            _ => None,
        };
        if let Some(what) = plain {
            steps.push(Step {
                name: name.to_owned(),
                what,
                unit,
            });
            return Some(());
        }
        if depth > DEEPEST {
            return None;
        }
        for field in &self.all[class].fields {
            let of = self.index(field.class)?;
            let path = match name {
                "" => field.name.clone(),
                outer => format!("{outer}.{}", field.name),
            };
            // An element of an array begins names of its own.
            let inner = if field.is_array { "" } else { &path };
            let mut own = Vec::new();
            if field.is_constant {
                *left = left.checked_sub(1)?;
                own.push(Step {
                    name: inner.to_owned(),
                    what: What::Constant(of),
                    unit: Unit::Plain,
                });
            } else {
                self.unfold(of, inner, field.unit, &mut own, left, depth + 1)?;
            }
            if field.is_array {
                steps.push(Step {
                    name: path,
                    what: What::Array(own.into()),
                    unit: Unit::Plain,
                });
            } else {
                steps.append(&mut own);
            }
        }
        Some(())
    }
}

impl Class {
    fn of(element: &Element<'_>, units: &HashMap<i64, Annotation>) -> Option<Self> {
        let fields = element
            .children
            .iter()
            .filter(|child| child.name == "field")
            .map(|field| {
                Some(Field {
                    name: field.attribute("name")?.to_owned(),
                    class: field.number("class")?,
                    is_constant: field.attribute("constantPool") == Some("true"),
                    is_array: field.number("dimension").is_some_and(|many| many > 0),
                    unit: unit(field, units),
                })
            });
        Some(Self {
            id: element.number("id")?,
            name: element.attribute("name")?.to_owned(),
            fields: fields.collect::<Option<_>>()?,
        })
    }
}

/// The annotations that say what a number means.
#[derive(Clone, Copy)]
enum Annotation {
    Time,
    Span,
}

/// Ids of those annotations.
fn units(root: &Element<'_>) -> HashMap<i64, Annotation> {
    let mut units = HashMap::new();
    root.each("class", &mut |class| {
        let annotation = match class.attribute("name") {
            Some("jdk.jfr.Timestamp" | "com.oracle.jfr.Timestamp") => Annotation::Time,
            Some("jdk.jfr.Timespan" | "com.oracle.jfr.Timespan") => Annotation::Span,
            _ => return,
        };
        units.extend(class.number("id").map(|id| (id, annotation)));
    });
    units
}

fn unit(field: &Element<'_>, units: &HashMap<i64, Annotation>) -> Unit {
    let annotations = field.children.iter().filter_map(|child| {
        let annotation = units.get(&child.number("class")?)?;
        Some((annotation, child.attribute("value")?))
    });
    for (annotation, value) in annotations {
        match (annotation, value) {
            (Annotation::Time, "TICKS") => return Unit::TimeTicks,
            (Annotation::Time, "MILLISECONDS_SINCE_EPOCH") => return Unit::TimeMillis,
            (Annotation::Span, "TICKS") => return Unit::SpanTicks,
            (Annotation::Span, "NANOSECONDS") => return Unit::Span(1),
            (Annotation::Span, "MICROSECONDS") => return Unit::Span(1_000),
            (Annotation::Span, "MILLISECONDS") => return Unit::Span(1_000_000),
            (Annotation::Span, "SECONDS") => return Unit::Span(1_000_000_000),
            _ => {}
        }
    }
    Unit::Plain
}

struct Element<'s> {
    name: &'s str,
    attributes: Vec<(&'s str, &'s str)>,
    children: Vec<Self>,
}

impl<'s> Element<'s> {
    fn parse(cursor: &mut Cursor<'_>, strings: &'s [String], depth: usize) -> Option<Self> {
        if depth > DEEPEST {
            return None;
        }
        let text = |cursor: &mut Cursor<'_>| strings.get(cursor.count()?).map(String::as_str);
        let name = text(cursor)?;
        // Each takes a byte or more, so no count makes room for what is not there.
        let count = cursor.count().filter(|count| *count <= cursor.left())?;
        let attributes = (0..count).map(|_| Some((text(cursor)?, text(cursor)?)));
        let attributes = attributes.collect::<Option<_>>()?;
        let count = cursor.count().filter(|count| *count <= cursor.left())?;
        let children = (0..count).map(|_| Self::parse(cursor, strings, depth + 1));
        Some(Self {
            name,
            attributes,
            children: children.collect::<Option<_>>()?,
        })
    }

    fn attribute(&self, name: &str) -> Option<&'s str> {
        let mut of_name = self.attributes.iter().filter(|(known, _)| *known == name);
        of_name.next().map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.parse().ok()
    }

    /// Visits all elements of this name.
    fn each(&self, name: &str, visit: &mut impl FnMut(&Self)) {
        if self.name == name {
            visit(self);
        }
        for child in &self.children {
            child.each(name, visit);
        }
    }
}
