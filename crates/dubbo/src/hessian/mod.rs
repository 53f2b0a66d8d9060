//! Values of hessian2: model, reader, skipping reader and writer.
//!
//! Sources: the [serialization specification](http://hessian.caucho.com/doc/hessian-serialization.html) and, where it is silent or
//! contradicted, what Dubbo runs: `Hessian2Input` and `Hessian2Output` of
//! [dubbo-hessian-lite](https://github.com/apache/dubbo-hessian-lite). Two contradictions matter. `0x5f` is a number of thousandths,
//! not a 32-bit float. Strings are not UTF-8: each UTF-16 unit is encoded by itself in one to three bytes, so that a character beyond
//! the basic plane takes six, and lengths count units.

mod reader;
mod scan;
mod skip;
mod value;
mod writer;

pub use reader::{Limits, Reader};
pub use skip::{Skip, Skipper};
pub use value::{Class, List, Map, Object, Value};
pub use writer::Writer;
