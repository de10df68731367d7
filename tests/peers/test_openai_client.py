"""The official Python client understands every answer of the stand-in."""

import asyncio
import json
from pathlib import Path

from tests.engine.standin import vllm

CALLS = Path(__file__).parent / "openai_calls.py"


async def test_official_client_understands_every_call(launch, peer) -> None:
    engine = await launch(vllm())
    process = await asyncio.create_subprocess_exec(
        peer("python"),
        *(str(CALLS), engine.url + "/v1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert json.loads(output) == {
        "models": ["model"],
        "chat": True,
        "usage": 5,
        "tool": ["look_up", "{}"],
        "streamed_tool": ["look_up", "{}"],
        "completions": True,
        "choices": 2,
        "responses": True,
        "response_tool": "look_up",
        "refused": "400 400",
        "concurrent": 24,
    }
