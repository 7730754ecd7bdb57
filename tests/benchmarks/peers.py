"""One round of one peer's figures as JSON on standard output, like ours.py. Runs in the peers' environment.

Usage: python peers.py PEER [--quick]

Each peer gets the tool that ours.py calls, async and typed, and arguments in the form that it takes. What a call costs
in a run of an agent is the difference between runs with many calls and with one, because a run has its own cost.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from clocks import BLOCKS, MANY, PAIRS, QUICK, Figures, Taken, middle, per_run

TURN = 8
MARGIN = 64
RUNS = 1 if QUICK else 5
ARGUMENTS = {"a": 1, "b": 2}


async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


async def fastmcp() -> Figures:
    """FastMCP's server, called in the process, and through its client over a transport in memory."""
    from fastmcp import Client, FastMCP

    server = FastMCP("bench")
    server.tool(add)
    expect(str((await server.call_tool("add", ARGUMENTS)).structured_content), "3")
    found = await direct("fastmcp", lambda: server.call_tool("add", ARGUMENTS))
    async with Client(server) as client:
        found["fastmcp_client"] = await per_run(lambda: client.call_tool("add", ARGUMENTS), RUNS * 4)
    return found


async def mcp() -> Figures:
    """The MCP SDK's server, called in the process, and through its client over a transport in memory."""
    from mcp.client import Client
    from mcp.server import MCPServer

    server = MCPServer("bench")
    server.tool()(add)
    expect(str(await server.call_tool("add", ARGUMENTS)), "3")
    found = await direct("mcp", lambda: server.call_tool("add", ARGUMENTS))
    async with Client(server) as client:
        found["mcp_client"] = await per_run(lambda: client.call_tool("add", ARGUMENTS), RUNS * 4)
    return found


async def langchain() -> Figures:
    """A LangChain tool, called alone, and by LangGraph's ToolNode from a model's message."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.prebuilt import ToolNode
    from langgraph.runtime import Runtime

    made = tool(add)
    expect(str(await made.ainvoke(ARGUMENTS)), "3")
    found = await direct("langchain", lambda: made.ainvoke(ARGUMENTS))
    node = ToolNode([made])
    config: Any = {"configurable": {"__pregel_runtime": Runtime()}}

    def turn(count: int) -> Callable[[], Awaitable[Any]]:
        asked = [{"name": "add", "args": ARGUMENTS, "id": f"call-{number}"} for number in range(count)]
        message = AIMessage("", tool_calls=asked)
        return lambda: node.ainvoke({"messages": [message]}, config)

    expect((await turn(1)())["messages"][0].content, "3")
    return found | {
        "langgraph": await per_run(turn(1), RUNS * 8),
        "langgraph_8": await per_run(turn(TURN), RUNS * 2),
        "langgraph_many": await per_run(turn(MANY), 1, PAIRS),
    }


async def pydantic_ai() -> Figures:
    """Runs of a pydantic-ai agent whose model answers at once."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def run(count: int) -> Callable[[], Awaitable[Any]]:
        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if len(messages) > 1:
                returned = [part.content for part in messages[-1].parts if part.part_kind == "tool-return"]
                return ModelResponse([TextPart(f"{len(returned)} calls gave {set(returned)}")])
            return ModelResponse([ToolCallPart("add", ARGUMENTS, f"call-{number}") for number in range(count)])

        agent = Agent(FunctionModel(model))
        agent.tool_plain(add)
        return lambda: agent.run("add")

    expect((await run(TURN)()).output, f"{TURN} calls gave {{3}}")
    return await marginal("pydantic_ai", run)


async def openai_agents() -> Figures:
    """A tool of the OpenAI agents SDK, invoked raw, and in runs of an agent whose model answers at once."""
    from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.models.interface import Model
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)
    made = function_tool(add)
    text = json.dumps(ARGUMENTS)
    context: Any = ToolContext(None, tool_name="add", tool_call_id="call-0", tool_arguments=text)
    expect(str(await made.on_invoke_tool(context, text)), "3")

    class Scripted(Model):
        def __init__(self, count: int) -> None:
            self.count = count

        async def get_response(self, *, input: Any, **_: Any) -> ModelResponse:  # noqa: A002 - its name
            returned = [item["output"] for item in input if item.get("type") == "function_call_output"]
            if returned:
                words = ResponseOutputText(
                    text=f"{len(returned)} calls gave {set(returned)}", type="output_text", annotations=[]
                )
                output: list[Any] = [
                    ResponseOutputMessage(
                        id="message", content=[words], role="assistant", status="completed", type="message"
                    )
                ]
            else:
                output = [
                    ResponseFunctionToolCall(
                        call_id=f"call-{number}", id=f"f{number}", name="add", arguments=text, type="function_call"
                    )
                    for number in range(self.count)
                ]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def run(count: int) -> Callable[[], Awaitable[Any]]:
        agent = Agent(name="bench", tools=[made], model=Scripted(count))
        return lambda: Runner.run(agent, "add")

    expect((await run(TURN)()).final_output, f"{TURN} calls gave {{'3'}}")
    found = await direct("openai_agents_raw", lambda: made.on_invoke_tool(context, text))
    return found | await marginal("openai_agents", run)


# What they share ---------------------------------------------------------------------------------------------------


async def direct(peer: str, call: Callable[[], Awaitable[Any]]) -> Figures:
    """One call, eight at once, and a thousand at once, as the peer's users gather them."""

    async def gathered(count: int) -> None:
        await asyncio.gather(*(call() for _ in range(count)))

    return {
        peer: await per_run(call, RUNS * 8),
        f"{peer}_8": await per_run(lambda: gathered(TURN), RUNS * 2),
        f"{peer}_many": await per_run(lambda: gathered(MANY), 1, PAIRS),
    }


async def marginal(peer: str, run: Callable[[int], Callable[[], Awaitable[Any]]]) -> Figures:
    """What one call and eight calls add to a run: runs of 65, 9 and 1 calls, less the run of one call."""
    one, nine, more = [middle(await per_run(run(count), RUNS, BLOCKS // 2)) for count in (1, 1 + TURN, 1 + MARGIN)]
    return {
        peer: [_less(more, one, MARGIN)],
        f"{peer}_8": [_less(nine, one, 1)],
    }


def _less(some: Taken, less: Taken, count: int) -> Taken:
    return (some[0] - less[0]) / count, (some[1] - less[1]) / count


def expect(said: str, expected: str) -> None:
    """A figure of calls that did not do their work is no figure."""
    if expected not in said:
        raise AssertionError(said)


PEERS = {function.__name__: function for function in (fastmcp, mcp, langchain, pydantic_ai, openai_agents)}

if __name__ == "__main__":
    figures = asyncio.run(PEERS[sys.argv[1]]())
    sys.stdout.write(json.dumps(figures))
