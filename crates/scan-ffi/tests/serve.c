/* serve MODULE jit|vm: calls `train` 3 times and `predict` once, prints the bits of the results, and tries what must be refused. */
#include "rscan.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, rscan_last_error());
    return 1;
}

static void show(const char *name, const rscan_results *results) {
    rscan_array array;
    for (size_t i = 0; rscan_result(results, i, &array) == 0; i++) {
        size_t n = 1;
        for (size_t k = 0; k < array.rank; k++) n *= array.shape[k];
        printf("%s", name);
        for (size_t k = 0; k < n; k++) {
            uint64_t bits;
            memcpy(&bits, (const double *)array.data + k, sizeof bits);
            printf(" %016llx", (unsigned long long)bits);
        }
        printf("\n");
    }
}

/* Three rows of x in one session, three in another that goes on from the first one's bytes: the last row is that of `predict`. */
static int stepped(const rscan_module *module, double *x) {
    size_t row[1] = {2};
    rscan_results *made = NULL, *kept;
    rscan_array bytes;
    rscan_session *one = rscan_session_open(module, "predict", NULL, NULL, 0), *two = rscan_session_open(module, "predict", NULL, NULL, 0);
    if (!one || !two) return failed("open");
    for (int t = 0; t < 6; t++) {
        rscan_array given = {RSCAN_F64, 1, row, x + 2 * t};
        rscan_results_free(made);
        made = rscan_session_step(t < 3 ? one : two, &given, 1);
        if (!made) return failed("step");
        if (t != 2) continue;
        kept = rscan_session_snapshot(one);
        if (!kept || rscan_result(kept, 0, &bytes) != 0) return failed("snapshot");
        if (rscan_session_restore(two, bytes.data, bytes.shape[0] - 1) != -1) return failed("half of the bytes");
        if (rscan_session_restore(two, bytes.data, bytes.shape[0]) != 0) return failed("restore");
        rscan_results_free(kept);
    }
    show("session", made);
    rscan_results_free(made);
    if (rscan_session_length(two) != 6 || rscan_session_stopped(two) != 0) return failed("length");
    if (rscan_session_step(two, NULL, 0) || strcmp(rscan_last_error_code(), "E0532")) return failed("a step without its row");
    if (rscan_session_step(NULL, NULL, 0) || rscan_session_open(NULL, "predict", NULL, NULL, 0)) return failed("NULL");
    rscan_session_close(one);
    rscan_session_close(two);
    return 0;
}

/* `predict` into memory of ours: the same bits, and nothing written where something does not fit. */
static int into(const rscan_module *module, double *x) {
    size_t rows[2] = {6, 2}, row[1] = {2}, three[1] = {3};
    double last[3] = {7, 7, 7};
    rscan_array given = {RSCAN_F64, 2, rows, x};
    rscan_buffer place = {RSCAN_F64, 1, row, last};
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != 0) return failed("call_into");
    uint64_t bits[2];
    memcpy(bits, last, sizeof bits);
    printf("into %016llx %016llx\n", (unsigned long long)bits[0], (unsigned long long)bits[1]);
    last[0] = last[1] = 7;
    place.shape = three;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1 || strcmp(rscan_last_error_code(), "E0515")) return failed("extents");
    place.shape = row, place.dtype = RSCAN_F32;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1 || strcmp(rscan_last_error_code(), "E0515")) return failed("a dtype");
    place.dtype = 99;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1) return failed("no such dtype");
    place.dtype = RSCAN_F64, place.data = x;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1 || !strstr(rscan_last_error(), "lies in")) return failed("overlap");
    place.data = (char *)last + 1;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1 || !strstr(rscan_last_error(), "aligned")) return failed("alignment");
    place.data = NULL;
    if (rscan_call_into(module, "predict", &given, 1, &place, 1) != -1) return failed("NULL for a result");
    place.data = last;
    if (rscan_call_into(module, "predict", &given, 1, NULL, 0) != -1 || rscan_call_into(module, "predict", NULL, 0, &place, 1) != -1) return failed("none");
    if (rscan_call_into(NULL, "predict", &given, 1, &place, 1) != -1 || rscan_call_into(module, NULL, &given, 1, &place, 1) != -1) return failed("NULL");
    for (int i = 0; i < 3; i++)
        if (last[i] != 7) return failed("a result of a call that failed");
    /* bytes that count as true, and bools of ours */
    unsigned char flags[3] = {0, 1, 200}, negated[3] = {9, 9, 9};
    rscan_array asked = {RSCAN_BOOL, 1, three, flags};
    rscan_buffer answer = {RSCAN_BOOL, 1, three, negated};
    if (rscan_call_into(module, "negate", &asked, 1, &answer, 1) != 0) return failed("negate");
    if (negated[0] != 1 || negated[1] != 0 || negated[2] != 0) return failed("bools");
    return 0;
}

/* Steps in memory of ours, several at once, and what they leave of `w`. */
static int session(const rscan_module *module, double *x) {
    size_t rows[2] = {5, 2}, row[1] = {2}, one[1] = {1};
    double h[2] = {7, 7};
    rscan_array given = {RSCAN_F64, 1, row, x}, rest = {RSCAN_F64, 2, rows, x + 2}, found;
    rscan_buffer place = {RSCAN_F64, 1, row, h}, small = {RSCAN_F64, 1, one, h};
    rscan_session *s = rscan_session_open(module, "predict", NULL, NULL, 0), *counted = rscan_session_open(module, "count", NULL, NULL, 0);
    if (!s || !counted) return failed("open");
    if (rscan_session_step_into(s, &given, 1, &small, 1) != -1 || rscan_session_step_into(s, NULL, 0, &place, 1) != -1) return failed("misfits");
    if (rscan_session_step_into(NULL, &given, 1, &place, 1) != -1 || h[0] != 7 || rscan_session_length(s) != 0) return failed("as it was");
    if (rscan_session_step_into(s, &given, 1, &place, 1) != 0) return failed("step_into");
    given.data = x + 2;
    if (rscan_session_step_into(s, &given, 1, &place, 1) != 0 || rscan_session_length(s) != 2) return failed("a second one");
    rows[0] = 4, rest.data = x + 4;
    rscan_results *made = rscan_session_run(s, 4, &rest, 1);
    if (!made || rscan_result(made, 0, &found) != 0 || found.shape[0] != 4) return failed("run");
    memcpy(h, (const double *)found.data + 6, sizeof h);
    uint64_t bits[2];
    memcpy(bits, h, sizeof bits);
    printf("run %016llx %016llx\n", (unsigned long long)bits[0], (unsigned long long)bits[1]);
    if (rscan_session_run(s, 3, &rest, 1) || rscan_session_run(NULL, 4, &rest, 1)) return failed("other numbers of rows");
    if (rscan_session_commit(module, "count", s) != -1 || rscan_session_commit(module, "count", NULL) != -1) return failed("another's session");
    rscan_array number = {RSCAN_F64, 0, NULL, x};
    for (int t = 0; t < 3; t++) rscan_results_free(rscan_session_step(counted, &number, 1));
    if (rscan_session_commit(module, "count", counted) != 0) return failed("commit");
    rscan_results *sum = rscan_get(module, "total");
    if (!sum || rscan_result(sum, 0, &found) != 0 || ((const double *)found.data)[0] != 3 * x[0]) return failed("what was committed");
    rscan_results_free(sum);
    rscan_results_free(made);
    rscan_session_close(s);
    rscan_session_close(counted);
    return 0;
}

/* A function of numbers by its address. */
static int address(const rscan_module *module) {
    double (*f)(double, int64_t) = (double (*)(double, int64_t))rscan_address(module, "pick");
    if (!f) return failed("address");
    if (f(2.5, 3) != 7.5 || rscan_address_error(module, "pick")) return failed("pick");
    double wrong = f(2.5, 4);
    if (wrong == wrong || !rscan_address_error(module, "pick")) return failed("an index outside is NaN");
    if (f(2.5, 1) != 2.5) return failed("pick, again");
    if (rscan_address(module, "train") || strcmp(rscan_last_error_code(), "E0541")) return failed("no numbers");
    if (rscan_address(module, "nothing") || rscan_address(NULL, "pick") || rscan_address(module, NULL)) return failed("NULL");
    const char *text = rscan_signature(module, "predict");
    if (!text || !strstr(text, "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float64\",\"shape\":[\"n0\",")) return failed("signature");
    if (rscan_signature(module, "nothing") || rscan_signature(NULL, "pick")) return failed("no signature");
    return 0;
}

int main(int argc, char **argv) {
    rscan_module *module = argc == 3 ? rscan_load(argv[1]) : NULL;
    if (!module) return failed("load");
    for (size_t i = 0; i < rscan_functions(module); i++) printf("%s\n", rscan_function_name(module, i));
    if (!strstr(rscan_describe(module), "loop")) return failed("describe");
    size_t rows[2] = {6, 2}, row[1] = {2};
    double x[12], y[2] = {0.25, -0.5}, w[2] = {0.5, 0.25};
    for (int i = 0; i < 12; i++) x[i] = (i - 5) / 8.0;
    rscan_array given[2] = {{RSCAN_F64, 2, rows, x}, {RSCAN_F64, 1, row, y}}, weights = {RSCAN_F64, 1, row, w};
    if (rscan_set(module, "w", &weights) != 0) return failed("set");
    for (int i = 0; i < 3; i++) {
        rscan_results *loss = rscan_call(module, "train", given, 2);
        if (!loss) return failed("train");
        show("train", loss);
        rscan_results_free(loss);
    }
    rscan_results *found = rscan_call(module, "predict", given, 1), *now = rscan_get(module, "w");
    if (!found || !now) return failed("predict");
    show("predict", found);
    show("w", now);
    if (stepped(module, x) || into(module, x) || session(module, x)) return 1;
    if (strcmp(argv[2], "jit") == 0 && address(module)) return 1;
    rscan_results_free(found);
    rscan_results_free(now);
    if (rscan_call(module, "predict", given, 2) || strcmp(rscan_last_error_code(), "E0504")) return failed("too many arguments");
    if (rscan_call(module, "nothing", given, 1) || strcmp(rscan_last_error_code(), "E0925")) return failed("no such function");
    if (rscan_call(NULL, "predict", given, 1) || rscan_call(module, NULL, given, 1)) return failed("NULL");
    weights.dtype = 99;
    if (rscan_set(module, "w", &weights) != -1) return failed("no such dtype");
    if (rscan_load("/nowhere/at/all") || rscan_load_bytes("abc", 3)) return failed("no such file");
    rscan_free(module);
    return 0;
}
