//! The renderers on whole documents: an invented climb of the UDP ladder, and the edges of it.

mod fixtures;
mod gc_pictures;
mod golden;
mod grid;
mod html;
mod live;
mod threads;
