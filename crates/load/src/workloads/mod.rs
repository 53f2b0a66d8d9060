//! The workloads, one module each, sorted by id. Each is a word of `rungwise load` and a `kind` of a scenario.

pub mod udp;

/// Traffic of one kind, for those who choose one.
#[derive(Debug)]
pub struct Workload {
    /// The word after `rungwise load`, and `kind` in the `[workload]` of a scenario.
    pub id: &'static str,
    /// What travels, in one sentence.
    pub summary: &'static str,
    /// Markdown: who talks to whom, message shapes, connections, arrival schedule, stop rule.
    pub doc: &'static str,
}

/// All workloads, sorted by id.
pub static WORKLOADS: &[&Workload] = &[&udp::WORKLOAD];

impl Workload {
    /// What `rungwise explain` shows, as Markdown.
    pub fn page(&self) -> String {
        let Self { id, summary, doc } = self;
        format!("# {id}\n\n{summary}\n\n{doc}\n")
    }
}
