//! The process that was asked about and those that it is a copy of, each since the one before it was
//! forked: what it depends on may have been made there, and come from there.

use crate::chop::sources::{Sought, Source};
use crate::fork::Fork;
use crate::questions::{Failure, no_answer};
use crate::slice::shown::{Answered, Shown, ViewArgs};
use crate::slice::subject::Subject;
use why_slice::births::Inherited;
use why_slice::reasons::{Reason, Why};
use why_slice::region::{Criterion, Only, Options, Region, Slice};

/// Those that it is a copy of, the nearest first. What belongs to each is told behind what belongs to
/// the process itself.
pub struct Lineage(Vec<Ancestor>);

struct Ancestor {
    subject: Subject,
    fork: Fork,
    /// Where the call is that created the process before it, and whose thread made it.
    call: Criterion,
}

/// What depends on a source: in the process itself, and then in those that it is a copy of.
pub struct Depending {
    pub slices: Vec<Slice>,
    /// Why there is no such source in any of them, if there is none.
    pub nowhere: Option<String>,
}

impl Lineage {
    /// Where only a part of the process counts, there are none.
    pub fn of(
        subject: &Subject,
        criterion: &Criterion,
        view: &ViewArgs,
    ) -> Result<Lineage, Failure> {
        let mut ancestors: Vec<Ancestor> = Vec::new();
        if criterion.from > 0 {
            return Ok(Lineage(ancestors));
        }
        loop {
            let last = ancestors.last().map_or(subject, |ancestor| &ancestor.subject);
            let fork = Fork::of(&last.recording, last.process, last.event()).map_err(no_answer)?;
            let Some(fork) = fork else { return Ok(Lineage(ancestors)) };
            let mut subject = last.elsewhere(fork.parent, fork.position)?;
            let call = subject.criterion(view)?;
            ancestors.push(Ancestor { subject, fork, call });
        }
    }

    /// The traces of all.
    pub fn regions<'a>(&'a self, subject: &'a Subject) -> impl Iterator<Item = &'a Region> {
        let ancestors = self.0.iter().map(|ancestor| &ancestor.subject);
        [subject].into_iter().chain(ancestors).map(|subject| subject.traced.region.as_ref())
    }

    /// What depends on a source: of the first of them on to the process itself, where it goes on up to
    /// a criterion. Of some instances of each it may be noted what of them depends on it.
    pub fn forward(
        &mut self,
        subject: &mut Subject,
        source: &Source,
        criterion: &Criterion,
        noting: Option<&[Slice]>,
        options: Options,
    ) -> Result<Depending, Failure> {
        let mut slices: Vec<Slice> = Vec::new();
        let (mut is_found, mut nowhere) = (false, None);
        // What the next process begins with that depends on it, and whether that it began does.
        let mut handed_on: Option<(Vec<Inherited>, bool)> = None;
        let first = self.0.len();
        for number in (0..=first).rev() {
            let call = number.checked_sub(1).map(|number| self.0[number].call.clone());
            let end = call.as_ref().unwrap_or(criterion);
            let until = end.position + u64::from(call.is_some());
            let subject = match number.checked_sub(1) {
                Some(number) => &mut self.0[number].subject,
                None => &mut *subject,
            };
            let mut sources = match source.find(subject, number < first)? {
                Sought::Here(found) => {
                    is_found = true;
                    found
                }
                Sought::NotHere(why) => {
                    nowhere = Some(why);
                    Vec::new()
                }
            };
            if let Some((inherited, undecided)) = handed_on.take() {
                let thread = subject.process as u64;
                let begun = Criterion { thread, inherited, undecided, ..Criterion::default() };
                sources.insert(0, begun);
            }
            for source in &mut sources {
                source.until = until;
                source.pruned.clone_from(&end.pruned);
                source.binding.clone_from(&end.binding);
            }
            let noting = noting.map(|noting| &noting[number].positions);
            let options = Options { inherited_by: Some(end.thread), noting, ..options };
            let mut slice = subject.timed(|region, watch| {
                region.forward_of(&sources, Options { watch: Some(watch), ..options })
            })?;
            handed_on = call.map(|call| {
                let undecided =
                    slice.positions.has(call.position) && !options.data && !options.thin;
                (std::mem::take(&mut slice.inherited), undecided)
            });
            slices.push(slice);
        }
        slices.reverse();
        Ok(Depending { slices, nowhere: nowhere.filter(|_| !is_found) })
    }

    /// What leads to a criterion in the process itself: of that, and then of what it was copied from,
    /// where the call that created it belongs to it, too. Of each only these may be told of.
    pub fn backward(
        &mut self,
        subject: &mut Subject,
        criterion: &Criterion,
        only: Option<&[Only]>,
        options: Options,
    ) -> Result<Vec<Slice>, Failure> {
        let Options { reasons, thin, .. } = options;
        if reasons == Why::Nothing || thin {
            return self.backward_over(subject, criterion, only, options);
        }
        // Who made a value may also have made what selected or decided, and is found as that first.
        let bare = Options { thin: true, count_only: true, ..options };
        let values = self.backward_over(subject, criterion, only, bare)?;
        // They are there meanwhile, and again as much is where both are put together.
        let size: usize =
            values.iter().map(|slice| 2 * size_of_val(slice.reasons.as_slice())).sum();
        let options = Options { taken: size, ..options };
        let mut slices = self.backward_over(subject, criterion, only, options)?;
        for (slice, values) in slices.iter_mut().zip(values) {
            let all = std::mem::take(&mut slice.reasons);
            slice.reasons = Reason::by_values(values.reasons, all, reasons);
        }
        Ok(slices)
    }

    fn backward_over(
        &mut self,
        subject: &mut Subject,
        criterion: &Criterion,
        only: Option<&[Only]>,
        options: Options,
    ) -> Result<Vec<Slice>, Failure> {
        let first = self.0.len();
        let find = |number: usize, subject: &mut Subject, criterion: &Criterion| {
            let only = only.map(|only| only[number]);
            let inherited_by = (number < first).then_some(subject.process as u64);
            subject.timed(|region, watch| {
                let watch = Some(watch);
                region.slice(criterion, Options { only, inherited_by, watch, ..options })
            })
        };
        let mut slices = vec![find(0, subject, criterion)?];
        for (number, Ancestor { subject, call, .. }) in (1..).zip(&mut self.0) {
            let inherited = std::mem::take(&mut slices[number - 1].inherited);
            let criterion = Criterion {
                decision: Some(call.position),
                position: call.position + 1,
                inherited,
                address: None,
                ..call.clone()
            };
            slices.push(find(number, subject, &criterion)?);
        }
        Ok(slices)
    }

    /// Slices of each, in lines.
    pub fn shown(
        &mut self,
        subject: &mut Subject,
        schema: &'static str,
        slices: &[Slice],
        view: &ViewArgs,
    ) -> Result<Shown, Failure> {
        let mut before: Option<Box<Shown>> = None;
        for (ancestor, slice) in self.0.iter_mut().zip(&slices[1..]).rev() {
            let Fork { parent, position, .. } = ancestor.fork;
            let mut shown = ancestor.subject.shown(&Answered { schema, slice }, view)?;
            shown.told = format!("before the fork, in process {parent}: {position}");
            before = match shown.in_slice {
                0 => before,
                _ => {
                    shown.before_fork = before.take();
                    Some(Box::new(shown))
                }
            };
        }
        let mut shown = subject.shown(&Answered { schema, slice: &slices[0] }, view)?;
        shown.before_fork = before;
        Ok(shown)
    }
}
