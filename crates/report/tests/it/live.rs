//! The table that grows while a ladder is climbed.

use rungwise_report::terminal::{Live, Progress};

use crate::fixtures;

#[test]
fn a_live_table_at_three_widths() {
    let report = fixtures::ladder();
    let mut lines = Vec::new();
    for width in [60, 72, 100, 140] {
        let mut live = Live::default();
        lines.push(live.header(width));
        for rung in &report.rungs {
            let row = live.row(rung, false);
            assert!(row.chars().count() <= width, "{row}");
            lines.push(row);
        }
        let progress = Progress {
            rung: "steer by CPU (CBPF)".to_owned(),
            pair: 5,
            pairs: 8,
            ratio: Some(1.262),
            foreign: Some(0.021),
            waiting: false,
        };
        lines.push(format!("{}|\n", live.status(&progress, width)));
    }
    insta::assert_snapshot!(lines.join("\n"));
}
