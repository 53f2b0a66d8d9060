//! The axes of a rung that is a grid, and what cannot be one.

use super::super::Switches;
use super::super::document::{At, AxisTable, PointTable, RungTable, ServiceTable};
use super::Reader;
use crate::design::{Axis, Grid, Point};
use crate::stage::{Changes, Side};

/// A table of numbers with more sides cannot be read on a page.
const MOST_AXES: usize = 2;

impl Reader<'_, '_> {
    /// The grid of a rung, where it has axes.
    pub(super) fn grid(
        &mut self,
        rung: &RungTable,
        sides: &[Side],
        switches: &Switches,
        service: &ServiceTable,
        key: &str,
    ) -> Option<Grid> {
        let first = rung.axes.first()?;
        self.no_grid_with(rung, key);
        if let Some(third) = rung.axes.get(MOST_AXES) {
            let message = "a grid has one or two axes; make another rung of the third";
            let key = format!("{key}.axes[{MOST_AXES}]");
            self.problems.add(third.span(), key, message);
        }
        let mut axes: Vec<Axis> = Vec::new();
        for (index, axis) in rung.axes.iter().enumerate() {
            let key = format!("{key}.axes[{index}]");
            let points = self.points(axis, sides, switches, service, &key);
            let title = &axis.get().title;
            let is_taken = axes.iter().any(|earlier| earlier.title == *title);
            if title.trim().is_empty() || is_taken {
                let message =
                    "each axis needs a title of its own, by which the report names its points";
                self.problems
                    .add(axis.span(), format!("{key}.title"), message);
            }
            for earlier in &axes {
                self.no_knob_twice(axis, earlier, &key);
            }
            axes.push(Axis {
                title: axis.get().title.clone(),
                points,
            });
        }
        let cells: usize = axes.iter().map(|axis| axis.points.len()).product();
        if cells > Grid::MOST_CELLS && axes.len() <= MOST_AXES {
            let message = format!(
                "the grid has {cells} cells, and {} are the most; leave points out",
                Grid::MOST_CELLS
            );
            self.problems
                .add(first.span(), format!("{key}.axes"), message);
        }
        Some(Grid { axes })
    }

    /// Refuses keys that have no meaning for a grid.
    fn no_grid_with(&mut self, rung: &RungTable, key: &str) {
        if let Some((id, _)) = rung.set.first_key_value() {
            let message =
                "a grid has its settings in its points; move 'set' there, or into a rung before it";
            self.problems.add(id.span(), format!("{key}.set"), message);
        }
        if let Some(member) = rung.bundle_with.first() {
            let message = "a grid is tried on its own; remove 'bundle_with'";
            let key = format!("{key}.bundle_with");
            self.problems.add(member.span(), key, message);
        }
        if let Some(after) = &rung.workload_after {
            let message = "the points of a grid change the workload; write it there as 'workload'";
            let key = format!("{key}.workload_after");
            self.problems.add(after.span(), key, message);
        }
        if let Some(limit) = rung.limit.as_ref().filter(|limit| *limit.get()) {
            let message = "the best cell of a grid is judged; write branch = true to measure it for comparison";
            self.problems
                .add(limit.span(), format!("{key}.limit"), message);
        }
    }

    fn points(
        &mut self,
        axis: &At<AxisTable>,
        sides: &[Side],
        switches: &Switches,
        service: &ServiceTable,
        key: &str,
    ) -> Vec<Point> {
        let written = &axis.get().points;
        if written.get().len() < 2 {
            let message = "an axis needs two points or more; a single change is a rung with 'set'";
            self.problems
                .add(written.span(), format!("{key}.points"), message);
        }
        let mut points: Vec<Point> = Vec::new();
        for (index, at) in written.get().iter().enumerate() {
            let PointTable {
                label,
                set,
                workload,
            } = at.get();
            let key = format!("{key}.points[{index}]");
            let wrong = if label.get().trim().is_empty() {
                Some("a point needs a label, such as \"256 KB\"".to_owned())
            } else {
                let mut earlier = points.iter();
                let twice = earlier.any(|point| point.label == *label.get());
                twice.then(|| {
                    format!(
                        "'{}' is the label of an earlier point; choose another",
                        label.get()
                    )
                })
            };
            if let Some(message) = wrong {
                self.problems
                    .add(label.span(), format!("{key}.label"), message);
            }
            let key_of_set = format!("{key}.set");
            if service.command.is_none() {
                self.no_switches(set, &key_of_set);
            }
            let point = Point {
                label: label.get().clone(),
                set: self.settings(set, sides, switches, &key_of_set),
                workload: workload
                    .as_ref()
                    .map_or(Changes::NONE, |changes| changes.get().clone()),
            };
            let same =
                |earlier: &&Point| earlier.set == point.set && earlier.workload == point.workload;
            // What was refused for its shape has left the point and has its own problem.
            if let Some(earlier) = points.iter().find(same)
                && !self.problems.mentions(&format!("{key}."))
            {
                let message = format!(
                    "changes the same as the point '{}'; remove one of them",
                    earlier.label
                );
                self.problems.add(at.span(), key, message);
            }
            points.push(point);
        }
        points
    }

    /// Refuses what an earlier axis changes too: one of them would have no effect.
    fn no_knob_twice(&mut self, axis: &At<AxisTable>, earlier: &Axis, key: &str) {
        let sets = |knob: &str| {
            let mut set = earlier.points.iter().flat_map(|point| &point.set);
            set.any(|(setting, _)| setting.knob == knob)
        };
        let drives = |parameter: &str| {
            let mut changes = earlier
                .points
                .iter()
                .flat_map(|point| point.workload.keys());
            changes.any(|changed| changed == parameter)
        };
        for (index, at) in axis.get().points.get().iter().enumerate() {
            let point = at.get();
            let key = format!("{key}.points[{index}]");
            if let Some((id, _)) = point.set.iter().find(|(id, _)| sets(id.get())) {
                let message = format!(
                    "the axis '{}' sets '{}' too; a knob belongs to one axis",
                    earlier.title,
                    id.get()
                );
                self.problems.add(id.span(), format!("{key}.set"), message);
                return;
            }
            let Some(changes) = &point.workload else {
                continue;
            };
            if let Some(parameter) = changes.get().keys().find(|parameter| drives(parameter)) {
                let message = format!(
                    "the axis '{}' changes '{parameter}' too; a parameter belongs to one axis",
                    earlier.title
                );
                let key = format!("{key}.workload");
                self.problems.add(changes.span(), key, message);
                return;
            }
        }
    }
}
