"""An MCP server made with PyPI's `mcp`, of either generation, for the tests: `serve.py KIND`, and the port on stdout.

KIND is stdio, sse, sessions, stateless (both streamable HTTP), json (the same without streams), or modern, which
refuses the handshake and names 2026-07-28.
"""

import asyncio
import json
import socket
import sys

try:
    from mcp.server.mcpserver import MCPServer as Server, Context
    FIRST = False
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server, Context
    FIRST = True

kind = sys.argv[1]
flags = {"stateless_http": kind == "stateless", "json_response": kind == "json"}
server = Server("test", **(flags if FIRST else {}))


@server.tool()
def branch(project_name: str) -> dict:
    """Start a branch."""
    return {"branch_id": f"of-{project_name}"}


@server.tool()
def text(size: int) -> str:
    return "x" * size


@server.tool()
def written() -> str:
    return json.dumps({"branch_id": "in-text"})


@server.tool()
def fails() -> str:
    raise ValueError("no such branch")


@server.tool()
async def reports(ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    await ctx.info("half way")
    return "reported"


@server.tool()
async def waits(mark: str) -> str:
    open(mark, "w").close()
    await asyncio.sleep(600)
    return "late"


def refusing(app):
    """Refuses the handshake, like a server that speaks only the version without one."""

    async def refused(scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message = json.loads(body)
        if message.get("method") != "initialize":
            sent = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def again():
                for event in sent:
                    return event
                return await receive()

            return await app(scope, again, send)
        data = {"supported": ["2026-07-28"], "requested": message["params"]["protocolVersion"]}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return refused


if kind == "stdio":
    server.run(transport="stdio")
    sys.exit()

import uvicorn

if kind == "sse":
    app = server.sse_app()
else:
    app = server.streamable_http_app(**({} if FIRST else flags))
if kind == "modern":
    app = refusing(app)

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener]))
