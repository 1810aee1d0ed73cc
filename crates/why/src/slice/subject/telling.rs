//! What is shown of a slice that was found: its lines with what they had made, and what is not shown.

use super::Subject;
use crate::executions::times;
use crate::questions::answer::ValueSeen;
use crate::questions::{Failure, no_answer};
use crate::slice::file_names;
use crate::slice::lines::{Kind, Line, Lines};
use crate::slice::races;
use crate::slice::shown::{Answered, Instance, Preface, Shown, ShownLine, ViewArgs};
use crate::slice::values::{self, Asked, Seen};
use std::cmp::Reverse;
use std::time::Instant;
use why_effects::cells;
use why_record::position::Position;
use why_slice::backward::Area;
use why_slice::reasons::{Reason, Via};
use why_slice::region::Slice;
use why_slice::returns::Called;

impl Subject {
    /// A slice in lines, with what they had made.
    pub fn shown(&mut self, answered: &Answered, view: &ViewArgs) -> Result<Shown, Failure> {
        let slice = answered.slice;
        let lines = self.sources().fold(&slice.reasons, self.traced.region.jumps());
        let count = view.how_many(lines.all.iter().map(|line| line.parent));
        let begun = Instant::now();
        let region = &self.traced.region;
        let races = region.races(slice).map_err(no_answer)?;
        let races = races::shown(&races, region, &mut self.sources(), &lines.all);
        self.slicing += begun.elapsed();
        // Of those that will not be shown nobody wants to know what they made.
        let mut seen = self.seen(slice, &lines.all[..count])?;
        seen.resize(lines.all.len(), None);
        let sources = lines.all.iter().filter_map(|line| line.place.source.as_ref());
        let names = file_names::of(sources.map(|(file, _)| file.as_str()));
        let order = by_time(&slice.reasons);
        let shown = |(line, seen): (&Line, Option<Seen>)| {
            let reason = &slice.reasons[line.reason];
            let moment = self.traced.region.moment(reason.position);
            let (variable, value) = seen.map(|seen| (seen.name, seen.value)).unzip();
            ShownLine {
                place: line.place.told_with(|file| names[file]),
                file: line.place.source.as_ref().map(|(file, _)| file.clone()),
                line: line.place.source.as_ref().map(|(_, line)| *line),
                function: line.place.function.clone(),
                module: line.place.module.clone(),
                times: line.times,
                parent: line.parent,
                because: line.kind,
                stands_for_calls: line.calls,
                thread: reason.thread,
                position: moment.map(|(event, ticks)| format!("{event}.{ticks}")),
                order: order[line.reason],
                variable,
                value,
            }
        };
        Ok(Shown {
            schema: answered.schema.to_owned(),
            recording: self.recording.path.clone(),
            process: self.process,
            criterion: self.question.clone(),
            told: self.told(),
            thread: self.answer.thread as u64,
            lines: lines.all.iter().zip(seen).map(shown).collect(),
            races,
            left_out: self.left_out(slice, &lines),
            runs: Vec::new(),
            in_slice: slice.count,
            told_instances: if view.all { self.instances(slice) } else { Vec::new() },
            traced: self.traced.region.length,
            preface: Preface::default(),
            before_fork: None,
            figures: format!(
                "{} instructions in the trace, {} in {:.3} s; {} in the slice, found in {:.3} s; \
                 {} replays besides",
                self.traced.region.length,
                if self.traced.is_new { "made" } else { "opened" },
                self.tracing.as_secs_f64(),
                slice.count,
                self.slicing.as_secs_f64(),
                self.stats.replays
            ),
        })
    }

    /// Everything that is known of the instructions of a slice.
    fn instances(&self, slice: &Slice) -> Vec<Instance> {
        let mut sources = self.sources();
        let instance = |reason: &Reason| {
            let moment = self.traced.region.moment(reason.position);
            Instance {
                position: moment.map(|(event, ticks)| format!("{event}.{ticks}")),
                number: reason.position,
                thread: reason.thread,
                address: reason.address,
                place: sources.told(reason.address),
                wanter: reason.wanter,
                because: Kind::of(reason),
                made: match &reason.via {
                    Via::Made(area) => Some(area_told(area)),
                    Via::Wrote(at) => Some(format!("memory at {at:#x}")),
                    Via::Decided | Via::Tested => None,
                },
            }
        };
        slice.reasons.iter().map(instance).collect()
    }

    /// What was asked for, as it was.
    fn told(&self) -> String {
        match &self.answer.value {
            Some(Ok(ValueSeen::Expression { expression, value, .. })) => {
                format!("{}: {expression} = {value}", self.question)
            }
            Some(Ok(ValueSeen::Register { name, value })) => {
                format!("{}: {name} = {value:#x}", self.question)
            }
            Some(Ok(ValueSeen::Memory { bytes, .. })) if bytes.len() == 1 => {
                format!("{}: {:#04x} {:?}", self.question, bytes[0], char::from(bytes[0]))
            }
            _ => {
                let mut sources = self.sources();
                let place = match (&self.predicate, self.place.pc) {
                    (Some(predicate), _) => {
                        format!("because of {}", sources.told(predicate.address))
                    }
                    (None, Some(pc)) => sources.told(pc),
                    (None, None) => String::new(),
                };
                format!("{}: {}  {place}", self.question, self.answer.position)
            }
        }
    }

    /// What some lines had made.
    fn seen(&mut self, slice: &Slice, lines: &[Line]) -> Result<Vec<Option<Seen>>, Failure> {
        let made = |(number, line): (usize, &Line)| {
            let reason = &slice.reasons[line.made];
            let area = match &reason.via {
                Via::Made(area) => area.clone(),
                Via::Wrote(at) => Area::Memory(*at..*at + 1),
                Via::Decided | Via::Tested => return None,
            };
            Some((number, reason, area))
        };
        let made: Vec<_> = lines.iter().enumerate().filter_map(made).collect();
        let whens = self.whens(made.iter().map(|(_, reason, _)| *reason))?;
        let (mut numbers, mut all) = (Vec::new(), Vec::new());
        for ((number, reason, area), when) in made.into_iter().zip(whens) {
            if let Some((event, ticks)) = self.traced.region.moment(when) {
                let moment = Position { event, ticks, pc: None };
                numbers.push(number);
                let Reason { thread, address: maker, site: call, .. } = *reason;
                all.push(Asked { moment, thread, area, maker, call });
            }
        }
        let (answers, report) =
            values::ask(&self.recording, self.process, all).map_err(no_answer)?;
        report.iter().for_each(|report| self.stats.add(report));
        let mut seen = vec![None; lines.len()];
        for (number, answer) in numbers.into_iter().zip(answers) {
            seen[number] = answer;
        }
        Ok(seen)
    }

    /// When what some instructions made is to be looked at: right behind them, or, where a call is
    /// shown instead, when that has come back, and what it makes is whole.
    fn whens<'a>(
        &mut self,
        reasons: impl Iterator<Item = &'a Reason>,
    ) -> Result<Vec<u64>, Failure> {
        let begun = Instant::now();
        let reasons: Vec<&Reason> = reasons.collect();
        let called = |reason: &&Reason| {
            let Reason { thread, position, .. } = **reason;
            reason.site.map(|call| Called { call, thread, position })
        };
        let calls: Vec<Called> = reasons.iter().filter_map(called).collect();
        let mut returns = self.traced.region.returns(&calls).map_err(no_answer)?.into_iter();
        let when = |reason: &&Reason| {
            let back = reason.site.and_then(|_| returns.next().flatten());
            back.unwrap_or(reason.position + 1)
        };
        let whens = reasons.iter().map(when).collect();
        self.slicing += begun.elapsed();
        Ok(whens)
    }

    /// What is not shown, and why.
    fn left_out(&self, slice: &Slice, lines: &Lines) -> Vec<String> {
        let mut left_out = Vec::new();
        if let (Some(Ok(ValueSeen::Expression { expression, .. })), true) =
            (&self.answer.value, self.answer.origins.is_computed)
        {
            left_out.push(format!(
                "the debug information computes {expression} from {}: these are what is followed",
                self.answer.origins.told()
            ));
        }
        let (instances, of) = (slice.count, self.traced.region.length);
        left_out.push(format!("{instances} of {of} instructions that were executed belong to it"));
        if let Some((name, _)) = lines.without_source.first() {
            let count = lines.without_source.len();
            let instructions: u64 = lines.without_source.iter().map(|(_, count)| count).sum();
            let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            left_out.push(format!(
                "{instructions} of them have no source and no call that has: {name}{others}"
            ));
        }
        if slice.pruned > 0 {
            left_out.push(format!(
                "{} of the linker's own, or pruned, were not looked into",
                slice.pruned
            ));
        }
        if slice.others_wrote > 0 {
            left_out.push(format!(
                "{} it came to what another process had written to shared memory, which was not \
                 looked into",
                times(slice.others_wrote)
            ));
        }
        if !slice.passed_over.is_empty() {
            let some = slice.passed_over.iter().take(3).map(|at| format!("{at:#x}"));
            left_out.push(format!(
                "what {} instructions did is not known, such as {}: some may be missing",
                slice.passed_over.len(),
                some.collect::<Vec<_>>().join(", ")
            ));
        }
        left_out
    }
}

/// The place of each of some reasons if the last executed comes first.
fn by_time(reasons: &[Reason]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..reasons.len()).collect();
    order.sort_by_key(|number| Reverse(reasons[*number].position));
    let mut places = vec![0; reasons.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
    places
}

/// Where something was made.
fn area_told(area: &Area) -> String {
    match area {
        Area::Memory(bytes) => format!("memory at {:#x}", bytes.start),
        Area::Cells(cells) => cells::name(cells.start),
    }
}
