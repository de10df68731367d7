"""Run with the peers' Python: every call of the official client, against the base URL given as argument."""

import asyncio
import json
import sys

from openai import AsyncOpenAI, BadRequestError, OpenAI

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
RESPONSE_TOOLS = [{"type": "function", "name": "look_up", "parameters": {"type": "object"}, "strict": False}]
MESSAGES = [{"role": "user", "content": "hello"}]


def chat(client: OpenAI) -> dict[str, object]:
    create = client.chat.completions.create
    whole = create(model="model", messages=MESSAGES, max_tokens=5)
    stream = create(
        model="model", messages=MESSAGES, max_tokens=5, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    words = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    tool = create(model="model", messages=MESSAGES, tools=TOOLS, tool_choice="required")
    call = tool.choices[0].message.tool_calls[0]
    with client.chat.completions.stream(
        model="model", messages=MESSAGES, tools=TOOLS, tool_choice="required"
    ) as events:
        streamed = events.get_final_completion().choices[0].message.tool_calls[0]
    return {
        "chat": whole.choices[0].message.content == words,
        "usage": chunks[-1].usage.completion_tokens,
        "tool": [call.function.name, call.function.arguments],
        "streamed_tool": [streamed.function.name, streamed.function.arguments],
    }


def completions(client: OpenAI) -> dict[str, object]:
    whole = client.completions.create(model="model", prompt="hello", max_tokens=5, n=2, logprobs=1)
    stream = client.completions.create(model="model", prompt="hello", max_tokens=5, stream=True)
    words = "".join(c.choices[0].text for c in stream if c.choices)
    return {"completions": whole.choices[0].text == words, "choices": len(whole.choices)}


def responses(client: OpenAI) -> dict[str, object]:
    whole = client.responses.create(model="model", input="hello", max_output_tokens=5)
    with client.responses.stream(model="model", input="hello", max_output_tokens=5) as events:
        deltas = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    tool = client.responses.create(
        model="model", input="hello", tools=RESPONSE_TOOLS, tool_choice="required", max_output_tokens=5
    )
    return {"responses": whole.output_text == deltas, "response_tool": tool.output[0].name}


def refused(client: OpenAI) -> str:
    try:
        client.completions.create(model="model", prompt="a", max_tokens=0)
    except BadRequestError as error:
        return f"{error.status_code} {error.body['code']}"
    return "not refused"


async def concurrent(base_url: str) -> int:
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        calls = [
            client.chat.completions.create(model="model", messages=MESSAGES, max_tokens=3) for _ in range(8)
        ]
        return sum(answer.usage.completion_tokens for answer in await asyncio.gather(*calls))


def main(base_url: str) -> None:
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)
    result: dict[str, object] = {"models": [model.id for model in client.models.list()]}
    result |= chat(client) | completions(client) | responses(client)
    result |= {"refused": refused(client), "concurrent": asyncio.run(concurrent(base_url))}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
