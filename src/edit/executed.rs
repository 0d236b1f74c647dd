//! Files that run code although they do not look like programs: those read by builds, editors, agents, CI and git; and
//! files that instruct agents. Pure.
//!
//! Defines one table of names. A reply may change these files; the user is warned.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Warning about files that run with the tests or checks.
pub const IN_CHECKS: &str = "runs code when tests or checks are run";
/// Warning about files that CI executes or obeys.
pub const IN_CI: &str = "runs code in CI";

/// Warning about files that git executes or obeys.
pub const WITH_GIT: &str = "runs code when git is used";

/// The warnings about files, with the patterns of those files. A pattern is a name at any depth, the end of a path, a
/// directory at any depth (with a trailing `/`), or an extension (with a leading `*`).
const EXECUTED: [(&str, &str); 7] = [
    (
        "runs code when the project is built",
        ".cargo/config .cargo/config.toml .bazelrc .npmrc .yarn/ .yarnrc .yarnrc.yml .pnpmfile.cjs .mvn/ *.bazel \
         *.cmake *.csproj *.gemspec *.gradle *.gradle.kts *.mk *.nix *.targets CMakeLists.txt Containerfile \
         Directory.Build.props Dockerfile GNUmakefile Gemfile Justfile Makefile Makefile.toml Package.swift \
         Rakefile SConstruct Taskfile.yml Taskfile.yaml Tiltfile binding.gyp build.rs build.sbt build.xml \
         build.zig bunfig.toml compose.yaml compose.yml composer.json configure configure.ac deno.json \
         docker-compose.yaml docker-compose.yml gradle-wrapper.properties gradle.properties gradlew meson.build \
         mix.exs mvnw package.json pom.xml pyproject.toml rust-toolchain rust-toolchain.toml setup.cfg setup.py \
         sitecustomize.py usercustomize.py *.pth",
    ),
    (
        IN_CHECKS,
        ".config/nextest.toml .eslintrc.cjs .eslintrc.js .mocharc.js .prettierrc.js .pylintrc .rspec conftest.py \
         eslint.config.js eslint.config.mjs jest.config.js jest.config.ts noxfile.py pytest.ini tox.ini \
         vite.config.js vite.config.ts vitest.config.ts",
    ),
    (
        "runs code when the project is opened in an editor or a shell",
        ".devcontainer/ .devcontainer.json .dir-locals.el .envrc .exrc .fleet/ .gdbinit .idea/ .irbrc .lldbinit \
         .mise.toml .nvim.lua .nvimrc .tool-versions .vimrc .vscode/ .zed/ *.code-workspace *.sublime-project \
         devcontainer.json mise.toml",
    ),
    (
        "runs code when an agent works on the project",
        ".aider.conf.yml .claude/ .codex/ .continue/ .cursor/ .gemini/ .kiro/ .mcp.json .opencode/ .roo/ .windsurf/ \
         mcp.json",
    ),
    (
        "tells agents what to do",
        ".clinerules .cursorrules .windsurfrules AGENTS.md CLAUDE.local.md CLAUDE.md GEMINI.md",
    ),
    (
        IN_CI,
        ".appveyor.yml .buildkite/ .circleci/ .cirrus.yml .drone.yml .forgejo/ .gitea/ .github/ .gitlab-ci.yml \
         .gitlab/ .travis.yml .woodpecker/ .woodpecker.yml Jenkinsfile action.yaml action.yml appveyor.yml \
         azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yaml",
    ),
    (
        WITH_GIT,
        ".gitattributes .gitconfig .githooks/ .gitmodules .husky/ .lintstagedrc.js .overcommit.yml \
         .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml",
    ),
];

/// Returns the warning about the file at `path`, judged by its name, as words to follow the path; `None` if the file is
/// neither executed nor obeyed.
pub fn warning(path: &str) -> Option<&'static str> {
    let path = path.to_ascii_lowercase();
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let parent = directories.rsplit('/').next().unwrap_or_default();
    let ends = [name.to_owned(), format!("{parent}/{name}")];
    let inside = directories.split('/').map(|name| format!("{name}/"));
    let extensions = name
        .match_indices('.')
        .map(|(at, _)| format!("*{}", &name[at..]));
    let patterns = ends.into_iter().chain(inside).chain(extensions);
    patterns
        .into_iter()
        .find_map(|pattern| WARNINGS.get(&pattern).copied())
}

/// The warning of each pattern, which is in lower case.
static WARNINGS: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
    let patterns = |all: &'static str| all.split_ascii_whitespace().map(str::to_ascii_lowercase);
    let with_warning = |(warning, all)| patterns(all).map(move |pattern| (pattern, warning));
    EXECUTED.into_iter().flat_map(with_warning).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_executed_or_obeyed_have_a_warning() {
        for path in [
            "build.rs",
            "a/b/build.rs",
            ".cargo/config.toml",
            "a/.cargo/config",
            "package.json",
            "sub/MAKEFILE",
            "a/x.gradle",
            "x.mk",
            ".vscode/tasks.json",
            ".vscode/settings.json",
            ".idea/workspace.xml",
            ".claude/settings.json",
            "sub/CLAUDE.md",
            ".mcp.json",
            ".GitHub/workflows/x.yml",
            ".circleci/config.yml",
            "Jenkinsfile",
            ".husky/pre-commit",
            ".pre-commit-config.yaml",
            "tests/conftest.py",
            "flake.nix",
            ".envrc",
            "docker-compose.yml",
            ".devcontainer/devcontainer.json",
            ".gitattributes",
            "sub/.gitmodules",
            "sitecustomize.py",
            "gradle/wrapper/gradle-wrapper.properties",
            ".bazelrc",
            ".gdbinit",
            ".lldbinit",
            ".kiro/hooks/x.hook",
            ".rspec",
            ".irbrc",
            ".pylintrc",
            "Tiltfile",
        ] {
            assert!(warning(path).is_some(), "{path}");
        }
        for path in [
            "src/main.rs",
            "build.rs/x",
            "rebuild.rs",
            "vscode/tasks.json",
            "x.claude/y",
            "config.toml",
            "mk",
            "docs/package.json.md",
        ] {
            assert_eq!(warning(path), None, "{path}");
        }
    }

    #[test]
    fn every_pattern_is_documented_and_found() {
        let documented = include_str!("../../docs/reply-format.md");
        for (words, patterns) in EXECUTED {
            for pattern in patterns.split_ascii_whitespace() {
                assert!(documented.contains(&format!("`{pattern}`")), "{pattern}");
                let example = match pattern.strip_prefix('*') {
                    Some(end) => format!("x{end}"),
                    None if pattern.ends_with('/') => format!("{pattern}x"),
                    None => pattern.to_owned(),
                };
                assert_eq!(warning(&example), Some(words), "{pattern}");
            }
        }
    }
}
