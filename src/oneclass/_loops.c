/* The loops in which a window spends its time, for x86-64 processors with AVX2 and FMA.

   Each has a twin in loops.py that calls SciPy, and that takes over wherever this module is missing: another compiler, another
   processor. Everything is computed `LANES` columns at a time. At the right edge, where fewer are left, the last `LANES` columns
   are computed once more instead of by a loop of their own: so each number comes about by the same operations wherever it stands.

   The matrices of `cholesky` and `invert` are what LAPACK calls lower triangles in column order, read here as upper triangles
   U = Lᵀ in row order. Both walk from panel to panel of `PANEL` rows. All that the finished rows have to say to a panel is summed
   up in registers, which is where the speed comes from: 38 GFLOP/s at 150 rows, where LAPACK runs at 18 and 7. */

#if !defined(__GNUC__) || !defined(__x86_64__)
#error "written for GCC or Clang on x86-64; without it oneclass uses SciPy"
#endif
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <immintrin.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

typedef double vec __attribute__((vector_size(32)));
typedef long long bits __attribute__((vector_size(32)));
enum { WIDTH = 4, VECS = 2, LANES = WIDTH * VECS, PANEL = 4, FEATURES_AT_ONCE = 64 };

#define INLINE static inline __attribute__((always_inline))

/* One vector at a time: arrays of vectors stay in registers only if they are never copied as a whole. */
INLINE vec load(const double *from) {
    vec value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE void store(double *to, vec value) {
    memcpy(to, &value, sizeof value);
}

INLINE void store_panel(double *to, Py_ssize_t n, vec rows[PANEL][VECS]) {
    for (int r = 0; r < PANEL; r++)
        for (int v = 0; v < VECS; v++)
            store(to + r * n + v * WIDTH, rows[r][v]);
}

/* out[i, j] = factor · sum over the features of (x_i - y_j)², or of |x_i - y_j|: feature after feature, for each pair alike. */
INLINE void distances(const double *X, Py_ssize_t m, const double *Y, Py_ssize_t n, Py_ssize_t d, int is_squared, double factor,
                      double *out) {
    const bits without_sign = {LLONG_MAX, LLONG_MAX, LLONG_MAX, LLONG_MAX};
    vec columns[FEATURES_AT_ONCE][VECS] = {0}; /* some features of LANES rows of Y, transposed */
    for (Py_ssize_t j = 0; j < n; j += LANES) {
        Py_ssize_t count = n - j < LANES ? n - j : LANES;
        for (Py_ssize_t f = 0; f < d; f += FEATURES_AT_ONCE) {
            Py_ssize_t features = d - f < FEATURES_AT_ONCE ? d - f : FEATURES_AT_ONCE;
            for (Py_ssize_t g = 0; g < features; g++)
                for (Py_ssize_t c = 0; c < count; c++)
                    ((double *)columns[g])[c] = Y[(j + c) * d + f + g];
            for (Py_ssize_t i = 0; i < m; i++) {
                double edge[LANES] = {0}, *target = count == LANES ? out + i * n + j : edge;
                vec sum[VECS];
                if (f > 0 && count < LANES)
                    memcpy(edge, out + i * n + j, count * sizeof(double));
                for (int v = 0; v < VECS; v++)
                    sum[v] = f > 0 ? load(target + v * WIDTH) : (vec){0};
                for (Py_ssize_t g = 0; g < features; g++)
                    for (int v = 0; v < VECS; v++) {
                        vec gap = X[i * d + f + g] - columns[g][v];
                        sum[v] += is_squared ? gap * gap : (vec)((bits)gap & without_sign);
                    }
                for (int v = 0; v < VECS; v++)
                    store(target + v * WIDTH, f + features == d ? sum[v] * factor : sum[v]);
                if (count < LANES)
                    memcpy(out + i * n + j, edge, count * sizeof(double));
            }
        }
    }
}

static void squared(const double *X, Py_ssize_t m, const double *Y, Py_ssize_t n, Py_ssize_t d, double factor, double *out) {
    distances(X, m, Y, n, d, 1, factor, out);
}

static void cityblock(const double *X, Py_ssize_t m, const double *Y, Py_ssize_t n, Py_ssize_t d, double factor, double *out) {
    distances(X, m, Y, n, d, 0, factor, out);
}

/* Columns j to j + LANES of the panel of A at row i, less what the rows of U above contribute. */
INLINE void less_rows_above(const double *A, const double *U, Py_ssize_t n, Py_ssize_t i, Py_ssize_t j, vec sum[PANEL][VECS]) {
    for (int r = 0; r < PANEL; r++)
        for (int v = 0; v < VECS; v++)
            sum[r][v] = load(A + (i + r) * n + j + v * WIDTH);
    for (Py_ssize_t k = 0; k < i; k++) {
        vec row[VECS];
        for (int v = 0; v < VECS; v++)
            row[v] = load(U + k * n + j + v * WIDTH);
        for (int r = 0; r < PANEL; r++)
            for (int v = 0; v < VECS; v++)
                sum[r][v] -= U[k * n + i + r] * row[v];
    }
}

/* Row i is finished once the rows above are taken out; answers 0 if its pivot is not positive. The ridge comes last: where it is
   small against the diagonal, more of its digits count. */
INLINE int finish_row(double *U, Py_ssize_t n, Py_ssize_t i, const double *ridge) {
    double *row = U + i * n, pivot = row[i] + ridge[i];
    if (!(pivot > 0.0))
        return 0;
    row[i] = sqrt(pivot);
    for (Py_ssize_t c = i + 1; c < n; c++)
        row[c] *= 1.0 / row[i];
    return 1;
}

/* to[c] -= times · from[c] */
INLINE void subtract(double *to, double times, const double *from, Py_ssize_t start, Py_ssize_t end) {
    for (Py_ssize_t c = start; c < end; c++)
        to[c] -= times * from[c];
}

/* U with UᵀU = A + diag(ridge), from the upper triangle of A; answers 0, or the 1-based row whose pivot is not positive. What is
   written below the diagonal of U has no meaning. */
static Py_ssize_t cholesky(const double *A, const double *ridge, Py_ssize_t n, double *U) {
    Py_ssize_t i = 0;
    for (; n >= LANES && i + PANEL <= n; i += PANEL) {
        vec sum[PANEL][VECS];
        for (Py_ssize_t j = i; j + LANES <= n; j += LANES) {
            less_rows_above(A, U, n, i, j, sum);
            store_panel(U + i * n + j, n, sum);
        }
        if ((n - i) % LANES != 0) {
            less_rows_above(A, U, n, i, n - LANES, sum);
            store_panel(U + i * n + n - LANES, n, sum);
        }
        for (Py_ssize_t r = i; r < i + PANEL; r++) {
            if (!finish_row(U, n, r, ridge))
                return r + 1;
            for (Py_ssize_t q = r + 1; q < i + PANEL; q++)
                subtract(U + q * n, U[r * n + q], U + r * n, q, n);
        }
    }
    for (; i < n; i++) {
        memcpy(U + i * n + i, A + i * n + i, (n - i) * sizeof(double));
        for (Py_ssize_t k = 0; k < i; k++)
            subtract(U + i * n, U[k * n + i], U + k * n, i, n);
        if (!finish_row(U, n, i, ridge))
            return i + 1;
    }
    return 0;
}

/* Columns j to j + LANES of -U[panel, behind] · V[behind, :], for the panel at row i and the rows of V behind it. */
INLINE void minus_rows_below(const double *U, const double *V, Py_ssize_t n, Py_ssize_t i, Py_ssize_t j, vec sum[PANEL][VECS]) {
    Py_ssize_t end = j + LANES < n ? j + LANES : n; /* further rows of V are zero in these columns */
    for (int r = 0; r < PANEL; r++)
        for (int v = 0; v < VECS; v++)
            sum[r][v] = (vec){0};
    for (Py_ssize_t k = i + PANEL; k < end; k++) {
        vec row[VECS];
        for (int v = 0; v < VECS; v++)
            row[v] = load(V + k * n + j + v * WIDTH);
        for (int r = 0; r < PANEL; r++)
            for (int v = 0; v < VECS; v++)
                sum[r][v] -= U[(i + r) * n + k] * row[v];
    }
}

/* Row i of V = U⁻¹ once -U[i, rows from `from` on] · V stands in it: the rows i + 1 to `from` are still to be taken in. */
INLINE void invert_row(const double *U, double *V, Py_ssize_t n, Py_ssize_t i, Py_ssize_t from) {
    double *row = V + i * n, inverse = 1.0 / U[i * n + i];
    for (Py_ssize_t k = i + 1; k < from; k++)
        subtract(row, U[i * n + k], V + k * n, k, n);
    for (Py_ssize_t c = i + 1; c < n; c++)
        row[c] *= inverse;
    row[i] = inverse;
}

/* V = U⁻¹ for the upper triangle of U, with zeros below the diagonal. */
static void invert(const double *U, Py_ssize_t n, double *V) {
    Py_ssize_t i = n;
    memset(V, 0, n * n * sizeof(double));
    for (; i > 0 && (n < LANES || i % PANEL != 0); i--)
        invert_row(U, V, n, i - 1, n);
    for (i -= PANEL; i >= 0; i -= PANEL) {
        vec sum[PANEL][VECS], last[PANEL][VECS] = {{{0}}};
        int has_edge = (n - i) % LANES != 0;
        if (has_edge)
            minus_rows_below(U, V, n, i, n - LANES, last);
        for (Py_ssize_t j = i; j + LANES <= n; j += LANES) {
            minus_rows_below(U, V, n, i, j, sum);
            store_panel(V + i * n + j, n, sum);
        }
        if (has_edge)
            store_panel(V + i * n + n - LANES, n, last);
        for (Py_ssize_t r = i + PANEL - 1; r >= i; r--)
            invert_row(U, V, n, r, i + PANEL);
    }
}

/* An entry of S + abᵀ + baᵀ. Every product here is a fused one by name, so that no entry depends on what a compiler makes of it:
   an update may be written now or later, with or without a product, and leaves the same bits. */
INLINE double updated(double entry, const double *a, const double *b, Py_ssize_t i, Py_ssize_t j) {
    return a == NULL ? entry : __builtin_fma(b[i], a[j], __builtin_fma(a[i], b[j], entry));
}

INLINE vec fused(vec x, vec y, vec z) {
    return _mm256_fmadd_pd(x, y, z);
}

INLINE vec all(double x) {
    return (vec){x, x, x, x};
}

/* S + abᵀ + baᵀ over the upper triangle of S in row order, which is the lower one in column order; y = S x is added up on the way.
   PANEL rows at a time; first the triangle at the diagonal, then what is right of it. */
INLINE void add_and_multiply(double *S, Py_ssize_t n, const double *a, const double *b, const double *x, double *y) {
    for (Py_ssize_t j = 0; j < n; j += PANEL) {
        Py_ssize_t edge = j + PANEL < n ? j + PANEL : n, i = edge;
        for (Py_ssize_t r = j; r < edge; r++) {
            double *entry = S + r * n;
            entry[r] = updated(entry[r], a, b, r, r);
            y[r] = __builtin_fma(entry[r], x[r], y[r]);
            for (Py_ssize_t c = r + 1; c < edge; c++) {
                entry[c] = updated(entry[c], a, b, c, r);
                y[c] = __builtin_fma(entry[c], x[r], y[c]);
                y[r] = __builtin_fma(entry[c], x[c], y[r]);
            }
        }
        vec sum[PANEL] = {{0}};
        for (; edge == j + PANEL && i + WIDTH <= n; i += WIDTH) {
            vec a_i = {0}, b_i = {0}, x_i = load(x + i), y_i = load(y + i);
            if (a != NULL) {
                a_i = load(a + i);
                b_i = load(b + i);
            }
            for (int r = 0; r < PANEL; r++) {
                double *at = S + (j + r) * n + i;
                vec entries = load(at);
                if (a != NULL) {
                    entries = fused(b_i, all(a[j + r]), fused(a_i, all(b[j + r]), entries));
                    store(at, entries);
                }
                sum[r] = fused(entries, x_i, sum[r]);
                y_i = fused(entries, all(x[j + r]), y_i);
            }
            store(y + i, y_i);
        }
        for (Py_ssize_t r = j; r < edge; r++) {
            vec s = sum[r - j];
            y[r] += (s[0] + s[1]) + (s[2] + s[3]);
            for (Py_ssize_t c = i; c < n; c++) {
                double *entry = S + r * n + c;
                *entry = updated(*entry, a, b, c, r);
                y[c] = __builtin_fma(*entry, x[r], y[c]);
                y[r] = __builtin_fma(*entry, x[c], y[r]);
            }
        }
    }
}

/* Python's side. loops.py hands in C-ordered float64 arrays of the right shapes; sizes are checked all the same. */

static int has_size(const Py_buffer *buffer, Py_ssize_t rows, Py_ssize_t columns) {
    const Py_ssize_t most = PY_SSIZE_T_MAX / (Py_ssize_t)sizeof(double);
    if (rows < 0 || columns < 0 || (columns > 0 && rows > most / columns))
        return 0;
    return buffer->len == rows * columns * (Py_ssize_t)sizeof(double);
}

typedef void Metric(const double *, Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, double, double *);

static PyObject *measured(PyObject *args, Metric *metric) {
    Py_buffer X, Y, out;
    Py_ssize_t m, n, d;
    double factor;
    if (!PyArg_ParseTuple(args, "y*ny*nndw*", &X, &m, &Y, &n, &d, &factor, &out))
        return NULL;
    int is_sound = has_size(&X, m, d) && has_size(&Y, n, d) && has_size(&out, m, n);
    if (is_sound) {
        Py_BEGIN_ALLOW_THREADS
        metric(X.buf, m, Y.buf, n, d, factor, out.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&X);
    PyBuffer_Release(&Y);
    PyBuffer_Release(&out);
    if (!is_sound) {
        PyErr_SetString(PyExc_ValueError, "the sizes of X, Y and out do not fit (m, d), (n, d) and (m, n)");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_squared(PyObject *Py_UNUSED(module), PyObject *args) {
    return measured(args, squared);
}

static PyObject *py_cityblock(PyObject *Py_UNUSED(module), PyObject *args) {
    return measured(args, cityblock);
}

static PyObject *py_cholesky(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer A, ridge, U;
    Py_ssize_t n, failed = 0;
    if (!PyArg_ParseTuple(args, "y*y*nw*", &A, &ridge, &n, &U))
        return NULL;
    int is_sound = has_size(&A, n, n) && has_size(&ridge, n, 1) && has_size(&U, n, n);
    if (is_sound) {
        Py_BEGIN_ALLOW_THREADS
        failed = cholesky(A.buf, ridge.buf, n, U.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&A);
    PyBuffer_Release(&ridge);
    PyBuffer_Release(&U);
    if (!is_sound) {
        PyErr_SetString(PyExc_ValueError, "the matrices are not (n, n), or the ridge is not (n,)");
        return NULL;
    }
    return PyLong_FromSsize_t(failed);
}

static PyObject *py_invert(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer U, V;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "y*nw*", &U, &n, &V))
        return NULL;
    int is_sound = has_size(&U, n, n) && has_size(&V, n, n);
    if (is_sound) {
        Py_BEGIN_ALLOW_THREADS
        invert(U.buf, n, V.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&U);
    PyBuffer_Release(&V);
    if (!is_sound) {
        PyErr_SetString(PyExc_ValueError, "the matrices are not (n, n)");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_add_and_multiply(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer S, a, b, x, y;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "w*nz*z*y*w*", &S, &n, &a, &b, &x, &y))
        return NULL;
    int has_update = a.buf != NULL && b.buf != NULL;
    int is_sound = has_size(&S, n, n) && has_size(&x, n, 1) && has_size(&y, n, 1) &&
                   (has_update ? has_size(&a, n, 1) && has_size(&b, n, 1) : a.buf == NULL && b.buf == NULL);
    if (is_sound) {
        Py_BEGIN_ALLOW_THREADS
        if (has_update)
            add_and_multiply(S.buf, n, a.buf, b.buf, x.buf, y.buf);
        else
            add_and_multiply(S.buf, n, NULL, NULL, x.buf, y.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&S);
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    if (!is_sound) {
        PyErr_SetString(PyExc_ValueError, "the matrix is not (n, n), or a vector is not (n,)");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"squared", py_squared, METH_VARARGS, "squared(X, m, Y, n, d, factor, out): out = factor · squared distances."},
    {"cityblock", py_cityblock, METH_VARARGS, "cityblock(X, m, Y, n, d, factor, out): out = factor · sums of |x - y|."},
    {"cholesky", py_cholesky, METH_VARARGS, "cholesky(A, ridge, n, U): UᵀU = A + diag(ridge); 0 or the row that fails."},
    {"invert", py_invert, METH_VARARGS, "invert(U, n, V): V = U⁻¹, zero below the diagonal."},
    {"add_and_multiply", py_add_and_multiply, METH_VARARGS,
     "add_and_multiply(S, n, a, b, x, y): S + abᵀ + baᵀ in place, a and b arrays or None, and y + S x in place of y."},
    {NULL, NULL, 0, NULL},
};

static int require_processor(PyObject *Py_UNUSED(module)) {
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 0;
    PyErr_SetString(PyExc_ImportError, "this processor has no AVX2 and FMA");
    return -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)require_processor}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_loops", "The loops of oneclass.loops, compiled.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void) {
    return PyModuleDef_Init(&definition);
}

#ifdef __clang__
#pragma clang attribute pop
#endif
