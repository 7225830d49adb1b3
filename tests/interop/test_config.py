"""Our configuration accepts, refuses and says what eclipse-zenoh's does; meant differences are listed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from zenwire.errors import ConfigError
from zenwire.node.config import Config

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

# Both accept with the same result, or both refuse.
ALIKE = (
    "{}",
    "5",
    "null",
    "{mode:null}",
    '{mode:"peer"}',
    '{mode:"Peer"}',
    "{mode:'peer',}",
    "{mode:5}",
    '{id:"a1"}',
    '{id:"A1"}',
    '{id:"0a1"}',
    '{id:""}',
    "{id:null}",
    '{id:"aabbccddeeff00112233445566778899"}',
    '{id:"aabbccddeeff00112233445566778899a"}',
    '{id:"xyz"}',
    "{metadata:{a:1}}",
    "{metadata:5}",
    "{metadata:null}",
    "{connect:null}",
    "{connect:{}}",
    '{connect:{endpoints:"tcp/1.1.1.1:1"}}',
    '{connect:{endpoints:["tcp/1.1.1.1:1"]}}',
    "{connect:{endpoints:[]}}",
    "{connect:{endpoints:null}}",
    "{connect:{endpoints:{}}}",
    "{connect:{endpoints:{peer:null}}}",
    '{connect:{endpoints:{peer:["tcp/1.1.1.1:1"]}}}',
    '{connect:{endpoints:{foo:["tcp/1.1.1.1:1"]}}}',
    '{connect:{endpoints:["tcp"]}}',
    '{connect:{endpoints:["tcp/"]}}',
    '{connect:{endpoints:["/x"]}}',
    '{connect:{endpoints:["tcp/x?"]}}',
    '{connect:{endpoints:["tcp/x?a"]}}',
    '{connect:{endpoints:["tcp/x?=a"]}}',
    '{connect:{endpoints:["tcp/x#a=1?b=2"]}}',
    '{connect:{endpoints:["tcp/x?b=2#a=1"]}}',
    '{connect:{endpoints:["tcp/x?b=2;;#a=1;"]}}',
    '{connect:{endpoints:[{strategy:"allOf",locators:["tcp/x"]}]}}',
    '{connect:{endpoints:[{strategy:"oneOf",locators:["tcp/x"]}]}}',
    '{connect:{endpoints:[{strategy:"oneof",locators:["tcp/x"]}]}}',
    '{connect:{endpoints:[{strategy:"oneOf"}]}}',
    '{listen:{endpoints:[{strategy:"oneOf",locators:["tcp/x"]}]}}',
    '{listen:{endpoints:["tcp/[::]:0"]}}',
    "{connect:{timeout_ms:5}}",
    "{connect:{timeout_ms:-1}}",
    "{connect:{timeout_ms:1.5}}",
    "{connect:{timeout_ms:1.0}}",
    "{connect:{timeout_ms:1e3}}",
    '{connect:{timeout_ms:"5"}}',
    "{connect:{timeout_ms:{router:1,peer:-1}}}",
    "{connect:{timeout_ms:{router:1.0}}}",
    "{connect:{timeout_ms:{foo:1}}}",
    "{connect:{timeout_ms:9223372036854775807}}",
    "{connect:{timeout_ms:9223372036854775808}}",
    "{connect:{exit_on_failure:true}}",
    "{connect:{exit_on_failure:{peer:true}}}",
    "{connect:{exit_on_failure:1}}",
    "{connect:{retry:null}}",
    "{connect:{retry:{}}}",
    "{connect:{retry:{period_init_ms:5}}}",
    "{connect:{retry:{period_init_ms:{peer:5}}}}",
    "{connect:{retry:{period_increase_factor:2}}}",
    "{connect:{retry:{period_increase_factor:2.5}}}",
    "{connect:{retry:{period_increase_factor:{peer:2}}}}",
    "{connect:{foo:1}}",
    "{open:{return_conditions:{connect_scouted:false}}}",
    "{open:{return_conditions:{declares:null}}}",
    "{open:null}",
    "{scouting:{timeout:5}}",
    "{scouting:{timeout:5.0}}",
    "{scouting:{timeout:0x10}}",
    "{scouting:{timeout:+5}}",
    "{scouting:{timeout:1e2}}",
    "{scouting:{timeout:.5e1}}",
    "{scouting:{timeout:5.}}",
    "{scouting:{timeout:05}}",
    "{scouting:{timeout:-0}}",
    "{scouting:{timeout:-0x10}}",
    "{scouting:{timeout:18446744073709551615}}",
    "{scouting:{timeout:true}}",
    "{scouting:{multicast:{enabled:true}}}",
    "{scouting:{multicast:{enabled:null}}}",
    '{scouting:{multicast:{address:"224.0.0.224:7446"}}}',
    '{scouting:{multicast:{address:"224.0.0.224"}}}',
    '{scouting:{multicast:{address:"localhost:7446"}}}',
    '{scouting:{multicast:{address:"[ff02::1]:7446"}}}',
    '{scouting:{multicast:{address:"[ff02::1%1]:7446"}}}',
    '{scouting:{multicast:{address:"224.0.0.224:99999"}}}',
    '{scouting:{multicast:{address:"224.0.0.0224:99"}}}',
    '{scouting:{multicast:{address:"1.1.1.1:07446"}}}',
    '{scouting:{multicast:{interface:"auto"}}}',
    "{scouting:{multicast:{interface:5}}}",
    "{scouting:{multicast:{ttl:4294967295}}}",
    '{scouting:{multicast:{autoconnect:["peer","router"]}}}',
    '{scouting:{multicast:{autoconnect:"peer|router"}}}',
    '{scouting:{multicast:{autoconnect:{router:[],peer:["router","peer"]}}}}',
    '{scouting:{multicast:{autoconnect:{router:"router|peer"}}}}',
    '{scouting:{multicast:{autoconnect:{router:""}}}}',
    '{scouting:{multicast:{autoconnect:["foo"]}}}',
    "{scouting:{multicast:{autoconnect:[]}}}",
    '{scouting:{multicast:{autoconnect:{router:["foo"]}}}}',
    '{scouting:{multicast:{autoconnect_strategy:"always"}}}',
    '{scouting:{multicast:{autoconnect_strategy:"greater-zid"}}}',
    '{scouting:{multicast:{autoconnect_strategy:"greater_zid"}}}',
    '{scouting:{multicast:{autoconnect_strategy:{peer:"always"}}}}',
    '{scouting:{multicast:{autoconnect_strategy:{peer:{to_router:"always",to_peer:"greater-zid"}}}}}',
    '{scouting:{multicast:{autoconnect_strategy:{to_router:"always",to_peer:"greater-zid"}}}}',
    "{scouting:{multicast:{autoconnect_strategy:{}}}}",
    '{scouting:{multicast:{autoconnect_strategy:{to_peer:"x"}}}}',
    "{scouting:{multicast:{listen:true}}}",
    "{scouting:{multicast:{listen:{router:true}}}}",
    '{scouting:{gossip:{multihop:true,target:["router"]}}}',
    '{scouting:{gossip:{target:{router:["router","peer"]}}}}',
    "{timestamping:{enabled:{router:true,peer:false}}}",
    "{timestamping:{enabled:true,drop_future_timestamp:false}}",
    "{queries_default_timeout:1000}",
    "{routing:{router:{peers_failover_brokering:true}}}",
    "{routing:{router:{peers_failover_brokering:5}}}",
    '{routing:{peer:{mode:"linkstate"}}}',
    "{routing:{peer:5}}",
    '{routing:{router:{linkstate:{transport_weights:[{dst_zid:"1",weight:10}]}}}}',
    '{routing:{router:{linkstate:{transport_weights:[{dst_zid:"1",weight:0}]}}}}',
    '{routing:{router:{linkstate:{transport_weights:[{dst_zid:"1"}]}}}}',
    "{routing:{interests:{timeout:1}}}",
    '{aggregation:{subscribers:["a/**"],publishers:[]}}',
    '{aggregation:{subscribers:["a//b"]}}',
    '{aggregation:{subscribers:["a/**/**"]}}',
    '{aggregation:{subscribers:"a"}}',
    "{downsampling:[]}",
    "{downsampling:null}",
    '{downsampling:[{messages:["put"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{messages:["put"],rules:[{key_expr:"a",freq:-1.5}]}]}',
    '{downsampling:[{messages:[],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{messages:["foo"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{messages:["push"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{messages:["put"],rules:[]}]}',
    '{downsampling:[{rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{messages:["put"],rules:[{key_expr:"a"}]}]}',
    '{downsampling:[{messages:["put"],rules:[{key_expr:"a",freq:1,x:1}]}]}',
    '{downsampling:[{id:"x",interfaces:["lo"],link_protocols:["tcp","unixsock-stream"],flows:["egress","ingress"],messages:["put","delete","query","reply"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{interfaces:[],messages:["put"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{link_protocols:["foo"],messages:["put"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{foo:1,messages:["put"],rules:[{key_expr:"a",freq:1}]}]}',
    '{downsampling:[{interfaces:null,messages:["put"],rules:[{key_expr:"a",freq:1}]}]}',
    '{low_pass_filter:[{messages:["put"],key_exprs:["a"],size_limit:5}]}',
    '{low_pass_filter:[{messages:["put"],key_exprs:[],size_limit:5}]}',
    '{low_pass_filter:[{messages:["put"],key_exprs:["a"]}]}',
    '{qos:{publication:[{key_exprs:["a"],config:{priority:"data"}}]}}',
    "{qos:{publication:[{key_exprs:[],config:{}}]}}",
    '{qos:{publication:[{key_exprs:["a"],config:{congestion_control:"block",priority:"real_time",express:true,reliability:"best_effort",allowed_destination:"remote"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{congestion_control:"block_first"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{congestion_control:"foo"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{allowed_destination:"session_local"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{priority:"control"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{priority:5}}]}}',
    '{qos:{publication:[{key_exprs:["a"]}]}}',
    "{qos:{publication:[{config:{}}]}}",
    "{qos:{publication:null}}",
    '{qos:{network:[{messages:["put"],overwrite:{}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:3}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:+3}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:-7}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:-8}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:8}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{priority:"data_low",congestion_control:"drop",express:false}}]}}',
    '{qos:{network:[{messages:["reply"],overwrite:{}}]}}',
    '{qos:{network:[{messages:["put"]}]}}',
    "{qos:{network:[{overwrite:{}}]}}",
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"0..99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"5..2"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"0...99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"x..99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:" 1..99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"+1..99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"99"}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:99}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},qos:{priority:"data",congestion_control:"block",express:true,reliability:"reliable"}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},zids:["1"],interfaces:["lo"],link_protocols:["tls"],key_exprs:["a"],flows:["egress"]}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},zids:[]}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},foo:[]}]}}',
    "{access_control:{enabled:true}}",
    '{access_control:{default_permission:"allow"}}',
    '{access_control:{default_permission:"foo"}}',
    '{access_control:{rules:[{id:"r",messages:["put"],key_exprs:["a"],permission:"allow"}]}}',
    '{access_control:{rules:[{id:"r",messages:["put","delete","declare_subscriber","query","declare_queryable","reply","liveliness_token","declare_liveliness_subscriber","liveliness_query"],flows:["egress"],key_exprs:["a"],permission:"deny"}]}}',
    '{access_control:{rules:[{id:"r",messages:["put"],key_exprs:["a"]}]}}',
    '{access_control:{rules:[{messages:["put"],key_exprs:["a"],permission:"allow"}]}}',
    '{access_control:{rules:[{id:"r",messages:[],key_exprs:["a"],permission:"allow"}]}}',
    "{access_control:{rules:[],subjects:[],policies:[]}}",
    '{access_control:{subjects:[{id:"s"}]}}',
    '{access_control:{subjects:[{id:"s",interfaces:["lo"],cert_common_names:["x"],usernames:["u"],link_protocols:["quic","ws","vsock","serial","unixpipe","udp"],zids:["1"]}]}}',
    '{access_control:{subjects:[{id:"s",interfaces:[]}]}}',
    '{access_control:{subjects:[{id:"s",foo:[]}]}}',
    '{access_control:{policies:[{rules:["r"],subjects:["s"]}]}}',
    '{access_control:{policies:[{id:"p",rules:[],subjects:[]}]}}',
    '{access_control:{policies:[{id:"p",rules:[]}]}}',
    "{transport:{unicast:{open_timeout:1,accept_timeout:1,accept_pending:1,max_sessions:1,max_links:1,lowlatency:true,qos:{enabled:false},compression:{enabled:true}}}}",
    "{transport:{unicast:{open_timeout:null}}}",
    "{transport:{unicast:{lowlatency:null}}}",
    "{transport:{unicast:{max_links:0}}}",
    "{transport:{unicast:{qos:null}}}",
    "{transport:{unicast:{qos:{enabled:null}}}}",
    "{transport:{multicast:{join_interval:null}}}",
    "{transport:{multicast:{max_sessions:0}}}",
    '{transport:{link:{protocols:["tcp","ws"]}}}',
    "{transport:{link:{protocols:[]}}}",
    '{transport:{link:{tx:{sequence_number_resolution:"8bit"}}}}',
    '{transport:{link:{tx:{sequence_number_resolution:"16bit"}}}}',
    '{transport:{link:{tx:{sequence_number_resolution:"32bit"}}}}',
    '{transport:{link:{tx:{sequence_number_resolution:"64bit"}}}}',
    "{transport:{link:{tx:{sequence_number_resolution:32}}}}",
    "{transport:{link:{tx:{lease:0}}}}",
    "{transport:{link:{tx:{keep_alive:0}}}}",
    "{transport:{link:{tx:{batch_size:0}}}}",
    "{transport:{link:{tx:{batch_size:65535}}}}",
    "{transport:{link:{tx:{threads:0}}}}",
    "{transport:{link:{tx:{queue:{size:{data:0}}}}}}",
    "{transport:{link:{tx:{queue:{size:{data:16}}}}}}",
    "{transport:{link:{tx:{queue:{size:{data:17}}}}}}",
    "{transport:{link:{tx:{queue:{size:{foo:1}}}}}}",
    "{transport:{link:{tx:{queue:{congestion_control:{drop:{wait_before_drop:-1}}}}}}}",
    "{transport:{link:{tx:{queue:{congestion_control:{drop:{max_wait_before_drop_fragments:1}}}}}}}",
    "{transport:{link:{tx:{queue:{congestion_control:{block:{wait_before_close:1}}}}}}}",
    "{transport:{link:{tx:{queue:{batching:{enabled:false,time_limit:0}}}}}}",
    '{transport:{link:{tx:{queue:{allocation:{mode:"init"}}}}}}',
    '{transport:{link:{tx:{queue:{allocation:{mode:"foo"}}}}}}',
    "{transport:{link:{rx:{buffer_size:0,max_message_size:1}}}}",
    '{transport:{link:{tls:{root_ca_certificate:"x",enable_mtls:true,so_sndbuf:5}}}}',
    '{transport:{link:{tls:{root_ca_certificate_base64:"x"}}}}',
    '{transport:{link:{tls:{foo:"x"}}}}',
    "{transport:{link:{tcp:{so_sndbuf:1}}}}",
    "{transport:{link:{unixpipe:{file_access_mask:1}}}}",
    "{transport:{link:{udp:{}}}}",
    "{transport:{shared_memory:{enabled:false}}}",
    '{transport:{shared_memory:{mode:"init"}}}',
    '{transport:{shared_memory:{mode:"x"}}}',
    "{transport:{shared_memory:{transport_optimization:{pool_size:0}}}}",
    '{transport:{shared_memory:{transport_optimization:{pool_size:1,messages:["put"],message_size_threshold:0}}}}',
    '{transport:{auth:{usrpwd:{user:"u"}}}}',
    '{transport:{auth:{usrpwd:{user:null,password:null,dictionary_file:"f"}}}}',
    "{transport:{auth:{pubkey:{key_size:5}}}}",
    '{transport:{auth:{pubkey:{public_key_pem:"x",known_keys_file:"f"}}}}',
    "{adminspace:{enabled:true}}",
    "{adminspace:{permissions:{read:false,write:true}}}",
    "{adminspace:{permissions:{}}}",
    "{adminspace:{permissions:null}}",
    '{namespace:"a/b"}',
    '{namespace:"a/*"}',
    "{namespace:null}",
    '{namespace:""}',
    '{namespace:"@a"}',
    '{region_name:"x"}',
    '{region_name:""}',
    '{region_name:"a b"}',
    '{region_name:"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}',
    '{region_name:"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}',
    '{region_name:"é"}',
    '{region_name:"a/b"}',
    "{gateway:{}}",
    "{gateway:{south:null}}",
    '{gateway:{south:"auto"}}',
    '{gateway:{south:"x"}}',
    "{gateway:{south:[]}}",
    "{gateway:{south:[{}]}}",
    '{gateway:{south:[{filters:[{modes:["peer"],interfaces:["lo"],zids:["1"],region_names:["x"],negated:true}]}]}}',
    '{gateway:{south:[{filters:[{modes:"peer"}]}]}}',
    "{gateway:{south:[{filters:[{zids:[]}]}]}}",
    "{gateway:{south:[{filters:[{foo:[]}]}]}}",
    "{gateway:{foo:1}}",
    '{stats:{filters:[{key:"a"}]}}',
    "{stats:{filters:[{}]}}",
    "{plugins:{}}",
    "{plugins:{rest:{http_port:8000}}}",
    "{plugins_loading:{enabled:true}}",
    '{plugins_loading:{search_dirs:["x"]}}',
    '{plugins_loading:{search_dirs:[{kind:"current_exe_parent",value:null}]}}',
    '{plugins_loading:{search_dirs:[{kind:"path",value:"x"}]}}',
    "{plugins_loading:{search_dirs:[5]}}",
    '{mode:"peer",mode:"client"}',
    "{scouting:{timeout:1,timeout:2}}",
    r'{"mode":"pe\u0065r"}',
    "// c",
    '{/*x*/mode:"peer"/*y*/}',
    r'{m\u006fde:"peer"}',
    '{mode:"peer"} x',
    '{mode:"peer",,}',
    "{,}",
    "{mode 5}",
    """{mode:"peer'}""",
    '{Mode:"peer"}',
    "{1:2}",
    "{metadata:[1,2,]}",
    """{metadata:{$a_1:1, "b c":2, 'd':3}}""",
    r"""{metadata:"a\x41\v\0\'\q"}""",
    r'{metadata:"\u12"}',
    r'{metadata:"\ud83d\ude00"}',
    r'{metadata:"\ud83d"}',
    "{metadata:+Infinity}",
    "{metadata:0xFFFFFFFFFFFFFFFFFF}",
    "{metadata:12345678901234567890123}",
    "{metadata:1e999}",
    "{metadata:-5e-3}",
    "{metadata:0b1}",
    "{metadata:undefined}",
    '{metadata:"a	b"}',
    "{metadata:{__proto__:1}}",
    "{metadata:/x/}",
    "# x",
)

# The reference takes these: it bends numbers until they fit, and does not look at unknown keys of
# some objects. What was meant is lost silently, so they are refused here. A protocol without links
# is refused when the configuration is read, not when somebody connects.
STRICTER = (
    '{connect:{endpoints:["foo/x"]}}',
    '{connect:{endpoints:{router:["quic/x:1"]}}}',
    '{connect:{endpoints:[{strategy:"oneOf",locators:["tcp/x:1","serial/x"]}]}}',
    '{listen:{endpoints:["vsock/1:1"]}}',
    '{transport:{link:{protocols:["tcp","quic"]}}}',
    "[]",
    '{connect:{endpoints:[{strategy:"oneOf",locators:["tcp/x"],foo:1}]}}',
    "{connect:{timeout_ms:{router:1.5}}}",
    "{connect:{retry:{period_increase_factor:Infinity}}}",
    "{connect:{retry:{period_increase_factor:NaN}}}",
    "{connect:{retry:{foo:2.5}}}",
    "{scouting:{timeout:-5}}",
    "{scouting:{timeout:5.5}}",
    "{scouting:{timeout:18446744073709551616}}",
    "{scouting:{multicast:{ttl:4294967296}}}",
    '{scouting:{multicast:{autoconnect_strategy:{foo:"always"}}}}',
    '{scouting:{multicast:{autoconnect_strategy:{peer:{foo:"always"}}}}}',
    '{scouting:{multicast:{autoconnect_strategy:{peer:"x"}}}}',
    '{routing:{router:{linkstate:{transport_weights:[{dst_zid:"1",weight:65536}]}}}}',
    '{routing:{router:{linkstate:{transport_weights:[{dst_zid:"1",weight:10,foo:1}]}}}}',
    '{low_pass_filter:[{messages:["put"],key_exprs:["a"],size_limit:-5}]}',
    '{qos:{publication:[{key_exprs:["a"],config:{foo:"foo"}}]}}',
    '{qos:{publication:[{key_exprs:["a"],config:{},x:1}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{foo:1}}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},qos:{foo:1}}]}}',
    "{transport:{link:{tx:{batch_size:65536}}}}",
    "{transport:{link:{tcp:{so_sndbuf:-1}}}}",
    '{stats:{filters:[{key:"a",x:1}]}}',
    "{plugins:5}",
    "{plugins:null}",
    "{metadata:-Infinity}",
    "{metadata:NaN}",
    "{metadata:-NaN}",
)

# Accepted by both, and written differently: the reference forgets that the end of a range is
# open, and shows passwords.
WRITTEN_OTHERWISE = (
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:".."}]}}',
    '{qos:{network:[{messages:["put"],overwrite:{},payload_size:"1.."}]}}',
    '{transport:{auth:{usrpwd:{user:"u",password:"p"}}}}',
)

INSERTS = (
    ("transport/link/tx", "{lease:5}"),
    ("transport/link/tx/lease", "168"),
    ("transport/auth/usrpwd/user", '"u"'),
    ("transport/auth/usrpwd", '{user:"u"}'),
    ("transport/link/tx/sequence_number_resolution", '"64bit"'),
    ("plugins/foo/bar", "5"),
    ("plugins/foo/baz/0", "1"),
    ("plugins", "{a:{private:1,b:2}}"),
    ("metadata/a", "5"),
    ("metadata", "{b:1,a:{d:[1.0,1e3],c:2}}"),
    ("listen/endpoints", '["tcp/x?b=2;a=1#z;c=1"]'),
    ("listen/endpoints", '{router:["tcp/x"]}'),
    ("connect/endpoints", '["tcp/x",{strategy:"oneOf",locators:["tcp/y"]}]'),
    ("connect/retry", "{period_init_ms:5}"),
    ("connect/retry", "{period_increase_factor:{peer:2}}"),
    ("connect/retry/period_init_ms", "5"),
    ("connect/timeout_ms/peer", "5"),
    ("scouting/multicast/autoconnect", '["peer","router"]'),
    ("scouting/multicast/autoconnect", '{peer:["peer","router","client"]}'),
    ("scouting/multicast/autoconnect_strategy", '{peer:{to_router:"always"}}'),
    ("scouting/multicast/autoconnect_strategy", '{to_router:"greater-zid"}'),
    ("scouting/multicast/address", '"224.0.0.224:07446"'),
    ("scouting/multicast/address", '"[FF02:0::1]:7446"'),
    ("downsampling", '[{messages:["put"],rules:[{key_expr:"a",freq:1}]}]'),
    ("qos/network", '[{messages:["put"],overwrite:{priority:+3}}]'),
    ("qos/publication", '[{key_exprs:["a"],config:{}}]'),
    ("access_control/rules", '[{id:"r",messages:["put"],key_exprs:["a"],permission:"allow"}]'),
    ("access_control/subjects", '[{id:"r"}]'),
    ("gateway", '{south:"auto"}'),
    ("gateway/south", '"auto"'),
    ("routing/peer", '{mode:"x"}'),
    ("routing/peer/mode", '"x"'),
    ("routing/router/peers_failover_brokering", "true"),
    ("stats/filters", '[{key:"a"}]'),
    ("transport/link/tls/root_ca_certificate_base64", '"x"'),
    ("plugins_loading/search_dirs", '["x",{kind:"path",value:"y"}]'),
    ("adminspace/permissions", "{write:true}"),
    ("namespace", '"a/b"'),
    ("/mode", '"peer"'),
    ("mode/", '"peer"'),
    ("transport//link/tx/lease", "5"),
    ("mode", "peer"),
    ("", '{mode:"peer"}'),
    ("nope", "1"),
)

YAMLS = (
    "mode: peer",
    'mode: "peer"\nmetadata: yes',
    *("metadata: on", "metadata: 0o17", "metadata: 017", "metadata: 0x1F", "metadata: 1_000"),
    *("metadata: ~", "metadata:", "metadata: 1e3", "metadata: 2024-01-01", "metadata: TRUE"),
    *("metadata: 12:30:45", "metadata: [&x 1, *x]", "metadata: {<<: {a: 1}, b: 2}"),
    "mode: peer\nmode: client",
    *("", "# c", "---\nmode: peer\n---\nmode: client", "metadata: !!str 5", "metadata: +5"),
    *("metadata: {1: 2}", "metadata: .5", "metadata: 5.", "metadata: 0b11", "metadata: -0x1F"),
    *("connect: {endpoints: [tcp/localhost:1]}", "a: &x 1", "metadata: [", "scouting: {delay: x}"),
)


@pytest.fixture(autouse=True)
def _no_backtrace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "RUST_BACKTRACE", "0")


def _theirs(text: str) -> object:
    try:
        return json.loads(str(zenoh.Config.from_json5(text)))
    except zenoh.ZError:
        return None


def _ours(text: str) -> object:
    try:
        return json.loads(str(Config.from_json5(text)))
    except ConfigError:
        return None


def test_the_defaults_are_the_same_text() -> None:
    assert str(Config()) == str(zenoh.Config())


@pytest.mark.parametrize("text", ALIKE)
def test_accepted_or_refused_alike(text: str) -> None:
    assert _ours(text) == _theirs(text)


@pytest.mark.parametrize("text", STRICTER)
def test_meant_to_be_stricter(text: str) -> None:
    assert _theirs(text) is not None
    assert _ours(text) is None


@pytest.mark.parametrize("text", WRITTEN_OTHERWISE)
def test_meant_to_be_written_otherwise(text: str) -> None:
    ours, theirs = _ours(text), _theirs(text)
    assert ours is not None
    assert theirs is not None
    assert ours != theirs


def _paths(value: object, path: str = "") -> list[str]:
    if not isinstance(value, dict):
        return [path]
    inner = [p for key, item in value.items() for p in _paths(item, f"{path}/{key}")]
    return [path, *inner] if path else inner


def _gets(config: object, error: type[Exception], path: str) -> str | None:
    try:
        return str(config.get_json(path))  # type: ignore[attr-defined] # of either package
    except error:
        return None


def test_every_path_says_the_same() -> None:
    ours, theirs = Config(), zenoh.Config()
    paths = [*_paths(json.loads(str(theirs))), "nope", "mode/x", "", "transport/link/tx/nope"]
    assert len(paths) > 100
    for path in paths:
        assert _gets(ours, ConfigError, path) == _gets(theirs, zenoh.ZError, path), path


@pytest.mark.parametrize(("key", "value"), INSERTS)
def test_inserted_alike(key: str, value: str) -> None:
    ours, theirs = Config(), zenoh.Config()
    try:
        theirs.insert_json5(key, value)
    except zenoh.ZError:
        with pytest.raises(ConfigError):
            ours.insert_json5(key, value)
        return
    ours.insert_json5(key, value)
    assert str(ours) == str(theirs)
    assert ours.get_json(key) == theirs.get_json(key)


def test_a_section_that_is_inserted_replaces_the_whole() -> None:
    for config in (Config(), zenoh.Config()):
        config.insert_json5("transport/link/tx/lease", "5")
        config.insert_json5("transport/link/tx", "{keep_alive:7}")
        assert config.get_json("transport/link/tx/lease") == "10000"


@pytest.mark.parametrize("text", YAMLS)
def test_yaml_means_the_same(text: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "c.yaml"
    file.write_text(text)
    try:
        theirs = str(zenoh.Config.from_file(str(file)))
    except zenoh.ZError:
        with pytest.raises(ConfigError):
            Config.from_file(file)
        return
    assert str(Config.from_file(file)) == theirs


def test_a_written_configuration_is_read_by_the_other() -> None:
    for text in ALIKE:
        ours = _ours(text)
        if ours is not None:
            assert _theirs(json.dumps(ours)) == ours


@pytest.mark.parametrize("name", ["c.txt", "c", "c.json"])
def test_files_that_both_refuse(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{" if name == "c.json" else "{}")
    for config, error in ((Config, ConfigError), (zenoh.Config, zenoh.ZError)):
        with pytest.raises(error):
            config.from_file(str(tmp_path / name))


def test_the_environment_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Config.DEFAULT_CONFIG_PATH_ENV == zenoh.Config.DEFAULT_CONFIG_PATH_ENV
    file = tmp_path / "c.json5"
    file.write_text("{mode:'client'}")
    monkeypatch.setenv("ZENOH_CONFIG", str(file))
    assert Config.from_env().get_json("mode") == zenoh.Config.from_env().get_json("mode")
