"""A deterministic tokenizer with the habits of real ones: about four bytes of English per token.

Prompts become blocks of tokens, because prefix caches know blocks only; a block is the bytes it stands for,
so that equal text has equal blocks. Speed matters: 80 KB of prompt must cost a few milliseconds.
"""

import re
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson
import xxhash

_TOKEN = rb"(?> ?[A-Za-z]{1,6}| ?[0-9]{1,3}|[\x80-\xff]{1,3}|\s|[\s\S])"
_ONE = re.compile(_TOKEN)
VOCABULARY = 128_000
MEDIA_TOKENS = 576
"""Tokens of one image or other media part (a 24 x 24 grid of patches)."""
TEMPLATE_TOKENS_PER_MESSAGE = 4


@lru_cache(maxsize=8)
def _block_pattern(block_tokens: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b){1,%d}+" % (_TOKEN, block_tokens))


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the engine sees it."""

    tokens: int
    hashes: tuple[int, ...]
    """Chained hash of each whole block: equal only where everything before is equal too."""
    seed: int
    """Number that stands for the whole prompt: answers are made from it."""


def count_tokens(data: bytes) -> int:
    """Tokens of `data`."""
    return len(_ONE.findall(data))


def token_ids(data: bytes) -> list[int]:
    """Ids of the tokens of `data`, as /tokenize shows them."""
    return [zlib.crc32(token) % VOCABULARY for token in _ONE.findall(data)]


def text_prompt(text: str, *, block_tokens: int, salt: str, extra_tokens: int = 0) -> Prompt:
    """A prompt from text; `salt` (cache salt, LoRA name) keeps prefixes of different tenants apart.

    `extra_tokens` are counted after the text and never cached (template tokens of the reply).
    """
    data = text.encode("utf-8", "surrogatepass")
    seed = xxhash.xxh3_64_intdigest(data)
    blocks = _block_pattern(block_tokens).findall(data)
    if not blocks:
        return Prompt(extra_tokens, (), seed)
    tail = count_tokens(blocks[-1])
    tokens = (len(blocks) - 1) * block_tokens + tail
    whole = blocks if tail == block_tokens else blocks[:-1]
    return Prompt(tokens + extra_tokens, _chain(whole, salt), seed)


def ids_prompt(ids: Sequence[int], *, block_tokens: int, salt: str) -> Prompt:
    """A prompt from token ids. Raises ValueError or OverflowError for what is no id."""
    data = array("q", ids).tobytes()
    if ids and min(ids) < 0:
        raise ValueError(f"token id {min(ids)} is negative")
    size = 8 * block_tokens
    whole = len(ids) // block_tokens
    hashes = _chain((data[i * size : (i + 1) * size] for i in range(whole)), salt)
    return Prompt(len(ids), hashes, xxhash.xxh3_64_intdigest(data))


def _chain(blocks: Iterable[bytes], salt: str) -> tuple[int, ...]:
    digest, seed = xxhash.xxh3_64_intdigest, xxhash.xxh3_64_intdigest(salt.encode())
    hashes = []
    for block in blocks:
        seed = digest(block, seed)
        hashes.append(seed)
    return tuple(hashes)


def chat_text(messages: object, tools: object) -> tuple[str, int]:
    """Messages and tools as one text, and tokens to add for what is no text. Raises ValueError when
    malformed."""
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a non-empty list")
    parts = ["<|tools|>\n", orjson.dumps(tools).decode(), "\n"] if tools else []
    extra = 0
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ValueError("every message must be an object with a role")
        text, media = _content(message.get("content"))
        calls = message.get("tool_calls")
        parts += ["<|", message["role"], "|>\n", text, orjson.dumps(calls).decode() if calls else "", "\n"]
        extra += TEMPLATE_TOKENS_PER_MESSAGE - 2 + media * MEDIA_TOKENS
    parts.append("<|assistant|>\n")
    return "".join(parts), extra


def _content(content: object) -> tuple[str, int]:
    if content is None or isinstance(content, str):
        return content or "", 0
    if not isinstance(content, list):
        raise ValueError("content must be a string or a list of parts")
    texts, media = [], 0
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, Mapping):
            texts.append(f"<|media {zlib.crc32(orjson.dumps(part)):08x}|>")
            media += 1
        else:
            raise ValueError("content parts must be objects")
    return "".join(texts), media
