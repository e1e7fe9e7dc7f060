"""Only public addresses are dialled, whatever form they come in."""

import ipaddress

import pytest

from harness_batch.permissions.addresses import refused_address

PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "2606:4700:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "100.128.0.1",
]
REFUSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "not an address",
    "127.1",
    "",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_dialled(address: str) -> None:
    assert refused_address(address) is None


@pytest.mark.parametrize("address", REFUSED)
def test_all_others_are_refused(address: str) -> None:
    assert refused_address(address)


def test_only_the_networks_that_are_exempt_are_exempt() -> None:
    allowed = (ipaddress.ip_network("127.0.0.1/32"),)
    assert refused_address("127.0.0.1", allowed) is None
    assert refused_address("127.0.0.2", allowed)
    assert refused_address("::ffff:127.0.0.1", allowed)
