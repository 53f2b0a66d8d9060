//! Tests over the corpus.

mod corpus;
mod golden;
mod held_back;
mod jvms;
mod next;
mod predict;
mod preunified;
mod splits;
mod summary;
mod torn;
mod totals;
mod turns;
mod unified;
mod wrapped;
