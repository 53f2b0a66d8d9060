//! The workloads, one module each, sorted by id. Each is a `kind` of a scenario, and most are a word of `rungwise load`.

pub mod command;
pub mod udp;

/// Traffic of one kind, for those who choose one.
#[derive(Debug)]
pub struct Workload {
    /// `kind` in the `[workload]` of a scenario, and the word after `rungwise load`.
    pub id: &'static str,
    /// It is a word of `rungwise load` too: rungwise itself drives it.
    pub by_hand: bool,
    /// What travels, in one sentence.
    pub summary: &'static str,
    /// Markdown: who talks to whom, message shapes, connections, arrival schedule, stop rule.
    pub doc: &'static str,
}

/// All workloads, sorted by id.
pub static WORKLOADS: &[&Workload] = &[&command::WORKLOAD, &udp::WORKLOAD];

impl Workload {
    /// What `rungwise explain` shows, as Markdown.
    pub fn page(&self) -> String {
        let Self {
            id, summary, doc, ..
        } = self;
        format!("# {id}\n\n{summary}\n\n{doc}\n")
    }
}
