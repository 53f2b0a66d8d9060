//! How a knob is read and planned.
//!
//! Most knobs need no logic of their own: a file with one value, several files that belong together, a row of numbers,
//! a feature. Those are declared, and their reading and planning is here. A knob that couples values has two functions
//! in its own file.

use rungwise_host::DeviceSetting;

use crate::Result;
use crate::by_hand;
use crate::edit::{Edit, Place};
use crate::error::Error;
use crate::form;
use crate::knob::{Context, Current, Draft, Knob, Reading};
use crate::target::{Form, Target};

/// Reads the current value of a knob.
type Read = fn(&Context<'_>) -> Result<Current>;

/// How a knob is read and planned.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The one file of `writes`, with one value for each file that its pattern stands for.
    File,
    /// The files of `writes`, a named part of the wish each: `max=16MiB,default=1MiB`.
    Parts {
        /// Names of the parts, in the order of the files.
        names: &'static [&'static str],
        /// A wish without a name is for this many parts, from the first on.
        bare: usize,
    },
    /// The one file of `writes`, a row of numbers with these names: `4096 131072 6291456`, or `max=16MiB` with the
    /// others unchanged.
    Row(&'static [&'static str]),
    /// The one feature of `writes`.
    Feature,
    /// A setting of a device that has no file, in its own spelling.
    Setting(DeviceSetting),
    /// Two functions of its own, which only read.
    Own {
        /// Reads the current value.
        read: Read,
        /// Drafts the edits of a wish.
        draft: fn(&Context<'_>, &str) -> Result<Draft>,
    },
    /// Only shown.
    Shown(Read),
    /// Set at boot: the kernel command line's words for the parameters of `by_hand`.
    Boot,
    /// The current value cannot be read.
    Unseen,
}

impl Turn {
    /// The current value.
    pub(crate) fn read(&self, knob: &Knob, context: &Context<'_>) -> Result<Current> {
        match self {
            Self::File => file(knob, context),
            Self::Parts { names, bare } => parts(knob, context, names, *bare),
            Self::Row(_) => row(knob, context),
            Self::Feature => {
                let (device, feature) = (context.device(knob)?, feature_of(knob));
                let reading = context.read_feature(knob, device, feature)?;
                Ok(Current::known(reading.value.clone(), vec![reading]))
            }
            Self::Setting(setting) => {
                let device = context.device(knob)?;
                let reading = context.read_setting(knob, device, *setting)?;
                Ok(Current::known(reading.value.clone(), vec![reading]))
            }
            Self::Own { read, .. } | Self::Shown(read) => read(context),
            Self::Boot => booted(knob, context),
            Self::Unseen => Ok(Current::unknown("unknown; ask the administrator")),
        }
    }

    /// The edits of `wish`.
    pub(crate) fn draft(&self, knob: &Knob, context: &Context<'_>, wish: &str) -> Result<Draft> {
        match self {
            Self::File => draft_file(knob, context, wish),
            Self::Parts { names, bare } => draft_parts(knob, context, names, *bare, wish),
            Self::Row(names) => draft_row(knob, context, names, wish),
            Self::Feature => {
                let on = knob.on_off(wish)?;
                let (device, feature) = (context.device(knob)?, feature_of(knob));
                Ok(Draft::default().feature(context.place, device, feature, on))
            }
            Self::Setting(setting) => draft_setting(knob, context, *setting, wish),
            Self::Own { draft, .. } => draft(context, wish),
            Self::Shown(_) | Self::Boot | Self::Unseen => Err(Error::NotSettable {
                knob: knob.id,
                why: "it is only shown".to_owned(),
            }),
        }
    }
}

/// Pattern and form of the files that a knob declares.
fn targets(knob: &Knob) -> impl Iterator<Item = (&'static str, Form)> {
    knob.writes.iter().filter_map(|target| match target {
        Target::File(pattern, form) => Some((*pattern, *form)),
        _ => None,
    })
}

fn target(knob: &Knob) -> (&'static str, Form) {
    targets(knob)
        .next()
        .expect("a knob that is a file declares it")
}

fn feature_of(knob: &Knob) -> &'static str {
    let feature = knob.writes.iter().find_map(|target| match target {
        Target::Feature(feature) => Some(*feature),
        _ => None,
    });
    feature.expect("a knob that is a feature declares it")
}

fn readings(knob: &Knob, context: &Context<'_>, pattern: &str, form: Form) -> Result<Vec<Reading>> {
    context
        .files(knob, pattern)?
        .iter()
        .map(|path| context.value_of(knob, path, form))
        .collect()
}

/// The value that all readings share, as a wish spells it; `mixed` otherwise.
fn shared(form: Form, readings: &[Reading]) -> String {
    let Some((first, rest)) = readings.split_first() else {
        return "mixed".to_owned();
    };
    if rest
        .iter()
        .all(|other| form.same(&first.value, &other.value))
    {
        form.wish(&first.value)
    } else {
        "mixed".to_owned()
    }
}

/// Reads a knob that is one file, or one file per queue.
pub(crate) fn file(knob: &Knob, context: &Context<'_>) -> Result<Current> {
    let (pattern, form) = target(knob);
    let readings = readings(knob, context, pattern, form)?;
    Ok(Current::known(shared(form, &readings), readings))
}

/// Plans a knob that is one file, or one file per queue.
pub(crate) fn draft_file(knob: &Knob, context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (pattern, form) = target(knob);
    let value = value(knob, context, form, wish, wish)?;
    write(knob, context, Draft::default(), pattern, form, &value)
}

fn value(knob: &Knob, context: &Context<'_>, form: Form, part: &str, wish: &str) -> Result<String> {
    form.value(part.trim(), context.cpus)
        .map_err(|why| knob.bad_wish(wish, why))
}

/// One edit for each file of a pattern.
fn write(
    knob: &Knob,
    context: &Context<'_>,
    mut draft: Draft,
    pattern: &str,
    form: Form,
    value: &str,
) -> Result<Draft> {
    let (host, place) = context.side(knob);
    for path in context.files(knob, pattern)? {
        if form == Form::Choice {
            // The file itself lists what it offers.
            let offered = host
                .text(std::path::Path::new(&path))
                .map_err(|answer| {
                    Error::kernel(knob.id, format!("read {path}"), host.name(), answer)
                })?
                .replace(['[', ']'], "");
            let words: Vec<&str> = offered.split_whitespace().collect();
            if !words.contains(&value) {
                let why = format!("{path} offers {}", words.join(", "));
                return Err(knob.bad_wish(value, why));
            }
        }
        draft = draft.file(place, path, &value);
    }
    Ok(draft)
}

fn parts(knob: &Knob, context: &Context<'_>, names: &[&str], bare: usize) -> Result<Current> {
    let mut words = Vec::new();
    let mut all = Vec::new();
    let mut absent = None;
    for ((pattern, form), name) in targets(knob).zip(names) {
        match readings(knob, context, pattern, form) {
            Ok(readings) => {
                words.push((name, shared(form, &readings)));
                all.extend(readings);
            }
            // A kernel may lack a part; the others still have values.
            Err(error @ Error::Absent { .. }) => absent = Some(error),
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (words.is_empty(), absent) {
        return Err(error);
    }
    let value = match &words[..] {
        [(_, first), rest @ ..]
            if bare == names.len() && rest.iter().all(|(_, other)| other == first) =>
        {
            first.clone()
        }
        words => {
            let words: Vec<String> = words
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            words.join(",")
        }
    };
    Ok(Current::known(value, all))
}

fn draft_parts(
    knob: &Knob,
    context: &Context<'_>,
    names: &[&str],
    bare: usize,
    wish: &str,
) -> Result<Draft> {
    let wishes: Vec<(&str, &str)> = if wish.contains('=') {
        named(knob, names, wish)?
    } else {
        names.iter().take(bare).map(|name| (*name, wish)).collect()
    };
    if wishes.is_empty() {
        return Err(knob.bad_wish(wish, "it names no part"));
    }
    let mut draft = Draft::default();
    for (name, part) in wishes {
        let (pattern, form) = targets(knob)
            .zip(names)
            .find_map(|(target, known)| (*known == name).then_some(target))
            .expect("every name has a file");
        let value = value(knob, context, form, part, wish)?;
        draft = write(knob, context, draft, pattern, form, &value)?;
    }
    Ok(draft)
}

/// `NAME=VALUE,NAME=VALUE`, each of `names` at most once.
pub(crate) fn named<'a>(
    knob: &Knob,
    names: &[&str],
    wish: &'a str,
) -> Result<Vec<(&'a str, &'a str)>> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in wish.split(',') {
        let (name, value) = part
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, _)| names.contains(name))
            .filter(|(name, _)| found.iter().all(|(known, _)| known != name))
            .ok_or_else(|| {
                let why = format!("'{part}' is not one value for {}", names.join(", "));
                knob.bad_wish(wish, why)
            })?;
        found.push((name, value));
    }
    Ok(found)
}

fn row(knob: &Knob, context: &Context<'_>) -> Result<Current> {
    let (pattern, form) = target(knob);
    let reading = context.value_of(knob, pattern, form)?;
    Ok(Current::known(form.wish(&reading.value), vec![reading]))
}

fn draft_row(knob: &Knob, context: &Context<'_>, names: &[&str], wish: &str) -> Result<Draft> {
    let (pattern, form) = target(knob);
    let words: Vec<String> = if wish.contains('=') {
        let reading = context.value_of(knob, pattern, form)?;
        let mut words: Vec<String> = reading
            .value
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        for (name, part) in named(knob, names, wish)? {
            let index = names.iter().position(|known| *known == name);
            let word = index.and_then(|index| words.get_mut(index));
            let number = form::bytes(part).map_err(|why| knob.bad_wish(wish, why))?;
            *word.ok_or_else(|| {
                knob.bad_wish(wish, format!("{pattern} holds '{}'", reading.value))
            })? = number.to_string();
        }
        words
    } else {
        // A range is a row of two.
        let wish = &wish.replace('-', " ");
        let row = value(knob, context, form, wish, wish)?;
        row.split(' ').map(str::to_owned).collect()
    };
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let numbers = numbers.unwrap_or_default();
    if numbers.len() != names.len() {
        let why = format!("it is not {} numbers: {}", names.len(), names.join(", "));
        return Err(knob.bad_wish(wish, why));
    }
    if !numbers.is_sorted() {
        return Err(knob.bad_wish(wish, format!("{} must not descend", names.join(", "))));
    }
    let (_, place) = context.side(knob);
    Ok(Draft::default().file(place, pattern, &words.join(" ")))
}

/// Plans a change of a device's setting; parts that the wish does not name are unchanged.
pub(crate) fn draft_setting(
    knob: &Knob,
    context: &Context<'_>,
    setting: DeviceSetting,
    wish: &str,
) -> Result<Draft> {
    let device = context.device(knob)?;
    let current = context.read_setting(knob, device, setting)?.value;
    let change = wish.replace(',', " ");
    // In a table the comma is part of the value.
    let change = if setting == DeviceSetting::RssTable {
        wish
    } else {
        &change
    };
    let value = setting.with(&current, change).ok_or_else(|| {
        knob.bad_wish(wish, format!("current {setting} of {device}: '{current}'"))
    })?;
    Ok(setting_edit(
        Draft::default(),
        context.place,
        device,
        setting,
        value,
    ))
}

pub(crate) fn setting_edit(
    draft: Draft,
    place: &Place,
    device: &str,
    setting: DeviceSetting,
    value: String,
) -> Draft {
    let edit = Edit::Setting {
        device: device.to_owned(),
        setting,
        value,
    };
    draft.edit(place, edit)
}

fn booted(knob: &Knob, context: &Context<'_>) -> Result<Current> {
    let texts: Vec<&str> = knob.by_hand.iter().map(|manual| manual.text).collect();
    let words = by_hand::booted_with(context.machine, &texts.join(" ")).map_err(|answer| {
        let host = context.machine.name();
        Error::kernel(
            knob.id,
            "read the kernel command line".to_owned(),
            host,
            answer,
        )
    })?;
    if words.is_empty() {
        return Ok(Current::unknown(
            "the kernel command line does not contain it, so the kernel decided",
        ));
    }
    let reading = Reading {
        source: "/proc/cmdline".to_owned(),
        value: words.clone(),
    };
    Ok(Current::known(words, vec![reading]))
}
