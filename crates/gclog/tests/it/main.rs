//! Tests over the corpus.

mod corpus;
mod preunified;
mod splits;
mod summary;
mod unified;
