//! A GC log of a stranger, or what calls itself one.

use rungwise_gclog::{Event, Names, Parser, Summarizer, evidence};
use rungwise_model::evidence::Value;

/// Whatever it holds: each byte is in the account, pieces tell the same as the whole, and every figure is a number.
pub fn gc_log(bytes: &[u8]) {
    let (whole, summarizer) = read(bytes, bytes.len().max(1), false);
    let (in_pieces, _) = read(bytes, 4093, false);
    assert_eq!(whole, in_pieces, "pieces tell something else");
    read(bytes, 4093, true);

    let summary = summarizer.summary();
    for reading in evidence(&summary).readings() {
        let finite = !matches!(reading.value, Value::Number(number) if !number.is_finite());
        assert!(finite, "{} is not finite", reading.key.id);
    }
}

/// One pass as the tool makes it, in order to time it.
pub fn gc_log_once(bytes: &[u8]) {
    let (_, summarizer) = read(bytes, bytes.len().max(1), false);
    let _ = summarizer.summary();
}

/// Number of events and the nanoseconds of their pauses; `restarts` says that each piece is of another JVM.
fn read(bytes: &[u8], piece: usize, restarts: bool) -> ((u64, u64), Summarizer) {
    let mut counted = (0, 0_u64);
    let mut summarizer = Summarizer::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        counted.0 += 1;
        if let Event::Pause(pause) = event {
            counted.1 = counted.1.wrapping_add(pause.duration_ns.unwrap_or(0));
        }
        summarizer.event(names, event);
    };
    let mut parser = Parser::new();
    for piece in bytes.chunks(piece) {
        parser.push(piece, &mut sink);
        if restarts {
            parser.restart(&mut sink);
        }
    }
    let account = parser.finish(&mut sink);
    assert_eq!(account.bytes(), bytes.len() as u64, "bytes got lost");
    (counted, summarizer)
}
