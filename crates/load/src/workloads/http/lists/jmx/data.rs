//! Data sets of a plan: rows of a file as values of variables.

use super::text::Reading;
use super::tree::Element;
use super::{Data, Source};
use crate::data::first_line;

/// A data set, and the variables that its columns are for.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// Its table.
    pub(super) table: usize,
    /// The variables by their columns.
    pub(super) variables: Vec<(String, String)>,
    /// Users who take rows in turn: absent where each begins with the first one; sets of the same key share one order.
    pub(super) shared: Option<Sharing>,
    /// A user for whom there is no row left ends.
    pub(super) ends: bool,
}

/// Among whom rows are shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharing {
    /// All who have this key.
    Key(String),
    /// All of a group who have this key.
    OfGroup(String),
}

/// Reads a data set, which becomes table `table`.
pub(super) fn set(
    element: &Element,
    reading: &Reading<'_>,
    source: &Source<'_>,
    table: usize,
) -> Result<(Set, Data), String> {
    let fixed = |key: &str| reading.fixed(element.text(key));
    let name = fixed("filename")?.trim().to_owned();
    if name.is_empty() {
        return Err("it names no file".to_owned());
    }
    let encoding = fixed("fileEncoding")?;
    if !["", "utf-8", "utf8", "us-ascii"].contains(&&*encoding.trim().to_ascii_lowercase()) {
        return Err(format!("its encoding is {}", super::shortened(&encoding)));
    }
    let delimiter = fixed("delimiter")?;
    let delimiter = match delimiter.as_bytes() {
        [] => b',',
        b"\\t" => b'\t',
        [one] if one.is_ascii() => *one,
        _ => return Err("its delimiter is not one character".to_owned()),
    };
    let ends = fixed("recycle")?.trim() == "false";
    if ends && fixed("stopThread")?.trim() != "true" {
        return Err(
            "its values after the last row are <EOF>; let it recycle or stop the thread".to_owned(),
        );
    }
    let file = beside(source.file, &name);
    let content = (source.read)(&file)?;
    let names = fixed("variableNames")?;
    let has_names = !names.trim().is_empty();
    let names: Vec<String> = if has_names {
        names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect()
    } else {
        first_line(&content, delimiter).map_err(|why| format!("{file}: {why}"))?
    };
    // Another data set may have the same variables.
    let column = |at: usize, name: &str| {
        let plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
        let shown: String = name.chars().filter(plain).collect();
        format!("{shown}#{table}.{at}")
    };
    let columns: Vec<String> = (names.iter().enumerate())
        .map(|(at, name)| column(at, name))
        .collect();
    let mode = fixed("shareMode")?;
    let shared = match mode.trim() {
        "" | "shareMode.all" | "All threads" => Some(Sharing::Key(name)),
        "shareMode.group" | "Current thread group" => Some(Sharing::OfGroup(name)),
        "shareMode.thread" | "Current thread" => None,
        key => Some(Sharing::Key(format!("{name}@{key}"))),
    };
    let set = Set {
        table,
        variables: names.into_iter().zip(columns.iter().cloned()).collect(),
        shared,
        ends,
    };
    let data = Data {
        file,
        content,
        columns,
        delimiter,
        is_quoted: element.is("quotedData"),
        has_header: !has_names || element.is("ignoreFirstLine"),
    };
    Ok((set, data))
}

/// A file that the plan names, relative to the plan.
fn beside(plan: &str, name: &str) -> String {
    match plan.rfind('/') {
        Some(at) if !name.starts_with('/') => format!("{}/{name}", &plan[..at]),
        _ => name.to_owned(),
    }
}
