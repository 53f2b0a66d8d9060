//! Tests on invented recordings, and on what real JVMs record.

mod damaged;
mod jvms;
mod stacks;
mod whole;

use std::io::Cursor;

use rungwise_model::jfr::Recording;
use rungwise_testkit::InventedRecording;

fn summed(bytes: &[u8]) -> Recording {
    rungwise_jfr::summary(Cursor::new(bytes)).expect("it is a recording")
}

/// A recording of one finished chunk.
fn invented() -> InventedRecording {
    InventedRecording {
        chunks: 1,
        samples: 40,
        waits: 6,
        is_finished: true,
    }
}
