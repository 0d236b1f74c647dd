//! Tests of the order of bubblewrap's arguments, and of the search for it.

use super::*;

fn sandbox(mode: SandboxMode) -> Sandbox {
    Sandbox {
        bwrap: "/usr/bin/bwrap".into(),
        program: tempfile::tempfile().unwrap(),
        own: Vec::new(),
        policy: SandboxPolicy {
            root: "/no/such/project".into(),
            keys: "/no/such/project/agent-config".into(),
            git: "/no/such/project/.git".into(),
            ..SandboxPolicy::default()
        },
        is_strict: mode == SandboxMode::Strict,
        watched: Vec::new(),
        nested_keys: Vec::new(),
        identities: BTreeMap::new(),
        key_targets: Vec::new(),
        keeps_new_repositories: false,
        proxy: None,
    }
}

fn arguments(sandbox: &Sandbox) -> String {
    let list = sandbox.arguments("/no/such/project".as_ref());
    let words: Vec<_> = list.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[test]
fn the_keys_are_put_away_last() {
    let lenient = arguments(&sandbox(SandboxMode::Auto));
    assert!(lenient.starts_with(
        "--dev-bind / / --dev-bind /no/such/project /no/such/project --tmpfs /no/such/project/agent-config "
    ));
    let strict = arguments(&sandbox(SandboxMode::Strict));
    let place = |part: &str| strict.find(part).unwrap();
    let writable = place("--bind /no/such/project /no/such/project");
    assert!(place("--ro-bind / /") < place("--tmpfs /tmp"));
    assert!(place("--tmpfs /tmp") < writable);
    assert!(writable < place("--tmpfs /no/such/project/agent-config"));
    assert!(strict.contains("--unshare-net"));
}

#[test]
fn a_fleets_other_tasks_are_put_away_before_the_project_is_there() {
    for (mode, bind) in [
        (SandboxMode::Auto, "--dev-bind"),
        (SandboxMode::Strict, "--bind"),
    ] {
        let mut sandbox = sandbox(mode);
        sandbox.policy.campaign = Some("/no/such".into());
        let list = arguments(&sandbox);
        let expected = format!("--tmpfs /no/such {bind} /no/such/project /no/such/project ");
        assert!(list.contains(&expected), "{list}");
    }
}

#[test]
fn bwrap_is_not_looked_for_in_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let planted = dir.path().join(BWRAP);
    std::fs::write(&planted, "#!/bin/sh\n").unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&planted, permissions).unwrap();
    let policy = SandboxPolicy {
        root: dir.path().to_path_buf(),
        ..sandbox(SandboxMode::Auto).policy
    };
    // Nor where a link leads into it.
    let outside = tempfile::tempdir().unwrap();
    let linked = outside.path().join("bin");
    std::os::unix::fs::symlink(dir.path(), &linked).unwrap();
    std::os::unix::fs::symlink(&planted, outside.path().join(BWRAP)).unwrap();
    let path = [Path::new("."), dir.path(), &linked, outside.path()];
    let path = std::env::join_paths(path).unwrap();
    let found = Sandbox::find(
        Some(&path),
        Path::new("/program"),
        policy,
        SandboxMode::Auto,
    );
    assert!(matches!(found, Err(SandboxProblem::NotInstalled)));
}
