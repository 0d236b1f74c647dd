//! An orchestration's two servers: a scripted Azure deployment, and a Pantheon with scripted branches.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::project::{Finished, given, piped};
use super::server::{Recorded, give, receive};
use super::{Answer, ModelServer, TestProject, openai};

/// The branch from which the tests' orchestrations start.
pub const START: &str = "5a0d7e1c-0000-4000-8000-000000000000";
pub const AZURE_KEY: &str = "azure-key-0123456789abcdef";
pub const GITHUB_TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
/// The directory in which the agents work.
pub const WORKSPACE: &str = "/home/pan/workspace";

/// Returns the ID of the `nth` branch to be started, from 1.
pub fn branch(nth: usize) -> String {
    format!("b0000000-0000-4000-8000-{nth:012}")
}

/// Returns a reply that calls these tools.
pub fn calls(calls: &[(&str, Value)]) -> Answer {
    let calls = calls.iter().enumerate();
    let calls: Vec<_> = calls
        .map(|(at, (name, input))| (format!("call_{at}"), *name, input.to_string()))
        .collect();
    raw_calls("", &calls)
}

/// Returns a reply with this text that calls tools with these IDs and verbatim arguments.
pub fn raw_calls(words: &str, calls: &[(String, &str, String)]) -> Answer {
    let calls = calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}})
    });
    let content = (!words.is_empty()).then_some(words);
    let mut reply = openai("");
    let message =
        json!({"role": "assistant", "content": content, "tool_calls": calls.collect::<Vec<_>>()});
    reply["choices"][0]["message"] = message;
    reply["choices"][0]["finish_reason"] = "tool_calls".into();
    Answer::json(&reply)
}

/// Returns a reply with text only.
pub fn says(text: &str) -> Answer {
    Answer::json(&openai(text))
}

/// Returns a reply that starts an agent.
pub fn execute(agent: &str, prompt: &str) -> Answer {
    calls(&[("execute_agent", json!({"agent": agent, "prompt": prompt}))])
}

/// Returns a reply that reads the review log.
pub fn read_log() -> Answer {
    calls(&[("read_artifact", json!({"path": "codex_review.log"}))])
}

/// Returns the final report.
pub fn finished(summary: &str) -> Answer {
    says(&json!({"is_finished": true, "task": "the model's words", "summary": summary}).to_string())
}

/// Returns the report of a publishing agent.
pub fn published() -> String {
    json!({"repository": "https://github.com/me/project", "branch": "add-a-flag",
        "commit": "0123abc4567", "worklog": "worklog.md", "test_logs": "test.log"})
    .to_string()
}

/// A branch as simulated by the server.
#[derive(Clone, Default)]
pub struct Branch {
    /// The states returned on successive queries; the last one is repeated.
    states: Vec<Value>,
    files: BTreeMap<String, String>,
    /// The form in which its ID is returned, if not in `branches`.
    announced: Option<fn(&str) -> Value>,
}

impl Branch {
    /// Creates a branch with these successive states.
    pub fn of(states: &[Value]) -> Self {
        Self {
            states: states.to_vec(),
            ..Self::default()
        }
    }

    /// Creates a branch that succeeds at once.
    pub fn done(output: &str) -> Self {
        Self::of(&[json!({"status": "succeed", "output": output})])
    }

    /// Creates a branch that fails at once.
    pub fn failed(output: &str) -> Self {
        Self::of(&[json!({"status": "failed", "output": output})])
    }

    /// Creates a branch that never ends.
    pub fn endless() -> Self {
        Self::of(&[json!({"status": "running"})])
    }

    /// Creates a review with this verdict.
    pub fn review(verdict: &str) -> Self {
        Self::done("reviewed").with_file(
            "codex_review.log",
            &format!("VERDICT: {verdict}\nas it is\n"),
        )
    }

    /// Adds a file to its workspace.
    pub fn with_file(mut self, path: &str, content: &str) -> Self {
        let path = format!("{WORKSPACE}/{path}");
        self.files.insert(path, content.to_owned());
        self
    }

    /// Returns its ID in this form.
    pub fn announced(mut self, tell: fn(&str) -> Value) -> Self {
        self.announced = Some(tell);
        self
    }
}

/// The simulated branches of a server.
pub struct Played {
    /// The branches to be started next.
    script: Vec<Branch>,
    started: Vec<(Branch, usize)>,
    messages: Vec<Value>,
    /// Other answers to the nth call of a tool, or the nth message of a method, from 1.
    otherwise: Vec<(String, usize, Answer)>,
    /// The function that turns the content into a call's result.
    result: fn(Value) -> Value,
    tools: Vec<&'static str>,
}

/// Makes a result in the form that most servers use.
#[expect(
    clippy::needless_pass_by_value,
    reason = "other forms of a result take it in"
)]
fn as_text(told: Value) -> Value {
    json!({"content": [{"type": "text", "text": told.to_string()}]})
}

impl Played {
    /// Creates a server that starts these branches.
    pub fn of(branches: impl IntoIterator<Item = Branch>) -> Self {
        let mut script: Vec<Branch> = branches.into_iter().collect();
        script.reverse();
        Self {
            script,
            started: Vec::new(),
            messages: Vec::new(),
            otherwise: Vec::new(),
            result: as_text,
            tools: ["parallel_explore", "get_branch", "branch_read_file"].to_vec(),
        }
    }

    /// Returns the number of started branches.
    pub fn started(&self) -> usize {
        self.started.len()
    }
}

/// The server. It refuses to start branches that are not in its script.
pub struct Pantheon {
    port: u16,
    played: Arc<Mutex<Played>>,
}

impl Pantheon {
    pub fn start(branches: impl IntoIterator<Item = Branch>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let played = Arc::new(Mutex::new(Played::of(branches)));
        let shared = Arc::clone(&played);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let played = Arc::clone(&shared);
                // Some tests disconnect the client on purpose.
                thread::spawn(move || serve(&stream.unwrap(), &played));
            }
        });
        Self { port, played }
    }

    /// Sets the answer to the nth call of this tool, or the nth message of this method, from 1.
    pub fn answers(&self, name: &str, nth: usize, answer: Answer) {
        let mut played = self.played.lock().unwrap();
        played.otherwise.push((name.to_owned(), nth, answer));
    }

    /// Sets the result of the nth call of this tool.
    pub fn results(&self, tool: &str, nth: usize, result: Value) {
        let answer = move |request: &Recorded| {
            Answer::json(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
        };
        self.answers(tool, nth, Answer::To(Box::new(answer)));
    }

    /// Sets the function that makes results.
    pub fn makes_results(&self, make: fn(Value) -> Value) {
        self.played.lock().unwrap().result = make;
    }

    /// Sets the list of tools.
    pub fn has_tools(&self, tools: &[&'static str]) {
        self.played.lock().unwrap().tools = tools.to_vec();
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Returns all received messages.
    pub fn messages(&self) -> Vec<Value> {
        self.played.lock().unwrap().messages.clone()
    }

    /// Returns the arguments of all calls of this tool.
    pub fn called(&self, tool: &str) -> Vec<Value> {
        let messages = self.messages().into_iter();
        let calls = messages.filter(|message| message["params"]["name"] == tool);
        calls
            .map(|message| message["params"]["arguments"].clone())
            .collect()
    }
}

fn serve(stream: &TcpStream, played: &Mutex<Played>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let request = receive(&mut reader)?;
    let answer = if request.line.starts_with("POST ") {
        answer(&request.json(), &mut played.lock().unwrap())
    } else {
        Answer::new(200, &[], "")
    };
    give(answer, &request, stream, reader)
}

/// Returns the name of the called tool, or else the method.
fn subject(message: &Value) -> &str {
    let name = message["params"]["name"].as_str();
    name.or(message["method"].as_str()).unwrap_or_default()
}

fn answer(message: &Value, played: &mut Played) -> Answer {
    played.messages.push(message.clone());
    let name = subject(message);
    let nth = played.messages.iter().filter(|sent| subject(sent) == name);
    let nth = nth.count();
    let mut otherwise = played.otherwise.iter();
    if let Some(at) = otherwise.position(|(known, at, _)| known == name && *at == nth) {
        return played.otherwise.swap_remove(at).2;
    }
    if message.get("id").is_none() {
        return Answer::new(202, &[], "");
    }
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({"protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "pantheon", "version": "1"}}),
        "tools/list" => {
            let tools = played.tools.iter();
            let tools = tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({ "tools": tools.collect::<Vec<_>>() })
        }
        _ => match call(params, played) {
            Ok(told) => (played.result)(told),
            Err(words) => {
                json!({"isError": true, "content": [{"type": "text", "text": words}]})
            }
        },
    };
    Answer::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// Returns the result of a call.
pub fn call(params: &Value, played: &mut Played) -> Result<Value, String> {
    let arguments = &params["arguments"];
    if params["name"] == "parallel_explore" {
        let next = played.script.pop().ok_or("there is no room for a branch")?;
        let id = branch(played.started.len() + 1);
        let told = match next.announced {
            Some(tell) => tell(&id),
            None => json!({"branches": [{"branch_id": id}]}),
        };
        played.started.push((next, 0));
        return Ok(told);
    }
    let id = arguments["branch_id"].as_str().unwrap_or_default();
    let is_it = |(nth, _): &(usize, &mut (Branch, usize))| branch(nth + 1) == id;
    let mut started = played.started.iter_mut().enumerate();
    let (_, (found, asked)) = started.find(is_it).ok_or("there is no such branch")?;
    if params["name"] == "branch_read_file" {
        let path = arguments["file_path"].as_str().unwrap_or_default();
        let content = found.files.get(path).ok_or("there is no such file")?;
        return Ok(json!({ "content": content }));
    }
    let last = found.states.len() - 1;
    let mut state = found.states[(*asked).min(last)].clone();
    *asked += 1;
    state["id"] = id.into();
    Ok(state)
}

/// A project in which orchestrations are run.
pub struct OrchestraProject {
    pub project: TestProject,
    pub azure: ModelServer,
    pub pantheon: Pantheon,
}

impl OrchestraProject {
    /// Creates a project whose deployment gives these replies, and whose agents have these branches.
    pub fn scripted(
        replies: impl IntoIterator<Item = Answer>,
        branches: impl IntoIterator<Item = Branch>,
    ) -> Self {
        let azure = ModelServer::start(replies);
        let pantheon = Pantheon::start(branches);
        let project = TestProject::new()
            .variable("AZURE_OPENAI_API_KEY", AZURE_KEY)
            .variable("AZURE_OPENAI_BASE_URL", &azure.url())
            .variable("AZURE_OPENAI_DEPLOYMENT", "gpt-5-deployed")
            .variable("MCP_BASE_URL", &pantheon.url())
            .variable("MCP_POLL_INITIAL_SECONDS", "0.01")
            .variable("MCP_POLL_MAX_SECONDS", "0.02")
            .variable("GITHUB_TOKEN", GITHUB_TOKEN)
            .variable("PROJECT_NAME", "project");
        Self {
            project,
            azure,
            pantheon,
        }
    }

    /// Creates a project in which the model first gives these replies, and then the usual ones: a review passes the
    /// work, and it is published. `branches` are the earlier branches.
    pub fn clean_after(
        replies: impl IntoIterator<Item = Answer>,
        branches: impl IntoIterator<Item = Branch>,
    ) -> Self {
        let clean = [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
            finished("The flag is there."),
        ];
        let passed = [
            Branch::done("implemented"),
            Branch::review("CLEAN"),
            Branch::done(&published()),
        ];
        Self::scripted(
            replies.into_iter().chain(clean),
            branches.into_iter().chain(passed),
        )
    }

    /// Creates a project in which everything succeeds.
    pub fn clean() -> Self {
        Self::clean_after([], [])
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.project = self.project.variable(name, value);
        self
    }

    /// Returns `code-commit orchestrate` from the usual branch, with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let before = ["orchestrate", "--parent-branch-id", START];
        self.project.command(&[&before, arguments].concat())
    }

    /// Runs the usual task without a user.
    pub fn run(&self, arguments: &[&str]) -> Finished {
        let before = ["--headless", "--task", "Add a flag."];
        let arguments = [&before, arguments].concat();
        let output = self.command(&arguments).output().unwrap();
        Finished::new(&self.project, &arguments, output)
    }

    /// Runs without `--headless`, with this standard input.
    pub fn typed(&self, arguments: &[&str], input: &str) -> Finished {
        self.given(&[&["--task", "Add a flag."], arguments].concat(), input)
    }

    /// Runs with only these arguments, and this standard input.
    pub fn given(&self, arguments: &[&str], input: &str) -> Finished {
        let output = given(self.spawn(arguments), input);
        Finished::new(&self.project, arguments, output)
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        piped(self.command(arguments))
    }

    /// Returns the nth conversation sent to the deployment.
    pub fn sent(&self, nth: usize) -> Vec<Value> {
        let request = self.azure.requests()[nth].json();
        request["messages"].as_array().unwrap().clone()
    }
}

/// Returns the report on stdout.
pub fn report(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap()
}
