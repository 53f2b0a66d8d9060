//! Texts of requests with placeholders, and what a connection renders them from; see [`template`](crate::template).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data::Tables;
use crate::template::{Place, Random, Template, Values};

/// The tables of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    tables: Arc<Tables>,
}

/// Numbers and rows that all connections of a run take in turn.
#[derive(Debug)]
pub(crate) struct Dealt {
    requests: AtomicU64,
    /// Rows of each table.
    rows: Vec<AtomicU64>,
}

/// A request, as far as it is known before the load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// It contains the number of the request.
    counts: bool,
    /// The tables that it takes a row of.
    tables: Vec<usize>,
}

/// What a connection renders its requests from.
#[derive(Debug)]
pub(crate) struct Voice {
    tables: Arc<Tables>,
    dealt: Arc<Dealt>,
    user: u64,
    before: u64,
    rows: Vec<usize>,
    pub(crate) random: Random,
}

impl Texts {
    /// Reads the files of `data`.
    pub(crate) fn read(
        data: &[String],
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, String> {
        let mut files = Vec::new();
        for file in data {
            files.push((file.as_str(), read(file)?));
        }
        Ok(Self {
            tables: Arc::new(Tables::parse(&files)?),
        })
    }

    /// Takes a text apart.
    pub(crate) fn parse(&self, text: &str) -> Result<Template, String> {
        Template::parse(text, Place::Body, &|name| self.tables.find(name))
    }

    pub(crate) fn deal(&self) -> Dealt {
        Dealt {
            requests: AtomicU64::new(0),
            rows: (0..self.tables.number())
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    /// The voice of connection `number`, from 0.
    pub(crate) fn voice(&self, dealt: &Arc<Dealt>, seed: u64, number: usize) -> Voice {
        Voice {
            tables: self.tables.clone(),
            dealt: dealt.clone(),
            user: number as u64 + 1,
            before: 0,
            rows: vec![0; self.tables.number()],
            random: Random::new(seed, number as u64),
        }
    }
}

impl Needs {
    /// What a request of these texts needs.
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = &'t Template>) -> Self {
        let mut needs = Self::default();
        for text in texts {
            needs.counts |= text.counts();
            needs.tables.extend(text.tables());
        }
        needs.tables.sort_unstable();
        needs.tables.dedup();
        needs
    }
}

impl Voice {
    /// Begins the next request.
    #[inline]
    pub(crate) fn begin(&mut self, needs: &Needs) {
        if needs.counts {
            self.before = self.dealt.requests.fetch_add(1, Ordering::Relaxed);
        }
        for table in &needs.tables {
            let next = self.dealt.rows[*table].fetch_add(1, Ordering::Relaxed);
            self.rows[*table] = (next % self.tables.rows(*table) as u64) as usize;
        }
    }

    /// Appends a text of it to `to`.
    #[inline]
    pub(crate) fn render(&mut self, text: &Template, to: &mut Vec<u8>) {
        let mut values = Values {
            before: self.before,
            user: self.user,
            counters: &[],
            own: &mut [],
            rows: &self.rows,
            tables: &self.tables,
            random: &mut self.random,
            length: 0,
        };
        text.render(&mut values, to);
    }
}
