/* The scan in C: what a stream of publications consists of, read into the columns of
 * zenwire.columns.layout. This is the yardstick for the kernel, so it does the same work: every
 * byte is checked against its bound before it is read, integers against their width, ids against
 * zero, suffixes for UTF-8. A message that is anything else than a sound FRAME or PUSH of the
 * known extensions ends the scan with OTHER.
 *
 * The numbers of slots, bits, ids and limits are in layout.h, which c_scan.py makes from the
 * definitions: N_ are columns of network messages, T_ those of transport messages, and HAS_N_,
 * HAS_T_ their presence bits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "layout.h"

#define HIGH_BITS 0x8080808080808080u
#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { OK, OTHER };

struct table {
    int32_t *c;        /* c[slot * stride + row] */
    uint64_t *t;       /* t[slot * stride + row] */
    uint64_t *present; /* present[row] */
    int64_t stride;
    int64_t rows;
};

static inline uint64_t load8(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

struct integer {
    uint64_t value;
    const uint8_t *end; /* NULL if the bytes end before it does */
};

/* An integer of any length. It is rare: kept out of the way, and returned in registers. */
static __attribute__((noinline)) struct integer long_integer(const uint8_t *p, const uint8_t *end)
{
    if (end - p >= 9) {
        /* Drop what is after the first byte without a high bit, then close the gaps that the
         * high bits leave, pair by pair. */
        uint64_t x = load8(p), stop = ~x & HIGH_BITS;
        bool whole = stop == 0;
        int n = 9;
        if (!whole) {
            n = (__builtin_ctzll(stop) >> 3) + 1;
            x &= stop ^ (stop - 1);
        }
        x = (x & 0x007F007F007F007F) | ((x & 0x7F007F007F007F00) >> 1);
        x = (x & 0x00003FFF00003FFF) | ((x & 0x3FFF00003FFF0000) >> 2);
        x = (x & 0x000000000FFFFFFF) | ((x & 0x0FFFFFFF00000000) >> 4);
        return (struct integer){whole ? x | (uint64_t)p[8] << 56 : x, p + n};
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        if (p >= end)
            return (struct integer){0, NULL};
        uint64_t byte = *p++;
        v |= (byte & 127) << shift;
        if (byte < 128)
            return (struct integer){v, p};
    }
    if (p >= end)
        return (struct integer){0, NULL};
    return (struct integer){v | (uint64_t)*p << 56, p + 1};
}

static inline const uint8_t *integer(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    if (p >= end)
        return NULL;
    if (*p < 128) {
        *value = *p;
        return p + 1;
    }
    if (end - p >= 2 && p[1] < 128) {
        *value = (*p & 127) | p[1] << 7;
        return p + 2;
    }
    struct integer found = long_integer(p, end);
    *value = found.value;
    return found.end;
}

/* A length that fits into what is left. */
static inline const uint8_t *length(const uint8_t *p, const uint8_t *end, uint64_t limit,
                                    uint64_t *n)
{
    p = integer(p, end, n);
    return p && *n <= limit && *n <= (uint64_t)(end - p) ? p : NULL;
}

/* Eight bytes at once; the last eight may overlap those before them, or go on up to the bound. */
static inline bool is_ascii(const uint8_t *p, uint64_t n, const uint8_t *bound)
{
    if (n >= 8) {
        const uint8_t *last = p + n - 8;
        uint64_t x = load8(last);
        for (; p < last; p += 8)
            x |= load8(p);
        return !(x & HIGH_BITS);
    }
    if (n == 0 || bound - p < 8)
        return n == 0;
    return !(load8(p) & HIGH_BITS >> (64 - 8 * n));
}

static bool is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (end - p >= 8 && !(load8(p) & HIGH_BITS)) {
            p += 8;
            continue;
        }
        uint8_t c = *p++;
        if (c < 0x80)
            continue;
        if (c < 0xC2 || c > 0xF4)
            return false;
        int more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
        if (end - p < more)
            return false;
        uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
        uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        if (*p < low || *p > high)
            return false;
        for (int i = 1; i < more; i++)
            if ((p[i] & 0xC0) != 0x80)
                return false;
        p += more;
    }
    return true;
}

#define SPAN(slot, start, n)                                                                      \
    (c[(slot) * stride] = (int32_t)((start) - b), c[((slot) + 1) * stride] = (int32_t)(n))

/* A PUT or DEL after its header; gives its end, or NULL for what is not read here. */
static ALWAYS_INLINE const uint8_t *body(const uint8_t *b, const uint8_t *p, const uint8_t *end,
                                         uint8_t header, bool put, int32_t *c, uint64_t *t,
                                         int64_t stride, uint64_t *present)
{
    uint64_t v, n, pr = *present | (uint64_t)(put ? PUT : DEL) << BODY_SHIFT;
    if (header & PUT_T) {
        if (!(p = integer(p, end, &v)))
            return NULL;
        t[N_TIMESTAMP * stride] = v;
        if (!(p = length(p, end, ZID_MAX, &n)) || n == 0 || p[n - 1] == 0)
            return NULL;
        SPAN(N_TIMESTAMP_ID, p, n);
        p += n;
        pr |= HAS_N_TIMESTAMP | HAS_N_TIMESTAMP_ID;
    }
    if (put && header & PUT_E) {
        if (!(p = integer(p, end, &v)) || v > ENCODING_MAX)
            return NULL;
        c[N_ENCODING * stride] = (int32_t)(v >> 1);
        pr |= HAS_N_ENCODING;
        if (v & 1) {
            if (!(p = length(p, end, SCHEMA_MAX, &n)))
                return NULL;
            SPAN(N_ENCODING_SCHEMA, p, n);
            p += n;
            pr |= HAS_N_ENCODING_SCHEMA;
        }
    }
    uint8_t more = header & Z_FLAG;
    for (int left = EXTENSIONS_MAX; more; left--) {
        if (p >= end || left == 0)
            return NULL;
        uint8_t ext = *p & (uint8_t)~Z_FLAG;
        more = *p++ & Z_FLAG;
        if (ext == EXT_PUT_SOURCE_INFO) {
            if (!(p = length(p, end, EXTENSION_BODY_MAX, &n)) || n == 0)
                return NULL;
            const uint8_t *stop = p + n;
            n = (*p++ >> 4) + 1;
            if (n > (uint64_t)(stop - p) || p[n - 1] == 0)
                return NULL;
            SPAN(N_SOURCE_ZID, p, n);
            p += n;
            if (!(p = integer(p, stop, &v)) || v > UINT32_MAX)
                return NULL;
            c[N_SOURCE_EID * stride] = (int32_t)v;
            if (!(p = integer(p, stop, &v)) || v > UINT32_MAX || p != stop)
                return NULL;
            c[N_SOURCE_SN * stride] = (int32_t)v;
            pr |= HAS_N_SOURCE_ZID | HAS_N_SOURCE_EID | HAS_N_SOURCE_SN;
        } else if (ext == (put ? EXT_PUT_ATTACHMENT : EXT_DEL_ATTACHMENT)) {
            if (!(p = length(p, end, EXTENSION_BODY_MAX, &n)))
                return NULL;
            SPAN(N_ATTACHMENT, p, n);
            p += n;
            pr |= HAS_N_ATTACHMENT;
        } else {
            return NULL;
        }
    }
    if (put) {
        if (!(p = length(p, end, PAYLOAD_MAX, &n)))
            return NULL;
        SPAN(N_PAYLOAD, p, n);
        p += n;
        pr |= HAS_N_PAYLOAD;
    }
    *present = pr;
    return p;
}

/* One PUSH from its header on, into the row that c and t point at. */
static inline const uint8_t *push(const uint8_t *b, const uint8_t *p, const uint8_t *end,
                                  int32_t *c, uint64_t *t, int64_t stride, uint64_t *present)
{
    uint64_t v, n, pr = (uint64_t)PUSH << MESSAGE_SHIFT | HAS_N_KEY_SCOPE;
    uint8_t header = *p++;

    if (!(p = integer(p, end, &v)) || v > UINT16_MAX)
        return NULL;
    c[N_KEY_SCOPE * stride] = (int32_t)v;
    if (header & PUSH_N) {
        if (!(p = length(p, end, KEY_SUFFIX_MAX, &n)) || (!is_ascii(p, n, end) && !is_utf8(p, p + n)))
            return NULL;
        SPAN(N_KEY_SUFFIX, p, n);
        p += n;
        pr |= HAS_N_KEY_SUFFIX;
    }
    if (header & PUSH_M)
        pr |= HAS_N_KEY_MAPPING;
    uint8_t more = header & Z_FLAG;
    for (int left = EXTENSIONS_MAX; more; left--) {
        if (p >= end || left == 0)
            return NULL;
        uint8_t ext = *p++;
        more = ext & Z_FLAG;
        if ((ext & ~Z_FLAG) != EXT_PUSH_QOS || !(p = integer(p, end, &v)))
            return NULL;
        c[N_QOS * stride] = (int32_t)(v & QOS_MASK);
        pr |= HAS_N_QOS;
    }
    if (p >= end)
        return NULL;
    c[N_BODY_AT * stride] = (int32_t)(p - b);
    *present = pr;
    header = *p++;
    if ((header & ID_MASK) == PUT)
        return body(b, p, end, header, true, c, t, stride, present);
    if ((header & ID_MASK) == DEL)
        return body(b, p, end, header, false, c, t, stride, present);
    return NULL;
}

static inline const uint8_t *frame(const uint8_t *p, const uint8_t *end, int32_t *c,
                                   int64_t stride, uint64_t *present)
{
    uint64_t v, pr = (uint64_t)FRAME << MESSAGE_SHIFT | HAS_T_SN;
    uint8_t header = *p++;

    if (header & FRAME_R)
        pr |= HAS_T_RELIABLE;
    if (!(p = integer(p, end, &v)) || v > UINT32_MAX)
        return NULL;
    c[T_SN * stride] = (int32_t)v;
    uint8_t more = header & Z_FLAG;
    for (int left = EXTENSIONS_MAX; more; left--) {
        if (p >= end || left == 0)
            return NULL;
        uint8_t ext = *p++;
        more = ext & Z_FLAG;
        if ((ext & ~Z_FLAG) != EXT_FRAME_PRIORITY || !(p = integer(p, end, &v)))
            return NULL;
        c[T_PRIORITY * stride] = (int32_t)(v & PRIORITY_MASK);
        pr |= HAS_T_PRIORITY;
    }
    *present = pr;
    return p;
}

/* Rows of the batches starts[k]..ends[k] from batch state[0] on, until a batch might not fit.
 * state: next batch, rows, transport rows. */
int scan(const uint8_t *b, const int32_t *starts, const int32_t *ends, int64_t batches,
         const struct table *network, const struct table *transport, int64_t *state)
{
    const struct table net = *network, tra = *transport;
    int64_t k = state[0], r = state[1], w = state[2];
    int status = OK;

    for (; k < batches; k++) {
        const uint8_t *p = b + starts[k], *end = b + ends[k];
        int64_t room = end - p + 1; /* no message is shorter than a byte */
        if (r + room > net.rows || w + room > tra.rows)
            break;
        int32_t in_frame = -1;
        while (p < end) {
            const uint8_t *start = p;
            uint8_t id = *p & ID_MASK;
            uint64_t present;
            if (id == PUSH && in_frame >= 0) {
                int32_t *c = net.c + r;
                p = push(b, p, end, c, net.t + r, net.stride, &present);
                if (!p)
                    goto other;
                c[N_FRAME * net.stride] = in_frame;
                c[N_AT * net.stride] = (int32_t)(start - b);
                c[N_END * net.stride] = (int32_t)(p - b);
                net.present[r++] = present;
            } else if (id == FRAME) {
                int32_t *c = tra.c + w;
                p = frame(p, end, c, tra.stride, &present);
                if (!p)
                    goto other;
                c[T_BATCH * tra.stride] = (int32_t)k;
                c[T_AT * tra.stride] = (int32_t)(start - b);
                c[T_END * tra.stride] = (int32_t)(p - b);
                in_frame = (int32_t)w;
                tra.present[w++] = present;
            } else {
                goto other;
            }
        }
    }
    goto done;
other:
    status = OTHER;
done:
    state[0] = k;
    state[1] = r;
    state[2] = w;
    return status;
}

/* Where the whole batches of a stream are; gives how many. state: the rest starts here. */
int64_t split(const uint8_t *b, int64_t size, int32_t *starts, int32_t *ends, int64_t most,
              int64_t *state)
{
    int64_t p = state[0], k = 0;
    while (k < most && size - p >= 2) {
        int64_t n = b[p] | b[p + 1] << 8;
        if (n > size - p - 2)
            break;
        starts[k] = (int32_t)(p + 2);
        ends[k] = (int32_t)(p + 2 + n);
        p += 2 + n;
        k++;
    }
    state[0] = p;
    return k;
}
