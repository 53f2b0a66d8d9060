//! A rung that is a grid: every cell in a few pairs, then the best one judged like any rung, and its neighbours against it.
//!
//! Each cell is compared with the state before the rung, so that drift between the first cell and the last cancels. The cells only choose:
//! the estimate of the best of many is too good (the winner's curse), so the best cell is judged in pairs of its own, and only these
//! comparisons spend alpha. Its neighbours say from which point on an axis gains nothing more.

use rungwise_model::tune::{
    Delta, Grid as Document, GridAxis, GridCell, GridNeighbour, Outcome, Pair, Rung,
};
use rungwise_stats::interval::median;
use rungwise_stats::ratio;
use rungwise_stats::schedule::shuffled;

use crate::Error;
use crate::compare::{Compared, Comparison, compare, seed_of};
use crate::design::{Design, Grid, Judging, Objective, Part, Step};
use crate::ladder::{Climb, empty, not_carried, outcome};
use crate::stage::Variant;

/// A grid whose cells were measured.
struct Tried<'s> {
    step: &'s Step,
    grid: &'s Grid,
    judging: &'s Judging,
    before: Variant,
    cells: Vec<GridCell>,
    value_before: Option<f64>,
}

impl Climb<'_> {
    /// Judges a grid; `after_it` comparisons may follow it at most.
    pub(crate) fn grid(&mut self, step: &Step, grid: &Grid, after_it: usize) -> Result<(), Error> {
        let mut tried = Tried {
            step,
            grid,
            judging: &self.design.judging,
            before: self.before(step),
            cells: Vec::new(),
            value_before: None,
        };
        self.measure_cells(&mut tried)?;
        let Some(best) = tried.best() else {
            let rung = tried.without_best();
            self.finish(rung);
            return Ok(());
        };
        // A branch is judged like a step, to know what it gains.
        let points = || grid.points(&best);
        let chosen = Step {
            title: format!(
                "{}: {}",
                step.title,
                points()
                    .map(|point| &*point.label)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            part: Part::Step,
            set: points().flat_map(|point| point.set.clone()).collect(),
            grid: None,
            workload_after: points().fold(step.workload_after.clone(), |changes, point| {
                changes.and(&point.workload)
            }),
            ..step.clone()
        };
        let after = tried.variant(&best);
        self.to_come = step.comparisons() + after_it;
        // Under an id of its own: a resumed run that chooses another cell may not take these pairs for its own.
        let proof = format!("{}@{}", step.id, written(&best)) + "-before";
        let mut rung = self.judge(&chosen, &proof, &chosen.title, &tried.before, &after)?;
        rung.id.clone_from(&step.id);
        let is_better = rung.outcome == Outcome::Kept;
        let neighbours = if is_better {
            self.neighbours(&tried, &best, &after, rung.delta, after_it)?
        } else {
            Vec::new()
        };
        let sentence = tried.sentence(&best, &rung, &neighbours);
        rung.grid = Some(Box::new(Document {
            best: Some(best),
            neighbours,
            ..tried.document(sentence)
        }));
        if step.part == Part::Branch && rung.outcome != Outcome::Skipped {
            rung.outcome = Outcome::Observed;
            rung.reason = not_carried(&rung.reason);
        }
        if rung.outcome == Outcome::Kept {
            self.keep(&step.id, after);
        }
        if step.shared_lock {
            self.lock_left = rung.outcome != Outcome::Kept;
        }
        self.finish(rung);
        Ok(())
    }

    /// Measures all cells, in random order.
    fn measure_cells(&mut self, tried: &mut Tried<'_>) -> Result<(), Error> {
        let step = tried.step;
        tried.cells = tried.grid.cells().into_iter().map(unmeasured).collect();
        let mut values_before = Vec::new();
        for index in shuffled(tried.cells.len(), seed_of(tried.judging.seed, &step.id)) {
            let at = tried.cells[index].at.clone();
            let after = tried.variant(&at);
            if after == tried.before {
                tried.cells[index].is_before = true;
                continue;
            }
            if let Some(why) = self.refused(&after)? {
                tried.cells[index].why_not = Some(why);
                continue;
            }
            let compared = self.compare_cell(tried, &at, &after)?;
            let objective = &tried.judging.objective;
            let value = |pair: &Pair| objective.value_in(&pair.b).unwrap_or(f64::NAN);
            let cell = &mut tried.cells[index];
            cell.change = compared.delta;
            cell.value = compared.median_of(value).filter(|value| value.is_finite());
            cell.pairs = compared.counted().count() as u32;
            cell.discarded = compared.discarded();
            cell.why_not = match compared.delta {
                None if compared.failed => Some(compared.reason.clone()),
                None => Some(compared.too_few()),
                Some(_) => compared.broken_guard(&tried.judging.guards),
            };
            values_before.extend(
                compared
                    .counted()
                    .filter_map(|pair| objective.value_in(&pair.a)),
            );
        }
        tried.value_before = median(&values_before).filter(|value| value.is_finite());
        for cell in tried.cells.iter_mut().filter(|cell| cell.is_before) {
            cell.value = tried.value_before;
        }
        let lost = tried.cells.iter().filter(|cell| cell.change.is_none());
        self.climbed.could_not.extend(lost.filter_map(|cell| {
            let name = tried.grid.cell_name(&cell.at);
            Some(format!("{}, {name}: {}", step.id, cell.why_not.as_ref()?))
        }));
        Ok(())
    }

    /// A few pairs of one cell with the state before the rung.
    fn compare_cell(
        &mut self,
        tried: &Tried<'_>,
        at: &[usize],
        after: &Variant,
    ) -> Result<Compared, Error> {
        let Tried {
            step,
            grid,
            judging,
            before,
            ..
        } = tried;
        let id = format!("{}@{}", step.id, written(at));
        let compared = compare(
            &Comparison {
                id: &id,
                title: &format!("{}: {}", step.title, grid.cell_name(at)),
                a: before,
                b: after,
                // Cells are compared with each other by the objective, which the CPU cost is not.
                shared_lock: true,
                fresh: self.design.restarts && after.workload != before.workload,
                alpha: judging.alpha,
            },
            &Judging {
                looks: vec![Design::PAIRS_OF_A_CELL],
                ..Judging::clone(judging)
            },
            self.stage,
            self.record,
            self.observer,
        )?;
        self.note_spared(&id, &compared);
        Ok(compared)
    }

    /// Judges the cells next to the best one against it. `proof` is what the best one gains over the state before.
    fn neighbours(
        &mut self,
        tried: &Tried<'_>,
        best: &[usize],
        after: &Variant,
        proof: Option<Delta>,
        after_it: usize,
    ) -> Result<Vec<GridNeighbour>, Error> {
        let step = tried.step;
        let around = tried.grid.neighbours(best);
        let is_judged = |at: &[usize]| {
            let cell = tried.cell(at);
            cell.is_some_and(|cell| cell.change.is_some() && cell.why_not.is_none())
        };
        self.to_come = around.iter().filter(|(_, at)| is_judged(at)).count() + after_it;
        let mut neighbours = Vec::new();
        for (axis, at) in around {
            let mut neighbour = GridNeighbour {
                axis,
                outcome: Outcome::Skipped,
                delta: None,
                reason: String::new(),
                confidence: None,
                at,
            };
            if is_judged(&neighbour.at) {
                let variant = tried.variant(&neighbour.at);
                let compared = self.compared(
                    &step.part,
                    &Comparison {
                        id: &format!("{}@{}-{}", step.id, written(best), written(&neighbour.at)),
                        title: &format!(
                            "{}: {} against the best cell",
                            step.title,
                            tried.grid.cell_name(&neighbour.at)
                        ),
                        a: after,
                        b: &variant,
                        shared_lock: step.shared_lock || self.lock_left,
                        fresh: self.design.restarts && variant.workload != after.workload,
                        alpha: self.budget.part(self.to_come),
                    },
                )?;
                neighbour.outcome = outcome(compared.call);
                neighbour.delta = compared.delta;
                neighbour.confidence = Some(1.0 - compared.alpha_per_look);
                // A guard rail has a veto of what would be kept alone; here a cell may not be recommended either.
                if let Some(broken) = compared.broken_guard(&tried.judging.guards) {
                    neighbour.outcome = Outcome::Reverted;
                    neighbour.reason = broken;
                } else {
                    neighbour.reason = compared.reason;
                    tried.forgive(&mut neighbour);
                }
            } else if let Some(cell) = tried.cell(&neighbour.at) {
                if cell.is_before {
                    neighbour.outcome = Outcome::Reverted;
                    neighbour.delta = proof.map(reversed);
                    "the state before the rung, in the pairs by which the best cell was judged"
                        .clone_into(&mut neighbour.reason);
                } else {
                    if cell.change.is_some() {
                        neighbour.outcome = Outcome::Reverted;
                    }
                    neighbour.reason = cell.why_not.clone().unwrap_or_default();
                }
            }
            neighbours.push(neighbour);
        }
        Ok(neighbours)
    }
}

impl Tried<'_> {
    fn cell(&self, at: &[usize]) -> Option<&GridCell> {
        self.cells.iter().find(|cell| cell.at == at)
    }

    /// The state before the rung with the points of a cell.
    fn variant(&self, at: &[usize]) -> Variant {
        let points = self.grid.points(at);
        points.fold(self.before.clone(), |variant, point| {
            let mut variant = variant.with(&point.set);
            variant.workload = variant.workload.and(&point.workload);
            variant
        })
    }

    /// The cell with the best estimate, of equal ones the cheapest.
    fn best(&self) -> Option<Vec<usize>> {
        let fit = self
            .cells
            .iter()
            .rev()
            .filter(|cell| cell.why_not.is_none());
        let estimates =
            fit.filter_map(|cell| Some((cell, gain(&self.judging.objective, cell.change?))));
        let best = estimates.max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(cell, _)| cell.at.clone())
    }

    /// A neighbour is asked whether it is as good. If it is worse by less than the smallest effect worth keeping, it is.
    fn forgive(&self, neighbour: &mut GridNeighbour) {
        let smallest = ratio::from_change(self.judging.min_effect);
        let is_small = neighbour.delta.is_some_and(|delta| {
            let [low, high] = [delta.low, delta.high].map(ratio::from_change);
            low > -smallest && high < smallest
        });
        if neighbour.outcome == Outcome::Reverted && is_small {
            neighbour.outcome = Outcome::Same;
            neighbour.reason += ", but by less than the smallest effect worth keeping";
        }
    }

    /// The row of a grid of which no cell can be judged.
    fn without_best(&self) -> Rung {
        let tried = self.cells.iter().filter(|cell| !cell.is_before);
        let cells = tried.count();
        let why = self.cells.iter().find_map(|cell| cell.why_not.as_deref());
        // Those with an interval are ruled out by a guard rail.
        let is_ruled_out = self.cells.iter().any(|cell| cell.change.is_some());
        let reason = format!(
            "none of {cells} cells can be {}, the first: {}",
            if is_ruled_out { "kept" } else { "judged" },
            why.unwrap_or("reason not recorded")
        );
        let is_measured = self
            .cells
            .iter()
            .any(|cell| cell.pairs + cell.discarded > 0);
        let outcome = match self.step.part {
            Part::Branch => Outcome::Observed,
            _ if is_ruled_out => Outcome::Reverted,
            _ if is_measured => Outcome::Inconclusive,
            _ => Outcome::Skipped,
        };
        let sentence = format!("No cell can be kept: {reason}.");
        Rung {
            grid: Some(Box::new(self.document(sentence))),
            ..empty(self.step, outcome, &reason)
        }
    }

    fn document(&self, sentence: String) -> Document {
        let axes = self.grid.axes.iter().map(|axis| GridAxis {
            title: axis.title.clone(),
            points: axis
                .points
                .iter()
                .map(|point| point.label.clone())
                .collect(),
        });
        Document {
            axes: axes.collect(),
            cells: self.cells.clone(),
            value_before: self.value_before,
            confidence: 1.0 - self.judging.alpha,
            best: None,
            neighbours: Vec::new(),
            sentence,
        }
    }

    /// What was found, in words.
    fn sentence(&self, best: &[usize], rung: &Rung, neighbours: &[GridNeighbour]) -> String {
        let cells = self.cells.len();
        let name = self.grid.cell_name(best);
        if rung.outcome != Outcome::Kept {
            return format!(
                "No cell was shown to help. By the estimates the best of {cells} is {name}: {}.",
                rung.reason
            );
        }
        let gained = match rung.delta {
            Some(delta) => format!("{} {}", self.judging.objective.words(), shown(delta)),
            None => rung.reason.clone(),
        };
        let mut parts = vec![format!("Best of {cells} cells: {name}, {gained}")];
        parts.extend(
            neighbours
                .iter()
                .map(|neighbour| self.clause(best, neighbour)),
        );
        for (axis, point) in best.iter().enumerate() {
            if point + 1 == self.grid.axes[axis].points.len() {
                let name = self.grid.point_name(axis, *point);
                parts.push(format!("no point beyond {name} was tried"));
            }
        }
        format!("{}.", parts.join("; "))
    }

    /// How a neighbour compares with the best cell: `connections 8 gains nothing more (+0.3 % [-1.1 %, +1.7 %])`.
    fn clause(&self, best: &[usize], neighbour: &GridNeighbour) -> String {
        let GridNeighbour {
            axis, at, delta, ..
        } = neighbour;
        let name = self.grid.point_name(*axis, at[*axis]);
        let seen = delta.map_or_else(|| neighbour.reason.clone(), shown);
        let is_dearer = at[*axis] > best[*axis];
        let is_worse = delta.is_some_and(|delta| gain(&self.judging.objective, delta) < 0.0);
        match neighbour.outcome {
            Outcome::Same if is_dearer => format!("{name} gains nothing more ({seen})"),
            Outcome::Same => format!(
                "{name} costs less and is as good within {:.1} % ({seen})",
                self.judging.min_effect * 100.0
            ),
            Outcome::Reverted if is_worse => format!("{name} is worse ({seen})"),
            Outcome::Reverted if self.cell(at).is_some_and(|cell| cell.is_before) => {
                format!("{name} is the state before the rung")
            }
            Outcome::Reverted => format!("{name} cannot be kept ({})", neighbour.reason),
            Outcome::Kept if self.step.part == Part::Branch => {
                format!("{name} is better still ({seen})")
            }
            Outcome::Kept => {
                format!("{name} is better still ({seen}) but not kept: try it in another rung")
            }
            Outcome::Skipped => format!("{name} was not measured ({})", neighbour.reason),
            Outcome::Inconclusive | Outcome::Observed => format!("{name} is undecided ({seen})"),
        }
    }
}

fn unmeasured(at: Vec<usize>) -> GridCell {
    GridCell {
        at,
        ..GridCell::default()
    }
}

/// The indices of a cell's points in the id of a comparison. No id of a scenario holds an '@', so none is taken.
fn written(at: &[usize]) -> String {
    let at: Vec<String> = at.iter().map(usize::to_string).collect();
    at.join(",")
}

/// A change, above zero where it is for the better.
fn gain(objective: &Objective, change: Delta) -> f64 {
    if objective.less_is_better() {
        -change.point
    } else {
        change.point
    }
}

/// The same change seen from the other side.
fn reversed(delta: Delta) -> Delta {
    let back = |change: f64| ratio::to_change(-ratio::from_change(change));
    Delta {
        point: back(delta.point),
        low: back(delta.high),
        high: back(delta.low),
        ..delta
    }
}

fn shown(delta: Delta) -> String {
    format!(
        "{:+.1} % [{:+.1} %, {:+.1} %]",
        delta.point * 100.0,
        delta.low * 100.0,
        delta.high * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_and_its_reverse_cancel() {
        let delta = Delta {
            point: -0.5,
            low: -0.6,
            high: -0.2,
            pairs: 8,
            discarded: 1,
        };
        let back = reversed(delta);
        assert!((back.point - 1.0).abs() < 1e-12);
        assert!((back.low - 0.25).abs() < 1e-12 && (back.high - 1.5).abs() < 1e-12);
        assert_eq!((back.pairs, back.discarded), (8, 1));
    }
}
