"""Hosts of `sandbox.network` match by name and port, never by look."""

import pytest

from harness_batch.errors import SandboxError
from harness_batch.sandbox.egress_rules import covered, host_rule


@pytest.mark.parametrize(
    ("rule", "host", "port", "open_"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("Example.ORG.", "example.org", 443, True),
        ("example.org", "example.org", 22, False),
        ("example.org:22", "example.org", 22, True),
        ("example.org:22", "example.org", 443, False),
        ("example.org", "sub.example.org", 443, False),
        ("example.org", "example.org.evil.net", 443, False),
        ("example.org", "notexample.org", 443, False),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "notexample.org", 443, False),
        ("*.example.org:8443", "a.example.org", 8443, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("*", "anything.example", 443, True),
        ("*", "anything.example", 25, False),
        ("192.0.2.1", "192.0.2.1", 443, True),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443, True),
    ],
)
def test_a_host_is_open_by_its_whole_name_and_port(
    rule: str, host: str, port: int, open_: bool
) -> None:
    assert covered([host_rule(rule)], host, port) is open_


def test_an_empty_list_opens_nothing() -> None:
    assert not covered([], "example.org", 443)


@pytest.mark.parametrize(
    "text",
    ["", "*.", "https://example.org", "a b", "ex*mple.org", "example.org:0", "h:99999", "h:"],
)
def test_what_is_no_host_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(SandboxError, match=r"sandbox\.network"):
        host_rule(text)
