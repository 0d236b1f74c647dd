//! How a plan document's lines are changed. Pure.
//!
//! Guarantees that lines are put in whole and taken out whole, outside of code blocks and comments, and that of a line
//! that is changed only the value is.

use std::ops::Range;

use super::layout::{LineRole, ListItem, PlanLayout, PlanPart, PlanSection};
use super::reading::ValuePlace;
use super::text::{heading, is_placeholder};
use super::{LINE_ENDS, PlanDocument, title_of};

impl PlanDocument {
    /// Where everything is.
    pub(crate) fn layout(&self) -> PlanLayout<'_> {
        let lines = self.lines.iter();
        PlanLayout::of(lines.map(|line| line.trim_end_matches(LINE_ENDS)).collect())
    }

    /// The front matter alone.
    pub(crate) fn front(&self) -> PlanLayout<'_> {
        let lines = self.lines.iter();
        PlanLayout::of_front(lines.map(|line| line.trim_end_matches(LINE_ENDS)).collect())
    }

    /// The first section of this part.
    pub(crate) fn first(&self, part: PlanPart) -> Option<PlanSection> {
        self.layout().sections(part).next().cloned()
    }

    /// Adds what is missing, front matter included.
    pub(crate) fn complete(&mut self, now: i64) {
        if self.front().front.is_empty() {
            self.insert_block(0, vec!["---".to_owned(), "---".to_owned()]);
        }
        let status = self.layout().status();
        let now = now.to_string();
        for (key, value) in [
            ("status", status.word()),
            ("createdAt", &now),
            ("updatedAt", &now),
            ("version", "1"),
        ] {
            if self.front().front_value(key).is_none() {
                self.set_front(key, value);
            }
        }
        self.complete_body();
    }

    /// Adds what is missing below the front matter, each part at its place.
    pub(crate) fn complete_body(&mut self) {
        let layout = self.layout();
        let is_there = |part| part == PlanPart::Tasks || layout.sections(part).next().is_some();
        if PlanPart::all().all(is_there) && layout.status_value().is_some() {
            return;
        }
        let (status, goal) = (layout.status(), layout.goal());
        if self.first(PlanPart::Title).is_none() {
            let at = self.front().front.end;
            self.insert_block(at, vec![title_of(&goal)]);
        }
        if self.layout().status_value().is_none()
            && let Some(title) = self.first(PlanPart::Title)
        {
            let line = format!("**Status:** {}", status.word());
            self.insert_block(title.body.start, vec![line]);
        }
        for part in PlanPart::all() {
            if part != PlanPart::Tasks && self.first(part).is_none() {
                self.add_section(part, &[part.placeholder()]);
            }
        }
    }

    /// Adds a section behind those that stand before it.
    fn add_section(&mut self, part: PlanPart, body: &[&str]) {
        let layout = self.layout();
        let sections = layout.sections.iter();
        let before = sections.filter(|other| other.part.is_some_and(|other| other < part));
        // The last one of the last part.
        let before = before.max_by_key(|section| section.part);
        let at = before.map_or(self.lines.len(), |section| section.body.end);
        let lines = [part.heading()].into_iter().chain(body.iter().copied());
        self.insert_block(at, lines.map(str::to_owned).collect());
    }

    /// Makes room for what is added to a part: the section is there, and no longer says that there is nothing.
    pub(crate) fn make_room(&mut self, part: PlanPart) {
        self.complete_body();
        if self.first(part).is_none() {
            self.add_section(part, &[]);
        }
        let layout = self.layout();
        let lead = layout
            .sections(part)
            .flat_map(|section| layout.lead(section));
        let is_empty_talk = |at: &usize| {
            let line = layout.lines[*at];
            let item = ListItem::of(*at, line).filter(|item| is_placeholder(item.text[0]));
            // Behind a blank, it goes on with what stands above it.
            let is_line = !line.starts_with(char::is_whitespace) && is_placeholder(line);
            layout.is_text(*at) && (item.is_some() || is_line)
        };
        let lines: Vec<_> = lead.filter(is_empty_talk).map(|at| at..at + 1).collect();
        self.remove(lines);
    }

    /// Adds entries behind the others of a part, with a blank line between all of them.
    pub(crate) fn add_entries(
        &mut self,
        part: PlanPart,
        entries: impl Iterator<Item = Vec<String>>,
    ) {
        let entries: Vec<_> = entries.collect();
        if entries.is_empty() {
            return;
        }
        self.make_room(part);
        let layout = self.layout();
        let last = layout.sections(part).next_back();
        let at = last.map_or(self.lines.len(), |section| layout.end_of_text(section));
        self.insert_block(at, entries.join(&String::new()));
    }

    /// Adds items to a part's list: at this line, or where its text ends. No paragraph and no block is torn apart.
    pub(crate) fn insert_items(&mut self, part: PlanPart, at: Option<usize>, items: &[String]) {
        let layout = self.layout();
        let end = layout.sections(part).next();
        let end = end.map_or(self.lines.len(), |section| layout.end_of_text(section));
        let is_block = |at| layout.roles[at] != LineRole::Plain;
        let is_prose = |at| layout.is_text(at) && heading(layout.lines[at]).is_none();
        let mut at = at.unwrap_or(end);
        while at < layout.lines.len() && (is_block(at) || is_prose(at)) {
            at += 1;
        }
        self.insert_list(at, items);
    }

    /// Puts lines in, with a blank line between them and a heading that follows.
    pub(crate) fn insert_list(&mut self, at: usize, lines: &[String]) {
        let next = self
            .lines
            .get(at)
            .map(|line| line.trim_end_matches(LINE_ENDS));
        let blank = next.and_then(heading).map(|_| String::new());
        self.insert(at, lines.iter().cloned().chain(blank).collect());
    }

    /// Puts lines in, with blank lines around them.
    fn insert_block(&mut self, at: usize, mut lines: Vec<String>) {
        let is_text = |line: Option<&String>| line.is_some_and(|line| !line.trim().is_empty());
        if is_text(at.checked_sub(1).and_then(|before| self.lines.get(before))) {
            lines.insert(0, String::new());
        }
        if is_text(self.lines.get(at)) {
            lines.push(String::new());
        }
        self.insert(at, lines);
    }

    /// Puts lines in, with ends like that of the first line of all.
    fn insert(&mut self, at: usize, lines: Vec<String>) {
        if at == self.lines.len() {
            self.end_last_line();
        }
        let end = self.line_end();
        let lines = lines.into_iter().map(|line| line + end);
        self.lines.splice(at..at, lines);
    }

    /// Ends the last line, where it has no end.
    pub(crate) fn end_last_line(&mut self) {
        let end = self.line_end();
        if let Some(last) = self.lines.last_mut()
            && !last.ends_with(LINE_ENDS)
        {
            last.push_str(end);
        }
    }

    fn line_end(&self) -> &'static str {
        let first = self.lines.first().map_or("", String::as_str);
        let ends = ["\r\n", "\r"];
        let end = ends.into_iter().find(|end| first.ends_with(end));
        end.unwrap_or("\n")
    }

    /// Takes lines out, which are given in their order; comments stay.
    pub(crate) fn remove(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) {
        let layout = self.layout();
        let lines = ranges.into_iter().flatten();
        let lines = lines.filter(|at| layout.roles[*at] != LineRole::Comment);
        let lines: Vec<_> = lines.collect();
        let mut at = 0;
        self.lines.retain(|_| {
            at += 1;
            lines.binary_search(&(at - 1)).is_err()
        });
    }

    /// Sets a value of the front matter, where there is one.
    pub(crate) fn set_front(&mut self, key: &str, value: &str) {
        let layout = self.front();
        match layout.front_value(key) {
            Some(place) => self.set_value(place, value),
            None if layout.front.is_empty() => {}
            None => {
                let end = layout.front.end - 1;
                self.insert(end, vec![format!("{key}: {value}")]);
            }
        }
    }

    pub(crate) fn set_value(&mut self, (at, value): ValuePlace, word: &str) {
        self.lines[at].replace_range(value, &format!(" {word}"));
    }

    /// Puts a mark into a box, which is made where there is none.
    pub(crate) fn set_mark(&mut self, (at, place): (usize, Range<usize>), mark: char) {
        let blank = if place.is_empty() { " " } else { "" };
        self.lines[at].replace_range(place, &format!("[{mark}]{blank}"));
    }

    /// Numbers the tasks as they stand there.
    pub(crate) fn number_tasks(&mut self) {
        let layout = self.layout();
        let tasks = layout.tasks().into_iter().map(|(item, task)| {
            let number = &layout.lines[item.range.start][item.marker.clone()];
            let number = number.trim_end_matches(['.', ')']).parse::<usize>();
            (item, task.step, number.ok())
        });
        let wrong = tasks.filter(|(_, step, number)| *number != Some(*step));
        let wrong: Vec<_> = wrong
            .map(|(item, step, _)| (item.range.start, item.marker, step))
            .collect();
        for (at, marker, step) in wrong {
            self.lines[at].replace_range(marker, &format!("{step}."));
        }
    }
}
