from __future__ import annotations

import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenwire.errors import ConfigError
from zenwire.node.config import Config
from zenwire.node.config.yaml import parse_yaml


def test_without_pyyaml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"pip install 'zenwire\[yaml\]'"):
        Config.from_yaml("mode: peer")


class TestWithPyYaml:
    @pytest.fixture(autouse=True)
    def _needs_it(self) -> None:
        pytest.importorskip("yaml")

    def test_a_problem_has_line_and_column(self) -> None:
        with pytest.raises(ConfigError) as e:
            Config.from_yaml("mode: peer\nscouting:\n  multcast:\n    ttl: -1\n  delay: x\n")
        found = [(p.path, p.line, p.column) for p in e.value.problems]
        assert found == [("scouting/multcast", 3, 3), ("scouting/delay", 5, 10)]

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "a: [",
                "a: *b",
                "&a [*a]",
                "? [a]\n: 1",
                "a: !!python/object:os.system x",
                "a: \x01",
            ),
            *("a: !x 1", "[" * 5000, "%YAML 9", "a: 'x", "- a\nb: c"),
        ],
    )
    def test_what_is_no_yaml_is_a_config_error(self, text: str) -> None:
        with pytest.raises(ConfigError):
            parse_yaml(text)

    def test_aliases_do_not_explode(self) -> None:
        lines = ["a: &a [1,1,1,1,1,1,1,1,1,1]"]
        lines += [
            f"{b}: &{b} [{','.join(['*' + a] * 10)}]"
            for a, b in zip("abcdefg", "bcdefgh", strict=True)
        ]
        with pytest.raises(ConfigError, match="more than"):
            parse_yaml("\n".join(lines))

    @given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@ \n\t,?1")))
    def test_any_text_is_a_value_or_a_config_error(self, text: str) -> None:
        with suppress(ConfigError):
            parse_yaml(text)
