"""What OpenAI's formats, and those that imitate them, report of tokens and money: made our meaning.

Ours: input is the total with the cache in it, output has the reasoning in it. OpenAI reports it so.
xAI's chat completions and Gemini's compatible endpoint leave reasoning out of the completion and
count it in the total alone, and it is billed as output; some gateways leave the cache out of the
prompt. `total_tokens` tells which is which.
Sources: https://platform.openai.com/docs/api-reference/chat/object,
https://docs.x.ai/docs/key-information/consumption-and-rate-limits,
https://docs.x.ai/developers/cost-tracking,
https://openrouter.ai/docs/use-cases/usage-accounting
"""

from decimal import Decimal

from harness_batch.messages import JsonObject, TokenUsage
from harness_batch.models.fields import count, money, share

TICKS_PER_USD = Decimal(10**10)
"""xAI's unit of money."""


def chat_usage(raw: JsonObject) -> TokenUsage | None:
    """Of the `usage` of a chat completion; None when it does not tell the tokens."""
    prompt, completion = (
        _part(raw, "prompt_tokens_details"),
        _part(raw, "completion_tokens_details"),
    )
    return _usage(
        raw,
        prompt=count(raw, "prompt_tokens"),
        completion=_made(raw, "completion_tokens"),
        read=share(prompt, "cached_tokens") or share(raw, "prompt_cache_hit_tokens"),  # DeepSeek's
        written=share(prompt, "cache_write_tokens"),
        reasoning=share(completion, "reasoning_tokens"),
    )


def responses_usage(raw: JsonObject) -> TokenUsage | None:
    """Of the `usage` of a response; None when it does not tell the tokens."""
    taken, made = _part(raw, "input_tokens_details"), _part(raw, "output_tokens_details")
    return _usage(
        raw,
        prompt=count(raw, "input_tokens"),
        completion=_made(raw, "output_tokens"),
        read=share(taken, "cached_tokens"),
        written=share(taken, "cache_write_tokens"),
        reasoning=share(made, "reasoning_tokens"),
    )


def stated_cost(raw: JsonObject) -> Decimal | None:
    """US dollars that the provider says the call cost; None when it says nothing.

    OpenRouter's `cost` is only its own fee where the user's key pays the vendor (`is_byok`).
    """
    if "cost_in_usd_ticks" in raw:
        ticks = money(raw["cost_in_usd_ticks"])
        return None if ticks is None else ticks / TICKS_PER_USD
    cost = raw.get("cost")
    if isinstance(cost, dict):  # Perplexity's
        return money(cost.get("total_cost"))
    fee = money(cost)
    if fee is None or raw.get("is_byok") is not True:
        return fee
    vendors = money(_part(raw, "cost_details").get("upstream_inference_cost"))
    return None if vendors is None else fee + vendors


def _made(raw: JsonObject, key: str) -> int | None:
    """Tokens of output. Where only their count is missing, the total tells them."""
    return 0 if raw.get(key) is None and share(raw, "total_tokens") else count(raw, key)


def _usage(
    raw: JsonObject,
    *,
    prompt: int | None,
    completion: int | None,
    read: int,
    written: int,
    reasoning: int,
) -> TokenUsage | None:
    if prompt is None or completion is None:
        return None
    beside = max(0, share(raw, "total_tokens") - prompt - completion)
    if beside and beside == read != reasoning:
        prompt += read
    elif beside and reasoning in (0, beside):
        completion += beside
        reasoning = beside
    read = min(read, prompt)
    return TokenUsage(
        input=prompt,
        cache_read=read,
        cache_write_5m=min(written, prompt - read),
        output=completion,
        reasoning=reasoning,
    )


def _part(raw: JsonObject, key: str) -> JsonObject:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}
