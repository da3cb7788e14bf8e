/* rscan for C: loads a file of functions that rs.save wrote, and calls them.
 *
 * A function that fails returns NULL, or -1, and rscan_last_error() says why. Modules and results are freed by who got them.
 * One module may be used from many threads at once; calls that update a shared variable follow each other.
 */
#ifndef RSCAN_H
#define RSCAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rscan_dtype {
    RSCAN_BOOL, RSCAN_I8, RSCAN_I16, RSCAN_I32, RSCAN_I64, RSCAN_U8, RSCAN_U16, RSCAN_U32, RSCAN_U64, RSCAN_F32, RSCAN_F64
};

/* An array in row-major order. Extents and elements belong to somebody else. */
typedef struct rscan_array {
    int dtype;           /* one of enum rscan_dtype */
    size_t rank;
    const size_t *shape; /* `rank` extents */
    const void *data;    /* aligned for its dtype; a bool is one byte, 0 or 1 */
} rscan_array;

/* Memory for the elements of a result: dtype and extents are those that the result is to have. */
typedef struct rscan_buffer {
    int dtype;
    size_t rank;
    const size_t *shape;
    void *data;          /* aligned for its dtype, and in the memory of no argument and no other result */
} rscan_buffer;

typedef struct rscan_module rscan_module;   /* functions and their shared variables */
typedef struct rscan_results rscan_results; /* the arrays that a call gave */
typedef struct rscan_session rscan_session; /* a function that is given the rows of its sequences one by one */

/* Reads a file, or its bytes. */
rscan_module *rscan_load(const char *path);
rscan_module *rscan_load_bytes(const void *bytes, size_t length);
/* Writes the module, with the shared variables as they are now: the file is the old one or the new one, whole. 0 or -1. */
int rscan_save(const rscan_module *module, const char *path);
void rscan_free(rscan_module *module);

/* Number and names of the functions; the names live as long as the module. NULL beyond the last. */
size_t rscan_functions(const rscan_module *module);
const char *rscan_function_name(const rscan_module *module, size_t i);
/* What is in the module, for people: valid until this thread next asks for a text. */
const char *rscan_describe(const rscan_module *module);

/* Calls a function with `n` arrays, which are copied. The first call of a function compiles it. */
rscan_results *rscan_call(const rscan_module *module, const char *function, const rscan_array *arguments, size_t n);
size_t rscan_results_length(const rscan_results *results);
/* Result `i`, valid until the results are freed. 0, or -1 where there is none. */
int rscan_result(const rscan_results *results, size_t i, rscan_array *array);
void rscan_results_free(rscan_results *results);

/* Calls a function with `n` arrays where they lie, and writes its `m` results into memory of the caller's: each is copied once, from where the
 * function made it. bool arguments are copied, since they need not be 0 or 1; so are all where the function runs on a device. No argument is
 * written, or looked at after the call. 0, or -1, where no result is written. */
int rscan_call_into(const rscan_module *module, const char *function, const rscan_array *arguments, size_t n, const rscan_buffer *results,
                    size_t m);
/* What a function takes and gives, as JSON: {"name", "inputs": [{"name", "dtype": "float64", "shape": [3, "n0", null]}], "outputs": [the same],
 * "returns", "shared", "updates", "passes"}. An extent is a number where it is fixed, else a form in the extents of arguments ("2*n0+1"), or
 * null; "doc" and "default" stand where there are such. Valid until this thread next asks for a text. */
const char *rscan_signature(const rscan_module *module, const char *function);
/* The address of a function of numbers, to be cast to its type, `double (*)(double, double)`: its arguments, and its one result, are f64, f32 or
 * i64 scalars, and it updates nothing. It is called from any number of threads, until the module is freed. A call that fails gives NaN, or
 * INT64_MIN, and rscan_address_error says what was wrong in the last one that did (NULL where none did; valid as above). NULL where there is no
 * address: see rscan_last_error. */
void (*rscan_address(const rscan_module *module, const char *function))(void);
const char *rscan_address_error(const rscan_module *module, const char *function);

/* The value of a shared variable, as one result; and setting it to a copy of an array, 0 or -1. */
rscan_results *rscan_get(const rscan_module *module, const char *name);
int rscan_set(const rscan_module *module, const char *name, const rscan_array *value);

/* A session of a function: `n` arguments by name, which are what is no sequence, and the rows of sequences that have come already. Sessions are
 * closed by who opened them; steps of several threads follow each other. */
rscan_session *rscan_session_open(const rscan_module *module, const char *function, const char *const *names, const rscan_array *arguments,
                                  size_t n);
/* One step: given a row of each sequence, in order, the row of each result. Where it fails the session is as it was. */
rscan_results *rscan_session_step(rscan_session *session, const rscan_array *rows, size_t n);
/* The same with rows where they lie and memory of the caller's for the rows of results; dtypes and numbers of elements are compared. 0 or -1,
 * where no result is written and the session is as it was. */
int rscan_session_step_into(rscan_session *session, const rscan_array *rows, size_t n, const rscan_buffer *results, size_t m);
/* Up to so many steps, given as many rows of each sequence in one array: the rows of each result, fewer where there are no more steps. */
rscan_results *rscan_session_run(rscan_session *session, size_t steps, const rscan_array *rows, size_t n);
/* Writes the shared variables that the function updates, as a call with the rows so far would have left them. 0 or -1. */
int rscan_session_commit(const rscan_module *module, const char *function, const rscan_session *session);
/* Number of steps so far; 1 where there are no more, else 0, or -1. */
size_t rscan_session_length(const rscan_session *session);
int rscan_session_stopped(const rscan_session *session);
/* The states as bytes, one result of RSCAN_U8; and going to where they were taken, in any session of the same function, 0 or -1. */
rscan_results *rscan_session_snapshot(const rscan_session *session);
int rscan_session_restore(rscan_session *session, const void *bytes, size_t length);
void rscan_session_close(rscan_session *session);

/* What went wrong in the last call of this thread that failed, with the lines of the program that the function was made from, and its code,
 * "E0504". Valid until the next call that fails; an empty text where none has. */
const char *rscan_last_error(void);
const char *rscan_last_error_code(void);

#ifdef __cplusplus
}
#endif
#endif
