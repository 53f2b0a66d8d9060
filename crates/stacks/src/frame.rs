//! Names of frames and threads, and the marks of their kinds.
//!
//! Marks are those of Brendan Gregg's scripts and async-profiler: `_[j]` compiled Java, `_[0]` interpreted, `_[1]` compiled by C1, `_[i]`
//! inlined, `_[k]` kernel. `_[c]`, a class, is our own.

use std::borrow::Cow;

use rungwise_model::profile::FrameKind;

/// Characters of a name; longer ones are cut: a C++ name with its templates may have kilobytes.
const LONGEST: usize = 400;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FrameKind,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its number in the operating system; 0 is unknown.
    pub id: u64,
}

/// A name in which no character parts frames or lines, of bounded length.
pub(crate) fn clean(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    let name = match name.char_indices().nth(LONGEST) {
        Some((at, _)) => &name[..at],
        None => name,
    };
    if name.is_empty() {
        return Cow::Borrowed("[unknown]");
    }
    if !name.contains(|c: char| c == ';' || c.is_control()) {
        return hidden_class(name).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    let safe = name.chars().map(|c| match c {
        ';' => ':',
        '\t' | '\n' | '\r' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    Cow::Owned(safe.collect())
}

/// A method of a lambda without the address and number of its class, which differ from run to run: `Main$$Lambda$88+0x7f.179.run` as
/// `Main$$Lambda.run`.
fn hidden_class(name: &str) -> Option<String> {
    let (class, rest) = name.split_once("$$Lambda")?;
    let (_, method) = rest.rsplit_once('.')?;
    let is_method = method.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '<'));
    (is_method && rest.len() > method.len() + 1).then(|| format!("{class}$$Lambda.{method}"))
}

/// A frame of folded text as name and kind.
pub(crate) fn marked(frame: &str) -> (&str, FrameKind) {
    let kinds = [
        ("_[j]", FrameKind::Java),
        ("_[i]", FrameKind::Inlined),
        ("_[k]", FrameKind::Kernel),
        ("_[0]", FrameKind::Java),
        ("_[1]", FrameKind::Java),
        ("_[c]", FrameKind::Class),
    ];
    for (mark, kind) in kinds {
        if let Some(name) = frame.strip_suffix(mark).filter(|name| !name.is_empty()) {
            return (name, kind);
        }
    }
    (frame, guessed(frame))
}

/// The mark of a kind; none where the name alone gives it.
pub(crate) fn mark(frame: &Frame) -> &'static str {
    match frame.kind {
        FrameKind::Native => "",
        FrameKind::Java if guessed(&frame.name) == FrameKind::Java => "",
        FrameKind::Java => "_[j]",
        FrameKind::Inlined => "_[i]",
        FrameKind::Kernel => "_[k]",
        FrameKind::Class => "_[c]",
    }
}

/// The kind of a frame without a mark. A class with its package and a method is Java: `java/lang/Thread.run`, `shop.Cart.add`.
///
/// Go writes packages alike but no class: `encoding/json.Marshal`.
fn guessed(name: &str) -> FrameKind {
    let Some((path, method)) = name.rsplit_once('.') else {
        return FrameKind::Native;
    };
    let word = |text: &str| {
        let mut characters = text.chars();
        let begins = characters
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$');
        begins && characters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '+' | '-'))
    };
    let is_method = word(method) || matches!(method, "<init>" | "<clinit>");
    let parts: Vec<&str> = path.split(['.', '/']).collect();
    let Some((class, packages)) = parts.split_last() else {
        return FrameKind::Native;
    };
    // Lambdas and hidden classes end in a slash and numbers: `Main$$Lambda.0x7f/123`.
    let is_class = class.starts_with(char::is_uppercase) && word(class);
    if is_method && is_class && !packages.is_empty() && packages.iter().all(|part| word(part)) {
        FrameKind::Java
    } else {
        FrameKind::Native
    }
}

/// A thread as the first frame of folded text: `[NAME tid=ID]`, as async-profiler writes it.
pub(crate) fn thread_frame(thread: &Thread) -> String {
    format!("[{} tid={}]", clean(&thread.name), thread.id)
}

/// The thread that a first frame names.
pub(crate) fn thread_of(frame: &str) -> Option<Thread> {
    let inner = frame.strip_prefix('[')?.strip_suffix(']')?;
    let (name, id) = inner.rsplit_once("tid=")?;
    let id = id.parse().ok()?;
    Some(Thread {
        name: clean(name).into_owned(),
        id,
    })
}

/// A name with `*` for each number.
pub fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    for character in name.chars() {
        if !character.is_ascii_digit() {
            pattern.push(character);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_its_package_is_java_and_other_languages_are_not() {
        for (name, kind) in [
            ("java/lang/Thread.run", FrameKind::Java),
            ("shop.Cart.add", FrameKind::Java),
            ("java.util.HashMap.<init>", FrameKind::Java),
            ("shop/Cart$Line.lambda$new$0", FrameKind::Java),
            ("encoding/json.Marshal", FrameKind::Native),
            ("net/http.(*conn).serve", FrameKind::Native),
            ("std::vec::Vec<T>::push", FrameKind::Native),
            ("libc.so.6", FrameKind::Native),
            ("__GI___libc_write", FrameKind::Native),
            ("nf_hook_slow.part.0", FrameKind::Native),
            ("", FrameKind::Native),
            (".", FrameKind::Native),
        ] {
            assert_eq!(guessed(name), kind, "{name}");
        }
    }

    #[test]
    fn a_mark_gives_the_kind_and_is_no_part_of_the_name() {
        assert_eq!(
            marked("tcp_sendmsg_[k]"),
            ("tcp_sendmsg", FrameKind::Kernel)
        );
        assert_eq!(marked("a.B.c_[0]"), ("a.B.c", FrameKind::Java));
        assert_eq!(marked("_[k]"), ("_[k]", FrameKind::Native));
    }

    #[test]
    fn a_thread_reads_back_as_written() {
        let thread = Thread {
            name: "exec [7] tid=9".to_owned(),
            id: 4711,
        };
        assert_eq!(thread_of(&thread_frame(&thread)), Some(thread));
        assert_eq!(thread_of("[kernel]"), None);
        assert_eq!(thread_of("[tid=12]").unwrap().name, "[unknown]");
    }

    #[test]
    fn a_lambda_has_the_same_name_in_every_run() {
        for (name, same) in [
            (
                "Split$$Lambda$88+0x00007fd418007a08.1790421142.run",
                "Split$$Lambda.run",
            ),
            ("a/B$$Lambda.0x7f12/123.apply", "a/B$$Lambda.apply"),
            ("a.B$$Lambda.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda.0x7f", "a.B$$Lambda.0x7f"),
        ] {
            assert_eq!(clean(name), same);
        }
    }

    #[test]
    fn no_name_parts_a_line_or_a_stack() {
        assert_eq!(clean("a;b\nc\u{1b}[2J"), "a:b c\u{fffd}[2J");
        assert_eq!(clean("  "), "[unknown]");
        assert_eq!(clean(&"é".repeat(1000)).chars().count(), LONGEST);
    }
}
