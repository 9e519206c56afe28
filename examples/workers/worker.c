/* A worker for elementwise ops on bool, int32 and float32. Build: cc -O1 worker.c -lm -o worker */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory that lives as long as one request. */
typedef struct Block { struct Block *next; } Block;
static Block *blocks;
static void *take(size_t size) {
    Block *b = calloc(1, sizeof(Block) + size + 1);
    if (!b) { fprintf(stderr, "out of memory\n"); exit(1); }
    b->next = blocks;
    blocks = b;
    return b + 1;
}
static void release(void) {
    while (blocks) { Block *b = blocks; blocks = b->next; free(b); }
}

/* JSON: kind is one of { [ " 0 t f n; members and items hang in a list. The line is read in place. */
typedef struct Json { char kind, *key, *text; struct Json *first, *next; } Json;
static char *p;
static void space(void) { while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') p++; }
static char *string(void) {
    char *start = ++p, *to = start;
    while (*p && *p != '"') {
        if (*p == '\\' && p[1] == 'u') { p += 6; *to++ = '?'; } /* nothing that is read here has one */
        else if (*p == '\\') { *to++ = p[1] == 'n' ? '\n' : p[1] == 't' ? '\t' : p[1]; p += 2; }
        else *to++ = *p++;
    }
    if (*p) p++;
    *to = 0;
    return start;
}
static Json *value(void) {
    Json *v = take(sizeof *v), **last = &v->first;
    space();
    v->kind = *p;
    if (*p == '"') { v->text = string(); return v; }
    if (*p == '{' || *p == '[') {
        char end = *p == '{' ? '}' : ']';
        for (p++, space(); *p && *p != end; space()) {
            char *key = NULL;
            if (end == '}') { key = string(); space(); p++; }
            *last = value();
            (*last)->key = key;
            last = &(*last)->next;
            space();
            if (*p == ',') { p++; space(); }
        }
        if (*p) p++;
        return v;
    }
    v->text = p;
    if (strchr("tfn", *p)) while (*p >= 'a' && *p <= 'z') p++;
    else { v->kind = '0'; strtod(p, &p); if (p == v->text && *p) p++; }
    return v;
}
static Json *get(Json *v, const char *key) {
    for (v = v ? v->first : NULL; v && strcmp(v->key, key); v = v->next) {}
    return v;
}
static const char *text(Json *v) { return v && v->kind == '"' ? v->text : ""; }
static long number(Json *v) { return v && v->text ? strtol(v->text, NULL, 10) : 0; }
static int length(Json *v) {
    int n = 0;
    for (v = v->first; v; v = v->next) n++;
    return n;
}

/* An array: 32 bits for each element, also of a bool. */
typedef union { float f; int32_t i; uint32_t u; } Word;
typedef struct { const char *dtype; int rank; long shape[16], size; Word *at; } Array;

static const char *HELLO =
    "{\"id\":%ld,\"protocol\":1,\"name\":\"c-example\",\"version\":\"1\",\"ops\":[\"PARAM\",\"CONST\","
    "\"TUPLE\",\"ADD\",\"SUB\",\"MUL\",\"NEG\",\"MAX\",\"RECIP\",\"SQRT\",\"TRUNC\",\"CMPLT\",\"CMPNE\","
    "\"AND\",\"OR\",\"XOR\",\"WHERE\",\"IDIV\",\"MOD\",\"SHL\",\"SHR\"],"
    "\"dtypes\":[\"bool\",\"int32\",\"float32\"]}\n";

static Word floating(const char *op, Word a, Word b) {
    Word r = {.u = 0};
    if (!strcmp(op, "ADD")) r.f = a.f + b.f;
    else if (!strcmp(op, "SUB")) r.f = a.f - b.f;
    else if (!strcmp(op, "MUL")) r.f = a.f * b.f;
    else if (!strcmp(op, "NEG")) r.f = -a.f;
    else if (!strcmp(op, "MAX")) r.f = a.f > b.f || a.f != a.f ? a.f : b.f;
    else if (!strcmp(op, "RECIP")) r.f = 1.0f / a.f;
    else if (!strcmp(op, "SQRT")) r.f = sqrtf(a.f);
    else if (!strcmp(op, "TRUNC")) r.f = truncf(a.f);
    else if (!strcmp(op, "CMPLT")) r.u = a.f < b.f;
    else if (!strcmp(op, "CMPNE")) r.u = a.f != b.f;
    return r;
}
/* The quotient rounded down; of a division by zero, and of the lowest value by -1, any will do. */
static Word divided(Word a, Word b, int want_rest) {
    int64_t x = a.i, y = b.i ? b.i : 1, q = x / y;
    if (x % y && (x < 0) != (y < 0)) q--;
    return (Word){.u = (uint32_t)(want_rest ? x - q * y : q)};
}
/* On bits: a sum wraps, and is cut to one bit for a bool below. */
static Word integer(const char *op, Word a, Word b) {
    Word r = {.u = a.u};
    if (!strcmp(op, "ADD")) r.u = a.u + b.u;
    else if (!strcmp(op, "SUB")) r.u = a.u - b.u;
    else if (!strcmp(op, "MUL")) r.u = a.u * b.u;
    else if (!strcmp(op, "NEG")) r.u = 0 - a.u;
    else if (!strcmp(op, "MAX")) r.i = a.i > b.i ? a.i : b.i;
    else if (!strcmp(op, "CMPLT")) r.u = a.i < b.i;
    else if (!strcmp(op, "CMPNE")) r.u = a.u != b.u;
    else if (!strcmp(op, "AND")) r.u = a.u & b.u;
    else if (!strcmp(op, "OR")) r.u = a.u | b.u;
    else if (!strcmp(op, "XOR")) r.u = a.u ^ b.u;
    else if (!strcmp(op, "IDIV")) r = divided(a, b, 0);
    else if (!strcmp(op, "MOD")) r = divided(a, b, 1);
    else if (!strcmp(op, "SHL")) r.u = a.u << (b.u & 31);
    else if (!strcmp(op, "SHR")) r.i = a.i >> (b.u & 31);
    return r;
}
static Word applied(const char *op, const char *dtype, Word a, Word b, Word c) {
    if (!strcmp(op, "WHERE")) return a.u ? b : c;
    if (!strcmp(dtype, "float32")) return floating(op, a, b);
    if (!strcmp(dtype, "bool") && !strcmp(op, "ADD")) return integer("OR", a, b);
    return integer(op, a, b);
}
/* The element of an operand that belongs to element k of the result: axes of size 1 repeat. */
static Word operand(const Array *a, const Array *result, long k) {
    long place = 0, step = 1;
    for (int axis = a->rank - 1, to = result->rank - 1; axis >= 0; axis--, to--) {
        if (a->shape[axis] > 1) place += step * (k % result->shape[to]);
        step *= a->shape[axis];
        k /= result->shape[to];
    }
    return a->at[place];
}

static unsigned digit(char c) { return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10); }
static void from_hex(Array *a, const char *hex) {
    int bytes = strcmp(a->dtype, "bool") ? 4 : 1;
    for (long k = 0; k < a->size; k++)
        for (int b = 0; b < bytes; b++, hex += 2)
            a->at[k].u |= (digit(hex[0]) << 4 | digit(hex[1])) << (8 * b);
}
static void to_hex(const Array *a) {
    int bytes = strcmp(a->dtype, "bool") ? 4 : 1;
    for (long k = 0; k < a->size; k++)
        for (int b = 0; b < bytes; b++) printf("%02x", (unsigned)(a->at[k].u >> (8 * b) & 255));
}
/* A constant: floats are strings as printed by %a, with inf and nan:0x7fc00000; the rest as in JSON. */
static Word constant(Json *v, const char *dtype) {
    Word w = {.u = v->kind == 't'};
    if (!strcmp(dtype, "int32")) w.i = (int32_t)number(v);
    if (!strcmp(dtype, "float32")) w.f = (float)strtod(v->text, NULL);
    if (!strncmp(v->text, "nan:", 4)) w.u = (uint32_t)strtoul(v->text + 4, NULL, 16);
    return w;
}
static Array shaped(Json *u) {
    Array a = {.dtype = text(get(u, "dtype")), .size = 1};
    for (Json *n = get(u, "shape")->first; n && a.rank < 16; n = n->next)
        a.size *= a.shape[a.rank++] = number(n);
    a.at = take(sizeof(Word) * (size_t)a.size);
    return a;
}

/* Run a program on one set of inputs and print its outputs. */
static void run(Json *nodes, Json *outputs, Json *inputs) {
    Array *done = take(sizeof(Array) * (size_t)length(nodes)), *r = done;
    for (Json *u = nodes->first; u; u = u->next, r++) {
        const char *op = text(get(u, "op"));
        const Array *src[3] = {NULL, NULL, NULL};
        int count = 0;
        if (!strcmp(text(get(u, "dtype")), "index")) continue; /* only shapes are made of these */
        *r = shaped(u);
        if (!strcmp(op, "PARAM")) {
            char slot[32];
            snprintf(slot, sizeof slot, "%ld", number(get(get(u, "arg"), "slot")));
            from_hex(r, text(get(get(inputs, slot), "data")));
            continue;
        }
        if (!strcmp(op, "CONST")) r->at[0] = constant(get(get(u, "arg"), "value"), r->dtype);
        if (!strcmp(op, "CONST") || !strcmp(op, "TUPLE")) continue;
        for (Json *s = get(u, "src")->first; s && count < 3; s = s->next) src[count++] = done + number(s);
        for (long k = 0; k < r->size; k++) {
            Word w[3] = {{.u = 0}, {.u = 0}, {.u = 0}};
            for (int s = 0; s < count; s++) w[s] = operand(src[s], r, k);
            r->at[k] = applied(op, src[0]->dtype, w[0], w[1], w[2]);
        }
    }
    printf("[");
    for (Json *o = outputs->first; o; o = o->next) {
        const Array *a = done + number(get(o, "node"));
        printf("{\"dtype\":\"%s\",\"shape\":[", a->dtype);
        for (int axis = 0; axis < a->rank; axis++) printf("%s%ld", axis ? "," : "", a->shape[axis]);
        printf("],\"data\":\"");
        to_hex(a);
        printf("\"}%s", o->next ? "," : "");
    }
    printf("]");
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    for (; getline(&line, &room, stdin) > 0; release()) {
        p = line;
        Json *q = value();
        const char *what = text(get(q, "do"));
        long id = number(get(q, "id"));
        if (!strcmp(what, "hello")) printf(HELLO, id);
        else if (!strcmp(what, "run")) {
            printf("{\"id\":%ld,\"outputs\":[", id);
            for (Json *i = get(q, "inputs")->first; i; i = i->next) {
                run(get(get(q, "program"), "nodes"), get(q, "outputs"), i);
                if (i->next) printf(",");
            }
            printf("]}\n");
        } else
            printf("{\"id\":%ld,\"error\":{\"class\":\"unsupported\",\"message\":\"no such request\"}}\n", id);
        fflush(stdout);
    }
    free(line);
    return 0;
}
