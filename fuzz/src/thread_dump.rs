//! A thread dump of a stranger, or what calls itself one.

use rungwise_model::evidence::Value;
use rungwise_model::gc::Account;
use rungwise_threaddump::{Parser, Summary, evidence, summary};

/// Whatever it holds: each byte of text is in the account, pieces tell the same as the whole, every thread is counted once, and
/// every figure is a number.
pub fn thread_dump(bytes: &[u8]) {
    let (whole, account) = read(bytes, bytes.len().max(1));
    let (in_pieces, of_pieces) = read(bytes, 7);
    assert_eq!(whole, in_pieces, "pieces tell something else");
    assert_eq!(account, of_pieces, "pieces are counted otherwise");
    let accounted = account.understood + account.ignored + account.unknown;
    assert_eq!(accounted, account.bytes, "bytes got lost");
    for dump in &whole.dumps {
        let doing = &dump.doing;
        let all = doing.jvm + doing.idle + doing.running + doing.lock_waiting + doing.waiting;
        assert_eq!(all, dump.threads, "a thread does two things, or none");
        assert!(
            dump.waiting_share
                .is_none_or(|share| (0.0..=1.0).contains(&share))
        );
    }
    let evidence = evidence(&whole);
    for reading in evidence.readings() {
        let finite = !matches!(reading.value, Value::Number(number) if !number.is_finite());
        assert!(finite, "{} is not finite", reading.key.id);
    }
    rungwise_rules::judge_dumps(&evidence);
}

fn read(bytes: &[u8], piece: usize) -> (Summary, Account) {
    let mut parser = Parser::new();
    parser.begin("fuzz");
    for piece in bytes.chunks(piece) {
        parser.push(piece);
    }
    let (dumps, account) = parser.finish();
    (summary(dumps), account)
}
