//! Rules against their casebooks, against the house's law for rules, and against evidence that no
//! machine would give.
mod book;
mod cases;
mod house;
mod parts;
mod random;

/// Fails with every offender on a line of its own.
#[track_caller]
fn none_of(offenders: &[String], what: &str) {
    assert!(
        offenders.is_empty(),
        "{what}:\n  {}",
        offenders.join("\n  ")
    );
}
