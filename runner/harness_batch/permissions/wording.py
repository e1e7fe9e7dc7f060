"""What a denial says to the model: the rule, where it stands, and what is open instead."""

from collections.abc import Mapping, Sequence

from harness_batch.rules import Ask, Rule

SHOWN = 200
"""Characters of a pattern that are quoted."""

INSTEAD = {
    "edit": "Files that may be written or edited: {}.",
    "read": "Files that may be read: {}.",
    "bash": "Commands that may be run: {}.",
}


def denial(
    refused: Sequence[tuple[Ask, Rule | None, str]], open_to: Mapping[str, Sequence[str]]
) -> str:
    """One line for each thing refused, then what may be done.

    Args:
        refused: what was asked, the deciding rule (None: no rule matched), who decided.
        open_to: allowed patterns by permission.
    """
    if not refused:
        return "Denied: the call names nothing that a rule could allow."
    lines = dict.fromkeys(_line(*each) for each in refused)
    return "\n".join((*lines, *_instead(refused, open_to)))


def _line(ask: Ask, rule: Rule | None, by: str) -> str:
    asked = f"Denied: {ask.permission} `{_cut(ask.pattern)}`"
    if ask.undecidable is not None:
        return f"{asked}: {ask.undecidable}; only a rule for exactly `*` allows that. {_why(rule)}"
    if by == "agent":
        return f"{asked}: the agent's own rule `{rule}` denies it, and no other rule lifts that."
    if by == "parent":
        return f"{asked}: the session that started this one may not do it. {_why(rule)}"
    if ask.options and (rule is None or rule.action != "deny" or rule.pattern == "*"):
        options = ", ".join(f"`{option}`" for option in ask.options)
        return f"{asked}: no rule names {options}, which can execute or write. {_why(rule)}"
    return f"{asked}. {_why(rule)}"


def _why(rule: Rule | None) -> str:
    if rule is None:
        return "No rule allows it."
    nobody = " (nobody is there to answer an ask)" if rule.action == "ask" else ""
    return f"The rule is `{_cut(str(rule))}`, from {rule.source}{nobody}."


def _instead(
    refused: Sequence[tuple[Ask, Rule | None, str]], open_to: Mapping[str, Sequence[str]]
) -> list[str]:
    lines = ["Do not repeat the call; nobody can grant it during this run."]
    for permission in dict.fromkeys(ask.permission for ask, _, _ in refused):
        patterns = list(dict.fromkeys(open_to.get(permission, ())))
        if patterns:
            listed = ", ".join(f"`{_cut(pattern)}`" for pattern in patterns)
            sentence = INSTEAD.get(permission, f"What {permission} may be used for: {{}}.")
            lines.append(sentence.format(listed))
        else:
            lines.append(f"Nothing is allowed for {permission}: go on without it.")
    if any(ask.undecidable for ask, _, _ in refused):
        lines.append("Write the command out plainly: literal words, one simple command per call.")
    return lines


def _cut(text: str) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
