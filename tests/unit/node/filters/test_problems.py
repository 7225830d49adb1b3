from __future__ import annotations

from typing import Any

import pytest

from zenwire.errors import ConfigError
from zenwire.node.config import Config
from zenwire.node.filters import Filters


def problems(settings: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        Filters.of(Config.from_dict(settings).settings)
    return {problem.path: str(problem) for problem in caught.value.problems}


def test_all_that_is_wrong_is_told_at_once() -> None:
    rule = {"id": "read", "messages": ["put"], "key_exprs": ["a"], "permission": "deny"}
    sized = {"id": "x", "messages": ["put"], "key_exprs": ["a"], "size_limit": 1}
    found = problems(
        {
            "access_control": {
                "enabled": True,
                "rules": [rule, rule, rule | {"id": " "}],
                "subjects": [
                    {"id": "s", "usernames": ["u", ""], "interfaces": [" "]},
                    {"id": "s", "cert_common_names": ["", "n"]},
                    {"id": ""},
                ],
                "policies": [
                    {"id": "p", "rules": [], "subjects": []},
                    {"id": "p", "rules": ["reed", "read"], "subjects": ["s", "t"]},
                ],
            },
            "low_pass_filter": [sized, sized],
            "downsampling": [
                {"id": "d", "messages": ["put"], "rules": [{"key_expr": "a", "freq": 1}]}
            ]
            * 2,
            "qos": {
                "network": [{"id": "q", "messages": ["put"], "overwrite": {"express": True}}] * 2
            },
        }
    )
    assert list(found) == [
        "qos/network/1/id",
        "downsampling/1/id",
        "access_control/rules/2/id",
        "access_control/rules/1/id",
        "access_control/subjects/2/id",
        "access_control/subjects/1/id",
        "access_control/subjects/0/interfaces/0",
        "access_control/subjects/0/usernames/1",
        "access_control/subjects/1/cert_common_names/0",
        "access_control/policies/1/id",
        "access_control/policies/0/rules",
        "access_control/policies/0/subjects",
        "access_control/policies/1/rules/0",
        "access_control/policies/1/subjects/1",
        "low_pass_filter/1/id",
    ]
    unknown = found["access_control/policies/1/rules/0"]
    assert "none of access_control/rules has the id 'reed'" in unknown
    assert "'read'" in unknown


def test_the_three_lists_belong_together() -> None:
    found = problems({"access_control": {"enabled": True, "rules": []}})
    assert list(found) == ["access_control/subjects", "access_control/policies"]


def test_what_is_off_may_be_anything() -> None:
    assert Filters.of(Config.from_dict({"access_control": {"enabled": False}}).settings) is None
    assert Filters.of(Config().settings) is None


def test_an_empty_list_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    control = {"enabled": True, "rules": [], "subjects": [], "policies": []}
    assert Filters.of(Config.from_dict({"access_control": control}).settings) is not None
    assert [record.getMessage() for record in caplog.records] == [
        f"access_control/{name} is empty: only the default holds"
        for name in ("rules", "subjects", "policies")
    ]
