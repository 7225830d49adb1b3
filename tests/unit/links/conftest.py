"""What the tests of links share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.links.ends import make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder
