"""JUnit suites as XML. The only module that touches junit-xml, which is untyped.

junit-xml is the model: it builds suites, cases and counts as elements. Its own serializer is not
used: it crashes on U+FFFE, drops a time of 0 and writes attributes that Jenkins' schema refuses.
What it has no words for (properties and places of a case, reruns, the type of a skip) is added to
its elements here.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Literal

import junit_xml
from attrs import frozen

from harness_batch_reports.hostile import clean

RERUN_ELEMENTS = ("rerunFailure", "rerunError", "flakyFailure", "flakyError")
"""In the order in which Jenkins' schema wants them."""
RerunElement = Literal["rerunFailure", "rerunError", "flakyFailure", "flakyError"]
Properties = tuple[tuple[str, str], ...]


@frozen(kw_only=True)
class Outcome:
    """Why a case did not pass. `message` is one line and never empty."""

    kind: Literal["failure", "error", "skipped"]
    type: str
    message: str
    detail: str = ""


@frozen(kw_only=True)
class Rerun:
    """An earlier try, in Surefire's words."""

    element: RerunElement
    type: str
    message: str
    stack_trace: str


@frozen(kw_only=True)
class Case:
    """One test case. `seconds` is its time."""

    name: str
    classname: str
    seconds: float
    outcome: Outcome | None = None
    reruns: tuple[Rerun, ...] = ()
    system_out: str = ""
    properties: Properties = ()
    file: str | None = None
    line: int | None = None


@frozen(kw_only=True)
class Suite:
    """One suite. `timestamp` is ISO 8601 in UTC without a zone, as JUnit readers want it."""

    name: str
    cases: tuple[Case, ...]
    timestamp: str | None = None
    properties: Properties = ()
    file: str | None = None


def document(name: str, suites: Sequence[Suite]) -> bytes:
    """The suites as an indented UTF-8 document with a declaration; counts and times add up."""
    root = ET.Element("testsuites", {"name": name})
    elements = [_suite(suite) for suite in suites]
    root.extend(elements)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(element.get(key, "0")) for element in elements)))
    root.set("time", f"{sum(float(element.get('time', '0')) for element in elements):.3f}")
    for element in root.iter():
        # The last gate: whoever wrote the text, what is not legal XML does not get out.
        element.attrib = {key: clean(value) for key, value in element.attrib.items()}
        element.text = clean(element.text) if element.text else element.text
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(suite: Suite) -> ET.Element:
    built = junit_xml.TestSuite(
        suite.name,
        [_case(case) for case in suite.cases],
        timestamp=suite.timestamp,
        properties=dict(suite.properties),
        file=suite.file,
    ).build_xml_doc()
    assert isinstance(built, ET.Element)
    built.attrib.pop("disabled", None)
    # Rounded first, so that the sum of what is shown is the sum that is shown.
    total = sum(round(case.seconds, 3) for case in suite.cases)
    built.set("time", f"{total:.3f}")
    for case, element in zip(suite.cases, built.iter("testcase"), strict=True):
        _complete(case, element)
    return built


def _case(case: Case) -> object:
    built = junit_xml.TestCase(case.name, case.classname, stdout=case.system_out)
    match case.outcome:
        case Outcome(kind="failure") as failure:
            built.add_failure_info(failure.message, failure.detail, failure.type)
        case Outcome(kind="error") as error:
            built.add_error_info(error.message, error.detail, error.type)
        case Outcome() as skipped:
            built.add_skipped_info(skipped.message, skipped.detail)
        case None:
            pass
    return built


def _complete(case: Case, element: ET.Element) -> None:
    element.set("time", f"{case.seconds:.3f}")
    if case.file is not None:
        element.set("file", case.file)
    if case.line is not None:
        element.set("line", str(case.line))
    skipped = element.find("skipped")
    if skipped is not None and case.outcome is not None:
        skipped.set("type", case.outcome.type)
    at = 1 if case.outcome else 0
    for rerun in reversed(case.reruns):
        tried = ET.Element(rerun.element, {"message": rerun.message, "type": rerun.type})
        ET.SubElement(tried, "stackTrace").text = rerun.stack_trace
        element.insert(at, tried)
    if case.properties:
        properties = ET.Element("properties")
        for name, value in case.properties:
            ET.SubElement(properties, "property", {"name": name, "value": value})
        element.insert(0, properties)
