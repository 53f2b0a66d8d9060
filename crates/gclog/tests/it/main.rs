//! Tests over the corpus.

mod corpus;
mod golden;
mod jvms;
mod predict;
mod preunified;
mod splits;
mod summary;
mod torn;
mod totals;
mod unified;
mod wrapped;
