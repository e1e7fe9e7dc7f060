"""The JUnit schema of Jenkins' xunit plugin, where it is found: it is not part of the project.

`JENKINS_JUNIT_XSD` names the file; else `shared/data/junit-10.xsd` beside a folder above is taken.
"""

import os
from functools import cache
from pathlib import Path

from lxml import etree


@cache
def jenkins_schema() -> etree.XMLSchema | None:
    """The compiled schema, or None on a machine that has no copy."""
    near = [folder / "shared" / "data" / "junit-10.xsd" for folder in Path(__file__).parents]
    named = os.environ.get("JENKINS_JUNIT_XSD")
    for path in [Path(named)] if named else near:
        if path.is_file():
            return etree.XMLSchema(etree.parse(str(path)))
    return None
