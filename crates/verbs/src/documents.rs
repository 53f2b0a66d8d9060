//! The documents that verbs print and `rungwise report` draws again: one table for both, so that the two cannot differ.
//!
//! A page is a function of its document alone. Text that a verb prints as it is (`knob`, `serve`, `explain`) is a field of the
//! document. A file is checked before anything in it is used: its size, that it is complete, its schema, its kind.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_host::files;
use rungwise_model::capacity::CapacityGcReport;
use rungwise_model::capacity_rpc::CapacityRpcReport;
use rungwise_model::check::{CheckReport, Outcome, Standing};
use rungwise_model::compare::{CompareReport, Of};
use rungwise_model::gc::GcReport;
use rungwise_model::heap_per_request::HeapPerRequestReport;
use rungwise_model::jfr::JfrReport;
use rungwise_model::jvm_flags::JvmFlagsReport;
use rungwise_model::load::LoadReport;
use rungwise_model::profile::ProfileReport;
use rungwise_model::threads::ThreadsReport;
use rungwise_model::tune::{TuneReport, Verdict};
use rungwise_model::{Envelope, Exit, SCHEMA_VERSION};
use rungwise_report::{
    Block, capacity, capacity_rpc, compare, gc, heap_per_request, html, jfr, load, markdown,
    profile, sarif, terminal, threads, tune,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Observer;
use crate::runs::store::DOCUMENT;
use crate::runs::{self, RunsList, RunsPrune};
use crate::{check, jvm};

/// The longest document that is read: a ladder of 100 rungs with 24 pairs each is a twentieth of it.
const LONGEST: u64 = 256 << 20;

/// The form in which a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn every help text into its long form"
)]
pub enum Format {
    Text,
    Json,
    Markdown,
    Html,
    Sarif,
}

/// How a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its format.
    pub format: Format,
    /// Columns of a text.
    pub width: usize,
    /// Whether a text has colours.
    pub color: bool,
}

/// Writes a document: as JSON, its findings as SARIF, or its page.
pub fn render<T: Document>(document: &T, form: Form) -> anyhow::Result<String> {
    Ok(match form.format {
        Format::Json => rungwise_report::json(document)?,
        Format::Html => html::page(&document.title(), &document.blocks()),
        Format::Markdown => markdown::render(&document.blocks()),
        Format::Text => terminal::render(&document.blocks(), form.width, form.color),
        Format::Sarif => document.sarif()?,
    })
}

/// The schema of a document as it is written: a field that is always there is required, also where it may be null.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::default().for_serialize().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// The schemas of the documents that belong to verbs alone, by name.
pub fn schemas() -> Vec<(&'static str, Value)> {
    crate::knob::schemas()
        .into_iter()
        .chain(crate::serve::schemas())
        .chain(runs::schemas())
        .collect()
}

/// A document with a page.
pub trait Document: Serialize + DeserializeOwned {
    /// The name in its envelope.
    const KIND: &'static str;

    /// Common fields.
    fn envelope(&self) -> &Envelope;

    /// The same, for the id of the run that keeps it.
    fn envelope_mut(&mut self) -> &mut Envelope;

    /// Its result, in one word or a few.
    fn verdict(&self) -> String {
        let word = match self.envelope().exit {
            Exit::Done => "done",
            Exit::Failed => "failed",
            Exit::Inconclusive => "inconclusive",
            Exit::Usage | Exit::Precondition => "error",
            Exit::Rollback => "rollback incomplete",
            Exit::Interrupted => "interrupted",
        };
        word.to_owned()
    }

    /// Of the page.
    fn title(&self) -> String;

    /// The page.
    fn blocks(&self) -> Vec<Block>;

    /// Its findings for code-scanning pages.
    fn sarif(&self) -> anyhow::Result<String> {
        anyhow::bail!(no_findings(Self::KIND))
    }

    /// Why its page cannot be drawn as the verb drew it, for a document written before it carried all of its page.
    fn lacks(&self) -> Option<&'static str> {
        None
    }
}

impl Document for CheckReport {
    const KIND: &'static str = "check";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn verdict(&self) -> String {
        let watches = (self.findings.iter()).any(|finding| finding.outcome == Outcome::Watch);
        let word = match self.standing {
            Some(Standing::Act) => "act",
            Some(Standing::Saturated) => "saturated",
            Some(Standing::Unseen) => "incomplete",
            Some(Standing::Healthy) if watches => "watch",
            Some(Standing::Healthy) => "nothing to act on",
            None => "not recorded",
        };
        word.to_owned()
    }

    fn title(&self) -> String {
        format!("Check of {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        let evidence = self.readings.evidence(self.window_s);
        rungwise_report::check::blocks(self, &evidence, &check::about())
    }

    fn sarif(&self) -> anyhow::Result<String> {
        Ok(sarif::render(self, &check::about())?)
    }

    fn lacks(&self) -> Option<&'static str> {
        self.readings
            .is_empty()
            .then_some("the tables and pictures of the host")
    }
}

impl Document for LoadReport {
    const KIND: &'static str = "load";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn verdict(&self) -> String {
        let word = if self.measurement.client.certified {
            "certified"
        } else {
            "not certified"
        };
        word.to_owned()
    }

    fn title(&self) -> String {
        format!("Load of {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        load::blocks(self)
    }
}

impl Document for TuneReport {
    const KIND: &'static str = "tune";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn verdict(&self) -> String {
        let word = match self.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::Inconclusive => "inconclusive",
        };
        word.to_owned()
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn blocks(&self) -> Vec<Block> {
        tune::blocks(self)
    }
}

impl Document for GcReport {
    const KIND: &'static str = "jvm-gc";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("GC log {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        gc::blocks(self, &self.target)
    }

    fn sarif(&self) -> anyhow::Result<String> {
        let checked = gc::checked(self, &self.target);
        Ok(sarif::render(&checked, &check::about())?)
    }
}

impl Document for ThreadsReport {
    const KIND: &'static str = "jvm-threads";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Thread dumps {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        threads::blocks(self, &self.target)
    }

    fn sarif(&self) -> anyhow::Result<String> {
        let checked = threads::checked(self, &self.target);
        Ok(sarif::render(&checked, &check::about())?)
    }

    fn lacks(&self) -> Option<&'static str> {
        self.target.is_empty().then_some("the names of the files")
    }
}

impl Document for JfrReport {
    const KIND: &'static str = "jvm-jfr";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Recording {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        jfr::blocks(self)
    }

    fn sarif(&self) -> anyhow::Result<String> {
        Ok(sarif::render(&jfr::checked(self), &check::about())?)
    }
}

impl Document for ProfileReport {
    const KIND: &'static str = "profile";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Profile {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        profile::blocks(self)
    }
}

impl Document for JvmFlagsReport {
    const KIND: &'static str = "jvm-flags";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("JVM flags of {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        jvm::flags::blocks(self)
    }
}

impl Document for HeapPerRequestReport {
    const KIND: &'static str = "jvm-heap-per-request";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Heap per request of {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        heap_per_request::blocks(self)
    }
}

impl Document for CapacityGcReport {
    const KIND: &'static str = "capacity-gc";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Collections of {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        capacity::blocks(self)
    }
}

impl Document for CapacityRpcReport {
    const KIND: &'static str = "capacity-rpc";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        format!("Capacity for calls, {}", self.target)
    }

    fn blocks(&self) -> Vec<Block> {
        capacity_rpc::blocks(self)
    }
}

impl Document for CompareReport {
    const KIND: &'static str = "compare";

    fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    fn envelope_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    fn title(&self) -> String {
        let what = match self.of {
            Some(Of::GcLogs) => "GC logs",
            Some(Of::Loads) => "two loads",
            Some(Of::Tunes) => "two tunes",
            Some(Of::Checks) => "two checks",
            Some(Of::Profiles) => "two profiles",
            Some(Of::Hosts) | None => "two hosts",
        };
        format!("Comparison of {what}")
    }

    fn blocks(&self) -> Vec<Block> {
        match self.of {
            Some(Of::GcLogs) => gc::compare::blocks(self),
            Some(Of::Profiles) => profile::difference::blocks(self),
            _ => compare::blocks(self),
        }
    }

    fn lacks(&self) -> Option<&'static str> {
        let is_old = self.of.is_none();
        is_old.then_some("what was compared, and the pictures of GC logs")
    }
}

/// A document whose page is the text that the verb printed, in every format.
#[derive(Debug, Deserialize)]
struct Printed {
    #[serde(default)]
    text: Option<String>,
}

/// What a document is, whatever the rest of it.
#[derive(Debug, Deserialize)]
struct Head {
    schema: Option<Value>,
    document: Option<Value>,
    tool: Option<Value>,
}

/// A stored document that was read, not yet drawn.
#[derive(Debug)]
pub struct Stored {
    name: String,
    text: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// Version of the rungwise that wrote it.
    version: String,
}

/// How a kind is drawn: from the text of a document. What its page lacks is said to the observer.
type Draw = fn(&Stored, Form, &dyn Observer) -> anyhow::Result<String>;

/// Every kind, by name, and how it is drawn.
const KINDS: &[(&str, Draw)] = &[
    (CapacityGcReport::KIND, page::<CapacityGcReport>),
    (CapacityRpcReport::KIND, page::<CapacityRpcReport>),
    (CheckReport::KIND, page::<CheckReport>),
    (CompareReport::KIND, page::<CompareReport>),
    ("explain", printed),
    (JvmFlagsReport::KIND, page::<JvmFlagsReport>),
    (GcReport::KIND, page::<GcReport>),
    (HeapPerRequestReport::KIND, page::<HeapPerRequestReport>),
    (JfrReport::KIND, page::<JfrReport>),
    (ThreadsReport::KIND, page::<ThreadsReport>),
    ("knob-apply", printed),
    ("knob-export", printed),
    ("knob-list", printed),
    ("knob-list-why", printed),
    ("knob-plan", printed),
    ("knob-show", printed),
    ("knob-undo", printed),
    ("knob-verify", printed),
    (LoadReport::KIND, page::<LoadReport>),
    (ProfileReport::KIND, page::<ProfileReport>),
    (RunsList::KIND, page::<RunsList>),
    (RunsPrune::KIND, page::<RunsPrune>),
    ("runs-show", page::<RunsList>),
    ("runs-verify", page::<RunsList>),
    ("serve-http", printed),
    ("serve-connections", printed),
    ("serve-tcp", printed),
    ("serve-udp", printed),
    (TuneReport::KIND, page::<TuneReport>),
];

fn page<T: Document>(
    stored: &Stored,
    form: Form,
    observer: &dyn Observer,
) -> anyhow::Result<String> {
    let document: T = stored.parse()?;
    if let Some(what) = document.lacks() {
        observer.say(&format!(
            "rungwise: {} was written by rungwise {}, whose documents lack part of their page: {what}; run the verb again for all of it",
            stored.name, stored.version
        ));
    }
    render(&document, form)
}

fn printed(stored: &Stored, form: Form, _: &dyn Observer) -> anyhow::Result<String> {
    anyhow::ensure!(form.format != Format::Sarif, "{}", no_findings(stored.kind));
    let printed: Printed = stored.parse()?;
    printed.text.with_context(|| {
        format!(
            "cannot render {}: rungwise {} wrote it without its text; run the verb again",
            stored.name, stored.version
        )
    })
}

impl Stored {
    /// Reads the document at `path` as far as its kind.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        bytes(path)
            .and_then(|bytes| Self::of(name.clone(), bytes))
            .map_err(|why| anyhow::anyhow!("cannot read {name} as a document of rungwise: {why}"))
    }

    fn of(name: String, bytes: Vec<u8>) -> Result<Self, String> {
        const REMEDY: &str = "name one that a verb wrote with --format json -o FILE";
        let text =
            String::from_utf8(bytes).map_err(|_| format!("it is not JSON in UTF-8; {REMEDY}"))?;
        let begins = text.trim_start().chars().next();
        match begins {
            None => return Err(format!("it is empty; {REMEDY}")),
            Some('{') => {}
            Some(_) => return Err(format!("it is not a JSON object; {REMEDY}")),
        }
        let head: Head = serde_json::from_str(&text).map_err(|error| damage(&error))?;
        let version = head.tool.as_ref();
        let version = version.and_then(|tool| tool.get("version")?.as_str());
        let version = version.unwrap_or("of an unknown version").to_owned();
        let own = env!("CARGO_PKG_VERSION");
        match head.schema.as_ref().map(Value::as_u64) {
            Some(Some(schema)) if schema == u64::from(SCHEMA_VERSION) => {}
            Some(Some(schema)) => {
                return Err(format!(
                    "rungwise {version} wrote it with schema {schema}, and this is rungwise {own}, which reads schema \
                     {SCHEMA_VERSION}; read it with rungwise {version}"
                ));
            }
            _ => return Err(format!("it has no schema version; {REMEDY}")),
        }
        let kind = match &head.document {
            Some(Value::String(kind)) => find(kind).ok_or_else(|| {
                format!(
                    "it is of kind '{}', which rungwise {own} does not know; read it with rungwise {version}, which wrote it",
                    kind.escape_debug()
                )
            })?,
            Some(_) => return Err(format!("its kind is not a string; {REMEDY}")),
            None => inferred(&text).ok_or_else(|| {
                format!("it lacks its kind, and none can be inferred from its fields; {REMEDY}")
            })?,
        };
        Ok(Self {
            name,
            text,
            kind,
            version,
        })
    }

    /// The document, of the type that belongs to its kind.
    pub fn parse<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_str(&self.text).map_err(|error| {
            anyhow::anyhow!(
                "cannot read {} as a document of kind {}: {}",
                self.name,
                self.kind,
                damage(&error)
            )
        })
    }

    /// Writes it as its verb did.
    pub fn render(&self, form: Form, observer: &dyn Observer) -> anyhow::Result<String> {
        let (_, draw) = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .expect("a document is read with a kind of the table");
        if form.format == Format::Json {
            // As stored: a field that this version does not know is kept.
            return Ok(rungwise_report::without_orders(self.text.clone()));
        }
        draw(self, form, observer)
    }
}

/// The file of a document: `of` names a file, a run folder or the id of a run below `runs`, or is `-` for standard input.
pub fn locate(of: &Path, runs: &Path) -> anyhow::Result<PathBuf> {
    if of.to_str() == Some("-") {
        return Ok("/dev/stdin".into());
    }
    if let Ok(folder) = runs::resolve(of, runs) {
        let path = folder.join(DOCUMENT);
        anyhow::ensure!(
            files::exists(&path),
            "cannot render {}: it has no measurements.json, so it is not the folder of a finished run; name a run from `rungwise runs \
             list`, or continue an interrupted one: rungwise tune --resume {}",
            folder.display(),
            folder.display()
        );
        return Ok(path);
    }
    if let Some(why) = files::why_missing(of) {
        anyhow::bail!(
            "cannot render {}: {why}, and {} contains no run with that id; name a document, a run folder, or a run from `rungwise runs list`",
            of.display(),
            runs.display()
        );
    }
    Ok(of.to_owned())
}

fn find(kind: &str) -> Option<&'static str> {
    let mut kinds = KINDS.iter().map(|(known, _)| *known);
    kinds.find(|known| *known == kind)
}

fn no_findings(kind: &str) -> String {
    format!(
        "only findings can be written as SARIF, and a document of kind {kind} has none; use --format json"
    )
}

/// What is wrong with the JSON.
fn damage(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return format!(
            "it is truncated at line {}; copy it again, or run the verb again",
            error.line()
        );
    }
    format!("it is damaged ({error}); copy it again, or run the verb again")
}

/// The kind of a document written before documents recorded it, by fields that no other kind has.
fn inferred(text: &str) -> Option<&'static str> {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
    let kinds: &[(&str, &[&str])] = &[
        (TuneReport::KIND, &["rungs", "aa", "scenario"]),
        (LoadReport::KIND, &["achieved_per_s", "latency_us"]),
        (JvmFlagsReport::KIND, &["jdk", "options"]),
        (ThreadsReport::KIND, &["dumps", "account"]),
        (GcReport::KIND, &["pauses", "account"]),
        (CapacityGcReport::KIND, &["layout", "now", "load"]),
        (CompareReport::KIND, &["before", "after", "metrics"]),
        (CheckReport::KIND, &["window_s", "findings"]),
        ("knob-plan", &["plans"]),
    ];
    let has = |names: &[&str]| names.iter().all(|name| fields.contains_key(*name));
    let found = kinds.iter().find(|(_, names)| has(names));
    found.map(|(kind, _)| *kind)
}

/// The bytes of a file of at most `longest`; the reason, where it has none.
pub(crate) fn short_file(path: &Path, longest: u64) -> Result<Vec<u8>, String> {
    if files::is_folder(path) {
        return Err("it is a folder".to_owned());
    }
    let bytes = files::read_at_most(path, longest + 1).map_err(|error| match error {
        rungwise_host::Error::System { source, .. } => source.to_string(),
        other => other.to_string(),
    })?;
    if bytes.len() as u64 > longest {
        return Err(format!("it is larger than {} MiB", longest >> 20));
    }
    Ok(bytes)
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let why = |error: rungwise_host::Error| match error {
        rungwise_host::Error::System { source, .. } => {
            format!("{source}; name a file that you may read")
        }
        other => other.to_string(),
    };
    let longer = || {
        format!(
            "it is larger than {} MiB, more than any document of rungwise; name the document itself",
            LONGEST >> 20
        )
    };
    let file = files::open(path).map_err(why)?;
    // By its length first: of a disk image not a byte is read.
    if file.metadata().is_ok_and(|about| about.len() > LONGEST) {
        return Err(longer());
    }
    let bytes = files::read_at_most(path, LONGEST + 1).map_err(why)?;
    if bytes.len() as u64 > LONGEST {
        return Err(longer());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Stored::of("x.json".to_owned(), text.as_bytes().to_vec()).unwrap_err()
    }

    #[test]
    fn what_is_no_document_is_refused_with_what_it_is() {
        for (text, why) in [
            ("", "it is empty"),
            ("[1]", "not a JSON object"),
            ("hello", "not a JSON object"),
            ("{\"schema\": 1, \"document\": \"lo", "truncated at line 1"),
            ("{\"schema\": 1,}", "it is damaged"),
            ("{}", "no schema version"),
            ("{\"schema\": \"one\"}", "no schema version"),
            ("{\"schema\": 1}", "lacks its kind"),
            (
                "{\"schema\": 1, \"document\": 7}",
                "its kind is not a string",
            ),
            (
                "{\"schema\": 1, \"document\": \"moon\", \"tool\": {\"version\": \"9.1.0\"}}",
                "read it with rungwise 9.1.0",
            ),
        ] {
            let said = refused(text);
            assert!(said.contains(why), "{text}: {said}");
        }
        let said = refused("{\"schema\": 7, \"tool\": {\"version\": \"9.1.0\"}}");
        for part in ["schema 7", "schema 1", "rungwise 9.1.0"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn every_kind_is_in_the_table_once_and_in_order() {
        let names: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names.len(), sorted.len());
    }

    #[test]
    fn a_document_of_before_kinds_were_recorded_is_known_by_its_fields() {
        let kind = |text: &str| {
            Stored::of(String::new(), text.as_bytes().to_vec())
                .unwrap()
                .kind
        };
        assert_eq!(
            kind("{\"schema\":1,\"achieved_per_s\":1,\"latency_us\":{}}"),
            "load"
        );
        assert_eq!(
            kind("{\"schema\":1,\"window_s\":1,\"findings\":[]}"),
            "check"
        );
        let gc = "{\"schema\":1,\"window_s\":1,\"findings\":[],\"pauses\":{},\"account\":{}}";
        assert_eq!(kind(gc), "jvm-gc");
    }
}
