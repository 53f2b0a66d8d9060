//! A probe's page: what `docs/probes` and `rungwise explain` show.

use std::fmt::Write as _;

use rungwise_model::evidence::{Key, Unit};

use crate::probe::{Cost, Need, Probe, Source, What, When};

impl Probe {
    /// Its page as Markdown.
    pub fn page(&self) -> String {
        let mut page = format!(
            "# {}\n\n{}\n\n| | |\n|---|---|\n| cost | {} |\n| needs | {} |\n\n## What to know\n\n{}\n\n## What it reads\n\n\
             | source | when |\n|---|---|\n",
            self.id,
            self.summary,
            self.cost.words(),
            self.needs_words(),
            self.doc
        );
        for source in self.sources {
            let _ = writeln!(page, "| {} | {} |", what(source), when(source));
        }
        if self.sources.is_empty() {
            page += "| samplers | during the window |\n";
        }
        page += "\n## What it yields\n\n| key | of | unit | meaning |\n|---|---|---|---|\n";
        for key in self.yields {
            page += &row_of(key);
        }
        page
    }

    /// Its requirements as text.
    pub fn needs_words(&self) -> String {
        let words: Vec<&str> = self
            .needs
            .iter()
            .map(|need| match need {
                Need::Root => "root",
                Need::Perf => "perf_event_open for the whole machine",
                Need::Tracefs => "tracefs, mounted in a private mount namespace",
            })
            .collect();
        if words.is_empty() {
            "nothing".to_owned()
        } else {
            format!("{}; yields less without", words.join(", "))
        }
    }
}

impl Cost {
    /// Its cost as text.
    pub fn words(self) -> &'static str {
        match self {
            Cost::Free => "free",
            Cost::Cheap => "cheap: proportional to CPUs, devices or processes",
            Cost::Sampled => "sampled: interrupts the machine at a chosen rate",
        }
    }
}

/// A key as a row of a table: id, subject, unit, meaning.
pub fn row_of(key: &Key) -> String {
    let of = format!("{:?}", key.of).to_lowercase();
    format!(
        "| `{}` | {of} | {} | {} |\n",
        key.id,
        unit(key.unit),
        key.meaning
    )
}

fn what(source: &Source) -> String {
    match source.what {
        What::Files(pattern) => format!("`{pattern}`"),
        What::Running(pattern) => format!("`{pattern}` of threads that ran"),
        What::Groups => "control groups: settings of all, counters of limited ones".to_owned(),
        What::Ask(question) => format!("the kernel's answer: {question:?}").to_lowercase(),
    }
}

fn when(source: &Source) -> &'static str {
    match (source.what, source.when) {
        (_, When::Begin) => "once, at the start",
        (_, When::Once) => "once, at the end",
        (What::Running(_), _) => "at each sample after the first",
        (_, When::Ends) => "at both ends of the window",
        (_, When::Often) => {
            "at least 20 times between the full samples; threads of services up to 210 times"
        }
        (_, When::Each) => "four times (full samples): at both ends and in between",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Fraction => "fraction",
        Unit::PerSecond => "per second",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes per second",
        Unit::Seconds => "seconds",
        Unit::Ratio => "ratio",
        Unit::Text => "words",
    }
}
