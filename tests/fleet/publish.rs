//! Branches of successful tasks.

use std::fs;

use serde_json::{Value, json};

use super::{BAD, Fleet, GOOD, change, git, with};
use crate::support::{Finished, ModelServer};

/// A campaign over three repositories, one on GitHub and the others on GitLab; the change to the last one has failed.
fn campaign() -> Fleet {
    let replies = [&[GOOD; 2][..], &[BAD; 4][..]].concat();
    let fleet = Fleet::new(&ModelServer::gemini(&replies));
    let task = |id: &str| {
        let path = fleet.repository(&format!("repo-{id}"), "grep -q 42 answer");
        let host = if id == "a" { "github" } else { "gitlab" };
        let url = format!("https://me:secret-word@{host}.com/team/{id}.git");
        git(&path, &["remote", "add", "origin", &url]);
        let repository = json!({"id": id, "repository": format!("repo-{id}")});
        with(change(id), &repository)
    };
    fleet.tasks(&["a", "b", "c"].map(task));
    for (index, code) in [("0", 0), ("1", 0), ("2", 1)] {
        fleet.task(index).exits(code);
    }
    fleet
}

fn publish(fleet: &Fleet, branch: &str) -> Finished {
    fleet.run(&["publish", "out", "--branch", branch])
}

fn branches(fleet: &Fleet, repository: &str) -> String {
    let words = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
    git(&fleet.path(repository), &words)
}

#[test]
fn passing_change_becomes_a_branch_of_its_repository() {
    let fleet = campaign();
    let told = publish(&fleet, "it's/42").exits(0);
    assert_eq!(branches(&fleet, "repo-c"), "main\n");
    for id in ["a", "b"] {
        let repository = format!("repo-{id}");
        assert_eq!(branches(&fleet, &repository), "it's/42\nmain\n");
        let path = fleet.path(&repository);
        assert_eq!(git(&path, &["show", "it's/42:answer"]), "42\n");
        assert_eq!(
            git(&path, &["rev-parse", "it's/42~"]),
            git(&path, &["rev-parse", "main"])
        );
        // The work tree and the current branch are unchanged.
        assert_eq!(git(&path, &["status", "--porcelain"]), "");
        assert_eq!(git(&path, &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
        let cd = format!(
            "(cd {} && git push --set-upstream origin \"it's/42\" && ",
            path.display()
        );
        let patch = fleet.path(&format!("out/{id}/change.patch"));
        let on_github = id == "a";
        let multi_gitter = |place: &str| {
            format!(
                "multi-gitter run 'git apply --index {}' {place} team/{id} --branch \"it's/42\" --commit-message '{id}: Write the answer.'",
                patch.display()
            )
        };
        for (line, is_told) in [
            (
                format!("{cd}gh pr create --head \"it's/42\" --fill)"),
                on_github,
            ),
            (
                format!("{cd}glab mr create --source-branch \"it's/42\" --fill --yes)"),
                !on_github,
            ),
            (multi_gitter("--repo"), on_github),
            (multi_gitter("--platform gitlab --project"), !on_github),
            (
                format!("git -C work/team/{id} apply --index {}", patch.display()),
                on_github,
            ),
        ] {
            assert_eq!(
                told.stdout.lines().any(|one| one == line),
                is_told,
                "{line}\n{}",
                told.stdout
            );
        }
    }
    assert!(!told.stdout.contains("secret-word"), "{}", told.stdout);
    assert!(
        told.stdout
            .contains("in 2 local clones; nothing was pushed"),
        "{}",
        told.stdout
    );
    // The lines are also available as data, and a second run changes nothing.
    let words = [
        "publish",
        "out",
        "--branch",
        "it's/42",
        "--output-format",
        "json",
    ];
    let json: Value = serde_json::from_str(&fleet.run(&words).exits(0).stdout).unwrap();
    let tools: Vec<_> = json["commands"].as_object().unwrap().keys().collect();
    assert_eq!(tools, ["gh", "glab", "multi-gitter", "turbolift"]);
    // For a host with another name, both kinds of lines are printed.
    let words = ["remote", "set-url", "origin", "git@code.example:team/a.git"];
    git(&fleet.path("repo-a"), &words);
    let told = publish(&fleet, "it's/42").exits(0);
    let told = told.says(&["`code.example` may be GitHub's or GitLab's"]);
    for line in [
        "gh pr create",
        "glab mr create",
        "--repo team/a",
        "--project team/a",
    ] {
        assert!(told.stdout.contains(line), "{line}\n{}", told.stdout);
    }
}

#[test]
fn no_branch_is_made_unless_all_can_be() {
    let fleet = campaign();
    let b = fleet.path("repo-b");
    let refused = |branch: &str, why: &str| {
        publish(&fleet, branch).exits(3).says(&[why]);
        assert_eq!(branches(&fleet, "repo-a"), "main\n");
    };
    refused("x..y", "`x..y` is no name for a branch");
    refused("@{-1}", "`@{-1}` is no name for a branch");
    fs::write(b.join("code"), "mine").unwrap();
    refused("fix", "has uncommitted changes: `M code`");
    git(&b, &["add", "--all"]);
    refused("fix", "has uncommitted changes: `M  code`");
    git(&b, &["reset", "--quiet", "--hard"]);
    fs::write(b.join(".git/MERGE_HEAD"), "").unwrap();
    refused("fix", "is in the middle of something: it has `MERGE_HEAD`");
    fs::remove_file(b.join(".git/MERGE_HEAD")).unwrap();
    refused("main", "has another branch of that name");
    let away = fleet.path("away");
    fs::rename(&b, &away).unwrap();
    refused("fix", "is no repository");
    // The repository lacks the commit that the change is based on.
    fleet.repository("repo-b", "true");
    refused("fix", "b: ");
    fs::remove_dir_all(&b).unwrap();
    fs::rename(&away, &b).unwrap();
    // Untracked files do not matter.
    fs::write(b.join("untracked"), "mine").unwrap();
    publish(&fleet, "fix").exits(0);
    assert_eq!(branches(&fleet, "repo-b"), "fix\nmain\n");
}

#[test]
fn of_two_changes_of_one_repository_neither_is_the_branch() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD, GOOD]));
    fleet.tasks(&[change("a"), change("b")]);
    for index in ["0", "1"] {
        fleet.task(index).exits(0);
    }
    publish(&fleet, "fix")
        .exits(3)
        .says(&["b: `a` has a change of that repository, too"]);
}
