//! What every dump of the corpus gives, one text each.

use std::fmt::Write as _;

use rungwise_model::threads::Dump;
use rungwise_threaddump::{evidence, summary};

use crate::{corpus, read};

#[test]
fn every_file_of_the_corpus_gives_what_it_gave() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in corpus::names() {
            insta::assert_snapshot!(name.replace('/', "_"), render(&name));
        }
    });
}

fn render(name: &str) -> String {
    let (dumps, account) = read(name, &corpus::dump(name));
    let summary = summary(dumps);
    let mut text = format!(
        "lines {}: understood {}, ignored {}, unknown {}\n",
        account.lines, account.understood_lines, account.ignored_lines, account.unknown_lines
    );
    for sample in &account.samples {
        let _ = writeln!(text, "  unknown {}: {}", sample.line, sample.text);
    }
    for note in &summary.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for dump in &summary.dumps {
        text += &render_dump(dump);
    }
    for reading in evidence(&summary).readings() {
        let value = rungwise_model::evidence_text::value(reading);
        let _ = writeln!(text, "{} {} = {value}", reading.key.id, reading.subject);
    }
    text
}

fn render_dump(dump: &Dump) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "dump of line {}, {:?}, taken {}, version {}, synchronizers told: {}",
        dump.line,
        dump.form,
        dump.taken.as_deref().unwrap_or("?"),
        dump.version.as_deref().unwrap_or("?"),
        dump.has_synchronizers
    );
    let _ = writeln!(
        text,
        "threads {} {:?} {:?}",
        dump.threads, dump.by_state, dump.doing
    );
    for deadlock in &dump.deadlocks {
        let _ = writeln!(
            text,
            "deadlock {:?} {:?} reported: {}",
            deadlock.threads, deadlock.classes, deadlock.reported
        );
    }
    for lock in &dump.locks {
        let owner = lock
            .owner
            .as_deref()
            .or(lock.owner_unknown.as_deref())
            .unwrap_or("?");
        let frame = lock.owner_frames.first().map_or("", String::as_str);
        let _ = writeln!(
            text,
            "{} {} {}: {} waiters, {} behind; owner {owner} {} {frame}",
            lock.kind,
            lock.id,
            lock.class,
            lock.waiters.len(),
            lock.behind,
            lock.owner_doing.as_deref().unwrap_or("")
        );
    }
    for pool in &dump.pools {
        let _ = writeln!(
            text,
            "pool {}: {} threads, {} idle, {} running, {} at locks, {} waiting{}",
            pool.name,
            pool.threads,
            pool.idle,
            pool.running,
            pool.lock_waiting,
            pool.waiting,
            pool.starved
                .as_ref()
                .map_or_else(String::new, |what| format!("; starved by {what}"))
        );
    }
    text
}
