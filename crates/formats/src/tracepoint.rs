//! `events/*/*/format` of tracefs: where the fields of a kernel event lie, and what their numbers mean.
//!
//! The numbers of an enumeration (the reasons of dropped packets foremost) differ between kernels, so their names
//! come from the kernel's own table, which is in the print format as `__print_symbolic`.
//! Source: `kernel/trace/trace_events.c` of Linux 6.18, `f_show`.

use std::collections::BTreeMap;

/// The format of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Name without its system: `kfree_skb`.
    pub name: String,
    /// Number by which perf knows it.
    pub id: u64,
    /// Fields in order, the common ones first.
    pub fields: Vec<Field>,
    /// Format and arguments of printing.
    print: String,
}

/// One field of the raw record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Bytes from the beginning of the record.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Whether it is a signed number.
    pub signed: bool,
}

impl Format {
    /// Reads a format file; `None` if it lacks a name or number. Unknown lines are skipped.
    pub fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut numbered = false;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
                numbered = true;
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                print.trim().clone_into(&mut format.print);
            } else if line.starts_with("field:") {
                format.fields.extend(field(line));
            }
        }
        (numbered && !format.name.is_empty()).then_some(format)
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// What the values of a field are called; empty where the kernel does not name them.
    pub fn names(&self, field: &str) -> BTreeMap<u64, String> {
        let call = format!("__print_symbolic(REC->{field},");
        let Some((_, table)) = self.print.split_once(&call) else {
            return BTreeMap::new();
        };
        // Entries are `{ 2, "NOT_SPECIFIED" }`; the first that is none ends the table.
        let mut names = BTreeMap::new();
        let mut rest = table;
        while let Some(entry) = rest.trim_start().strip_prefix('{') {
            let Some((entry, after)) = entry.split_once('}') else {
                break;
            };
            if let Some((value, name)) = entry.split_once(',')
                && let Some(value) = number(value.trim())
            {
                names.insert(value, name.trim().trim_matches('"').to_owned());
            }
            rest = after.trim_start().trim_start_matches(',');
        }
        names
    }
}

impl Field {
    /// The value of the field in a raw record, if the record is long enough and the field is a number.
    pub fn value(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        match *bytes {
            [a] => Some(u64::from(a)),
            [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }
}

/// `field:unsigned int flags; offset:16; size:4; signed:0;`, with tabs between the parts.
fn field(line: &str) -> Option<Field> {
    let mut found = Field::default();
    for part in line.split(';') {
        match part.trim().split_once(':') {
            Some(("field", declaration)) => {
                let name = declaration.split_ascii_whitespace().last()?;
                let name = name.split('[').next().unwrap_or(name);
                name.trim_start_matches('*').clone_into(&mut found.name);
            }
            Some(("offset", value)) => found.offset = value.parse().ok()?,
            Some(("size", value)) => found.size = value.parse().ok()?,
            Some(("signed", value)) => found.signed = value == "1",
            _ => {}
        }
    }
    (!found.name.is_empty()).then_some(found)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Linux 6.18, with fewer reasons.
    const KFREE_SKB: &str = r#"name: kfree_skb
ID: 2310
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:void * skbaddr;	offset:8;	size:8;	signed:0;
	field:unsigned short protocol;	offset:32;	size:2;	signed:0;
	field:enum skb_drop_reason reason;	offset:36;	size:4;	signed:0;
	field:unsigned long args[6];	offset:40;	size:48;	signed:0;

print fmt: "skbaddr=%p reason: %s", REC->skbaddr, __print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 0x3, "NO_SOCKET" }, { (1U << 2), "ODD" }, { 6, "SOCKET_RCVBUFF" })
"#;

    #[test]
    fn fields_and_the_names_of_their_values_are_read() {
        let format = Format::parse(KFREE_SKB).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("kfree_skb", 2310));
        let reason = format.field("reason").unwrap();
        assert_eq!((reason.offset, reason.size, reason.signed), (36, 4, false));
        assert!(format.field("common_pid").unwrap().signed);
        assert!(format.field("args").is_some() && format.field("skbaddr").is_some());
        let names = format.names("reason");
        assert_eq!(names.len(), 3);
        assert_eq!(names[&3], "NO_SOCKET");
        assert_eq!(names[&6], "SOCKET_RCVBUFF");
        assert!(format.names("protocol").is_empty());
    }

    #[test]
    fn a_value_is_read_where_the_record_has_it() {
        let format = Format::parse(KFREE_SKB).unwrap();
        let mut record = [0_u8; 40];
        record[36..40].copy_from_slice(&6_u32.to_ne_bytes());
        record[32..34].copy_from_slice(&2048_u16.to_ne_bytes());
        let value = |name: &str, record: &[u8]| format.field(name).unwrap().value(record);
        assert_eq!(value("reason", &record), Some(6));
        assert_eq!(value("protocol", &record), Some(2048));
        assert_eq!(value("reason", &record[..39]), None);
        assert_eq!(value("args", &[0; 200]), None);
    }

    #[test]
    fn a_text_without_name_or_number_is_no_format() {
        for text in ["", "name: x\n", "ID: 4\n", "name: x\nID: many\n"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(name:|ID:|field:|print fmt:|offset:|size:|__print_symbolic\\(REC->a,|[{},;\\[ \n\"a0-9é]){0,40}") {
            if let Some(format) = Format::parse(&format!("name: a\nID: 1\n{text}")) {
                let _ = format.names("a");
                for field in &format.fields {
                    let _ = field.value(&[1, 2, 3, 4]);
                }
            }
        }
    }
}
