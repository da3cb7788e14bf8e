/* serve MODULE: calls `train` 3 times and `predict` once, prints the bits of the results, and tries what must be refused. */
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

int main(int argc, char **argv) {
    rscan_module *module = argc == 2 ? rscan_load(argv[1]) : NULL;
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
    if (stepped(module, x)) return 1;
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
