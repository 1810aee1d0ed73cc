//! All that is asked about a process, answered in one session. First the replay goes forward,
//! past all moments and through all executions, and notes where last executions were; then it
//! goes back to those.

use crate::criterion::{Code, Criterion, Place, Value};
use crate::executions::{self, Absent, Executions, Within};
use crate::images::Images;
use crate::questions::answer::{Answer, Asker, LineMoment};
use why_engine::{Module, Observer, Scene, Then};
use why_record::position::{Moment, Position};

/// What came of a criterion.
pub type Told = Result<Box<Answer>, Absent>;

pub struct Visits {
    images: Images,
    visits: Vec<Visit>,
    course: Course,
    /// What the recording is an excerpt of.
    excerpt_of: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Moments come in the order of time, and executions are counted.
    Ahead,
    /// All that was ahead has been seen: back to the last execution that is wanted by this
    /// visit.
    Back(usize),
}

struct Visit {
    goal: Goal,
    asker: Asker,
    /// The line that is to be left before its value is told.
    within: Option<Within>,
    told: Option<Told>,
}

enum Goal {
    Moment(Moment),
    Execution {
        executions: Box<Executions>,
        /// The last one if none is given.
        number: Option<u64>,
        /// A line's value is the one that it leaves behind.
        when_left: bool,
    },
}

impl Visits {
    pub fn new(
        criteria: Vec<Criterion>,
        all_variables: bool,
        images: Images,
        excerpt_of: Option<String>,
    ) -> Visits {
        let visit = |Criterion { place, value }| {
            let goal = match place {
                Place::Moment(moment) => Goal::Moment(moment),
                Place::Written(..) => unreachable!("its moment has been found"),
                Place::Code(code, number) => {
                    let when_left = value.is_some() && matches!(code, Code::Line { .. });
                    let executions = Box::new(Executions::new(code));
                    Goal::Execution { executions, number, when_left }
                }
            };
            Visit { goal, asker: Asker { value, all_variables }, within: None, told: None }
        };
        let visits = criteria.into_iter().map(visit).collect();
        Visits { images, visits, course: Course::Ahead, excerpt_of }
    }

    /// Where to begin, and whether all that is before it has to be seen.
    pub fn first(&self) -> (Moment, bool) {
        (self.next_moment().unwrap_or(Moment::End), self.counts())
    }

    /// The first moment that is still to be visited.
    fn next_moment(&self) -> Option<Moment> {
        let moments = self.visits.iter().filter(|visit| visit.told.is_none());
        moments.filter_map(Visit::moment).min_by_key(|moment| in_time(*moment))
    }

    /// Whether executions are still to be counted, or to be over.
    fn counts(&self) -> bool {
        let counts = |visit: &Visit| visit.moment().is_none() && !visit.is_told();
        self.course == Course::Ahead && self.visits.iter().any(counts)
    }

    /// What comes when all has been seen that is to be seen here.
    fn next(&mut self) -> Then {
        match (self.next_moment(), self.counts()) {
            (Some(moment), true) => Then::Until(moment),
            (Some(moment), false) => Then::GoTo(moment),
            (None, true) => Then::Until(Moment::End),
            (None, false) => self.next_back(),
        }
    }

    /// The next of the last executions, in the order of time.
    fn next_back(&mut self) -> Then {
        let left = self.visits.iter().enumerate().filter(|(_, visit)| !visit.is_told());
        let next = left
            .filter_map(|(index, visit)| Some((visit.last_execution()?, index)))
            .min_by_key(|(position, _)| *position);
        let Some((position, index)) = next else {
            return Then::Enough;
        };
        self.course = Course::Back(index);
        Then::GoTo(Moment::At(position))
    }

    /// The process has ended: which executions there were is known.
    fn end(&mut self, scene: &Scene) -> Then {
        for visit in &mut self.visits {
            if let Some(mut within) = visit.within.take().filter(Within::is_in_it) {
                // It has ended within the line.
                within.see_from(None);
                visit.look(scene, &mut self.images, Some(&within), Some(LineMoment::Left));
            }
            visit.give_up_counting();
        }
        self.next_back()
    }
}

/// In the order of time.
fn in_time(moment: Moment) -> (u8, Option<Position>) {
    match moment {
        Moment::Start => (0, None),
        Moment::At(position) => (1, Some(position)),
        Moment::End => (2, None),
    }
}

impl Visit {
    fn moment(&self) -> Option<Moment> {
        match self.goal {
            Goal::Moment(moment) => Some(moment),
            Goal::Execution { .. } => None,
        }
    }

    fn waits_for(&self, moment: Moment) -> bool {
        self.told.is_none() && self.moment() == Some(moment)
    }

    /// Nothing more can be found out.
    fn is_told(&self) -> bool {
        self.told.is_some() && self.within.is_none()
    }

    /// What is there now is the answer; the one before stays if the frame has gone, or if the
    /// value was known only then.
    fn look(
        &mut self,
        scene: &Scene,
        images: &mut Images,
        within: Option<&Within>,
        moment: Option<LineMoment>,
    ) {
        let view = within.and_then(|line| line.viewpoint.view);
        self.look_from(view, scene, images, within, moment);
    }

    /// Of several statements that begin here, as it is before one of them has begun, or after all
    /// have.
    fn look_from(
        &mut self,
        view: Option<u64>,
        scene: &Scene,
        images: &mut Images,
        within: Option<&Within>,
        moment: Option<LineMoment>,
    ) {
        let Some(answer) = self.asker.ask(scene, images, within, view) else {
            return;
        };
        let answer = Answer { moment, ..answer };
        let was_known = matches!(&self.told, Some(Ok(before)) if !before.lacks_value());
        if !was_known || !answer.lacks_value() {
            self.told = Some(Ok(Box::new(answer)));
        }
    }

    /// The execution begins that is meant: which addresses are to be watched.
    fn begin(&mut self, scene: &Scene, images: &mut Images) -> Vec<u64> {
        let Goal::Execution { executions, when_left, .. } = &self.goal else {
            unreachable!("only executions begin");
        };
        let when_left = *when_left;
        let view_of_entry = executions.view_of_entry(scene, images);
        let mut within = Within::new(scene, images, &executions.code);
        let course = match within.as_mut().map(Within::begin) {
            Some(course) if when_left => course,
            _ => executions::Course::IsOver,
        };
        // If its function returns in this line, that is all there is to be seen; and where what
        // is meant is in front of the line's first statement, as where a function opens, it is over.
        let is_over = within.is_some() && matches!(course, executions::Course::IsOver);
        let moment = if is_over { LineMoment::Left } else { LineMoment::Before };
        let moment = when_left.then_some(moment);
        if let Some(view) = view_of_entry {
            self.look_from(Some(view), scene, images, None, moment);
        }
        // What is not known before a function's first statement may be so when that has begun.
        if self.told.as_ref().is_none_or(|told| told.as_ref().is_ok_and(|a| a.lacks_value())) {
            self.look(scene, images, within.as_ref(), moment);
        }
        if let (Some(within), executions::Course::GoesOn) = (&mut within, &course) {
            // Of its statements, several may begin here.
            within.see_from(None);
            self.look(scene, images, Some(within), moment);
        }
        self.within = within;
        self.follow(course, scene, images);
        self.within.iter().flat_map(Within::addresses).collect()
    }

    /// Whether the last execution has begun, and does not know what is asked for, but another one
    /// does: then that is the one to go to.
    fn goes_elsewhere(&mut self, scene: &Scene, images: &mut Images) -> bool {
        let lacks_value = matches!(&self.told, Some(Ok(answer)) if answer.lacks_value());
        let (Goal::Execution { executions, number: None, .. }, Some(Value::Expression(wanted))) =
            (&mut self.goal, &self.asker.value)
        else {
            return false;
        };
        let goes = lacks_value && executions.look_elsewhere(scene, images, wanted);
        if goes {
            (self.told, self.within) = (None, None);
        }
        goes
    }

    /// A thread is at a watched address: looks once more if it has left the line.
    fn leave(&mut self, scene: &Scene, images: &mut Images) {
        if let Some(within) = &mut self.within {
            let course = within.reach(scene, images);
            self.follow(course, scene, images);
        }
    }

    /// What comes next is left out, so the line must have been left here: nobody knows whether the
    /// thread is in the same execution when it is seen again.
    fn cut(&mut self, scene: &Scene, images: &mut Images, excerpt_of: &str) {
        if self.within.as_ref().is_none_or(|within| !within.is_of(scene)) {
            return;
        }
        self.leave(scene, images);
        if let Some(within) = self.within.take()
            && let Goal::Execution { executions, .. } = &self.goal
        {
            let (code, begun) = (&executions.code, within.begun);
            self.told = Some(Err(Absent::Because(format!(
                "{code}, executed at {begun}, is not in this excerpt up to where it is left: ask \
                 {excerpt_of}, where positions are the same, or ask for {begun}, where it begins"
            ))));
        }
    }

    fn follow(&mut self, course: executions::Course, scene: &Scene, images: &mut Images) {
        let Some(mut within) = self.within.take() else {
            return;
        };
        let is_over = match course {
            executions::Course::GoesOn => false,
            executions::Course::Left { view, for_good } => {
                within.see_from(Some(view));
                self.look(scene, images, Some(&within), Some(LineMoment::Left));
                for_good
            }
            executions::Course::IsOver => true,
        };
        self.within = Some(within).filter(|_| !is_over);
    }

    /// The last execution, if that is what is wanted and there is one.
    fn last_execution(&self) -> Option<Position> {
        match &self.goal {
            Goal::Execution { executions, number: None, .. } => executions.last(),
            _ => None,
        }
    }

    fn give_up_counting(&mut self) {
        let Goal::Execution { executions, number, .. } = &self.goal else {
            return;
        };
        if let Some(message) = executions.several() {
            self.told = Some(Err(Absent::Because(message)));
        } else if self.told.is_none() && (number.is_some() || executions.last().is_none()) {
            self.told = Some(Err(executions.none(*number)));
        }
    }
}

impl Observer for Visits {
    fn cut(&mut self, scene: &Scene) {
        if let Some(excerpt_of) = &self.excerpt_of {
            for visit in &mut self.visits {
                visit.cut(scene, &mut self.images, excerpt_of);
            }
        }
    }

    fn mapped(&mut self, module: &Module) -> Vec<u64> {
        let mut addresses = Vec::new();
        for visit in &mut self.visits {
            if let Goal::Execution { executions, .. } = &mut visit.goal {
                addresses.extend(executions.mapped(module, &mut self.images));
            }
        }
        addresses
    }

    fn reached(&mut self, scene: &Scene) -> Then {
        let mut watch = Vec::new();
        let mut news = false;
        for visit in &mut self.visits {
            let was_told = visit.is_told();
            visit.leave(scene, &mut self.images);
            if let Goal::Execution { executions, number, .. } = &mut visit.goal
                && let Some(reached) = executions.reached(scene)
                && *number == Some(reached)
            {
                watch.extend(visit.begin(scene, &mut self.images));
            }
            news |= visit.is_told() != was_told;
        }
        if !watch.is_empty() {
            return Then::Watch(watch);
        }
        if news && !self.counts() { self.next() } else { Then::GoOn }
    }

    fn arrived(&mut self, scene: &Scene) -> Then {
        match self.course {
            Course::Ahead => {
                let here = self.next_moment().unwrap_or(Moment::End);
                for visit in self.visits.iter_mut().filter(|visit| visit.waits_for(here)) {
                    visit.look(scene, &mut self.images, None, None);
                }
                if here == Moment::End { self.end(scene) } else { self.next() }
            }
            Course::Back(index) if self.visits[index].told.is_none() => {
                let watch = self.visits[index].begin(scene, &mut self.images);
                let is_elsewhere = self.visits[index].goes_elsewhere(scene, &mut self.images);
                if is_elsewhere || watch.is_empty() { self.next_back() } else { Then::Watch(watch) }
            }
            // The line was not left before.
            Course::Back(_) => self.end(scene),
        }
    }

    fn missed(&mut self, why: &str) -> Option<Then> {
        let here = self.next_moment()?;
        for visit in self.visits.iter_mut().filter(|visit| visit.waits_for(here)) {
            visit.told = Some(Err(Absent::Because(why.to_owned())));
        }
        Some(self.next())
    }

    fn answer(&mut self) -> serde_json::Value {
        let told: Vec<&Option<Told>> = self.visits.iter().map(|visit| &visit.told).collect();
        serde_json::to_value(told).expect("plain data")
    }
}
