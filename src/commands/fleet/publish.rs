//! Branches for tasks in the repositories that they changed, and the commands that turn them into pull requests.
//!
//! Runs git in repositories on this machine, and adds objects and one branch to each. Guarantees that nothing is
//! pushed, that no work tree and no other branch changes, and that no branch is created unless all can be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;

use super::clone::{ended, is_url};
use super::error::FleetError;
use super::sum::{self, TaskRow};
use crate::project::dirty::{dirty, staged};
use crate::project::repository::{DOT_GIT, Repository};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::git::Git;
use crate::sys::interrupt::Interrupt;
use crate::sys::numbers::counted;
use crate::sys::text::shell_quoted;

/// Files in the git directory of a work tree that indicate an unfinished operation.
const UNDER_WAY: &str = "BISECT_LOG CHERRY_PICK_HEAD MERGE_HEAD rebase-apply rebase-merge";

/// The change of a task, as a branch to create.
struct Change<'r> {
    row: &'r TaskRow,
    bundle: String,
    patch: String,
    /// The repository, if it is on this machine.
    repository: Option<Repository>,
    /// The commit at which the branch begins.
    commit: String,
    is_there: bool,
    /// The repository on a server: the task's own, or the one that a local repository was cloned from. `None` if there
    /// is none, or its URL does not give an owner and a name.
    hosted: Option<Hosted>,
}

/// A repository on a server.
#[derive(Debug, PartialEq)]
struct Hosted {
    host: String,
    /// Two flags, for GitHub and for GitLab: `true` if the repository may be there, judging by the host's name. Both
    /// are `true` if the name contains neither.
    is_on: [bool; 2],
    /// Owner and name, quoted.
    slug: String,
}

impl Hosted {
    /// Parses the URL of a repository.
    fn of(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("file", _)) => return None,
            Some((_, rest)) => rest.split_once('/')?,
            None if is_url(url) => url.split_once(':')?,
            None => return None,
        };
        let host = host.rsplit('@').next()?.to_ascii_lowercase();
        let trimmed = path.trim_matches('/');
        let path = trimmed.strip_suffix(DOT_GIT).unwrap_or(trimmed);
        let slug = path.contains('/').then(|| shell_quoted(path))?;
        let named = ["github", "gitlab"].map(|name| host.contains(name));
        let is_on = named.map(|is_named| is_named || named == [false; 2]);
        Some(Self { host, is_on, slug })
    }
}

/// Creates a branch of this name in each repository in which a task has made a change successfully.
///
/// # Errors
/// Fails if there are no results, or a branch cannot be created; then none is created.
pub fn publish(context: &Context<'_>, directory: &Path, branch: &str) -> Result<Outcome, Failure> {
    let place = context.project.root().join(directory);
    let rows = sum::read(context, &place, |_, _| ())?;
    let found = Git::find(context.environment.os("PATH"), context.project.root());
    let unpublished = |problems| FleetError::Unpublished {
        branch: branch.to_owned(),
        problems,
    };
    let git = found.ok_or_else(|| unpublished(vec!["git is not installed".to_owned()]))?;
    let publisher = Publisher {
        git,
        branch,
        interrupt: context.interrupt,
    };
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    problems.extend(publisher.check_name().err());
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_done() == Some(true)) {
        let bundle = place.join(&row.id).join("branch.bundle");
        if !bundle.is_file() {
            continue;
        }
        if let Some(other) = taken.insert(&row.repository, &row.id) {
            problems.push(format!(
                "{}: `{other}` has a change of that repository, too",
                row.id
            ));
        }
        match publisher.change(row, &bundle) {
            Ok(change) => changes.push(change),
            Err(problem) => problems.push(format!("{}: {problem}", row.id)),
        }
    }
    context.interrupt.check()?;
    if !problems.is_empty() {
        return Err(unpublished(problems).into());
    }
    for change in &changes {
        context.interrupt.check()?;
        let failed = |problem| unpublished(vec![format!("{}: {problem}", change.row.id)]);
        publisher.make(change).map_err(failed)?;
    }
    let hosted = changes.iter().filter_map(|change| change.hosted.as_ref());
    let unknown = hosted.filter(|hosted| hosted.is_on == [true; 2]);
    for host in unknown.map(|hosted| &hosted.host).collect::<BTreeSet<_>>() {
        context.notice(format!(
            "`{host}` may be GitHub's or GitLab's: use the lines for one of them"
        ));
    }
    Ok(publisher.outcome(&changes, rows.len()))
}

struct Publisher<'p> {
    git: Git,
    branch: &'p str,
    interrupt: &'p Interrupt,
}

impl Publisher<'_> {
    /// Runs git, in a repository if one is given, and returns its output.
    fn git(&self, repository: Option<&Repository>, words: &[&str]) -> Result<String, String> {
        let directory = repository.map(|found| format!("--git-dir={}", found.own.display()));
        let place: Vec<&str> = directory.as_deref().into_iter().collect();
        let words = [&place[..], words].concat();
        let output = ended(self.git.command(Path::new("/"), &words), self.interrupt)?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    fn check_name(&self) -> Result<(), String> {
        let words = ["check-ref-format", "--branch", self.branch];
        let is_same = self.git(None, &words).is_ok_and(|name| name == self.branch);
        let problem = || format!("`{}` is no name for a branch", self.branch);
        is_same.then_some(()).ok_or_else(problem)
    }

    /// Checks that the branch can be created.
    fn change<'r>(&self, row: &'r TaskRow, bundle: &Path) -> Result<Change<'r>, String> {
        let own = format!("refs/heads/code-commit/{}", row.id);
        let path = bundle.display().to_string();
        let directory = bundle.parent().unwrap_or(bundle);
        let patch = directory.join("change.patch").display().to_string();
        let heads = self.git(None, &["bundle", "list-heads", &path, &own])?;
        let commit = heads.split(' ').next().unwrap_or_default().to_owned();
        if commit.is_empty() {
            return Err(format!("`{path}` has no branch of the task"));
        }
        let (bundle, mut is_there) = (path, false);
        let is_local = !is_url(&row.repository);
        let repository = is_local.then(|| find(&row.repository)).transpose()?;
        if let Some(repository) = &repository {
            self.check_clean(repository)?;
            let branch = format!("refs/heads/{}", self.branch);
            let words = ["rev-parse", "--verify", "--quiet", &branch];
            let found = self.git(Some(repository), &words);
            is_there = found.as_ref().is_ok_and(|found| *found == commit);
            if found.is_ok() && !is_there {
                let top = repository.top.display();
                return Err(format!("`{top}` has another branch of that name"));
            }
            self.git(Some(repository), &["bundle", "verify", "--quiet", &bundle])?;
        }
        let elsewhere = || Some(row.repository.clone());
        let url = repository.as_ref().map_or_else(elsewhere, origin);
        let hosted = url.and_then(|url| Hosted::of(&url));
        Ok(Change {
            row,
            bundle,
            patch,
            repository,
            commit,
            is_there,
            hosted,
        })
    }

    fn check_clean(&self, repository: &Repository) -> Result<(), String> {
        let top = &repository.top;
        let is_bare = repository.own == *top;
        let checked = repository.check_readable();
        checked.map_err(|error| error.to_string())?;
        let is_there = |name: &&str| repository.own.join(name).symlink_metadata().is_ok();
        if let Some(name) = UNDER_WAY.split(' ').find(is_there) {
            return Err(format!(
                "`{}` is in the middle of something: it has `{name}`",
                top.display()
            ));
        }
        if is_bare {
            return Ok(());
        }
        let mut changed = dirty(top).map_err(|error| error.to_string())?;
        changed.retain(|file| !file.starts_with("??"));
        changed.extend(staged(top, Some(&self.git), None, self.interrupt)?);
        changed.first().map_or(Ok(()), |file| {
            let file = file.trim_start();
            let top = top.display();
            Err(format!("`{top}` has uncommitted changes: `{file}`"))
        })
    }

    fn make(&self, change: &Change<'_>) -> Result<(), String> {
        let Some(repository) = change.repository.as_ref().filter(|_| !change.is_there) else {
            return Ok(());
        };
        self.git(Some(repository), &["bundle", "unbundle", &change.bundle])?;
        let branch = format!("refs/heads/{}", self.branch);
        // An empty old value means that the branch must not exist.
        let words = ["update-ref", &branch, &change.commit, ""];
        self.git(Some(repository), &words).map(drop)
    }

    /// Lists the branches, and the commands of each tool that turn them into pull requests.
    fn outcome(&self, changes: &[Change<'_>], tasks: usize) -> Outcome {
        let branch = shell_quoted(self.branch);
        let name = shell_quoted(&self.branch.replace('/', "-"));
        let hosted = changes
            .iter()
            .filter_map(|change| Some((change, change.hosted.as_ref()?)));
        let on_github = hosted.clone().filter(|(_, hosted)| hosted.is_on[0]);
        let slugs: Vec<&str> = on_github.map(|(_, hosted)| &*hosted.slug).collect();
        let list = slugs.join(" ");
        let mut turbolift = vec![
            format!("turbolift init --name {name} && cd {name}"),
            format!("printf '%s\\n' {list} >repos.txt && turbolift clone"),
        ];
        let [mut multi_gitter, mut gh, mut glab] = [const { Vec::new() }; 3];
        for (change, hosted) in hosted {
            let (slug, [on_github, on_gitlab]) = (&hosted.slug, hosted.is_on);
            let apply = format!("apply --index {}", shell_quoted(&change.patch));
            if on_github {
                turbolift.push(format!("git -C work/{slug} {apply}"));
            }
            let run = shell_quoted(&format!("git {apply}"));
            let title = shell_quoted(&format!("{}: {}", change.row.id, change.row.title));
            let flags = ["--repo", "--platform gitlab --project"].iter();
            let places = flags.zip(hosted.is_on);
            for (place, _) in places.filter(|(_, is_there)| *is_there) {
                multi_gitter.push(format!(
                    "multi-gitter run {run} {place} {slug} --branch {branch} --commit-message {title}"
                ));
            }
            let Some(repository) = &change.repository else {
                continue;
            };
            let place = shell_quoted(&repository.top.display().to_string());
            let push = format!("cd {place} && git push --set-upstream origin {branch}");
            if on_github {
                gh.push(format!("({push} && gh pr create --head {branch} --fill)"));
            }
            if on_gitlab {
                let request = format!("glab mr create --source-branch {branch} --fill --yes");
                glab.push(format!("({push} && {request})"));
            }
        }
        let last = format!("turbolift commit --message {name} && turbolift create-prs");
        turbolift.push(last);
        turbolift.retain(|_| !slugs.is_empty());
        let tools = ["gh", "glab", "multi-gitter", "turbolift"]
            .into_iter()
            .zip([gh, glab, multi_gitter, turbolift]);
        let commands: BTreeMap<&str, Vec<String>> =
            tools.filter(|(_, lines)| !lines.is_empty()).collect();
        let blocks = commands
            .iter()
            .map(|(tool, lines)| format!("# {tool}\n{}\n\n", lines.join("\n")));
        let text: String = blocks.collect();
        let made: Vec<_> = changes
            .iter()
            .map(|change| {
                json!({"id": change.row.id, "repository": change.row.repository, "commit": change.commit,
                    "is_local": change.repository.is_some()})
            })
            .collect();
        let cloned = changes.iter().filter(|change| change.repository.is_some());
        let local = counted(cloned.count() as u64, "local clone");
        let others = counted((tasks - changes.len()) as u64, "task");
        let json =
            json!({"schema": 1, "branch": self.branch, "changes": made, "commands": commands});
        Outcome::shown(text, json).with_summary(format!(
            "done: branch {branch} in {local}; nothing was pushed; {others} without a change to publish"
        ))
    }
}

/// Finds a repository on this machine, with or without a work tree.
fn find(path: &str) -> Result<Repository, String> {
    let found = Repository::within(Path::new(path)).map_err(|error| error.to_string())?;
    let is_there = found.own.join("HEAD").is_file();
    let none = || format!("`{path}` is no repository");
    is_there.then_some(found).ok_or_else(none)
}

/// Returns the URL from which a repository was cloned.
fn origin(repository: &Repository) -> Option<String> {
    let config = repository.config().ok()?;
    Some(config.string("remote.origin.url")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_owner_and_name_are_those_of_the_url() {
        for (url, expected, on) in [
            (
                "https://GitHub.com/team/web.git",
                Some("github.com team/web"),
                [true, false],
            ),
            (
                "https://user:word@host:8443/a/b/c",
                Some("host:8443 a/b/c"),
                [true, true],
            ),
            (
                "git@gitlab.com:group/sub/web.git",
                Some("gitlab.com group/sub/web"),
                [false, true],
            ),
            (
                "ssh://git@gitlab.host:22/github/web/",
                Some("gitlab.host:22 github/web"),
                [false, true],
            ),
            ("file:///srv/team/web.git", None, [false, false]),
            ("/srv/team/web", None, [false, false]),
            ("https://host/web", None, [false, false]),
        ] {
            let hosted = Hosted::of(url);
            let told = hosted.as_ref().map(|at| format!("{} {}", at.host, at.slug));
            assert_eq!(told.as_deref(), expected, "{url}");
            let is_on = hosted.map_or([false; 2], |hosted| hosted.is_on);
            assert_eq!(is_on, on, "{url}");
        }
    }
}
