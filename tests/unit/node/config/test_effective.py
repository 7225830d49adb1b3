from __future__ import annotations

import math

import pytest

from zenwire.errors import ConfigError
from zenwire.node.config import Config, RetryPolicy, effective
from zenwire.node.config.connection import AutoConnectStrategy
from zenwire.wire.locator import EndPoint
from zenwire.wire.values import WhatAmI, WhatAmIMatcher

ALL = WhatAmIMatcher.ROUTER | WhatAmIMatcher.PEER | WhatAmIMatcher.CLIENT
DEFAULTS = {
    "router": (
        ["tcp/[::]:7447"],
        -1,
        False,
        True,
        WhatAmIMatcher.NONE,
        ALL & ~WhatAmIMatcher.CLIENT,
    ),
    "peer": (["tcp/[::]:0"], -1, False, False, ALL, ALL & ~WhatAmIMatcher.CLIENT),
    "client": ([], 0, True, False, ALL, WhatAmIMatcher.NONE),
}


@pytest.mark.parametrize("mode", DEFAULTS)
def test_defaults_of_each_mode(mode: str) -> None:
    held = effective(Config.from_dict({"mode": mode}).settings)
    listen, timeout, leave, stamps, autoconnect, target = DEFAULTS[mode]
    assert held.mode is WhatAmI[mode.upper()]
    assert [str(e) for e in held.listen.endpoints] == listen
    assert held.connect.endpoints == ()
    assert (held.connect.timeout_ms, held.connect.retry.exit_on_failure) == (timeout, leave)
    assert (held.listen.timeout_ms, held.listen.retry.exit_on_failure) == (0, True)
    assert held.timestamping is stamps
    assert held.scouting.multicast.autoconnect == held.scouting.gossip.autoconnect == autoconnect
    assert held.scouting.gossip.target == target
    assert str(held.scouting.multicast.address) == "224.0.0.224:7446"
    assert (held.scouting.timeout, held.scouting.delay) == (3_000, 500)
    assert (held.queries_default_timeout, held.interests_timeout) == (10_000, 10_000)
    assert held.notices == ()


def test_a_peer_is_the_default() -> None:
    assert effective(Config().settings).mode is WhatAmI.PEER


def test_what_is_set_for_another_mode_does_not_count() -> None:
    config = Config.from_json5(
        "{connect:{timeout_ms:{client:7}, retry:{period_init_ms:{peer:5,client:9}}},"
        "listen:{endpoints:{router:['tcp/a:1']}},"
        "scouting:{gossip:{autoconnect_strategy:{peer:{to_router:'greater-zid'}}}}}"
    )
    held = effective(config.settings)
    assert held.connect.timeout_ms == -1
    assert held.connect.retry.period_init_ms == 5
    assert held.listen.endpoints == ()
    strategy = held.scouting.gossip.strategy
    assert strategy.get(WhatAmI.ROUTER) is AutoConnectStrategy.GREATER_ZID
    assert strategy.get(WhatAmI.PEER) is AutoConnectStrategy.ALWAYS


def test_waiting_grows_up_to_its_bound() -> None:
    policy = RetryPolicy(False)
    assert [policy.delay_ms(n) for n in (0, 1, 2, 3, 1_000)] == [1000, 2000, 4000, 4000, 4000]
    assert RetryPolicy(False, period_init_ms=-1).delay_ms(3) == math.inf
    assert RetryPolicy(False, period_init_ms=0).delay_ms(3) == 0


def test_an_endpoint_has_a_policy_of_its_own() -> None:
    endpoint = EndPoint.parse(
        "tcp/a:1#exit_on_failure=true;retry_period_init_ms=5;retry_period_max_ms=x"
    )
    assert RetryPolicy(False).of_endpoint(endpoint) == RetryPolicy(True, period_init_ms=5)


def test_what_this_node_cannot_do_is_refused() -> None:
    config = Config.from_json5(
        "{transport:{shared_memory:{mode:'init'}}, plugins:{rest:{__required__:true}}}"
    )
    config.insert_json5("transport/auth/usrpwd/user", "'u'")
    with pytest.raises(ConfigError) as e:
        effective(config.settings)
    assert [p.path for p in e.value.problems] == [
        "transport/shared_memory/mode",
        "plugins/rest",
        "transport/auth/usrpwd",
    ]


def test_what_has_no_effect_is_said() -> None:
    config = Config.from_json5(
        "{plugins:{rest:{}}, plugins_loading:{enabled:true}, routing:{peer:{mode:'linkstate'},"
        "router:{peers_failover_brokering:true}}, transport:{shared_memory:{enabled:true},"
        "link:{tx:{threads:99,queue:{allocation:{mode:'init'}}},unixpipe:{file_access_mask:1}}}}"
    )
    notices = config.effective.notices
    assert len(notices) == 8
    assert "plugins/rest: zenwire cannot load plugins" in notices
