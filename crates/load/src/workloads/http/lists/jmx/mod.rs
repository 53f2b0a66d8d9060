//! A test plan of JMeter (`.jmx`, 2.1 to 5.6): its thread groups, HTTP requests, and what decides when and how these are sent.
//!
//! What follows has the same effect as in JMeter, whose sources (5.6) decided each question: which elements apply to which requests
//! (`TestCompiler`), variables (`PreCompiler`), texts (`FunctionParser`), rows of data sets (`CSVDataSet`), timers. Everything else is
//! listed as skipped: requests that depend on it are not sent at all rather than sent with other contents.

mod assertion;
mod data;
mod request;
#[cfg(test)]
mod tests;
mod text;
mod timer;
mod tree;
mod walk;

use super::{Listed, Skipped, Target, as_path, shortened};
use crate::workloads::http::script::Group;

/// Where a plan comes from, and what decides how it is read.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Its file; that of a data set is relative to it.
    pub file: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
    /// Properties, as JMeter has them by `-Jname=value`; the last one of a name counts.
    pub properties: &'a [(String, String)],
    /// Where requests may go; absent where the first one decides.
    pub target: Option<Target<'a>>,
    /// The command line says what makes a response an answer.
    pub expects: bool,
    /// Reads a file of a data set; why not, in a sentence.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

/// What was read of a plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Its requests, and what is skipped.
    pub listed: Listed,
    /// Who sends them, one after another.
    pub groups: Vec<Group>,
    /// Data sets, which placeholders take values from.
    pub data: Vec<Data>,
    /// Where it differs from JMeter without anything being skipped.
    pub notes: Vec<String>,
    /// Users keep cookies.
    pub cookies: bool,
    /// Scheme, host and port of its first request.
    pub origin: Option<String>,
    /// Properties that it asks for.
    pub asks_for: Vec<String>,
}

/// A file of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Its name.
    pub file: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// How placeholders name its columns.
    pub columns: Vec<String>,
    /// What separates values.
    pub delimiter: u8,
    /// Values may stand in quotation marks.
    pub is_quoted: bool,
    /// The first line is no row.
    pub has_header: bool,
}

/// Reads a plan.
pub fn parse(source: &Source<'_>) -> Result<Plan, String> {
    let file = source.file;
    let elements = tree::parse(source.bytes).map_err(|why| {
        format!("{file} is no test plan of JMeter (.jmx, version 2.1 or later): {why}")
    })?;
    walk::plan(source, &elements)
}

impl Plan {
    /// How many users there are.
    pub fn users(&self) -> usize {
        let users = self.groups.iter().map(|group| group.users);
        users.fold(0, usize::saturating_add)
    }
}
