//! The page of each knob, from the registry.

use std::fmt::Write as _;

use crate::by_hand::Manual;
use crate::knob::{Knob, Settable};

impl Knob {
    /// The knob's page as Markdown, with the five headings of the house style.
    pub fn page(&self) -> String {
        let settable = match self.settable {
            Settable::Yes => "yes".to_owned(),
            Settable::No(why) => format!("no: {why}"),
        };
        let doc = &self.doc;
        let by_hand = self.steps();
        format!(
            "# {id}\n\n{summary}\n\n| | |\n|---|---|\n| scope | {scope} |\n| risk | {risk} |\n\
             | set by rungwise | {settable} |\n| values | {values} |\n{by_hand}\n\
             ## What it does\n\n{does}\n\n## When it helps\n\n{helps}\n\n## What it costs\n\n{costs}\n\n\
             ## How it is undone\n\n{undone}\n\n## Sources\n\n{sources}\n",
            id = self.id,
            summary = self.summary,
            scope = self.scope.name(),
            risk = self.risk.name(),
            values = self.values.replace('|', "\\|"),
            does = doc.does,
            helps = doc.helps,
            costs = doc.costs,
            undone = doc.undone,
            sources = doc.sources,
        )
    }

    /// The manual steps for each wish, as Markdown; empty if there are none.
    pub fn steps(&self) -> String {
        let mut text = String::new();
        for Manual {
            wish,
            way,
            text: step,
        } in self.by_hand
        {
            let step = step.replace('\n', "\n    ");
            let place = way.place();
            let _ = write!(text, "\nBy hand, for `{wish}` ({place}):\n\n    {step}\n");
            if step.contains("EACH") {
                text.push_str(
                    "\nThe line with EACH appears once for each CPU; `rungwise knob plan` writes them out.\n",
                );
            }
        }
        text
    }
}

/// File name and text of the page of every knob, sorted by id; `docs/knobs` is written from this.
pub fn pages() -> Vec<(String, String)> {
    crate::KNOBS
        .iter()
        .map(|knob| (format!("{}.md", knob.id), knob.page()))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_knob_has_a_page_with_words_under_every_heading() {
        for (knob, (name, page)) in crate::KNOBS.iter().zip(super::pages()) {
            assert_eq!(name, format!("{}.md", knob.id));
            let doc = &knob.doc;
            for part in [doc.does, doc.helps, doc.costs, doc.undone, doc.sources] {
                assert!(
                    part.len() > 20 && page.contains(part),
                    "{}: '{part}'",
                    knob.id
                );
                assert!(part.ends_with('.'), "{}: '{part}' is no sentence", knob.id);
            }
            assert!(
                !knob.summary.ends_with('.'),
                "{}: a summary is a phrase",
                knob.id
            );
        }
    }
}
