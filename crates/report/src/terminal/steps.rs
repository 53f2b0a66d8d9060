//! Stages of a path, one line each: the loss there, or why it is unknown.

use super::text::{Paint, clean, pad, width_of, wrap};
use crate::block::{Loss, NEARLY_FULL, PathStages, Tone};
use crate::numbers;

pub(super) fn draw(plot: &PathStages, width: usize, paint: Paint) -> Vec<String> {
    let titles = plot
        .steps
        .iter()
        .map(|step| width_of(&step.title))
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for step in &plot.steps {
        let (symbol, tone, said) = match &step.loss {
            Loss::None => ("✓", Tone::Good, "none".to_owned()),
            Loss::Some { per_s, total } => (
                "✗",
                Tone::Bad,
                format!(
                    "{}, {} in all",
                    numbers::rate(*per_s),
                    numbers::significant(*total)
                ),
            ),
            Loss::Filled(share) => {
                let (symbol, tone) = if *share >= NEARLY_FULL {
                    ("!", Tone::Doubt)
                } else {
                    ("·", Tone::Quiet)
                };
                (symbol, tone, format!("{} filled", numbers::share(*share)))
            }
            Loss::Unknown(why) => ("?", Tone::Doubt, format!("unknown: {why}")),
        };
        let said = if step.note.is_empty() {
            said
        } else {
            format!("{said} ({})", step.note)
        };
        let indent = titles + 4;
        for (index, line) in wrap(&said, width.saturating_sub(indent)).iter().enumerate() {
            if index == 0 {
                let title = pad(&clean(&step.title), titles, false);
                lines.push(format!("{} {title}  {line}", paint.tone(symbol, tone)));
            } else {
                lines.push(format!("{}{line}", " ".repeat(indent)));
            }
        }
    }
    lines
}
