//! Does the arithmetic keep its promises on data whose truth is known? Deterministic simulations.
//!
//! `cargo test -p rungwise-stats --test it -- --nocapture` prints the tables quoted in `docs/statistics.md`.

mod coverage;
mod ladder;
mod machine;
