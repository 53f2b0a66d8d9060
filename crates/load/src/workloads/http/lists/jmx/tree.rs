//! The XML of a test plan as a tree of elements. JMeter writes each element before a `hashTree` of what lies below it.
//!
//! Only the five entities of XML and numbers of characters are known, so that no text grows while it is read.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Deepest nesting; plans have about three levels of XML per level of the plan.
const DEEPEST: usize = 400;
/// Most nodes of XML: some hundred bytes of memory each.
const MOST: usize = 2_000_000;

/// A piece of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    /// Its number in the plan.
    pub(super) id: usize,
    /// What it is, such as `HTTPSamplerProxy`.
    pub(super) class: String,
    /// The form that edits it, which distinguishes some of the same class.
    pub(super) form: String,
    /// What its author calls it.
    pub(super) name: String,
    properties: Vec<Node>,
    /// What lies below it, without what is disabled.
    pub(super) below: Vec<Element>,
}

/// A node of the XML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    tag: String,
    /// Its attribute `name`.
    name: String,
    class: String,
    form: String,
    title: String,
    is_disabled: bool,
    text: String,
    inner: Vec<Node>,
}

/// The elements of the plan in `bytes`, at the top: one `TestPlan`, as JMeter writes it.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Element>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + newlines(&bytes[..error.valid_up_to()]);
        format!("line {line}: not UTF-8 text")
    })?;
    let root = nodes(text)?;
    if root.tag != "jmeterTestPlan" {
        return Err(format!(
            "its root is <{}> and not <jmeterTestPlan>",
            super::shortened(&root.tag)
        ));
    }
    let tree = root.inner.into_iter().find(|node| node.tag == "hashTree");
    let tree = tree.ok_or(
        "it has no <hashTree>, as plans before JMeter 2.1; open it in a newer JMeter and save it",
    )?;
    Ok(elements(tree.inner, &mut 0))
}

fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// The root of the XML.
fn nodes(text: &str) -> Result<Node, String> {
    let mut reader = Reader::from_str(text);
    // Nodes that are open; the first one is none of the text.
    let mut open = vec![Node::default()];
    let mut number = 0;
    loop {
        let place = reader.buffer_position() as usize;
        let wrong = |why: String| {
            let line = 1 + newlines(&text.as_bytes()[..place.min(text.len())]);
            format!("line {line}: {why}")
        };
        let event = reader
            .read_event()
            .map_err(|error| wrong(error.to_string()))?;
        let top = open.last_mut().expect("the first node is never closed");
        match event {
            Event::Start(start) => {
                let node = node(&start).map_err(wrong)?;
                number += 1;
                open.push(node);
                if open.len() > DEEPEST {
                    return Err(wrong(format!(
                        "elements are nested more than {DEEPEST} deep"
                    )));
                }
            }
            Event::Empty(start) => {
                number += 1;
                top.inner.push(node(&start).map_err(wrong)?);
            }
            Event::End(_) => {
                // The reader refuses an end without a start.
                let done = open.pop().unwrap_or_default();
                if let Some(above) = open.last_mut() {
                    above.inner.push(done);
                }
            }
            Event::Text(piece) => {
                let piece = piece.xml10_content();
                top.text
                    .push_str(&piece.map_err(|error| wrong(error.to_string()))?);
            }
            Event::CData(piece) => {
                let piece = piece.xml10_content();
                top.text
                    .push_str(&piece.map_err(|error| wrong(error.to_string()))?);
            }
            Event::GeneralRef(reference) => {
                let name = reference
                    .decode()
                    .map_err(|error| wrong(error.to_string()))?;
                let character = reference
                    .resolve_char_ref()
                    .map_err(|error| wrong(error.to_string()))?;
                match (character, resolve_predefined_entity(&name)) {
                    (Some(character), _) => top.text.push(character),
                    (None, Some(text)) => top.text.push_str(text),
                    (None, None) => {
                        let name = super::shortened(&name);
                        return Err(wrong(format!("unknown entity &{name};")));
                    }
                }
            }
            Event::Eof => {
                if open.len() > 1 {
                    let tag = &open[open.len() - 1].tag;
                    return Err(wrong(format!(
                        "the file ends within <{}>",
                        super::shortened(tag)
                    )));
                }
                let root = open.pop().unwrap_or_default().inner.into_iter().next();
                return root.ok_or_else(|| "it contains no XML element".to_owned());
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
        if number > MOST {
            return Err(format!("it has more than {MOST} XML elements"));
        }
    }
}

fn node(start: &BytesStart<'_>) -> Result<Node, String> {
    let mut node = Node {
        tag: String::from_utf8_lossy(start.name().as_ref()).into_owned(),
        ..Node::default()
    };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.unescape_value();
        let value = value.map_err(|error| error.to_string())?.into_owned();
        match attribute.key.as_ref() {
            b"name" => node.name = value,
            b"testclass" => node.class = value,
            b"guiclass" => node.form = value,
            b"testname" => node.title = value,
            b"enabled" => node.is_disabled = value == "false",
            _ => {}
        }
    }
    Ok(node)
}

/// Elements with what lies below them; `number` counts all.
fn elements(nodes: Vec<Node>, number: &mut usize) -> Vec<Element> {
    let mut all: Vec<(bool, Element)> = Vec::new();
    for node in nodes {
        if node.tag == "hashTree" {
            let below = elements(node.inner, number);
            if let Some((_, above)) = all.last_mut() {
                above.below.extend(below);
            }
            continue;
        }
        *number += 1;
        let class = [&node.class, &node.tag]
            .into_iter()
            .find(|one| !one.is_empty());
        let class = class.map_or("", |class| last_part(class)).to_owned();
        let element = Element {
            id: *number,
            class,
            form: last_part(&node.form).to_owned(),
            name: node.title,
            properties: node.inner,
            below: Vec::new(),
        };
        all.push((node.is_disabled, element));
    }
    let enabled = all.into_iter().filter(|(is_disabled, _)| !is_disabled);
    enabled.map(|(_, element)| element).collect()
}

/// `JSONPostProcessor` as `JSON Post Processor`.
fn words(class: &str) -> String {
    let letters: Vec<char> = class.chars().collect();
    let mut words = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let is_start = before.is_some_and(|before| {
            let next = letters.get(at + 1);
            !before.is_ascii_uppercase() || next.is_some_and(char::is_ascii_lowercase)
        });
        if letter.is_ascii_uppercase() && is_start {
            words.push(' ');
        }
        words.push(*letter);
    }
    words
}

/// A class without its package.
fn last_part(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

impl Element {
    fn property(&self, name: &str) -> Option<&Node> {
        self.properties.iter().find(|node| node.is(name))
    }

    /// The text of a property, empty where it is absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.property(name).map_or("", Node::value)
    }

    /// A property is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.text(name).trim() == "true"
    }

    /// The items of a property that is a collection, itself within another one where `within` is not empty.
    pub(super) fn items(&self, within: &str, name: &str) -> &[Node] {
        let outer = if within.is_empty() {
            &self.properties
        } else {
            self.property(within).map_or(&[][..], |node| &node.inner)
        };
        let found = outer.iter().find(|node| node.is(name));
        found.map_or(&[], |node| &node.inner)
    }

    /// The text of a property of an element within.
    pub(super) fn text_within(&self, within: &str, name: &str) -> &str {
        self.property(within).map_or("", |node| node.text(name))
    }

    /// Every property with a text: its name and that.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let properties = self.properties.iter();
        properties.map(|node| (node.key(), node.value()))
    }

    /// As it is named to users: `If Controller 'login'`.
    pub(super) fn title(&self) -> String {
        let words = match &*self.class {
            // As the forms call them.
            "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => "HTTP Request".to_owned(),
            "TestAction" => "Flow Control Action".to_owned(),
            class => words(class),
        };
        format!(
            "{} '{}'",
            super::shortened(&words),
            super::shortened(&self.name)
        )
    }
}

impl Node {
    /// Its name; some have it in an element of its own.
    fn key(&self) -> &str {
        let inner = || self.inner.iter().find(|node| node.tag == "name");
        match &*self.name {
            "" => inner().map_or("", |node| &node.text),
            name => name,
        }
    }

    fn is(&self, name: &str) -> bool {
        self.key() == name
    }

    /// Its text; some have it in an element of its own.
    pub(super) fn value(&self) -> &str {
        let inner = self.inner.iter().find(|node| node.tag == "value");
        inner.map_or(&self.text, |node| &node.text)
    }

    /// The text of a property of it, empty where it is absent.
    pub(super) fn text(&self, name: &str) -> &str {
        let property = self.inner.iter().find(|node| node.is(name));
        property.map_or("", Node::value)
    }

    /// A property of it is written.
    pub(super) fn has(&self, name: &str) -> bool {
        self.inner.iter().any(|node| node.is(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_below_the_one_before_their_tree() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
 <TestPlan testclass="TestPlan" testname="P &amp; &#65;"><stringProp name="a">x&lt;&#xd;
</stringProp></TestPlan>
 <hashTree>
  <kg.apc.X testname="x"><doubleProp><name>throughput</name><value>6.5</value></doubleProp><intProp name="n">3</intProp>
   <elementProp name="e"><collectionProp name="c"><stringProp name="1">one</stringProp></collectionProp></elementProp></kg.apc.X><hashTree/>
  <Off enabled="false"/><hashTree><Inner/><hashTree/></hashTree>
  <HTTPSamplerProxy testname="h"/>
 </hashTree>
</hashTree></jmeterTestPlan>"#;
        let [plan] = &parse(text.as_bytes()).unwrap()[..] else {
            panic!()
        };
        assert_eq!(plan.name, "P & A");
        assert_eq!(plan.text("a"), "x<\r\n");
        let [x, sampler] = &plan.below[..] else {
            panic!("{plan:?}")
        };
        assert_eq!(
            (&*x.class, x.text("throughput"), x.text("n")),
            ("X", "6.5", "3")
        );
        assert_eq!(x.items("e", "c")[0].value(), "one");
        assert_eq!(sampler.title(), "HTTP Request 'h'");
        for (class, title) in [
            ("JSONPostProcessor", "JSON Post Processor"),
            ("JSR223Sampler", "JSR223 Sampler"),
            ("CSVDataSet", "CSV Data Set"),
            ("IfController", "If Controller"),
        ] {
            assert_eq!(words(class), title);
        }
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_line() {
        for (text, word) in [
            ("", "no XML element"),
            ("<a/>", "its root is <a>"),
            ("<jmeterTestPlan/>", "before JMeter 2.1"),
            ("<jmeterTestPlan>\n<hashTree>", "ends within <hashTree>"),
            ("<jmeterTestPlan>\n<a></b></jmeterTestPlan>", "line 2"),
            (
                "<!DOCTYPE a [<!ENTITY x \"y\">]>\n<a>&x;</a>",
                "line 2: unknown entity &x;",
            ),
            ("<a b=\"&x;\"/>", "line 1"),
            ("{\"log\": 1}", "no XML element"),
        ] {
            let why = parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
        assert!(
            parse(b"<a>\n\xff")
                .unwrap_err()
                .contains("line 2: not UTF-8")
        );
        let deep = "<a>".repeat(DEEPEST + 1);
        assert!(parse(deep.as_bytes()).unwrap_err().contains("nested"));
    }
}
