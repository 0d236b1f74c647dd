//! `code-commit report`: the pages that it writes, and their display in a browser.

use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::past::agents_run;
use crate::support::agent::{AgentProject, PASS, done, reply, write};
use crate::support::{Finished, GEMINI_KEY, ModelServer, TestProject, skipped};

/// Markup that would take effect if text on a page were not escaped.
const HOSTILE: &str = "<script>window.hostile=1</script>\"><img src=x onerror=window.hostile=1><x-hostile></pre></details>\
    <style>body{display:none}</style><svg onload=window.hostile=1>&lt;b&gt;";

/// Chromium's findings on the page, in light and dark mode, and on a phone; `None` if there is no browser.
fn browser(page: &Path) -> Option<Value> {
    browse(page, &[])
}

/// Returns Chromium's findings on a page.
fn browse(page: &Path, arguments: &[&str]) -> Option<Value> {
    let there = |program: &&str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let chromium = ["chromium-headless-shell", "chromium"]
        .into_iter()
        .find(there);
    let (Some(chromium), true) = (chromium, there(&"python3")) else {
        skipped("chromium or python3 is missing");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/browser.py");
    let output = Command::new("python3")
        .args([script.as_path(), Path::new(chromium), page])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Checks that the page loads nothing, runs nothing, fits a phone, and has a dark mode.
fn looks_right(page: &Path) {
    let Some(found) = browser(page) else { return };
    for view in ["light", "dark", "phone"] {
        let found = &found[view];
        assert_eq!(found["requests"], 1, "{view}: {found}");
        assert_eq!(found["scripts"], 0, "{view}: {found}");
        assert_eq!(found["aliens"], 0, "{view}: {found}");
        assert_eq!(found["ran"], false, "{view}: {found}");
        let wide = if view == "phone" { 390 } else { 1280 };
        assert_eq!(found["width"], wide, "{view}: {found}");
    }
    assert_ne!(found["light"]["background"], found["dark"]["background"]);
    assert_ne!(found["light"]["color"], found["dark"]["color"]);
}

fn report(project: &TestProject, arguments: &[&str]) -> Finished {
    project.run(&[&["report"], arguments].concat())
}

/// Returns the page about the project's last run.
fn page_of(project: &TestProject, run: &Finished) -> String {
    let page = format!("logs/{}/report.html", run.folder);
    let told = report(project, &[]).exits(0);
    assert_eq!(told.stdout, format!("done: the page is in {page}\n"));
    project.read(&page)
}

#[test]
fn output_of_a_run_is_escaped_on_its_page() {
    let first = format!(
        "I did {HOSTILE}.\n^^^src/main.rs\nfn main() {{ /* {HOSTILE} */ }}\n^^^end\n^^^src/a&lt;'b onerror=x.html\n{HOSTILE}\n\u{202e}\0\n^^^end\n"
    );
    let second = "Sorry.\n^^^fixed\n^^^end\n";
    let server = ModelServer::gemini(&[&first, second]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/query.txt", format!("Do {HOSTILE}\n"))
        .file("src/main.rs", format!("// {GEMINI_KEY}\nfn main() {{}}\n"))
        .build(&format!(
            "cat <<'END'\n\u{1b}[31merror[E0001]\u{1b}[0m: {HOSTILE}\n --> <x-hostile>:1:2\nEND\ntest -e fixed"
        ));
    let run = project.run(&["--allow-stale"]).exits(0);
    let page = page_of(&project, &run);
    for hostile in [
        "<script",
        "<img",
        "<x-hostile",
        "<svg onload",
        "</style><svg",
        "\u{202e}",
        "\0",
        "\u{1b}",
        GEMINI_KEY,
    ] {
        assert!(!page.contains(hostile), "{hostile:?}");
    }
    for part in [
        "The build passed after 1 repair",
        "Do &lt;script&gt;window.hostile=1&lt;/script&gt;&quot;&gt;&lt;img src=x",
        "I did &lt;script&gt;",
        "src/a&amp;lt;'b onerror=x.html",
        "[REDACTED]Zz",
        "\u{2717} failed, exit code 1",
        ">error[E0001]: &lt;script&gt;",
        "Found in the output: 1 error",
        "&lt;x-hostile&gt;:1:2</span>",
        "&amp;lt;b&amp;gt;",
    ] {
        assert!(page.contains(part), "{part:?} is missing");
    }
    looks_right(&project.path(&format!("logs/{}/report.html", run.folder)));
}

#[test]
fn a_run_with_repairs_shows_its_whole_change_before_each_replys_own() {
    let server = ModelServer::gemini(&[
        "^^^src/main.rs\nfn main() { first }\n^^^end\n^^^kept.rs\nkept\n^^^end\n",
        "^^^src/main.rs\nfn main() { second }\n^^^end\n^^^fixed\n^^^end\n",
    ]);
    let project = TestProject::new().with(&server).build("test -e fixed");
    let run = project.run(&[]).exits(0);
    let page = page_of(&project, &run);
    let plain = Regex::new("<[^>]*>").unwrap().replace_all(&page, "");
    let at = |part: &str| {
        plain
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {plain}"))
    };
    let (whole, replies) = plain.split_at(at("The whole change"));
    assert!(!whole.contains("fn main"), "{whole}");
    let (whole, replies) = replies.split_once("The prompt").unwrap();
    assert!(whole.contains("3 files changed"), "{whole}");
    for line in ["-fn main() {}\n", "+fn main() { second }\n", "+kept\n"] {
        assert!(whole.contains(line), "{line}: {whole}");
    }
    assert!(!whole.contains("first"), "{whole}");
    assert!(replies.contains("-fn main() { first }\n"), "{replies}");

    // A single reply's change is the whole change.
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
    let project = project.with(&server);
    let run = project.run(&["--allow-stale"]).exits(0);
    assert!(!page_of(&project, &run).contains("The whole change"));
}

#[test]
fn a_reply_that_was_rejected_is_text_too() {
    let server = ModelServer::gemini(&[&format!("^^^a{HOSTILE}\n{HOSTILE}\n^^^end\n")]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(5);
    let page = page_of(&project, &run);
    assert!(page.contains("The reply was rejected") && page.contains("^^^a&lt;script&gt;"));
    looks_right(&project.path(&format!("logs/{}/report.html", run.folder)));
}

#[test]
fn every_kind_of_run_gets_a_page() {
    let reply = format!("# User Specification Self Consistency\n{HOSTILE}\n");
    let server = ModelServer::gemini(&[
        &reply,
        "^^^a.rs\nfn a() {}\n^^^end\n",
        "^^^../a\nx\n^^^end\n",
    ]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--cc"]).exits(0);
    let page = page_of(&project, &run);
    assert!(page.contains("-s1\">User Specification Self Consistency</a>"));
    assert!(
        page.contains(
            "Suggestions and Other Important Commentary <span class=\"quiet\">is missing"
        )
    );
    looks_right(&project.path(&format!("logs/{}/report.html", run.folder)));

    let run = project.run(&[]).exits(0);
    assert!(page_of(&project, &run).contains("<i class=\"k\">fn</i>"));

    let undo = project.run(&["undo"]).exits(0);
    // The last run of a model is the previous one, unless the undo is named.
    assert!(page_of(&project, &run).contains("The build passed"));
    report(&project, &[&undo.folder]).exits(0);
    let page = project.read(&format!("logs/{}/report.html", undo.folder));
    assert!(
        page.contains("The project was put back") && page.contains("deleted</span>"),
        "{page}"
    );

    let run = project.run(&[]).exits(5);
    let page = page_of(&project, &run);
    assert!(
        page.contains("The reply was rejected")
            && page.contains("This reply was not applied.")
            && page.matches("line 1: `../a`").count() > 1
    );
    assert!(page.contains("^^^../a"), "the reply tells why");

    let result = format!("logs/{}/result.json", run.folder);
    let project = project.without(&result);
    assert!(page_of(&project, &run).contains("Not finished"));
}

#[test]
fn a_page_about_all_runs_links_to_the_pages_there_are() {
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/query.txt", "\n Add <b> \"it\"\nand more\n");
    let told = report(&project, &["--all", "--output", "none.html"]).exits(0);
    assert_eq!(told.stdout, "done: the page is in none.html\n");
    assert!(project.read("none.html").contains("There is no run yet"));

    let run = project.run(&[]).exits(0);
    let link = format!("<a href=\"./{}/report.html\">", run.folder);
    let listed = || {
        let told = report(&project, &["--all"]).exits(0);
        assert_eq!(told.stdout, "done: the page is in logs/report.html\n");
        project.read("logs/report.html")
    };
    assert!(!listed().contains(&link));
    // The first line of the request.
    let request = "<td class=\"request\"><span title=\"Add &lt;b&gt; &quot;it&quot;\">Add &lt;b&gt; &quot;it&quot;</span>";
    assert!(listed().contains(request), "{}", listed());
    page_of(&project, &run);
    assert!(listed().contains(&link));
    assert!(listed().contains("1 of 1 runs succeeded"));
    looks_right(&project.path("logs/report.html"));
}

#[test]
fn missing_run_and_unwritable_page_are_errors() {
    let project = TestProject::new();
    report(&project, &[])
        .exits(2)
        .says(&["no run in `logs`", "hint: "]);
    report(&project, &["logs/x"])
        .exits(2)
        .says(&["there is no run at `logs/x`", "hint: "]);
    report(&project, &["--all", "--output", "no/such/page.html"])
        .exits(6)
        .says(&["cannot write `", "no/such/page.html", "hint: "]);
    let told = report(
        &project,
        &["--all", "--output", "page.html", "--output-format", "json"],
    )
    .exits(0);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(told, serde_json::json!({"schema": 1, "page": "page.html"}));
}

/// Searches a page as a user types, and returns the visible text.
const SEARCH: &str = "(async () => {
  const input = document.querySelector('.search input');
  const told = () => document.querySelector('.search output').textContent;
  const search = async (text) => {
    input.value = text;
    input.dispatchEvent(new Event('input'));
    const until = Date.now() + 20000;
    while (told() === '' && Date.now() < until) await new Promise(resume => setTimeout(resume, 20));
    const said = told();
    input.value = '';
    input.dispatchEvent(new Event('input'));
    while (told() !== '' && Date.now() < until) await new Promise(resume => setTimeout(resume, 20));
    return said;
  };
  document.querySelectorAll('details').forEach(details => details.open = false);
  const found = [await search('FN MAIN'), await search('window.hostile=1</script>'), await search('no such (text')];
  return {found, opened: document.querySelectorAll('details[open]').length > 0,
    ran: typeof window.hostile !== 'undefined',
    uncopied: [...document.querySelectorAll('pre')].filter(pre => !pre.nextElementSibling?.matches('.copy')).length};
})()";

#[test]
fn an_interactive_page_searches_and_copies_and_runs_nothing_else() {
    let reply = format!("I did.\n^^^src/main.rs\nfn main() {{ /* {HOSTILE} */ }}\n^^^end\n");
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    for arguments in [&["--interactive"][..], &["--interactive", "--all"]] {
        report(&project, arguments).exits(0);
    }
    assert!(
        project
            .read("logs/report.html")
            .contains("script-src 'sha256-")
    );
    let page = project.path(&format!("logs/{}/report.html", run.folder));
    let Some(found) = browse(&page, &["--try", SEARCH]) else {
        return;
    };
    assert_eq!(
        (&found["requests"], &found["scripts"]),
        (&1.into(), &1.into())
    );
    let expected = serde_json::json!({"found": ["1 of 3", "1 of 2", "nothing found"], "opened": true, "ran": false, "uncopied": 0});
    assert_eq!(found["result"], expected, "{found}");
}

#[test]
fn the_page_is_opened_in_the_users_browser_or_said_to_be_where_it_is() {
    let project = TestProject::new()
        .program("browser", "#!/bin/sh\nprintf '%s\\n' \"$@\" > opened\n")
        .file("tools/xdg-open", "")
        .program("tools/xdg-open", "#!/bin/sh\ntouch started\n");
    let page = project.path("page.html").display().to_string();
    let open = |project: &TestProject| {
        let run = report(project, &["--all", "--output", "page.html", "--open"]).exits(0);
        assert!(run.stdout.ends_with("done: the page is in page.html\n"));
        run
    };
    let told = |project: &TestProject, problem: &str| {
        let said = format!("the page was not opened: {problem}; it is in `{page}`");
        open(project).says(&[&said]);
    };
    let browser = project.path("browser").display().to_string();
    let project = project.variable("BROWSER", &format!("'{browser}' --new-window"));
    open(&project);
    assert_eq!(project.read("opened"), format!("--new-window\n{page}\n"));
    let project = project.variable("BROWSER", "no-such-browser");
    told(
        &project,
        "cannot start `no-such-browser`: No such file or directory (os error 2)",
    );
    // A program in the project belongs to the project, not to the system.
    let tools = project.path("tools").display().to_string();
    let project = project.variable("BROWSER", "").variable("PATH", &tools);
    told(&project, "`BROWSER` is not set, and there is no `xdg-open`");
    assert!(!project.path("started").exists());
}

#[test]
fn five_thousand_files_open_at_once() {
    use std::fmt::Write as _;

    let content =
        "/// Adds.\npub fn add(one: u32, other: u32) -> u32 {\n    one + other // \"<b>\"\n}\n\n"
            .repeat(24);
    let mut reply = String::new();
    for number in 0..5000 {
        write!(
            reply,
            "^^^src/m{}/file_{number}.rs\n{content}^^^end\n",
            number % 50
        )
        .unwrap();
    }
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    let page = page_of(&project, &run);
    assert!(page.contains("5,000 files changed") && page.contains("src/m49/file_4999.rs"));
    assert!(page.contains("more files left out: see <code>code-commit diff</code>"));
    assert!(page.len() < 8_000_000, "{}", page.len());
    let path = project.path(&format!("logs/{}/report.html", run.folder));
    if let Some(found) = browser(&path) {
        for view in ["light", "phone"] {
            let seconds = found[view]["seconds"].as_f64().unwrap();
            println!("{} bytes loaded in {seconds}s ({view})", page.len());
            // It takes less than a second; the limit allows for busy machines.
            assert!(seconds < 20.0, "{view}: {seconds}");
        }
    }
}

#[test]
fn a_page_replaces_pages_alone() {
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    project.run(&[]).exits(0);
    for file in ["build.sh", "agent-config/gemini-key.txt"] {
        let before = project.read(file);
        report(&project, &["--output", file])
            .exits(6)
            .says(&["there is a file that is no page"]);
        assert_eq!(project.read(file), before);
    }
    report(&project, &["--output", "page.html"]).exits(0);
    std::os::unix::fs::symlink("page.html", project.path("link.html")).unwrap();
    report(&project, &["--output", "link.html"]).exits(0);
    assert!(project.path("link.html").is_symlink());
    assert!(project.read("page.html").starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_key_that_is_a_word_of_the_page_does_not_change_its_policy() {
    let server = ModelServer::gemini(&["^^^a\nby default\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/openai-key.txt", "default");
    let run = project.run(&[]).exits(0);
    let page = page_of(&project, &run);
    assert!(
        page.contains("content=\"default-src 'none'") && page.contains("[REDACTED]"),
        "{page}"
    );
}

#[test]
fn the_page_about_an_agents_run_shows_each_step() {
    let (agent, _server, folder) = agents_run();
    report(&agent.project, &[]).exits(0);
    let path = format!("logs/{folder}/report.html");
    let page = agent.project.read(&path);
    let mut from = 0;
    for part in [
        "The work is done, and the audit has passed it</h1>",
        "ran test-model as an agent.",
        "<small>7 steps, 2 audit calls</small>",
        "<dt>Changed</dt><dd>1 file<small>+2 ",
        "<h2>The request</h2><blockquote><pre class=\"prose\">Write a greeting\nto the moon</pre>",
        "Session: ",
        "<a href=\"#a2\">Step 2</a></th><td><span class=\"ended bad\">\u{2717} READ_FILE failed</span></td>",
        "<h2>Changes</h2>",
        "+moon\n",
        "<h2>Step 1 <span class=\"ended good\">\u{2713} WRITE_FILE</span></h2>",
        "## Thoughts\nOn we go.",
        "<h3 class=\"call\">WRITE_FILE greeting.txt \u{2026} <span class=\"ended good\">\u{2713} done, ",
        "Its input",
        "world</pre>",
        "Its result",
        "wrote `greeting.txt`",
        "<li>wrote greeting.txt</li>",
        "<h2>Step 2 <span class=\"ended bad\">\u{2717} READ_FILE failed</span></h2>",
        "<h3 class=\"call\">READ_FILE ../none.txt <span class=\"ended bad\">\u{2717} failed, ",
        "<details class=\"build\" open><summary>Its result",
        "none.txt",
        "<h2>Step 3 <span class=\"ended bad\">\u{2717} nothing done</span></h2>",
        ">nonsense</pre>",
        "<h2>Step 4 <span class=\"ended good\">\u{2713} COMMAND</span></h2>",
        "COMMAND seq 1 100; echo the end <span",
        "the end\n",
        "<h2>Step 5 <span class=\"ended good\">\u{2713} DONE</span></h2>",
        "<h2>Audit 6 <span class=\"ended bad\">\u{2717} not passed</span></h2>",
        "Feedback: Greet the moon.",
        "<h2>Step 7 ",
        "<h2>Audit 9 <span class=\"ended good\">\u{2713} passed</span></h2>",
    ] {
        let found = page[from..].find(part);
        from += found.unwrap_or_else(|| panic!("{part:?} is missing from byte {from} on\n{page}"));
    }
    let body = page.split_once("<body>").unwrap().1;
    for wrong in [
        "build.sh",
        "the build",
        "repair",
        "applied",
        "changed no file",
    ] {
        assert!(!body.contains(wrong), "{wrong}: {body}");
    }
    looks_right(&agent.project.path(&path));

    report(&agent.project, &["--all"]).exits(0);
    let page = agent.project.read("logs/report.html");
    for part in [
        "1 of 1 runs succeeded",
        "<dt>Tokens in</dt><dd>900",
        "<td>test-model</td><td class=\"n\"></td><td class=\"n\">1</td>",
    ] {
        assert!(page.contains(part), "{part:?} is missing\n{page}");
    }
}

#[test]
fn an_agents_step_shows_its_words_each_tools_time_and_code_and_what_it_changed() {
    let (agent, _server) = AgentProject::scripted(&[
        write("a.rs", "one\ntwo\n"),
        reply("COMMAND", "printf 'one\\n2\\n' > a.rs; exit 3"),
        write("a.rs", "one\nthree\n"),
        reply("COMMAND", "true"),
        done(),
        PASS.to_owned(),
    ]);
    let run = agent.work("Count").exits(0);
    let page = page_of(&agent.project, &run);
    let mut from = 0;
    for part in [
        "<h2>Step 1 ",
        "<pre class=\"prose\">On we go.</pre>",
        "<details class=\"build\"><summary>The reply as it came</summary><pre class=\"code\" tabindex=\"0\">",
        "What it changed</summary><pre class=\"d\"",
        "<span class=\"a\" data-n=\"\">+two\n</span>",
        "<h2>Step 2 <span class=\"ended bad\">\u{2717} COMMAND exit code 3</span></h2>",
        "<h3 class=\"call\">COMMAND printf ",
        " <span class=\"ended bad\">\u{2717} exit code 3, ",
        // This step found the file as the command had left it.
        "<h2>Step 3 ",
        "<span class=\"r\" data-n=\"\">-2\n</span><span class=\"a\" data-n=\"\">+three\n</span>",
        "<h2>Step 4 <span class=\"ended good\">\u{2713} COMMAND</span></h2>",
        "<span class=\"ended good\">\u{2713} exit code 0, ",
    ] {
        let found = page[from..].find(part);
        from += found.unwrap_or_else(|| panic!("{part:?} is missing from byte {from} on\n{page}"));
    }
}

#[test]
fn output_of_an_agent_is_escaped_on_its_page() {
    let (agent, _server) = AgentProject::scripted(&[
        write("x.html", &format!("{HOSTILE}\n")),
        reply("READ_FILE", "\"x.html\""),
        format!("{HOSTILE}\n"),
        reply("COMMAND", "printf '\\033[31m'; cat x.html"),
        done(),
        format!("{HOSTILE}\n{PASS}"),
    ]);
    let run = agent.work(&format!("Do {HOSTILE}")).exits(0);
    let page = page_of(&agent.project, &run);
    for hostile in ["<script", "<img", "<x-hostile", "<svg onload", "\u{1b}"] {
        assert!(!page.contains(hostile), "{hostile:?}");
    }
    assert!(page.contains("Do &lt;script&gt;window.hostile=1"));
    looks_right(
        &agent
            .project
            .path(&format!("logs/{}/report.html", run.folder)),
    );
}

#[test]
fn a_project_in_memory_has_its_page() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return skipped("there is no /dev/shm");
    }
    let directory = tempfile::tempdir_in(memory).unwrap();
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
    let project = TestProject::within(directory.path(), "project").with(&server);
    project.run(&["--sandbox", "off"]).exits(0);
    project.run(&["report"]).exits(0);
}
