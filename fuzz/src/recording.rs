//! A Flight Recorder file of a stranger, or what calls itself one.

use std::io::Cursor;

use rungwise_jfr::{Recording, evidence, summary};
use rungwise_model::evidence::Value;

/// Whatever it holds: both readers agree on the number of events, no share exceeds the whole, and every figure is a number.
pub fn recording(bytes: &[u8]) {
    let Ok(read) = summary(Cursor::new(bytes)) else {
        assert!(
            Recording::open(Cursor::new(bytes)).is_err(),
            "a file in memory is always read"
        );
        return;
    };
    assert_eq!(counted(bytes), read.events.values().sum::<u64>());
    for method in &read.hot_methods {
        assert!(method.own <= method.total, "more in a method than below it");
        assert!(method.total <= read.samples.counted, "more than all");
    }
    let waits: u64 = read.locks.iter().map(|lock| lock.times.count).sum();
    let events: u64 = read.events.values().sum();
    assert!(waits <= events, "more waits than events");
    let evidence = evidence(&read);
    for reading in evidence.readings() {
        let finite = !matches!(reading.value, Value::Number(number) if !number.is_finite());
        assert!(finite, "{} is not finite", reading.key.id);
    }
    rungwise_rules::judge_recordings(&evidence);
}

/// Events of all chunks, read without any that is wanted.
fn counted(bytes: &[u8]) -> u64 {
    let mut recording = Recording::open(Cursor::new(bytes)).expect("it was read before");
    let mut events = 0;
    while let Some(chunk) = recording.next_chunk(&[]).expect("it is in memory") {
        let Ok(mut chunk) = chunk else { continue };
        chunk.each(|_| ()).expect("it is in memory");
        events += chunk.counts().iter().map(|count| count.events).sum::<u64>();
    }
    events
}
