//! The system prompt, with a section for each mode. Pure.
//!
//! Guarantees that the prompt is the same for every call: it covers all modes, and a reminder names the active one. It
//! contains no time and no counter.

use std::path::Path;

use crate::sys::text::escaped;

/// The prompt without the section on the environment.
const SYSTEM: &str = include_str!("../../../prompts/chat_system.txt");

/// Builds the system prompt for work in `directory` of the project at `project`. `repository` is `true` if the project
/// is in a git repository, and `is_attended` if a user can answer questions.
pub fn system_prompt(
    project: &Path,
    directory: &Path,
    repository: bool,
    is_attended: bool,
) -> String {
    let path = |path: &Path| escaped(&path.to_string_lossy());
    let unattended = if is_attended {
        ""
    } else {
        "- Nobody is there to answer: do not ask. What would be asked for is refused; your last reply is all that is read.\n"
    };
    format!(
        "{SYSTEM}\n# Environment\n\n- Project: {}\n- Working directory: {}\n- Git repository: {}\n- Platform: {}\n{unattended}",
        path(project),
        path(directory),
        if repository { "yes" } else { "no" },
        std::env::consts::OS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens;

    fn prompt(is_attended: bool) -> String {
        let root = Path::new("/home/me/my project");
        let directory = Path::new("/home/me/my project/src\n# Modes");
        system_prompt(root, directory, true, is_attended)
    }

    #[test]
    fn it_has_the_length_the_sections_and_the_emphases_of_the_specification() {
        let prompt = prompt(true);
        let tokens = tokens::count(&prompt);
        assert!((2500..=3100).contains(&tokens), "{tokens} tokens");
        let headings: Vec<&str> = prompt
            .lines()
            .filter(|line| line.starts_with('#'))
            .collect();
        assert_eq!(
            headings,
            [
                "# Tone and style",
                "# Tool usage policies",
                "# Task management",
                "# Following conventions",
                "# Proactiveness",
                "# Error handling",
                "# Modes",
                "## Regular",
                "## Auto-Pilot",
                "## Planning",
                "# What is said to you",
                "# Environment",
            ]
        );
        for word in ["IMPORTANT", "ALWAYS", "NEVER"] {
            assert!(prompt.contains(word), "{word}");
        }
        for tool in [
            "read_file",
            "write_file",
            "edit_file",
            "list_files",
            "execute_command",
            "search_project",
            "replace_in_files",
            "delete_file",
            "read_background",
            "list_background",
            "kill_background",
            "update_todos",
            "spawn_agent",
        ] {
            assert!(prompt.contains(tool), "{tool}");
        }
    }

    #[test]
    fn it_shows_what_the_agent_works_on() {
        let attended = prompt(true);
        assert!(attended.contains("- Project: /home/me/my project\n"));
        assert!(attended.contains("/src\\n# Modes\n"));
        assert!(attended.ends_with("- Git repository: yes\n- Platform: linux\n"));
        assert!(prompt(false).contains("Nobody is there to answer"));
    }
}
