//! Stacks in the file format of speedscope, a flame-graph viewer that also reads folded text but then knows no unit and no threads.
//!
//! Source: <https://www.speedscope.app/file-format-schema.json>.

use rungwise_model::profile::Unit;
use serde_json::{Value, json};

use crate::stacks::{NO_THREAD, ROOT, Stacks};

/// One profile per thread, all with the same frames.
pub fn speedscope(stacks: &Stacks, name: &str, unit: Unit, version: &str) -> Value {
    let frames: Vec<Value> = stacks
        .frames()
        .iter()
        .map(|frame| json!({ "name": frame.name }))
        .collect();
    let unit = match unit {
        Unit::Ns => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Samples | Unit::Count => "none",
    };
    let mut ends = stacks.ends();
    ends.sort_unstable_by_key(|(node, thread, _)| (*thread, *node));
    let profiles: Vec<Value> = ends
        .chunk_by(|a, b| a.1 == b.1)
        .map(|of_thread| {
            let thread = of_thread[0].1;
            let title = match stacks.threads().get(thread as usize) {
                Some(thread) => format!("{} ({})", thread.name, thread.id),
                None => name.to_owned(),
            };
            debug_assert!(thread == NO_THREAD || (thread as usize) < stacks.threads().len());
            let samples: Vec<Vec<u32>> = of_thread
                .iter()
                .map(|(node, _, _)| path(stacks, *node))
                .collect();
            let weights: Vec<u64> = of_thread.iter().map(|(_, _, weight)| *weight).collect();
            let end = weights
                .iter()
                .fold(0_u64, |sum, weight| sum.saturating_add(*weight));
            json!({
                "type": "sampled", "name": title, "unit": unit, "startValue": 0, "endValue": end,
                "samples": samples, "weights": weights
            })
        })
        .collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": { "frames": frames },
        "profiles": profiles,
        "name": name,
        "exporter": format!("rungwise {version}")
    })
}

/// Frames to a node, root first.
fn path(stacks: &Stacks, node: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut at = node;
    while at != ROOT {
        let node = stacks.nodes()[at as usize];
        path.push(node.frame);
        at = node.parent;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded::add;

    #[test]
    fn each_thread_is_a_profile_and_frames_are_shared() {
        let mut stacks = Stacks::default();
        for line in ["[a tid=1];x;y 5", "[b tid=2];x 2", "[a tid=1];x 1"] {
            assert!(add(line, &mut stacks));
        }
        let file = speedscope(&stacks, "x.folded", Unit::Ns, "0");
        assert_eq!(
            file["shared"]["frames"],
            json!([{"name": "x"}, {"name": "y"}])
        );
        let first = &file["profiles"][0];
        assert_eq!(
            (&first["name"], &first["endValue"]),
            (&json!("a (1)"), &json!(6))
        );
        assert_eq!(first["samples"], json!([[0], [0, 1]]));
        assert_eq!(first["weights"], json!([1, 5]));
        assert_eq!(file["profiles"].as_array().unwrap().len(), 2);
    }
}
