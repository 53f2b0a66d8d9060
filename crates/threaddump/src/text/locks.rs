//! Lines that name locks: `- waiting to lock <0x...> (a java.lang.Object)` (`javaVFrame::print_lock_info_on` of vframe.cpp).

use crate::dump::{How, Lock};

/// What such a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Waits(How),
    Holds,
    /// The compiler took the lock away, or nobody else can see the object.
    Gone,
}

const SIGNS: [(&str, Sign); 8] = [
    ("blocked on ", Sign::Waits(How::Enter)),
    ("Locked ", Sign::Holds),
    ("waiting to lock ", Sign::Waits(How::Enter)),
    ("waiting to re-lock in wait() ", Sign::Waits(How::Enter)),
    ("waiting on ", Sign::Waits(How::Notify)),
    ("parking to wait for ", Sign::Waits(How::Park)),
    ("locked ", Sign::Holds),
    ("eliminated ", Sign::Gone),
];

/// A line of a stack that begins with `- `, which is cut off already: what it says, of which object, owned by whom.
pub(super) fn of_frame(text: &str) -> Option<(Sign, Option<Lock>, Option<u64>)> {
    let (sign, rest) = SIGNS
        .iter()
        .find_map(|(words, sign)| Some((sign, text.strip_prefix(words)?)))?;
    let rest = rest.trim_start();
    if !rest.starts_with('<') {
        // `ThreadInfo.toString()`: `blocked on java.lang.Object@1b2c`.
        return bare_object(rest).map(|lock| (*sign, Some(lock), None));
    }
    let owner = rest
        .split_once("own")
        .and_then(|(_, owner)| owner.split_once('#').or_else(|| owner.rsplit_once("t@")))
        .map(|(_, number)| number.trim_end_matches(|c: char| !c.is_ascii_digit()))
        .and_then(|number| number.parse().ok());
    Some((*sign, object(rest), owner))
}

/// `<0x00000000ff749810> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)`, or `<java.lang.Object@a061636>`.
pub(super) fn object(text: &str) -> Option<Lock> {
    let (id, rest) = text.strip_prefix('<')?.split_once('>')?;
    if let Some((class, _)) = id.split_once('@') {
        return Some(Lock {
            id: id.into(),
            class: class.into(),
        });
    }
    let hex = id.strip_prefix("0x").unwrap_or(id);
    let is_address = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let class = rest.trim().strip_prefix("(a ")?;
    is_address.then(|| Lock {
        id: id.into(),
        // `) owned by "b" t@12` may follow.
        class: class.split(')').next().unwrap_or(class).into(),
    })
}

/// `java.lang.Object@1b2c`, as `LockInfo.toString()` writes it.
pub(super) fn bare_object(text: &str) -> Option<Lock> {
    let (class, hash) = text.split_once('@')?;
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !class.is_empty() && !class.contains(char::is_whitespace)).then(|| Lock {
        id: text.into(),
        class: class.into(),
    })
}

/// The object in a line of a report of deadlocks: `monitor 0x1 (object 0x2, a java.lang.Object),`, or `synchronizer 0x2, (a X),`.
pub(super) fn reported(text: &str) -> Option<Lock> {
    let rest = match text.split_once("(object ") {
        Some((_, rest)) => rest,
        None => text.strip_prefix("waiting for ownable synchronizer ")?,
    };
    let (id, rest) = rest.split_once(',')?;
    let class = rest.trim_start_matches([' ', '(']).strip_prefix("a ")?;
    let class = class.trim_end_matches(',').trim_end_matches(')');
    Some(Lock {
        id: id.into(),
        class: class.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(id: &str, class: &str) -> Lock {
        Lock {
            id: id.into(),
            class: class.into(),
        }
    }

    #[test]
    fn objects_are_read_in_every_form() {
        for (text, expected) in [
            (
                "<0x00f1> (a java.lang.Object)",
                Some(lock("0x00f1", "java.lang.Object")),
            ),
            ("<9fff> (a [I)", Some(lock("9fff", "[I"))),
            (
                "<0x1> (a java.lang.Class for A)",
                Some(lock("0x1", "java.lang.Class for A")),
            ),
            ("<a.B@a061636>", Some(lock("a.B@a061636", "a.B"))),
            ("<no object reference available>", None),
            ("<owner is scalar replaced> (a X)", None),
            ("<> (a X)", None),
            ("<0x1", None),
        ] {
            assert_eq!(object(text), expected, "{text}");
        }
    }

    #[test]
    fn an_owner_that_is_reported_is_read() {
        let (sign, lock, owner) = of_frame("parking to wait for <a.B@1>, owner #47").unwrap();
        assert_eq!(sign, Sign::Waits(How::Park));
        assert_eq!((lock.unwrap().class.as_ref(), owner), ("a.B", Some(47)));
        assert_eq!(of_frame("waiting to lock the door"), None);
    }

    #[test]
    fn objects_of_reports_are_read() {
        for text in [
            "waiting to lock monitor 0x00007f (object 0x00ff, a java.lang.Object),",
            "waiting for ownable synchronizer 0x00ff, (a java.lang.Object),",
        ] {
            assert_eq!(
                reported(text),
                Some(lock("0x00ff", "java.lang.Object")),
                "{text}"
            );
        }
        assert_eq!(reported("waiting for Godot"), None);
    }
}
