"""Does the work of `code-commit orchestrate` as a plain script: the same requests to the same servers, and no more."""

import json
import os
import sys
import urllib.request

BASE = os.environ["AZURE_OPENAI_BASE_URL"]
DEPLOYMENT = os.environ["AZURE_OPENAI_DEPLOYMENT"]
MCP = os.environ["MCP_BASE_URL"]
WORKSPACE = "/home/pan/workspace"


def post(url, body, headers):
    headers = {"content-type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


ids = iter(range(1, 1_000_000))


def mcp(method, params):
    body = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return post(MCP, body, accept)["result"]


def tool(name, arguments):
    result = mcp("tools/call", {"name": name, "arguments": arguments})
    return json.loads(result["content"][0]["text"])


def execute(agent, prompt, parent):
    started = tool("parallel_explore", {"project_name": "project", "parent_branch_id": parent,
                                        "shared_prompt_sequence": [prompt], "num_branches": 1, "agent": agent})
    branch = started["branches"][0]["branch_id"]
    state = tool("get_branch", {"branch_id": branch})
    return branch, state


mcp("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}})
post(MCP, {"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
mcp("tools/list", {})
messages = [{"role": "system", "content": "You conduct two agents." * 100},
            {"role": "user", "content": json.dumps({"task": "Add a flag."})}]
url = f"{BASE}/openai/deployments/{DEPLOYMENT}/chat/completions?api-version=2024-10-21"
parent = sys.argv[1]
while True:
    reply = post(url, {"model": DEPLOYMENT, "messages": messages}, {"api-key": os.environ["AZURE_OPENAI_API_KEY"]})
    message = reply["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "execute_agent":
            parent, data = execute(arguments["agent"], arguments["prompt"], parent)
        else:
            path = f"{WORKSPACE}/{arguments['path']}"
            data = tool("branch_read_file", {"branch_id": parent, "file_path": path})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(data)})
execute("claude_code", "Publish it.", parent)
print(message["content"])
