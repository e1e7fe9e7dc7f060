"""A URL has one normal form, and rules look at its parts: tables of hostile spellings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.permissions.judge import Policy
from harness_batch.permissions.url_rules import url_matches
from harness_batch.permissions.web_url import WebUrl, join_url, parse_url
from harness_batch.rules import Ask, Rule

NORMAL = {
    "https://Example.COM": "https://example.com/",
    "HTTPS://example.com:443/a": "https://example.com/a",
    "http://example.com:80": "http://example.com/",
    "http://example.com:443/": "http://example.com:443/",
    "https://example.com:0443/": "https://example.com/",
    "https://example.com:/": "https://example.com/",
    "https://example.com./a": "https://example.com/a",
    "https://example.com/a/./b/../c": "https://example.com/a/c",
    "https://example.com/a/%2e%2e/%2E%2e/c": "https://example.com/c",
    "https://example.com/../../c": "https://example.com/c",
    "https://example.com/a/..": "https://example.com/",
    "https://example.com/%7euser/%2f?q=%3d#top": "https://example.com/~user/%2F?q=%3D",
    "https://example.com?": "https://example.com/?",
    "https://example.com/ü": "https://example.com/%C3%BC",
    "https://example.com/100%": "https://example.com/100%",
    "https://münchen.example/": "https://xn--mnchen-3ya.example/",
    "https://\uff45xample.com/": "https://example.com/",
    "https://example。com/": "https://example.com/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://0x7f000001/": "http://127.0.0.1/",
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://017700000001/": "http://127.0.0.1/",
    "http://127.1/": "http://127.0.0.1/",
    "http://127。0。0。1/": "http://127.0.0.1/",
    "http://\uff11\uff12\uff17.0.0.1/": "http://127.0.0.1/",
    "http://127.0.0.1./": "http://127.0.0.1/",
    "http://[::1]:8080/": "http://[::1]:8080/",
    "http://[0:0:0:0:0:FFFF:7F00:1]/": "http://[::ffff:7f00:1]/",
    "http://[::ffff:127.0.0.1]/": "http://[::ffff:7f00:1]/",
}
REFUSED = [
    "",
    "example.com/a",
    "//example.com/a",
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "https:example.com",
    "https:/example.com",
    "https:///etc/passwd",
    "https://",
    "https://docs.python.org@evil.example/",
    "https://docs.python.org:pw@evil.example/",
    "https://@evil.example/",
    "https://docs.python.org%40evil.example/",
    "https://evil.example%2fdocs.python.org/",
    "https://evil.example\\@docs.python.org/",
    "https:\\\\evil.example/",
    "https://example.com\0.evil.example/",
    "https://example.com/\0",
    "https://example.com/a b",
    "https://example.com/\r\nHost: evil.example",
    " https://example.com/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:99999999/",
    "https://example.com:-1/",
    "https://example.com:٨٠/",
    "https://example.com:80:80/",
    "https://example..com/",
    "https://.example.com/",
    "https://example.com../",
    "https://-example.com/",
    "https://exa mple.com/",
    "https://exa*mple.com/",
    "https://faß.example/",
    "https://exam\u200dple.com/",
    "https://exam\u200bple.com\ud800/",
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://1.2.3.256/",
    "http://4294967296/",
    "http://0x1ffffffff/",
    "http://08.1.1.1/",
    "http://example.0x/x",
    "http://example.1/",
    "http://[::1/",
    "http://::1/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[127.0.0.1]/",
    "http://[v1.x]/",
    f"https://{'a' * 64}.com/",
    f"https://{'a.' * 130}com/",
    f"https://example.com/{'a' * 5000}",
]


@pytest.mark.parametrize(("text", "normal"), NORMAL.items())
def test_a_url_comes_down_to_one_form(text: str, normal: str) -> None:
    assert str(parse_url(text)) == normal


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_plain_public_url_is_refused_in_words(text: str) -> None:
    told = parse_url(text)
    assert isinstance(told, str)
    assert len(told) > 10


@given(st.text(max_size=60))
def test_any_text_is_a_url_whose_form_is_stable_or_is_refused(text: str) -> None:
    for spelled in (text, f"https://{text}", f"http://example.com/{text}"):
        url = parse_url(spelled)
        if isinstance(url, WebUrl):
            assert parse_url(str(url)) == url
            assert str(url).isascii()


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("/b", "https://h.example/b"),
        ("b?x=1", "https://h.example/a/b?x=1"),
        ("../b", "https://h.example/b"),
        ("?y", "https://h.example/a/page?y"),
        ("", "https://h.example/a/page?q"),
        ("#top", "https://h.example/a/page?q"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example", "http://other.example/"),
        ("https://h.example:8443/", "https://h.example:8443/"),
    ],
)
def test_a_redirect_is_read_from_where_it_stands(location: str, there: str) -> None:
    base = parse_url("https://h.example/a/page?q")
    assert isinstance(base, WebUrl)
    assert str(join_url(base, location)) == there


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "https://u@h.example/", "gopher:x", "\\\\evil.example"]
)
def test_a_redirect_to_something_else_is_refused(location: str) -> None:
    base = parse_url("https://h.example/")
    assert isinstance(base, WebUrl)
    assert isinstance(join_url(base, location), str)


MATCHES = [
    ("https://docs.python.org/*", "https://docs.python.org/3/library/?q=1"),
    ("https://docs.python.org", "https://docs.python.org/3/"),
    ("https://docs.python.org*", "https://docs.python.org/3/"),
    ("https://Docs.Python.org./*", "https://docs.python.org/3/"),
    ("docs.python.org", "http://docs.python.org/3/"),
    ("*://docs.python.org/", "http://docs.python.org/"),
    ("https://*.python.org/*", "https://a.docs.python.org/x"),
    ("https://*/*", "https://anything.example/x"),
    ("https://docs-*.python.org", "https://docs-3.python.org/"),
    ("https://h.example:8443/*", "https://h.example:8443/a"),
    ("https://h.example:*", "https://h.example:8443/a"),
    ("https://h.example:443", "https://h.example/a"),
    ("http://0x7f.1/*", "http://127.0.0.1/a"),
    ("http://[::1]:80", "http://[::1]/"),
    ("https://münchen.example", "https://xn--mnchen-3ya.example/"),
    ("*", "http://anything.example:81/x"),
]
MISSES = [
    ("https://docs.python.org/*", "https://docs.python.org.evil.example/"),
    ("https://docs.python.org*", "https://docs.python.org.evil.example/"),
    ("https://docs.python.org*", "https://docs.python.orgevil.example/"),
    ("https://docs.python.org/*", "https://evildocs.python.org/"),
    ("https://docs.python.org/*", "http://docs.python.org/"),
    ("https://docs.python.org/*", "https://docs.python.org:8443/"),
    ("https://docs.python.org/3/*", "https://docs.python.org/2/"),
    ("https://docs.python.org/a", "https://docs.python.org/a?leak=secret"),
    ("https://*.python.org/*", "https://python.org/"),
    ("https://*.python.org/*", "https://evilpython.org/"),
    ("https://*.python.org/*", "https://evil.example/x.python.org/y"),
    ("https://*.python.org/*", "https://evil.example/?.python.org/"),
    ("https://docs*.org/*", "https://docs.evil.org/"),
    ("https://h.example/*", "https://evil.example/https://h.example/"),
    ("*://h.example/*", "https://evil.example/x://h.example/y"),
    ("*h.example/*", "https://evil.example/h.example/y"),
    ("10.*", "https://10.evil.example/"),
    ("*.0.0.1", "http://127.0.0.1/"),
    ("h.example@evil.example", "https://evil.example/"),
    ("https://", "https://h.example/"),
    ("", "https://h.example/"),
]


@pytest.mark.parametrize(("pattern", "url"), MATCHES)
def test_a_rule_allows_the_pages_that_it_names(pattern: str, url: str) -> None:
    assert url_matches(pattern, url, widely=False)


@pytest.mark.parametrize(("pattern", "url"), MISSES)
def test_a_rule_allows_no_look_alike(pattern: str, url: str) -> None:
    assert not url_matches(pattern, url, widely=False)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://h.example/*", "https://h.example:8443/x"),
        ("h.example/admin", "https://h.example/admin?x"),
        ("h.example", "http://h.example:81/"),
    ],
)
def test_a_deny_is_read_widely(pattern: str, url: str) -> None:
    assert url_matches(pattern, url, widely=True)
    assert not url_matches(pattern, url, widely=False)


def test_the_judge_reads_webfetch_rules_by_parts() -> None:
    stack = (
        Rule("webfetch", "https://h.example/*", "allow", "recipe"),
        Rule("webfetch", "h.example/private/*", "deny", "recipe"),
    )
    policy = Policy(stack)
    assert policy.can_allow("webfetch")
    assert policy.allows(Ask("webfetch", "https://h.example/a"))
    assert not policy.allows(Ask("webfetch", "https://h.example/private/a"))
    assert not policy.allows(Ask("webfetch", "https://h.example.evil.example/a"))
    assert not Policy((*stack, Rule("webfetch", "*", "deny", "cli"))).can_allow("webfetch")
