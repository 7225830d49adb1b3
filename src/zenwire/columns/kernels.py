"""The compiled kernels: all of them in this file, because Numba's cache looks at no other.

Arrays come with explicit types: another one is a TypeError, not a second compilation. Nothing
here trusts its input; every index is bounded by a check before it. Indices are unsigned (``U``),
since signed ones would be tested for wrap-around at each use.
"""

import logging
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

U = types.uint64
I = types.int64

# Input may be read-only; a writable array is accepted where a read-only one is.
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
OUT = types.Array(types.uint8, 1, "C")
INT32 = types.Array(types.int32, 1, "C", readonly=True)
INT32_OUT = types.Array(types.int32, 1, "C")
INT64_OUT = types.Array(types.int64, 1, "C")
UINT64 = types.Array(types.uint64, 1, "C")
TABLE32 = types.Array(types.int32, 2, "C")
TABLE64 = types.Array(types.uint64, 2, "C")

log = logging.getLogger("zenwire.columns")


def _nothing():
    pass


try:
    njit(cache=True)(_nothing)
    CACHE = True
except RuntimeError as e:
    # No directory that Numba may write to: the kernels work, but are compiled in each process.
    CACHE = False
    log.warning("compiled kernels are not kept (%s): set NUMBA_CACHE_DIR", e)

OPTIONS = {"cache": CACHE, "nogil": True, "error_model": "numpy"}

_SIGNATURES = {}


def kernel(signature: Any) -> Any:
    """A kernel that takes long to compile: not at import, but when ``ready`` asks for it."""

    def make(function):
        made = njit(**OPTIONS)(function)
        _SIGNATURES[made] = signature
        return made

    return make


def ready(made: Any) -> Any:
    """The kernel, compiled or from the cache, for its own signature and no other."""
    if not made.signatures:
        made.compile(_SIGNATURES[made])
        made.disable_compile()
    return made

# --- generated: constants (make gen) ---
TRUNCATED = np.uint64(0x1)
UNKNOWN_ID = np.uint64(0x2)
OVERFLOW = np.uint64(0x3)
LIMIT = np.uint64(0x4)
UTF8 = np.uint64(0x5)
RESERVED_ENCODING = np.uint64(0x6)
MANDATORY_EXTENSION = np.uint64(0x7)
TRAILING = np.uint64(0x8)
INVALID = np.uint64(0x9)
COMPRESSION = np.uint64(0xa)
OP_END = np.uint64(0x0)
OP_Z = np.uint64(0x1)
OP_SPAN = np.uint64(0x2)
OP_TEXT = np.uint64(0x3)
OP_PLAIN_ZID = np.uint64(0x4)
OP_KEEP = np.uint64(0x5)
OP_QOS_LINK = np.uint64(0x6)
OP_U8 = np.uint64(0x7)
OP_OPTIONS = np.uint64(0x8)
OP_PACKED_ZID = np.uint64(0x9)
OP_NIBBLE = np.uint64(0xa)
OP_REST = np.uint64(0xb)
OP_REST_TEXT = np.uint64(0xc)
OP_SPAN_TO_END = np.uint64(0xd)
OP_MARK = np.uint64(0xe)
OP_MARK_IF = np.uint64(0xf)
OP_MARK_ZERO = np.uint64(0x10)
OP_BITS = np.uint64(0x11)
OP_IF = np.uint64(0x12)
OP_IF_ODD = np.uint64(0x13)
OP_CASE = np.uint64(0x14)
OP_CHAIN = np.uint64(0x15)
OP_EXT_END = np.uint64(0x16)
OP_ONE_OF = np.uint64(0x17)
OP_ENTRY = np.uint64(0x18)
OP_TIMES = np.uint64(0x19)
OP_TIMES_END = np.uint64(0x1a)
OP_FAIL = np.uint64(0x1b)
STORE_NOT = np.uint64(0x0)
STORE_INT32 = np.uint64(0x1)
STORE_UINT64 = np.uint64(0x2)
STORE_INT32_NOT_ZERO = np.uint64(0x3)
STORE_HALF = np.uint64(0x4)
NONE = np.uint64(0xffffffffffffffff)
EXTENSIONS_MAX = np.uint64(0x80)
EXTENSION_BODY_MAX = np.uint64(0xffffffff)
N_frame = np.uint64(0x0)
N_at = np.uint64(0x1)
N_end = np.uint64(0x2)
N_body_at = np.uint64(0x3)
N_key_scope = np.uint64(0x4)
NB_key_scope = np.uint64(0x1)
N_key_suffix = np.uint64(0x5)
N_key_suffix_size = np.uint64(0x6)
NB_key_suffix = np.uint64(0x2)
N_key_mapping = np.uint64(0x0)
NB_key_mapping = np.uint64(0x4)
N_qos = np.uint64(0x7)
NB_qos = np.uint64(0x8)
N_ext_timestamp = np.uint64(0x0)
NB_ext_timestamp = np.uint64(0x10)
N_ext_timestamp_id = np.uint64(0x8)
N_ext_timestamp_id_size = np.uint64(0x9)
NB_ext_timestamp_id = np.uint64(0x20)
N_node_id = np.uint64(0xa)
NB_node_id = np.uint64(0x40)
N_timestamp_stack = np.uint64(0xb)
N_timestamp_stack_size = np.uint64(0xc)
NB_timestamp_stack = np.uint64(0x80)
N_timestamp = np.uint64(0x1)
NB_timestamp = np.uint64(0x100)
N_timestamp_id = np.uint64(0xd)
N_timestamp_id_size = np.uint64(0xe)
NB_timestamp_id = np.uint64(0x200)
N_encoding = np.uint64(0xf)
NB_encoding = np.uint64(0x400)
N_encoding_schema = np.uint64(0x10)
N_encoding_schema_size = np.uint64(0x11)
NB_encoding_schema = np.uint64(0x800)
N_source_zid = np.uint64(0x12)
N_source_zid_size = np.uint64(0x13)
NB_source_zid = np.uint64(0x1000)
N_source_eid = np.uint64(0x14)
NB_source_eid = np.uint64(0x2000)
N_source_sn = np.uint64(0x15)
NB_source_sn = np.uint64(0x4000)
N_shm = np.uint64(0x0)
NB_shm = np.uint64(0x8000)
N_attachment = np.uint64(0x16)
N_attachment_size = np.uint64(0x17)
NB_attachment = np.uint64(0x10000)
N_unknown = np.uint64(0x18)
NB_unknown = np.uint64(0x20000)
N_payload = np.uint64(0x19)
N_payload_size = np.uint64(0x1a)
NB_payload = np.uint64(0x40000)
N_request_id = np.uint64(0x1b)
NB_request_id = np.uint64(0x80000)
N_target = np.uint64(0x1c)
NB_target = np.uint64(0x100000)
N_budget = np.uint64(0x1d)
NB_budget = np.uint64(0x200000)
N_timeout = np.uint64(0x2)
NB_timeout = np.uint64(0x400000)
N_consolidation = np.uint64(0x1e)
NB_consolidation = np.uint64(0x800000)
N_parameters = np.uint64(0x1f)
N_parameters_size = np.uint64(0x20)
NB_parameters = np.uint64(0x1000000)
N_responder_zid = np.uint64(0x21)
N_responder_zid_size = np.uint64(0x22)
NB_responder_zid = np.uint64(0x2000000)
N_responder_eid = np.uint64(0x23)
NB_responder_eid = np.uint64(0x4000000)
N_interest_id = np.uint64(0x24)
NB_interest_id = np.uint64(0x8000000)
N_expr_id = np.uint64(0x25)
NB_expr_id = np.uint64(0x10000000)
N_entity_id = np.uint64(0x26)
NB_entity_id = np.uint64(0x20000000)
N_queryable_info = np.uint64(0x27)
NB_queryable_info = np.uint64(0x40000000)
N_mode = np.uint64(0x28)
NB_mode = np.uint64(0x80000000)
N_keyexprs = np.uint64(0x0)
NB_keyexprs = np.uint64(0x100000000)
N_subscribers = np.uint64(0x0)
NB_subscribers = np.uint64(0x200000000)
N_queryables = np.uint64(0x0)
NB_queryables = np.uint64(0x400000000)
N_tokens = np.uint64(0x0)
NB_tokens = np.uint64(0x800000000)
N_aggregate = np.uint64(0x0)
NB_aggregate = np.uint64(0x1000000000)
N_oam_id = np.uint64(0x29)
NB_oam_id = np.uint64(0x2000000000)
N_oam_value = np.uint64(0x3)
NB_oam_value = np.uint64(0x4000000000)
N_oam_body = np.uint64(0x2a)
N_oam_body_size = np.uint64(0x2b)
NB_oam_body = np.uint64(0x8000000000)
T_batch = np.uint64(0x0)
T_at = np.uint64(0x1)
T_end = np.uint64(0x2)
T_oam_id = np.uint64(0x3)
TB_oam_id = np.uint64(0x1)
T_priority = np.uint64(0x4)
TB_priority = np.uint64(0x2)
T_oam_value = np.uint64(0x0)
TB_oam_value = np.uint64(0x4)
T_oam_body = np.uint64(0x5)
T_oam_body_size = np.uint64(0x6)
TB_oam_body = np.uint64(0x8)
T_session = np.uint64(0x0)
TB_session = np.uint64(0x10)
T_reason = np.uint64(0x7)
TB_reason = np.uint64(0x20)
T_reliable = np.uint64(0x0)
TB_reliable = np.uint64(0x40)
T_sn = np.uint64(0x8)
TB_sn = np.uint64(0x80)
T_more = np.uint64(0x0)
TB_more = np.uint64(0x100)
T_first = np.uint64(0x0)
TB_first = np.uint64(0x200)
T_drop = np.uint64(0x0)
TB_drop = np.uint64(0x400)
T_payload = np.uint64(0x9)
T_payload_size = np.uint64(0xa)
TB_payload = np.uint64(0x800)
# --- end of constants ---

# What is called for each message takes bare pointers: an array is seven words, and its owner's
# count goes up and down, atomically, at each call.
POINTER8 = types.CPointer(types.uint8)
POINTER32 = types.CPointer(types.int32)
POINTER64 = types.CPointer(types.uint64)

VLE = types.Tuple((U, U))(POINTER8, U, U)
FAULT_AT = U(POINTER64, U, U)
PROGRAM = types.Array(types.uint64, 2, "C", readonly=True)
RUN = U(
    POINTER8, U, U, POINTER64, U, POINTER32, POINTER64, U, POINTER64, U, POINTER64, POINTER64
)
SCAN = types.void(
    BYTES,
    INT32,
    INT32,
    types.boolean,
    PROGRAM,
    types.Array(types.uint64, 1, "C", readonly=True),
    TABLE32,
    TABLE64,
    UINT64,
    TABLE32,
    TABLE64,
    UINT64,
    TABLE32,
    UINT64,
    UINT64,
    UINT64,
)



@intrinsic
def copy16(context, target, q, source, p):
    """target[q:q+16] = source[p:p+16], unaligned and unchecked: both must have 16 bytes."""
    signature = types.void(target, q, source, p)

    def generate(context, builder, signature, args):
        out = context.make_array(signature.args[0])(context, builder, args[0])
        src = context.make_array(signature.args[2])(context, builder, args[2])
        vector = ir.VectorType(ir.IntType(8), 16).as_pointer()
        here = builder.bitcast(builder.gep(src.data, [args[3]]), vector)
        there = builder.bitcast(builder.gep(out.data, [args[1]]), vector)
        builder.store(builder.load(here, align=1), there, align=1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def copy(context, target, q, source, p, n):
    """target[q:q+n] = source[p:p+n], unchecked."""
    signature = types.void(target, q, source, p, n)

    def generate(context, builder, signature, args):
        out = context.make_array(signature.args[0])(context, builder, args[0])
        src = context.make_array(signature.args[2])(context, builder, args[2])
        here = builder.gep(src.data, [args[3]])
        there = builder.gep(out.data, [args[1]])
        cgutils.raw_memcpy(builder, there, here, args[4], 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def pointer(context, array):
    """To the first element. Who gets it must be done before the array goes."""
    signature = types.CPointer(array.dtype)(array)

    def generate(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return signature, generate


@intrinsic
def load8(context, source, p):
    """Eight bytes as a little-endian integer, unaligned and unchecked."""
    signature = types.uint64(source, p)

    def generate(context, builder, signature, args):
        here = builder.gep(args[0], [args[1]])
        return builder.load(builder.bitcast(here, ir.IntType(64).as_pointer()), align=1)

    return signature, generate


@intrinsic
def popcount(context, x):
    """How many bits are set."""
    signature = types.uint64(x)

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return signature, generate


# Constants are unsigned too: an int64 and a uint64 would make a float64. As globals they cost
# the compiler nothing, where a cast at each use takes it longer than all the rest.
ZERO, ONE, TWO, THREE, FOUR, SEVEN, EIGHT, NINE = np.array([0, 1, 2, 3, 4, 7, 8, 9], np.uint64)
SIXTEEN, THIRTY_TWO, BITS_48, BITS_56 = np.array([16, 32, 48, 56], np.uint64)
SIXTY_FOUR, ROOM = np.array([64, 128], np.uint64)
LOW_5, LOW_7, BYTE, LOW_32 = np.array([0x1F, 0x7F, 0xFF, 0xFFFFFFFF], np.uint64)
HIGH_BIT, MANDATORY, ENCODING, ZBUF = np.array([0x80, 0x10, 0x60, 0x40], np.uint64)
ELEVEN, NETWORK_ENTRY = np.array([11, 256], np.uint64)
# The columns of a program.
OP, A, B, SLOT, BIT, FORM, TO, WIDTH = np.arange(8, dtype=np.uint64)
# A chain, an extension in it, a chain in that and so on: no program nests deeper.
STACK = 32
HIGH_BITS = np.uint64(0x8080808080808080)
PAIRS_LOW, PAIRS_HIGH = np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)
QUADS_LOW, QUADS_HIGH = np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)
HALF_LOW, HALF_HIGH = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)


@njit(VLE, **OPTIONS)
def vle(b, p, end):
    """A variable-length integer, and the position after it: 0 if the bytes end before it does."""
    if p + NINE <= end:
        # Eight bytes at once: drop what is after the first byte without a high bit, then close
        # the gaps that the high bits leave, pair by pair.
        x = load8(b, p)
        stop = ~x & HIGH_BITS
        whole = stop == ZERO
        if not whole:
            stop ^= stop - ONE
            x &= stop
        x = (x & PAIRS_LOW) | ((x & PAIRS_HIGH) >> ONE)
        x = (x & QUADS_LOW) | ((x & QUADS_HIGH) >> TWO)
        x = (x & HALF_LOW) | ((x & HALF_HIGH) >> FOUR)
        if whole:
            return x | (U(b[p + EIGHT]) << BITS_56), p + NINE
        # ``stop`` has a bit for each bit of the integer's bytes.
        return x, p + (popcount(stop) >> THREE)
    v = ZERO
    shift = ZERO
    while shift < BITS_56:
        if p >= end:
            return v, ZERO
        byte = U(b[p])
        p += ONE
        v |= (byte & LOW_7) << shift
        if byte <= LOW_7:
            return v, p
        shift += SEVEN
    if p >= end:
        return v, ZERO
    return v | (U(b[p]) << BITS_56), p + ONE


if not vle.stats.cache_hits:
    log.warning("compiling the kernels: some seconds, once on this machine and for this version")


@njit(types.boolean(POINTER8, U, U, U), **OPTIONS)
def is_ascii(b, p, n, end):
    """Whether ``n`` bytes from ``p`` are ASCII; False also where ``end`` is too near to look."""
    if n >= EIGHT:
        # The last eight bytes may overlap those before them.
        last = p + n - EIGHT
        x = load8(b, last)
        while p < last:
            x |= load8(b, p)
            p += EIGHT
        return x & HIGH_BITS == ZERO
    if n == ZERO:
        return True
    if p + EIGHT > end:
        return False
    return (load8(b, p) << (SIXTY_FOUR - EIGHT * n)) & HIGH_BITS == ZERO


@njit(types.boolean(POINTER8, U, U), **OPTIONS)
def is_utf8(b, p, n):
    """Whether ``n`` bytes from ``p`` are UTF-8: shortest forms, no surrogates, up to U+10FFFF."""
    end = p + n
    while p < end:
        if p + EIGHT <= end and load8(b, p) & HIGH_BITS == ZERO:
            p += EIGHT
            continue
        c = b[p]
        p += ONE
        if c < 0x80:
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        more = ONE if c < 0xE0 else (TWO if c < 0xF0 else THREE)
        if p + more > end:
            return False
        d = b[p]
        # The second byte rules out long forms, surrogates, and what is above U+10FFFF.
        low = 0xA0 if c == 0xE0 else (0x90 if c == 0xF0 else 0x80)
        high = 0x9F if c == 0xED else (0x8F if c == 0xF4 else 0xBF)
        if d < low or d > high:
            return False
        if more > ONE and b[p + ONE] & 0xC0 != 0x80:
            return False
        if more > TWO and b[p + TWO] & 0xC0 != 0x80:
            return False
        p += more
    return True


@njit(FAULT_AT, **OPTIONS)
def fail(f, fault, at):
    """Leaves a fault and its place in ``f``; gives 0, where no message ends."""
    f[0] = fault
    f[1] = at
    return ZERO


@njit(RUN, **OPTIONS)
def run(b, p, be, program, pc, c, t, stride, present, r, f, s):
    """Reads one message by its program (``zenwire.columns.program``), from its header on.

    Gives the position after it and sets ``present[r]``; or gives 0 and puts the fault and its
    place into ``f``. ``s`` is a stack. The row's number is ``r``; other rows are not touched.
    A column of ``c`` and ``t`` begins ``stride`` elements after the one before it.
    """
    h = U(b[p])
    pr = (h & LOW_5) << BITS_56
    p += ONE
    start = p
    sp = ZERO
    v = ZERO
    n = ZERO
    options = ZERO
    nibble = ZERO
    unknown = ZERO
    first = True
    again = False
    while True:
        here = pc * WIDTH
        pc += ONE
        op = program[here]
        a = program[here + A]
        other = program[here + B]
        slot = program[here + SLOT]
        bit = program[here + BIT]
        to = program[here + TO]
        if OP_Z <= op <= OP_PLAIN_ZID:
            # A VLE, and what is a length of something.
            start = p
            v, p = vle(b, p, be)
            if p == ZERO:
                return fail(f, TRUNCATED, be)
            if v > a:
                return fail(f, other, start)
            if op == OP_Z:
                form = program[here + FORM]
                if form == STORE_UINT64:
                    t[slot * stride + r] = v
                    pr |= ONE << bit
                elif form != STORE_NOT and (form != STORE_INT32_NOT_ZERO or v != ZERO):
                    c[slot * stride + r] = v >> ONE if form == STORE_HALF else v
                    pr |= ONE << bit
                continue
            if v > be - p:
                return fail(f, TRUNCATED, p)
            if op == OP_TEXT and not is_utf8(b, p, v):
                return fail(f, UTF8, p)
            n = v
            if op == OP_PLAIN_ZID:
                while n > ZERO and b[p + n - ONE] == 0:
                    n -= ONE
                if n == ZERO:
                    return fail(f, INVALID, p)
            if slot != NONE:
                c[slot * stride + r] = p
                c[(slot + ONE) * stride + r] = n
                pr |= ONE << bit
            p += v
        elif op == OP_KEEP:
            v &= a
            if v > other:
                if to == NONE:
                    return fail(f, INVALID, start)
                v = to
            if slot != NONE:
                c[slot * stride + r] = v
                pr |= ONE << bit
        elif op == OP_IF:
            if not (options if other else h) & a:
                pc = to
        elif op == OP_CHAIN:
            if again:
                again = False
            else:
                if not (h & HIGH_BIT if a else p < be):
                    pc = to
                    continue
                s[sp] = EXTENSIONS_MAX
                sp += ONE
            while True:
                if p >= be:
                    return fail(f, TRUNCATED, be)
                e = U(b[p])
                p += ONE
                known = NONE
                for j in range(pc, pc + other):
                    if program[j * WIDTH + A] == e & LOW_7:
                        known = program[j * WIDTH + TO]
                        pr &= ~program[j * WIDTH + B]
                if known == NONE and e & MANDATORY:
                    return fail(f, MANDATORY_EXTENSION, p - ONE)
                if e & ENCODING == ENCODING:
                    return fail(f, RESERVED_ENCODING, p - ONE)
                v = ZERO
                if e & ENCODING == ZBUF or (known == NONE and e & ENCODING):
                    start = p
                    v, p = vle(b, p, be)
                    if p == ZERO:
                        return fail(f, TRUNCATED, be)
                    if e & ENCODING == ZBUF:
                        if v > EXTENSION_BODY_MAX:
                            return fail(f, LIMIT, start)
                        if v > be - p:
                            return fail(f, TRUNCATED, p)
                if known != NONE:
                    s[sp] = be
                    s[sp + ONE] = e
                    sp += TWO
                    if e & ENCODING == ZBUF:
                        be = p + v
                    pc = known
                    break
                if e & ENCODING == ZBUF:
                    p += v
                if slot != NONE:
                    unknown += ONE
                    c[slot * stride + r] = unknown
                    pr |= ONE << bit
                if not e & HIGH_BIT:
                    sp -= ONE
                    pc = to
                    break
                s[sp - ONE] -= ONE
                if s[sp - ONE] == ZERO:
                    return fail(f, LIMIT, p)
        elif op == OP_EXT_END:
            sp -= TWO
            e = s[sp + ONE]
            if e & ENCODING == ZBUF and p != be:
                return fail(f, TRAILING, p)
            be = s[sp]
            pc = to
            if e & HIGH_BIT:
                s[sp - ONE] -= ONE
                if s[sp - ONE] == ZERO:
                    return fail(f, LIMIT, p)
                again = True
            else:
                sp -= ONE
                pc = program[pc * WIDTH + TO]
        elif op == OP_MARK_IF:
            if (options if other else h) & a and bit != NONE:
                pr |= ONE << bit
        elif op == OP_ONE_OF:
            if p >= be:
                return fail(f, TRUNCATED, be)
            if first:
                c[N_body_at * stride + r] = p
                first = False
            h = U(b[p])
            p += ONE
            known = NONE
            for j in range(pc, pc + other):
                if program[j * WIDTH + A] == h & LOW_5:
                    known = program[j * WIDTH + TO]
                    if program[j * WIDTH + B]:
                        pr |= (h & LOW_5) << BITS_48
            if known == NONE:
                return fail(f, UNKNOWN_ID, p - ONE)
            pc = known
        elif op == OP_U8 or op == OP_OPTIONS or op == OP_PACKED_ZID:
            if p >= be:
                return fail(f, TRUNCATED, be)
            byte = U(b[p])
            p += ONE
            if op == OP_OPTIONS:
                options = byte
            elif op == OP_U8:
                if a and byte == ZERO:
                    return fail(f, INVALID, p - ONE)
                if slot != NONE:
                    c[slot * stride + r] = byte
                    pr |= ONE << bit
            else:
                nibble = byte
                v = (byte >> FOUR) + ONE
                if v > be - p:
                    return fail(f, TRUNCATED, p)
                n = v
                while n > ZERO and b[p + n - ONE] == 0:
                    n -= ONE
                if n == ZERO:
                    return fail(f, INVALID, p)
                if slot != NONE:
                    c[slot * stride + r] = p
                    c[(slot + ONE) * stride + r] = n
                    pr |= ONE << bit
                p += v
        elif op == OP_REST or op == OP_REST_TEXT or op == OP_SPAN_TO_END:
            n = be - p
            if op == OP_REST_TEXT:
                if n > a or n < other:
                    return fail(f, LIMIT, p)
                if not is_utf8(b, p, n):
                    return fail(f, UTF8, p)
            if slot != NONE:
                c[slot * stride + r] = p
                c[(slot + ONE) * stride + r] = n
                pr |= ONE << bit
            if op != OP_SPAN_TO_END:
                p = be
        elif op == OP_MARK or (op == OP_MARK_ZERO and v == ZERO):
            if bit != NONE:
                pr |= ONE << bit
        elif op == OP_MARK_ZERO:
            pass
        elif op == OP_BITS:
            c[slot * stride + r] = (h & a) >> other
            pr |= ONE << bit
        elif op == OP_IF_ODD:
            if not v & ONE:
                pc = to
        elif op == OP_CASE:
            if h & a != other:
                pc = to
        elif op == OP_TIMES:
            s[sp] = v if a == NONE else a
            sp += ONE
            pc = to
        elif op == OP_TIMES_END:
            if s[sp - ONE]:
                s[sp - ONE] -= ONE
                pc = to
            else:
                sp -= ONE
        elif op == OP_NIBBLE:
            if nibble & THREE >= a:
                return fail(f, INVALID, p)
        elif op == OP_QOS_LINK:
            wrong = (v >> THREE) & BYTE > SEVEN or (v >> ELEVEN) & BYTE > SEVEN
            if v & TWO and wrong:
                return fail(f, INVALID, start)
        elif op == OP_FAIL:
            return fail(f, a, p)
        else:
            present[r] = pr
            return p


@njit(I(BYTES, I, I, I, I, INT32_OUT, INT32_OUT, INT64_OUT), **OPTIONS)
def split(b, p, end, prefix, limit, starts, ends, st):
    """Where the whole batches of a stream are. ``st``: the rest starts here, and a fault."""
    k = I(0)
    fault = 0
    while k < len(starts):
        if p + prefix > end:
            break
        n = I(b[U(p)]) | (I(b[U(p + 1)]) << 8)
        if prefix == 4:
            n |= (I(b[U(p + 2)]) << 16) | (I(b[U(p + 3)]) << 24)
        if n > limit:
            fault = 4
            break
        if p + prefix + n > end:
            break
        starts[U(k)] = p + prefix
        ends[U(k)] = p + prefix + n
        p += prefix + n
        k += 1
    st[0] = p
    st[1] = fault
    return k


@njit(types.Tuple((U, U))(UINT64, I), **OPTIONS)
def any_and_all(present, n):
    """The bits that some row has, and those that every row has."""
    some = U(0)
    every = ~U(0)
    for i in range(n):
        some |= present[U(i)]
        every &= present[U(i)]
    return some, every


@njit(types.void(UINT64, UINT64, I, UINT64), **OPTIONS)
def add_defaults(present, defaults, n, out):
    """Presence words in which a column that has a default counts as present.

    ``defaults`` has a word for each pair of message and body id, five bits each.
    """
    for i in range(n):
        word = present[U(i)]
        kind = ((word >> U(56)) & U(31)) << U(5) | (word >> U(48)) & U(31)
        out[U(i)] = word | defaults[kind]


@njit(I(UINT64, U, I, OUT), **OPTIONS)
def bitmap(present, bit, n, out):
    """Bit ``bit`` of each presence word as an Arrow bitmap. Gives how many are 0."""
    zeros = I(0)
    i = I(0)
    while i < n:
        byte = U(0)
        for j in range(min(I(8), n - i)):
            there = (present[U(i + j)] >> bit) & U(1)
            byte |= there << U(j)
            zeros += I(U(1) - there)
        out[U(i >> 3)] = byte
        i += 8
    return zeros


@njit(types.void(INT32, UINT64, U, I, I, INT32_OUT), **OPTIONS)
def values32(column, present, bit, default, n, out):
    """An int32 column with ``default`` where nothing is present."""
    for i in range(n):
        there = (present[U(i)] >> bit) & U(1)
        out[U(i)] = column[U(i)] if there else default


@njit(types.void(INT32, UINT64, U, I, I, INT64_OUT), **OPTIONS)
def values32_wide(column, present, bit, default, n, out):
    """The same for unsigned values of 32 bits."""
    for i in range(n):
        there = (present[U(i)] >> bit) & U(1)
        out[U(i)] = I(column[U(i)]) & 0xFFFFFFFF if there else default


@njit(types.void(UINT64, UINT64, U, I, UINT64), **OPTIONS)
def values64(column, present, bit, n, out):
    """A uint64 column with 0 where nothing is present."""
    for i in range(n):
        there = (present[U(i)] >> bit) & U(1)
        out[U(i)] = column[U(i)] if there else U(0)


@njit(I(INT32, UINT64, U, I, INT32_OUT), **OPTIONS)
def offsets32(lengths, present, bit, n, out):
    """Arrow offsets of a span column. Gives the number of bytes."""
    q = I(0)
    out[U(0)] = 0
    for i in range(n):
        if (present[U(i)] >> bit) & U(1):
            q += I(lengths[U(i)])
        out[U(i + 1)] = q
    return q


@njit(types.void(BYTES, INT32, INT32, I, OUT), **OPTIONS)
def gather(b, starts, offsets, n, out):
    """Copies the spans of a column back to back. ``out`` has 64 bytes more than they need."""
    safe = len(b) - 64
    for i in range(n):
        q = I(offsets[U(i)])
        size = I(offsets[U(i + 1)]) - q
        if size == 0:
            continue
        p = I(starts[U(i)])
        if size <= 64 and p <= safe:
            # Sixteen bytes at once may copy more than the span; the next one writes over it.
            copy16(out, q, b, p)
            if size > 16:
                copy16(out, q + 16, b, p + 16)
                if size > 32:
                    copy16(out, q + 32, b, p + 32)
                    copy16(out, q + 48, b, p + 48)
        else:
            copy(out, q, b, p, size)


@njit(types.void(INT32, INT32, I, INT32_OUT), **OPTIONS)
def take32(column, rows, n, out):
    """``column[rows[i]]``; -1 where ``rows[i]`` is negative."""
    for i in range(n):
        row = I(rows[U(i)])
        out[U(i)] = column[U(row)] if row >= 0 else -1


# --- generated: scan (make gen) ---
@kernel(SCAN)
def scan(buffer, starts, ends, low, program, entry, c, t, present, tc, tt, tpresent, bad, faults, stack, st):
    """Rows of the batches ``starts[k]..ends[k]``, from batch ``st[0]`` on.

    Stops before a batch whose rows might not fit. ``low``: each batch is one bare message.
    ``entry``: where the program of a message starts, by its header byte, network messages 256
    further on. ``faults`` and ``stack`` are room to work in. ``st``: next batch, rows, transport rows, bad rows, and whether the next batch is
    outside of the buffer.
    """
    b, f, s = pointer(buffer), pointer(faults), pointer(stack)
    code, stride, tstride = pointer(program), U(c.shape[1]), U(tc.shape[1])
    k, r, w, x = st[0], st[1], st[2], st[3]
    size = U(len(buffer))
    batches, rows, trows, bads = U(len(starts)), U(len(present)), U(len(tpresent)), U(bad.shape[1])
    while k < batches:
        p = U(starts[k])
        be = U(ends[k])
        if p > be or be > size:
            st[4] = ONE
            break
        # No message is shorter than a byte.
        room = be - p + ONE
        if r + room > rows or w + room > trows or x >= bads:
            break
        fault = ZERO
        at = ZERO
        m0 = p
        fr = ~k
        body_at = ZERO
        framed = low
        while p < be:
            m0 = p
            h = b[p]
            done = False
            if framed and h & 0x1F == 0x1d:
                while True:
                    pr = np.uint64(0x1d00000000000000)  # PUSH
                    p += ONE
                    if p >= be:
                        break
                    v = U(b[p])
                    p += ONE
                    if v > LOW_7:
                        if p < be and b[p] < 128:
                            v = v & LOW_7 | U(b[p]) << SEVEN
                            p += ONE
                        else:
                            v, p = vle(b, p - ONE, be)
                        if p == ZERO or v > 0xffff:
                            break
                    c[N_key_scope, r] = v
                    pr |= NB_key_scope
                    if h & 0x20:
                        if p >= be:
                            break
                        v = U(b[p])
                        p += ONE
                        if v > LOW_7:
                            if p < be and b[p] < 128:
                                v = v & LOW_7 | U(b[p]) << SEVEN
                                p += ONE
                            else:
                                v, p = vle(b, p - ONE, be)
                            if p == ZERO or v > 0xffff:
                                break
                        if v > be - p:
                            break
                        if not is_ascii(b, p, v, be) and not is_utf8(b, p, v):
                            break
                        c[N_key_suffix, r] = p
                        c[N_key_suffix_size, r] = v
                        pr |= NB_key_suffix
                        p += v
                    if h & 0x40:
                        pr |= NB_key_mapping
                    more1 = h & 0x80
                    left = 128
                    while more1:
                        if p >= be:
                            break
                        x1 = b[p]
                        p += ONE
                        if x1 & 0x7F == 0x21:  # qos
                            if p >= be:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < be and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, be)
                                if p == ZERO:
                                    break
                            c[N_qos, r] = v & 0xff
                            pr |= NB_qos
                        else:
                            break
                        more1 = x1 & 0x80
                        left -= 1
                        if left == 0:
                            break
                    if more1:
                        break
                    if p >= be:
                        break
                    body_at = p
                    m = b[p]
                    p += ONE
                    if m & 0x1F != 0x01:
                        break
                    pr |= np.uint64(0x1000000000000)  # PUT
                    if m & 0x20:
                        if p >= be:
                            break
                        v = U(b[p])
                        p += ONE
                        if v > LOW_7:
                            if p < be and b[p] < 128:
                                v = v & LOW_7 | U(b[p]) << SEVEN
                                p += ONE
                            else:
                                v, p = vle(b, p - ONE, be)
                            if p == ZERO:
                                break
                        t[N_timestamp, r] = v
                        pr |= NB_timestamp
                        if p >= be:
                            break
                        v = U(b[p])
                        p += ONE
                        if v > LOW_7:
                            if p < be and b[p] < 128:
                                v = v & LOW_7 | U(b[p]) << SEVEN
                                p += ONE
                            else:
                                v, p = vle(b, p - ONE, be)
                            if p == ZERO or v > 0x10:
                                break
                        if v > be - p or v > 16:
                            break
                        if v == ZERO or v > be - p or b[p + v - ONE] == 0:
                            break
                        c[N_timestamp_id, r] = p
                        c[N_timestamp_id_size, r] = v
                        pr |= NB_timestamp_id
                        p += v
                    if m & 0x40:
                        if p >= be:
                            break
                        v = U(b[p])
                        p += ONE
                        if v > LOW_7:
                            if p < be and b[p] < 128:
                                v = v & LOW_7 | U(b[p]) << SEVEN
                                p += ONE
                            else:
                                v, p = vle(b, p - ONE, be)
                            if p == ZERO or v > 0x1ffff:
                                break
                        c[N_encoding, r] = v >> ONE
                        pr |= NB_encoding
                        if v & ONE:
                            if p >= be:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < be and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, be)
                                if p == ZERO or v > 0xff:
                                    break
                            if v > be - p:
                                break
                            c[N_encoding_schema, r] = p
                            c[N_encoding_schema_size, r] = v
                            pr |= NB_encoding_schema
                            p += v
                    more2 = m & 0x80
                    left = 128
                    while more2:
                        if p >= be:
                            break
                        x2 = b[p]
                        p += ONE
                        if x2 & 0x7F == 0x41:  # source_info
                            if p >= be:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < be and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, be)
                                if p == ZERO or v > 0xffffffff:
                                    break
                            if v > be - p:
                                break
                            xe = p + v
                            if p >= xe:
                                break
                            v = (U(b[p]) >> FOUR) + ONE
                            p += ONE
                            if v == ZERO or v > xe - p or b[p + v - ONE] == 0:
                                break
                            c[N_source_zid, r] = p
                            c[N_source_zid_size, r] = v
                            pr |= NB_source_zid
                            p += v
                            if p >= xe:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < xe and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, xe)
                                if p == ZERO or v > 0xffffffff:
                                    break
                            c[N_source_eid, r] = v
                            pr |= NB_source_eid
                            if p >= xe:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < xe and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, xe)
                                if p == ZERO or v > 0xffffffff:
                                    break
                            c[N_source_sn, r] = v
                            pr |= NB_source_sn
                            if p != xe:
                                break
                        elif x2 & 0x7F == 0x43:  # attachment
                            if p >= be:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < be and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, be)
                                if p == ZERO or v > 0xffffffff:
                                    break
                            if v > be - p:
                                break
                            xe = p + v
                            c[N_attachment, r] = p
                            c[N_attachment_size, r] = xe - p
                            pr |= NB_attachment
                            p = xe
                            if p != xe:
                                break
                        else:
                            break
                        more2 = x2 & 0x80
                        left -= 1
                        if left == 0:
                            break
                    if more2:
                        break
                    if p >= be:
                        break
                    v = U(b[p])
                    p += ONE
                    if v > LOW_7:
                        if p < be and b[p] < 128:
                            v = v & LOW_7 | U(b[p]) << SEVEN
                            p += ONE
                        else:
                            v, p = vle(b, p - ONE, be)
                        if p == ZERO or v > 0xffffffff:
                            break
                    if v > be - p:
                        break
                    c[N_payload, r] = p
                    c[N_payload_size, r] = v
                    pr |= NB_payload
                    p += v
                    done = True
                    break
                if done:
                    c[N_body_at, r] = body_at
                    present[r] = pr
            elif h & 0x1F == 0x05 and not low:
                while True:
                    pr = np.uint64(0x500000000000000)  # FRAME
                    p += ONE
                    if h & 0x20:
                        pr |= TB_reliable
                    if p >= be:
                        break
                    v = U(b[p])
                    p += ONE
                    if v > LOW_7:
                        if p < be and b[p] < 128:
                            v = v & LOW_7 | U(b[p]) << SEVEN
                            p += ONE
                        else:
                            v, p = vle(b, p - ONE, be)
                        if p == ZERO or v > 0xffffffff:
                            break
                    tc[T_sn, w] = v
                    pr |= TB_sn
                    more1 = h & 0x80
                    left = 128
                    while more1:
                        if p >= be:
                            break
                        x1 = b[p]
                        p += ONE
                        if x1 & 0x7F == 0x31:  # priority
                            if p >= be:
                                break
                            v = U(b[p])
                            p += ONE
                            if v > LOW_7:
                                if p < be and b[p] < 128:
                                    v = v & LOW_7 | U(b[p]) << SEVEN
                                    p += ONE
                                else:
                                    v, p = vle(b, p - ONE, be)
                                if p == ZERO:
                                    break
                            tc[T_priority, w] = v & 0x7
                            pr |= TB_priority
                        else:
                            break
                        more1 = x1 & 0x80
                        left -= 1
                        if left == 0:
                            break
                    if more1:
                        break
                    done = True
                    break
                if done:
                    tpresent[w] = pr
            network = framed and h & 0x1F >= 0x19
            if not done:
                p = m0
                pc = entry[U(h) + NETWORK_ENTRY] if network else entry[U(h)]
                bare = h & 0x1F == 0x03 or h & 0x1F == 0x04
                if pc == NONE or (low and not network and not bare):
                    fault = UNKNOWN_ID
                    at = m0
                    break
                if network:
                    c[N_body_at, r] = -1
                    p = run(b, p, be, code, pc, pointer(c), pointer(t), stride, pointer(present), r, f, s)
                else:
                    p = run(b, p, be, code, pc, pointer(tc), pointer(tt), tstride, pointer(tpresent), w, f, s)
                if p == ZERO:
                    fault = f[0]
                    at = f[1]
                    break
            if network:
                c[N_frame, r] = fr
                c[N_at, r] = m0
                c[N_end, r] = p
                r += ONE
            else:
                tc[T_batch, w] = k
                tc[T_at, w] = m0
                tc[T_end, w] = p
                framed = low
                if h & 0x1F == 0x05:
                    fr = w
                    framed = True
                w += ONE
                if h & 0x1F == 0x03:
                    break  # what follows a CLOSE is void
            if low and p != be:
                fault = TRAILING
                at = p
                break
        if fault:
            bad[ZERO, x] = k
            bad[ONE, x] = fault
            bad[TWO, x] = at
            bad[THREE, x] = m0
            x += ONE
        k += ONE
    st[0], st[1], st[2], st[3] = k, r, w, x
# --- end of scan ---


@njit(U(OUT, U, U), **OPTIONS)
def put_vle(out, q, v):
    """Writes the shortest form, and gives the position after it."""
    last = q + EIGHT
    while v > LOW_7 and q < last:
        out[q] = v & LOW_7 | HIGH_BIT
        v >>= SEVEN
        q += ONE
    out[q] = v
    return q + ONE


@njit(U(OUT, U, BYTES, U, U), **OPTIONS)
def put_bytes(out, q, source, p, n):
    """Writes ``source[p:p+n]``; up to 16 bytes behind it may change."""
    size = U(len(source))
    if n <= SIXTEEN and p + SIXTEEN <= size:
        copy16(out, q, source, p)
    elif n <= THIRTY_TWO and p + THIRTY_TWO <= size:
        copy16(out, q, source, p)
        copy16(out, q + SIXTEEN, source, p + SIXTEEN)
    else:
        copy(out, q, source, p, n)
    return q + n


@njit(types.void(OUT, U, U, U), **OPTIONS)
def put_length(out, begin, prefix, q):
    """Fills in the length before a batch."""
    n = q - begin - prefix
    for j in range(prefix):
        out[begin + j] = (n >> (j * EIGHT)) & BYTE


# --- generated: write (make gen) ---
WRITE = U(TABLE32, TABLE64, UINT64, U, BYTES, BYTES, BYTES, BYTES, BYTES, BYTES, U, U, U, U, OUT, INT32_OUT, UINT64, UINT64)


@kernel(WRITE)
def write(c, t, present, rows, key_suffix, timestamp_id, encoding_schema, source_zid, attachment, payload, reliable, prefix, limit, mask, out, ends, sns, st):
    """Rows ``st[0]`` up to ``rows`` as batches, one after the other, from ``out[0]`` on.

    ``limit`` bounds a batch without its ``prefix``. ``sns`` has the next sequence number of each
    priority, and counts up within ``mask``. ``ends[k]`` is where batch ``k`` ends. Stops when
    ``out`` or ``ends`` is full, or (``st[2]`` = 1) at a row that is too large for any batch.
    ``st``: next row, batches, whether too large. Gives the number of bytes.
    """
    i = st[0]
    q = ZERO
    k = ZERO
    begin = NONE
    lane = -1
    room = U(len(out)) - SIXTY_FOUR
    batches = U(len(ends))
    st[2] = ZERO
    while i < rows:
        pr = present[i]
        # More than all ids and numbers of a message and the head of a batch take.
        need = ROOM
        if pr & NB_key_suffix:
            need += U(c[N_key_suffix_size, i])
        if pr & NB_timestamp_id:
            need += U(c[N_timestamp_id_size, i])
        if pr & NB_encoding_schema:
            need += U(c[N_encoding_schema_size, i])
        if pr & NB_source_zid:
            need += U(c[N_source_zid_size, i])
        if pr & NB_attachment:
            need += U(c[N_attachment_size, i])
        if pr & NB_payload:
            need += U(c[N_payload_size, i])
        qos = c[N_qos, i] if pr & NB_qos else 5
        if need - ROOM > limit:
            st[2] = ONE
            break
        if q + need > room or k + TWO > batches:
            break
        undo = q
        same = begin != NONE and qos & 7 == lane
        if begin == NONE:
            begin = q
            q += prefix
        if not same:
            lane = qos & 7
            out[q] = 0x05 | (0x20 if reliable else 0) | (0x80 if lane != 5 else 0)
            q = put_vle(out, q + ONE, sns[lane])
            if lane != 5:
                out[q] = 0x31
                out[q + ONE] = lane
                q += TWO
        h = np.uint64(0x1d)  # PUSH
        if (pr & NB_qos and c[N_qos, i] != 5):
            h |= HIGH_BIT
        if pr & NB_key_suffix:
            h |= np.uint64(0x20)
        if pr & NB_key_mapping:
            h |= np.uint64(0x40)
        out[q] = h
        q += ONE
        v = U(c[N_key_scope, i])
        if v <= LOW_7:
            out[q] = v
            q += ONE
        else:
            q = put_vle(out, q, v)
        if pr & NB_key_suffix:
            n = U(c[N_key_suffix_size, i])
            v = n
            if v <= LOW_7:
                out[q] = v
                q += ONE
            else:
                q = put_vle(out, q, v)
            q = put_bytes(out, q, key_suffix, U(c[N_key_suffix, i]), n)
        if (pr & NB_qos and c[N_qos, i] != 5):
            out[q] = 0x21  # qos
            q += ONE
            v = U(c[N_qos, i])
            if v <= LOW_7:
                out[q] = v
                q += ONE
            else:
                q = put_vle(out, q, v)
        if (pr >> BITS_48) & BYTE == np.uint64(1):
            h = np.uint64(0x01)  # PUT
            if pr & NB_source_zid or pr & NB_attachment:
                h |= HIGH_BIT
            if pr & NB_timestamp:
                h |= np.uint64(0x20)
            if (pr & NB_encoding and (c[N_encoding, i] != 0 or pr & NB_encoding_schema)):
                h |= np.uint64(0x40)
            out[q] = h
            q += ONE
            if h & np.uint64(0x20):
                v = t[N_timestamp, i]
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                n = U(c[N_timestamp_id_size, i])
                v = n
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                q = put_bytes(out, q, timestamp_id, U(c[N_timestamp_id, i]), n)
            if h & np.uint64(0x40):
                odd = ONE if pr & NB_encoding_schema else ZERO
                q = put_vle(out, q, U(c[N_encoding, i]) << ONE | odd)
                if odd:
                    n = U(c[N_encoding_schema_size, i])
                    v = n
                    if v <= LOW_7:
                        out[q] = v
                        q += ONE
                    else:
                        q = put_vle(out, q, v)
                    q = put_bytes(out, q, encoding_schema, U(c[N_encoding_schema, i]), n)
            if pr & NB_source_zid:
                out[q] = 0x41 | (0x80 if pr & NB_attachment else 0)  # source_info
                q += ONE
                length_at = q
                q += ONE
                out[q] = (c[N_source_zid_size, i] - 1) << 4
                q += ONE
                n = U(c[N_source_zid_size, i])
                q = put_bytes(out, q, source_zid, U(c[N_source_zid, i]), n)
                v = U(c[N_source_eid, i]) & LOW_32
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                v = U(c[N_source_sn, i]) & LOW_32
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                out[length_at] = q - length_at - ONE
            if pr & NB_attachment:
                out[q] = 0x43  # attachment
                q += ONE
                n = U(c[N_attachment_size, i])
                v = n
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                q = put_bytes(out, q, attachment, U(c[N_attachment, i]), n)
            n = U(c[N_payload_size, i])
            v = n
            if v <= LOW_7:
                out[q] = v
                q += ONE
            else:
                q = put_vle(out, q, v)
            q = put_bytes(out, q, payload, U(c[N_payload, i]), n)
        elif (pr >> BITS_48) & BYTE == np.uint64(2):
            h = np.uint64(0x02)  # DEL
            if pr & NB_source_zid or pr & NB_attachment:
                h |= HIGH_BIT
            if pr & NB_timestamp:
                h |= np.uint64(0x20)
            out[q] = h
            q += ONE
            if h & np.uint64(0x20):
                v = t[N_timestamp, i]
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                n = U(c[N_timestamp_id_size, i])
                v = n
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                q = put_bytes(out, q, timestamp_id, U(c[N_timestamp_id, i]), n)
            if pr & NB_source_zid:
                out[q] = 0x41 | (0x80 if pr & NB_attachment else 0)  # source_info
                q += ONE
                length_at = q
                q += ONE
                out[q] = (c[N_source_zid_size, i] - 1) << 4
                q += ONE
                n = U(c[N_source_zid_size, i])
                q = put_bytes(out, q, source_zid, U(c[N_source_zid, i]), n)
                v = U(c[N_source_eid, i]) & LOW_32
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                v = U(c[N_source_sn, i]) & LOW_32
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                out[length_at] = q - length_at - ONE
            if pr & NB_attachment:
                out[q] = 0x42  # attachment
                q += ONE
                n = U(c[N_attachment_size, i])
                v = n
                if v <= LOW_7:
                    out[q] = v
                    q += ONE
                else:
                    q = put_vle(out, q, v)
                q = put_bytes(out, q, attachment, U(c[N_attachment, i]), n)
        if q - begin - prefix > limit:
            # It goes into a batch of its own, or is too large for one.
            q = undo
            lane = -1
            if undo == begin:
                begin = NONE
                st[2] = ONE
                break
            put_length(out, begin, prefix, q)
            ends[k] = q
            k += ONE
            begin = NONE
            continue
        if not same:
            sns[lane] = (sns[lane] + ONE) & mask
        i += ONE
        if qos & 0x10:
            # Express: nothing waits behind it.
            put_length(out, begin, prefix, q)
            ends[k] = q
            k += ONE
            begin = NONE
    if begin != NONE:
        put_length(out, begin, prefix, q)
        ends[k] = q
        k += ONE
    st[0] = i
    st[1] = k
    return q
# --- end of write ---


ALIKE = U(BYTES, U, INT32, BYTES, U, BYTES, BYTES, U, U, U, U, OUT, UINT64, UINT64)


@kernel(ALIKE)
def alike(head, size, offsets, payload, rows, before, after, prefix, limit, mask, batches, out, sns, st):
    """As ``write``, for rows of one lane that have the same ``size`` bytes of ``head`` before theirs.

    ``head`` has some more bytes behind it, so that it is copied without looking. ``before`` and
    ``after`` are what a FRAME has around its number, which is ``sns[0]``. At most so many
    ``batches`` are made.
    """
    i = st[0]
    q = ZERO
    k = ZERO
    begin = NONE
    room = U(len(out)) - SIXTY_FOUR
    around = U(len(before)), U(len(after))
    st[2] = ZERO
    while i < rows:
        p = U(offsets[i])
        n = U(offsets[i + ONE]) - p
        if size + n > limit:
            st[2] = ONE
            break
        if q + size + n + ROOM > room:
            break
        undo = q
        if begin == NONE:
            if k == batches:
                break
            begin = q
            q = put_bytes(out, q + prefix, before, ZERO, around[0])
            q = put_vle(out, q, sns[0])
            q = put_bytes(out, q, after, ZERO, around[1])
        q = put_bytes(out, q, head, ZERO, size)
        if n <= LOW_7:
            out[q] = n
            q += ONE
        else:
            q = put_vle(out, q, n)
        q = put_bytes(out, q, payload, p, n)
        if q - begin - prefix > limit:
            q = undo
            if undo == begin:
                begin = NONE
                st[2] = ONE
                break
            put_length(out, begin, prefix, q)
            sns[0] = (sns[0] + ONE) & mask
            k += ONE
            begin = NONE
            continue
        i += ONE
    if begin != NONE:
        put_length(out, begin, prefix, q)
        sns[0] = (sns[0] + ONE) & mask
        k += ONE
    st[0] = i
    st[1] = k
    return q
