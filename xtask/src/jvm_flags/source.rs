//! The flags of a JDK of which there is no JVM, from the source of its `HotSpot`: `7=/path/to/hotspot/src`.
//!
//! Up to JDK 8 each flag is one call of a macro (`product(uintx, MaxTenuringThreshold, 15, "...")`) in one of a few
//! headers, its default an expression, or a call of `define_pd_global` in a header of the platform. Here they are read as
//! the product build for Linux on x86-64 with both compilers reads them. A flag that the source sets by
//! `FLAG_SET_ERGO` or `FLAG_SET_DEFAULT` is decided at start. Bounds are those of the `verify_...` calls of
//! `arguments.cpp`; its table of obsolete flags lists the removed ones. Only facts are taken: names, types, numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::{OPTIONS, Row};

/// Headers with flags, and the part that `-XX:+PrintFlagsFinal` would print with theirs.
const HEADERS: [(&str, &str); 11] = [
    ("share/vm/runtime/globals.hpp", ""),
    ("share/vm/gc_implementation/g1/g1_globals.hpp", ""),
    ("share/vm/c1/c1_globals.hpp", "C1"),
    ("share/vm/opto/c2_globals.hpp", "C2"),
    ("os/linux/vm/globals_linux.hpp", ""),
    ("os/linux/vm/c1_globals_linux.hpp", "C1"),
    ("os/linux/vm/c2_globals_linux.hpp", "C2"),
    ("cpu/x86/vm/globals_x86.hpp", "ARCH"),
    ("cpu/x86/vm/c1_globals_x86.hpp", "C1"),
    ("cpu/x86/vm/c2_globals_x86.hpp", "C2"),
    ("os_cpu/linux_x86/vm/globals_linux_x86.hpp", ""),
];

/// Folders whose code may set flags.
const CODE: [&str; 4] = [
    "share/vm",
    "os/linux/vm",
    "cpu/x86/vm",
    "os_cpu/linux_x86/vm",
];

/// What the preprocessor of that build knows.
const DEFINED: [&str; 9] = [
    "AMD64",
    "COMPILER1",
    "COMPILER2",
    "LINUX",
    "PRODUCT",
    "TIERED",
    "X86",
    "_LP64",
    "_GNU_SOURCE",
];

/// Macros of the headers that a product build takes as flags, with their kind.
const KINDS: [(&str, &str); 8] = [
    ("product", "product"),
    ("product_pd", "product"),
    ("product_rw", "product"),
    ("lp64_product", "product"),
    ("diagnostic", "diagnostic"),
    ("diagnostic_pd", "diagnostic"),
    ("experimental", "experimental"),
    ("manageable", "manageable"),
];

/// Macros that stand for what is in their brackets in that build, and those that stand for nothing.
const KEEP: [&str; 7] = [
    "LP64_ONLY",
    "NOT_WIN64",
    "NOT_SOLARIS",
    "NOT_EMBEDDED",
    "NOT_DEBUG",
    "PRODUCT_ONLY",
    "LINUX_ONLY",
];
const DROP: [&str; 8] = [
    "NOT_LP64",
    "WIN64_ONLY",
    "SOLARIS_ONLY",
    "EMBEDDED_ONLY",
    "DEBUG_ONLY",
    "NOT_PRODUCT",
    "PPC64_ONLY",
    "SPARC_ONLY",
];

/// Reads the table of a release from the folder `hotspot/src`.
pub(super) fn table(release: &str, folder: &Path) -> Result<(String, BTreeMap<String, Row>)> {
    let read = |path: &str| {
        let path = folder.join(path);
        std::fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: pass the folder hotspot/src of a JDK 7",
                path.display()
            )
        })
    };
    let mut platform = BTreeMap::new();
    let mut found = Vec::new();
    for (path, part) in HEADERS {
        let text = preprocessed(&read(path)?);
        for call in calls(&text, "define_pd_global") {
            if let [_, name, value] = call.as_slice() {
                platform.insert(name.clone(), value.clone());
            }
        }
        for (word, kind) in KINDS {
            let of = calls(&text, word).into_iter();
            found.extend(of.map(|call| (word, kind, part, call)));
        }
    }
    let mut table = BTreeMap::new();
    let names = found.iter().filter_map(|(_, _, _, call)| call.get(1));
    let assigned = assigned(folder, &names.cloned().collect())?;
    for (word, kind, part, call) in found {
        let pd = word.ends_with("_pd");
        let [value, name, rest @ ..] = call.as_slice() else {
            bail!("cannot read a flag of the source: {call:?}");
        };
        let expression = match (pd, rest) {
            (true, _) => platform
                .get(name)
                .with_context(|| format!("no default of {name}"))?,
            (false, [expression, ..]) => expression,
            (false, []) => bail!("cannot read the default of {name}"),
        };
        let default = if assigned.contains(name) {
            "~".to_owned()
        } else {
            let value_of =
                evaluate(expression).with_context(|| format!("the default of {name}"))?;
            shown(value, value_of)
        };
        let parts = [
            kind,
            part,
            if pd { "pd" } else { "" },
            if word == "product_rw" { "rw" } else { "" },
        ];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let row = Row {
            kind: parts.join(","),
            value: value.clone(),
            default,
            ..Row::other("", String::new())
        };
        table.insert(name.clone(), row);
    }
    let arguments = read("share/vm/runtime/arguments.cpp")?;
    let code = preprocessed(&arguments);
    bounds(&code, &mut table);
    gone(release, &code, &mut table);
    let launcher = folder.join("../../jdk/src/share/bin/java.c");
    let launcher = std::fs::read_to_string(&launcher)
        .with_context(|| format!("cannot read {}", launcher.display()))?;
    for option in OPTIONS {
        table.insert(
            (*option).to_owned(),
            option_of(option, &arguments, &launcher),
        );
    }
    let version = read("../make/hotspot_version")?;
    let number = |name: &str| {
        let line = version.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("?").trim().to_owned()
    };
    let source = format!(
        "OpenJDK 64-Bit Server VM {}.{} (its source: what the product build for linux x86_64 would have)",
        number("HS_MAJOR_VER="),
        number("HS_MINOR_VER=")
    );
    Ok((source, table))
}

/// The text without comments and without what the build leaves out; strings stay as they are.
fn preprocessed(text: &str) -> String {
    let mut kept = String::new();
    // Whether each open condition holds, and whether one of its branches has held.
    let mut open: Vec<(bool, bool)> = Vec::new();
    for line in without_comments(text).lines() {
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            if open.iter().all(|(holds, _)| *holds) {
                kept.push_str(line.trim_end_matches('\\'));
                kept.push('\n');
            }
            continue;
        };
        let (word, rest) = directive
            .trim()
            .split_once(' ')
            .unwrap_or((directive.trim(), ""));
        match word {
            "ifdef" => open.push(branch(DEFINED.contains(&rest.trim()))),
            // The guards around headers are of this kind, and hold.
            "ifndef" => open.push(branch(!DEFINED.contains(&rest.trim()))),
            "if" => open.push(branch(holds(rest))),
            "elif" => {
                if let Some(last) = open.last_mut() {
                    *last = (!last.1 && holds(rest), last.1 || holds(rest));
                }
            }
            "else" => {
                if let Some(last) = open.last_mut() {
                    *last = (!last.1, true);
                }
            }
            "endif" => {
                open.pop();
            }
            // The lines of a macro follow one another and are read as text.
            _ => {}
        }
    }
    kept
}

fn branch(holds: bool) -> (bool, bool) {
    (holds, holds)
}

/// `defined(A) || !defined(B) && ...`, and plain numbers.
fn holds(condition: &str) -> bool {
    condition.split("||").any(|all| {
        all.split("&&").all(|one| {
            let one = one.trim().trim_matches(['(', ')']);
            let (no, one) = one
                .strip_prefix('!')
                .map_or((false, one), |one| (true, one));
            let name = one
                .trim()
                .trim_start_matches("defined")
                .trim()
                .trim_matches(['(', ')', ' ']);
            no != (DEFINED.contains(&name) || name == "1")
        })
    })
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(inner) = rest.strip_prefix("/*") {
            let end = inner.find("*/").map_or(inner.len(), |end| end + 2);
            // The lines stay apart.
            kept.extend(inner[..end].chars().filter(|c| *c == '\n'));
            rest = &inner[end..];
        } else if let Some(inner) = rest.strip_prefix('"') {
            let end = inner.find(['"', '\n']).map_or(inner.len(), |end| end + 1);
            kept.push('"');
            kept.push_str(&inner[..end]);
            rest = &inner[end..];
        } else {
            kept.push('/');
            rest = &rest[1..];
        }
    }
    kept + rest
}

/// The arguments of each call of this macro or function, white space made one.
fn calls(text: &str, name: &str) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut all = Vec::new();
    for (at, _) in text.match_indices(name) {
        if text[..at].ends_with(is_name) {
            continue;
        }
        if let Some(inner) = text[at + name.len()..].trim_start().strip_prefix('(') {
            let arguments = arguments(inner);
            // The macro that is handed on, `product, product_pd`, has no brackets; its definition has one word each.
            if arguments.len() > 1 {
                all.push(arguments);
            }
        }
    }
    all
}

/// Up to the closing bracket, split at commas outside of brackets and strings.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut quoted) = (0, false);
    let (mut all, mut one) = (Vec::new(), String::new());
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => break,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                all.push(std::mem::take(&mut one));
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    all.push(one);
    let plain = |one: String| one.split_whitespace().collect::<Vec<_>>().join(" ");
    all.into_iter().map(plain).collect()
}

/// What a default comes to.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Switch(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
}

fn evaluate(expression: &str) -> Result<Value> {
    let mut text = expression.to_owned();
    for (names, keep) in [(&KEEP[..], true), (&DROP[..], false)] {
        for name in names {
            while let Some(at) = text.find(&format!("{name}(")) {
                let inner = &text[at + name.len() + 1..];
                let parts = arguments(inner).join(",");
                let end = closing(inner).context("unclosed bracket")?;
                let stays = if keep { parts } else { String::new() };
                text = format!("{}{stays}{}", &text[..at], &inner[end + 1..]);
            }
        }
    }
    let text = text.trim();
    match text {
        "true" | "trueInProduct" | "trueInTiered" | "falseInDebug" | "falseInEmbedded" => {
            return Ok(Value::Switch(true));
        }
        "false" | "falseInProduct" | "falseInTiered" | "trueInDebug" | "trueInEmbedded" => {
            return Ok(Value::Switch(false));
        }
        "NULL" => return Ok(Value::Text(String::new())),
        _ => {}
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return Ok(Value::Text(quoted.trim_end_matches('"').to_owned()));
    }
    if let Ok(number) = text.trim_end_matches(['f', 'F']).parse::<f64>()
        && text.contains('.')
    {
        return Ok(Value::Fraction(number));
    }
    let mut reader = Reader { rest: text };
    let number = reader.sum().with_context(|| format!("'{text}'"))?;
    if !reader.rest.trim().is_empty() {
        bail!("cannot evaluate '{text}': unknown '{}'", reader.rest.trim());
    }
    Ok(Value::Whole(number))
}

/// Where the bracket that is open at the beginning closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    })
}

/// Sums and products of whole numbers.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn taken(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Result<i128> {
        let mut sum = self.product()?;
        loop {
            if self.taken('+') {
                sum += self.product()?;
            } else if self.taken('-') {
                sum -= self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<i128> {
        let mut product = self.one()?;
        loop {
            if self.taken('*') {
                product *= self.one()?;
            } else if self.taken('/') {
                product = product
                    .checked_div(self.one()?)
                    .context("division by zero")?;
            } else {
                return Ok(product);
            }
        }
    }

    fn one(&mut self) -> Result<i128> {
        if self.taken('-') {
            return Ok(-self.one()?);
        }
        if self.taken('(') {
            let sum = self.sum()?;
            self.taken(')');
            return Ok(sum);
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if let Some(hex) = word.strip_prefix("0x") {
            return i128::from_str_radix(hex, 16).with_context(|| format!("'{word}'"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word
                .trim_end_matches(['u', 'U', 'l', 'L'])
                .parse()
                .with_context(|| format!("'{word}'"));
        }
        // share/vm/utilities/globalDefinitions.hpp, 64 bits.
        Ok(match word {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            "max_jint" => i128::from(i32::MAX),
            "min_jint" => i128::from(i32::MIN),
            "max_jubyte" => 255,
            "max_intx" | "max_jlong" => i128::from(i64::MAX),
            "min_intx" => i128::from(i64::MIN),
            "max_uintx" => i128::from(u64::MAX),
            // Thirteen tenths, in whole words.
            "ScaleForWordSize" if self.taken('(') => {
                let sum = self.sum()?;
                self.taken(')');
                sum * 13 / 10 / 8 * 8
            }
            _ => bail!("cannot evaluate '{word}'"),
        })
    }
}

/// As `-XX:+PrintFlagsFinal` writes it.
fn shown(kind: &str, value: Value) -> String {
    match value {
        Value::Switch(on) => on.to_string(),
        Value::Whole(number) if kind == "bool" => (number != 0).to_string(),
        Value::Whole(number) if kind == "double" => format!("{number}.000000"),
        // An unsigned flag with a default of -1 has the largest number.
        Value::Whole(number) if number < 0 && kind.starts_with('u') => {
            (number + (1 << 64)).to_string()
        }
        Value::Whole(number) => number.to_string(),
        Value::Fraction(number) => format!("{number:.6}"),
        Value::Text(text) if text.is_empty() => "\"\"".to_owned(),
        Value::Text(text) => text,
    }
}

/// Flags that the code sets by itself.
fn assigned(folder: &Path, flags: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut folders: Vec<_> = CODE.iter().map(|path| folder.join(path)).collect();
    while let Some(next) = folders.pop() {
        let entries =
            std::fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "cpp") {
                let text = preprocessed(&String::from_utf8_lossy(&std::fs::read(&path)?));
                for call in ["FLAG_SET_ERGO", "FLAG_SET_DEFAULT"] {
                    names.extend(calls(&text, call).into_iter().flatten());
                }
            }
        }
    }
    names.retain(|name| flags.contains(name));
    Ok(names)
}

/// `verify_interval(X, 0, 27, "X")`, `verify_min_value(X, 1, "X")`, `verify_percentage(X, "X")`.
fn bounds(code: &str, table: &mut BTreeMap<String, Row>) {
    let number = |text: &str| match evaluate(text) {
        Ok(Value::Whole(number)) => Some(number),
        _ => None,
    };
    let mut enter = |call: &[String], low: Option<i128>, high: Option<i128>| {
        let name = call
            .last()
            .map(|name| name.trim_matches('"'))
            .unwrap_or_default();
        let bound = |bound: Option<i128>| bound.map_or_else(String::new, |bound| bound.to_string());
        if let Some(row) = table.get_mut(name)
            && (low.is_some() || high.is_some())
        {
            row.range = format!("{}..{}", bound(low), bound(high));
        }
    };
    for call in calls(code, "verify_interval") {
        if let [_, low, high, _] = call.as_slice() {
            enter(&call, number(low), number(high));
        }
    }
    for call in calls(code, "verify_min_value") {
        if let [_, low, _] = call.as_slice() {
            enter(&call, number(low), None);
        }
    }
    for call in calls(code, "verify_percentage") {
        enter(&call, Some(0), Some(100));
    }
}

/// `{ "AppendRatio", JDK_Version::jdk_update(6,10), JDK_Version::jdk(7) }`: obsolete since, and accepted up to.
fn gone(release: &str, code: &str, table: &mut BTreeMap<String, Row>) {
    let Some((_, list)) = code.split_once("obsolete_jvm_flags[]") else {
        return;
    };
    let list = list.split("};").next().unwrap_or_default();
    for entry in list.split('{').skip(2) {
        let parts = arguments(entry.split('}').next().unwrap_or_default());
        let [name, since, until] = parts.as_slice() else {
            continue;
        };
        let digits = |text: &str| -> Vec<String> {
            let inner = text.split_once('(').map_or("", |(_, inner)| inner);
            arguments(inner)
        };
        let (since, until) = (digits(since), digits(until));
        let newer = |until: &String| until.parse::<u32>().ok() > release.parse().ok();
        if !until.first().is_some_and(newer) {
            continue;
        }
        let name = name.trim_matches('"').to_owned();
        let since = match since.as_slice() {
            [major, update] => format!("{major}.0_{update:0>2}"),
            [major] => format!("{major}.0"),
            _ => continue,
        };
        let words = format!("ignoring option {name}; support was removed in {since}");
        table
            .entry(name)
            .or_insert_with(|| Row::other("gone", words));
    }
}

/// What JVM and launcher print about an option: the caller compares it by prefix.
fn option_of(option: &str, arguments: &str, launcher: &str) -> Row {
    let head = option.find([':', '=']).map_or(option, |at| &option[..=at]);
    // `-Xoss` of `-Xoss1m`.
    let size = option
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(option.len());
    let known = [
        option,
        head,
        head.trim_end_matches([':', '=']),
        &option[..size],
    ]
    .iter()
    .any(|text| {
        [arguments, launcher]
            .iter()
            .any(|code| code.contains(&format!("\"{text}\"")))
    });
    // Any property is taken, as `-verbose` is with what stands behind its colon.
    if known || option.starts_with("-D") {
        Row::other("option", String::new())
    } else {
        Row::other("refused", format!("Unrecognized option: {option}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_reckoned_as_the_product_build_on_64_bits_does() {
        for (expression, default) in [
            ("15", "15"),
            ("2*M", "2097152"),
            ("ScaleForWordSize(16*M)", "21810376"),
            ("NOT_LP64(16*K) LP64_ONLY(64*K)", "65536"),
            ("NOT_WIN64(20) WIN64_ONLY(6) DEBUG_ONLY(+2)", "20"),
            ("128ULL*G", "137438953472"),
            ("max_uintx", "18446744073709551615"),
            ("-1", "-1"),
            ("(5*60)*1000", "300000"),
        ] {
            assert_eq!(shown("intx", evaluate(expression).unwrap()), default);
        }
        assert_eq!(shown("bool", evaluate("trueInTiered").unwrap()), "true");
        assert_eq!(
            shown("uintx", evaluate("-1").unwrap()),
            u64::MAX.to_string()
        );
        assert_eq!(shown("double", evaluate("1.5").unwrap()), "1.500000");
        assert_eq!(shown("ccstr", evaluate("NULL").unwrap()), "\"\"");
        assert!(evaluate("os::vm_page_size()").is_err());
    }

    #[test]
    fn a_call_is_read_across_lines_comments_and_brackets_in_its_text() {
        let text = preprocessed(
            "#define FLAGS(product, develop) \\\n  /* a product(x, y) */ \\\n  product(uintx, Some, 4*K, \\\n   \
             \"text (with, brackets)\") \\\n#ifdef AMD64\n product(bool, Here, true, \"\")\n#else\n product(bool, Not, true, \"\")\n#endif",
        );
        let calls = calls(&text, "product");
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_eq!(calls[0][..3], ["uintx", "Some", "4*K"]);
        assert_eq!(calls[1][1], "Here");
    }

    #[test]
    fn conditions_hold_as_in_that_build() {
        assert!(holds("defined(AMD64) || defined(SPARC)"));
        assert!(!holds("!defined(COMPILER1) && !defined(COMPILER2)"));
        assert!(!holds("defined(_WIN64)"));
    }

    #[test]
    fn obsolete_flags_are_reported_with_the_release_that_took_them() {
        let mut table = BTreeMap::new();
        let code = "static ObsoleteFlag obsolete_jvm_flags[] = {\n { \"Old\", JDK_Version::jdk(5), JDK_Version::jdk(7) },\n \
                    { \"Ratio\", JDK_Version::jdk_update(7,4), JDK_Version::jdk(8) },\n { NULL, JDK_Version(0), JDK_Version(0) } };";
        gone("7", code, &mut table);
        let words: Vec<_> = table.values().map(|row| row.words.as_str()).collect();
        assert_eq!(
            words,
            ["ignoring option Ratio; support was removed in 7.0_04"]
        );
    }
}
