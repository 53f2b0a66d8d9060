//! The parts of a report: a list of blocks, independent of HTML and ANSI.
//!
//! A new kind of block is one variant here and one arm in each renderer; the compiler lists the
//! arms. Charts carry values and not pixels, and each has the table that it draws.

use rungwise_model::{evidence, profile};
use rungwise_stacks::Cut;

use crate::scale::{Axis, Unit};

/// One piece of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading; the blocks up to the next heading belong to it.
    Section {
        /// Anchor, unique in the report.
        id: &'static str,
        /// The heading.
        title: String,
    },
    /// A paragraph.
    Prose(String),
    /// A paragraph that must not be missed.
    Notice {
        /// Why it matters.
        tone: Tone,
        /// The text.
        text: String,
    },
    /// The answer.
    Verdict(Verdict),
    /// The few numbers that matter most.
    Tiles(Vec<Tile>),
    /// Items without order.
    List(Vec<String>),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    /// Command lines or other literal text, one per line.
    Code(Vec<String>),
    /// A table.
    Table(Table),
    /// A picture with its data.
    Chart(Box<Chart>),
    /// Detail that is closed at first.
    Fold {
        /// What is inside.
        summary: String,
        /// The inside.
        blocks: Vec<Block>,
    },
    /// What the rules say; a terminal shows the first lines of each.
    Cards(Vec<Card>),
    /// Too long for a terminal, which prints one paragraph instead; other formats show all of it.
    Long {
        /// What a terminal prints instead; nothing where it is empty.
        brief: String,
        /// Closed at first under these words; open where they are empty.
        summary: String,
        /// The whole.
        blocks: Vec<Block>,
    },
}

/// The finding of one rule on a subject, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// How much it matters.
    pub mark: Mark,
    /// What was found.
    pub sentence: String,
    /// The rule.
    pub rule: String,
    /// Subject and grades, in short pieces.
    pub tags: Vec<String>,
    /// The estimated effect of the change, marked as an estimate; empty where there is none.
    pub estimate: String,
    /// The expected effect of the wanted value, and what newer releases offer; as whole sentences.
    pub notes: Vec<String>,
    /// Knobs to change, the most useful first.
    pub turns: Vec<Turning>,
    /// The raw lines of its evidence.
    pub evidence: Vec<String>,
    /// The check that would refute it; empty where there is none.
    pub refuted_by: String,
    /// The command that explains it.
    pub explain: String,
    /// The same of other subjects.
    pub also: Vec<Card>,
    /// A terminal shows the sentence alone.
    pub short: bool,
}

/// A knob with its current and wanted values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turning {
    /// The knob and what it belongs to.
    pub knob: String,
    /// Its current value.
    pub from: String,
    /// The wanted value.
    pub to: String,
    /// The command that shows what would change; empty where you have to choose first.
    pub command: String,
}

/// The meaning of a piece for the reader. Never shown by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// Better.
    Good,
    /// Worse.
    Bad,
    /// Not settled.
    Doubt,
    /// Present for comparison.
    Quiet,
}

/// The answer in one word and one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The word with its symbol.
    pub mark: Mark,
    /// The sentence, with its interval.
    pub sentence: String,
    /// Where, when and on what, in short pieces.
    pub context: Vec<String>,
    /// Caveats, each with the section that has the details.
    pub caveats: Vec<(String, &'static str)>,
}

/// A symbol and a word for the same thing, so that colour is never needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// One character.
    pub symbol: &'static str,
    /// One word.
    pub word: &'static str,
    /// Its meaning.
    pub tone: Tone,
}

/// A number with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// What it is.
    pub label: String,
    /// The number.
    pub value: String,
    /// What it was before, shown ahead of the value.
    pub before: Option<String>,
    /// One more line.
    pub detail: String,
    /// Its meaning.
    pub tone: Tone,
}

/// Rows and columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Heading for people.
    pub name: String,
    /// Heading in CSV, with the unit of the raw numbers.
    pub key: &'static str,
    /// Set flush right.
    pub numeric: bool,
    /// The unit of the raw numbers, where documents record it.
    pub unit: Option<evidence::Unit>,
    /// Left out first in a narrow terminal; 0 stays.
    pub rank: u8,
    /// Words that may be shortened to so many columns of a terminal before others are left out.
    pub least: Option<usize>,
    /// What a reader must know of it; shown where the column is.
    pub about: Option<String>,
}

impl Column {
    /// A column of words.
    pub fn words(name: impl Into<String>, key: &'static str) -> Self {
        Self {
            name: name.into(),
            key,
            numeric: false,
            unit: None,
            rank: 0,
            least: None,
            about: None,
        }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>, key: &'static str) -> Self {
        Self {
            numeric: true,
            ..Self::words(name, key)
        }
    }

    /// Its raw numbers are measured in this.
    #[must_use]
    pub fn unit(mut self, unit: evidence::Unit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Gives way at this rank when a terminal is narrow.
    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Is shortened to this width before others give way.
    #[must_use]
    pub fn least(mut self, columns: usize) -> Self {
        self.least = Some(columns);
        self
    }
}

/// One field of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// For people.
    pub text: String,
    /// A second, quieter line.
    pub note: Option<String>,
    /// For machines; the text is used where it is absent.
    pub raw: Option<f64>,
    /// Its meaning.
    pub tone: Tone,
}

impl Block {
    /// The heading of a section.
    pub fn section(id: &'static str, title: impl Into<String>) -> Self {
        Self::Section {
            id,
            title: title.into(),
        }
    }
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A number, shown by `show`; absent stays absent.
    pub fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        match value.filter(|v| v.is_finite()) {
            Some(value) => Self {
                text: show(value),
                raw: Some(value),
                ..Self::default()
            },
            None => Self::text(crate::numbers::ABSENT),
        }
    }

    /// A number of things.
    pub fn count(count: u64) -> Self {
        Self::number(Some(count as f64), |n| crate::numbers::count(n as u64))
    }

    /// Adds a second line.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.note = (!note.is_empty()).then_some(note);
        self
    }

    /// Gives it a meaning.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// A mark as a cell.
    pub fn mark(mark: Mark) -> Self {
        Self::text(format!("{} {}", mark.symbol, mark.word)).tone(mark.tone)
    }
}

/// A picture: its title states the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Anchor and file name of the CSV, unique in the report.
    pub id: &'static str,
    /// The result in words.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// What is drawn.
    pub plot: Plot,
    /// What was drawn, as numbers.
    pub data: Table,
}

/// The kinds of pictures.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// One change with its interval per row.
    Intervals(Intervals),
    /// Values over time.
    Dots(Dots),
    /// Parts of a whole, per row.
    Bars(Bars),
    /// Shares of many like things, side by side.
    Map(Map),
    /// Changes at the cells of a grid.
    Heat(Heat),
    /// Stages of a path, and the loss at each.
    PathStages(PathStages),
    /// A histogram of sizes.
    Columns(Columns),
    /// What took the time, step by step.
    Layers(Layers),
    /// Stacks with their weights.
    Flame(Box<Flame>),
}

/// Stacks as a flame graph: a frame is as wide as its weight and lies on its caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Flame {
    /// What the weights are, in the plural: `CPU samples`.
    pub quantity: String,
    /// Their unit.
    pub unit: profile::Unit,
    /// The frames.
    pub tree: Cut,
    /// Its two groups are before and after, each a profile of its own.
    pub is_difference: bool,
}

/// Changes around zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// What the change is of.
    pub quantity: String,
    /// The meaning of left and right of zero, in one word each.
    pub sides: (&'static str, &'static str),
    /// Smaller changes are missed more than one time in five because of noise.
    pub band: Option<f64>,
    /// Name of the reference, where rows have one.
    pub reference: Option<String>,
    /// One per rung.
    pub rows: Vec<IntervalRow>,
}

/// One rung in the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    /// Place in the ladder.
    pub number: usize,
    /// The change in words.
    pub title: String,
    /// Its scope and how it was judged.
    pub tags: Vec<String>,
    /// The rate it reached.
    pub value: String,
    /// Point, low, high, as fractions.
    pub change: Option<(f64, f64, f64)>,
    /// Text of the row where there is no change to show.
    pub instead: String,
    /// Its outcome.
    pub mark: Mark,
    /// The reference rate and change for the same step.
    pub reference: Option<ReferenceMark>,
}

/// A reference figure for a row, measured by others.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceMark {
    /// The reference rate.
    pub value: String,
    /// The reference factor over the step before.
    pub factor: Option<f64>,
    /// Our sign and the reference sign differ.
    pub sign_differs: bool,
}

/// Dots, or lines through points, on an axis of time or of something else that grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// What the horizontal axis holds: seconds since the start, where it is one of time.
    pub along: Unit,
    /// Names of the places 0, 1, 2 and so on of the horizontal axis, where it holds no numbers; else none.
    pub names: Vec<String>,
    /// What the values are.
    pub quantity: String,
    /// Their unit.
    pub unit: Unit,
    /// The axis starts at zero, whatever the spread.
    pub from_zero: bool,
    /// Values that the axis holds besides those of the dots, so that two pictures have one scale.
    pub also: Vec<f64>,
    /// Beginning of the horizontal axis, seconds or what it holds.
    pub from_s: f64,
    /// End of the horizontal axis, likewise.
    pub until_s: f64,
    /// A script may zoom it. All such pictures of a report share one time axis.
    pub zooms: bool,
    /// The dots.
    pub series: Vec<Series>,
    /// Parts of the time axis.
    pub spans: Vec<Span>,
}

impl Dots {
    /// The axis of the values.
    pub(crate) fn axis(&self) -> Axis {
        let points = self.series.iter().flat_map(|series| &series.points);
        let values = points
            .map(|point| point.value)
            .chain(self.also.iter().copied());
        if self.from_zero {
            Axis::from_zero(values, self.unit)
        } else {
            Axis::fitting(values, self.unit)
        }
    }
}

/// Dots of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Square instead of round; a dashed line instead of a plain one.
    pub square: bool,
    /// A line through the points instead of dots.
    pub joined: bool,
    /// Index into the palette.
    pub hue: usize,
    /// The dots.
    pub points: Vec<Point>,
}

/// One dot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the start, or the place on another horizontal axis.
    pub at_s: f64,
    /// The value.
    pub value: f64,
    /// It does not count.
    pub hollow: bool,
}

/// A named part of the time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Where it begins, seconds.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// A short name that fits.
    pub label: String,
    /// The whole name.
    pub title: String,
    /// Its meaning; a plain one is shaded only to separate it from its neighbours.
    pub tone: Tone,
}

/// Shares of the time in steps of equal length along a time axis. It may be zoomed, as with [`Dots::zooms`].
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    /// What the shares are of.
    pub quantity: String,
    /// On each other in one plot; else each in a lane of its own, where 1 fills the lane.
    pub stacked: bool,
    /// Beginning of the time axis, seconds.
    pub from_s: f64,
    /// End of the time axis, seconds.
    pub until_s: f64,
    /// Beginning of the first step, seconds.
    pub first_s: f64,
    /// Length of a step, seconds.
    pub step_s: f64,
    /// The layers, the lowest first.
    pub layers: Vec<Layer>,
    /// Parts of the time axis.
    pub spans: Vec<Span>,
}

/// One of the [`Layers`].
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// Its sum in words.
    pub total: String,
    /// Index into the palette of parts.
    pub hue: usize,
    /// Fraction of each step; steps beyond the last have none.
    pub shares: Vec<f64>,
}

/// Stacked bars in groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the values are.
    pub quantity: String,
    /// Their unit.
    pub unit: Unit,
    /// The axis ends at 1 and not at the largest sum.
    pub whole: bool,
    /// Names of the parts, in order.
    pub parts: Vec<Part>,
    /// The groups.
    pub groups: Vec<BarGroup>,
}

/// A part of every bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Index into the palette of parts.
    pub hue: usize,
    /// Character in plain text.
    pub fill: char,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// What they belong to.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name within the group; empty when it is alone.
    pub label: String,
    /// One value per part.
    pub values: Vec<f64>,
    /// Text at its end.
    pub total: String,
}

/// Shares of many like things: one row each, the same shade for the same share.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What the rows are.
    pub thing: &'static str,
    /// Names of the shares.
    pub shares: Vec<&'static str>,
    /// Names of the words beside them.
    pub words: Vec<&'static str>,
    /// The rows, in groups.
    pub groups: Vec<MapGroup>,
}

/// Rows that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct MapGroup {
    /// What they belong to; empty where there is one group only.
    pub title: String,
    /// The rows.
    pub rows: Vec<MapRow>,
}

/// One row of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapRow {
    /// Its name.
    pub name: String,
    /// Fractions, one per name of a share; absent where not known.
    pub shares: Vec<Option<f64>>,
    /// Words, one per name of words.
    pub words: Vec<String>,
}

/// Changes at the cells of a grid, shaded by their size. The number is in each cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// The rows.
    pub rows: HeatAxis,
    /// The columns; a single one without a title where the grid has one axis.
    pub columns: HeatAxis,
    /// For each row a cell for each column.
    pub cells: Vec<Vec<HeatCell>>,
}

/// One side of a [`Heat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatAxis {
    /// What changes along it.
    pub title: String,
    /// Its points.
    pub labels: Vec<String>,
}

/// One cell of a [`Heat`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// The change, or why there is none.
    pub text: String,
    /// Quieter lines: the interval, the value.
    pub notes: Vec<String>,
    /// Better or worse; plain where the interval contains zero.
    pub tone: Tone,
    /// How much so: an index into [`HEAT`], and one more.
    pub level: usize,
    /// What is special about it.
    pub mark: Option<Mark>,
}

/// The stages in the order of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStages {
    /// What is lost.
    pub quantity: String,
    /// The stages.
    pub steps: Vec<PathStage>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStage {
    /// Its name.
    pub title: String,
    /// What is counted there.
    pub counts: String,
    /// What was lost.
    pub loss: Loss,
    /// What the number excludes, or where the loss was.
    pub note: String,
}

/// The loss at a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Nothing.
    None,
    /// Per second, and in the whole window.
    Some {
        /// Mean over the window.
        per_s: f64,
        /// All of the window.
        total: f64,
    },
    /// Nothing is lost here, but this share of the queue is full.
    Filled(f64),
    /// Unknown, and why.
    Unknown(String),
}

/// A histogram of sizes: columns of unequal width on a logarithmic axis, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// What the sizes are.
    pub quantity: String,
    /// Their unit.
    pub unit: Unit,
    /// What is counted, in the plural.
    pub counted: &'static str,
    /// The columns, ascending.
    pub bins: Vec<Bin>,
    /// Sizes that are named.
    pub marks: Vec<SizeMark>,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Where it begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// How many.
    pub count: u64,
}

/// A size with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeMark {
    /// The size.
    pub at: f64,
    /// Its name, short.
    pub name: &'static str,
}

/// Where the shades of a map begin; below the first there is none.
pub(crate) const SHADES: [f64; 5] = [0.005, 0.05, 0.20, 0.40, 0.70];

/// Where the shades of a change begin, either way; below the first there is none.
pub(crate) const HEAT: [f64; 4] = [0.02, 0.05, 0.15, 0.40];

/// The level of a change, 0 to 4.
pub(crate) fn heat(change: f64) -> usize {
    HEAT.iter().filter(|least| change.abs() >= **least).count()
}

/// A queue that is filled to this share loses next; own guess.
pub(crate) const NEARLY_FULL: f64 = 0.8;

/// The shade of a share, 0 to 5.
pub(crate) fn shade(share: f64) -> usize {
    SHADES.iter().filter(|least| share >= **least).count()
}
