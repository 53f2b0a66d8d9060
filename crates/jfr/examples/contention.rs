//! Prints the longest waits for monitors in a recording: `cargo run -p rungwise-jfr --example contention -- rec.jfr`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example opens a file and prints"
)]

use std::collections::BTreeMap;
use std::fs::File;

use rungwise_jfr::{Recording, Wanted};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: contention FILE")?;
    let mut recording = Recording::open(File::open(&path)?)?;
    let wanted = [Wanted {
        event: "jdk.JavaMonitorEnter",
        fields: &["duration", "monitorClass"],
    }];
    let mut waited: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    while let Some(chunk) = recording.next_chunk(&wanted)? {
        let mut chunk = match chunk {
            Ok(chunk) => chunk,
            Err(damage) => {
                println!("byte {}: {}", damage.offset, damage.what);
                continue;
            }
        };
        chunk.each(|event| {
            let [duration, class] = event.fields else {
                return;
            };
            let class = event.constants.class_name(*class).unwrap_or_default();
            let (waits, ns) = waited.entry(class).or_default();
            *waits += 1;
            *ns += duration.int().unwrap_or(0);
        })?;
    }
    let mut waited: Vec<_> = waited.into_iter().collect();
    waited.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    for (class, (waits, ns)) in waited {
        println!("{:>10.1} ms  {waits:>6} waits  {class}", ns as f64 / 1e6);
    }
    Ok(())
}
