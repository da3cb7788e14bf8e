"""rscan, each workload written against the Pythonic API as a reader of the docs would write it.

No precomputed answers, no caches across processes, no workload-specific switches: what is timed is what a user gets.
Everything inside an adapter, up to the end of the first call, is compile time.
"""
import numpy as np
IMPL = {}; REQUIRES = {"rscan": "rscan"}
def impl(w, v=""): return lambda f: IMPL.setdefault((w, v), f)
def init(spec, peer):
    global rs
    import rscan as rs
    x = rs.dscalar("x"); rs.function([x], x + 1)(1.0)
def convert(i): return i
def sync(o): pass
def to_numpy(o): return np.asarray(o)
def call(variables, outputs, i):
    """A call of the compiled function with the inputs of the same names."""
    f = rs.function(variables, outputs); values = [i[v.name] for v in variables]
    return lambda: f(*values)

def _logistic(i, keep):
    x0, r = rs.dscalar("x0"), rs.dscalar("r")
    xs, _ = rs.scan(lambda x, r: r * x * (1 - x), outputs_info=x0, non_sequences=r, n_steps=i["T"])
    return call([x0, r], [xs if keep else xs[-1]], i)
impl("01a_logistic_last")(lambda i: _logistic(i, False)); impl("01b_logistic_all")(lambda i: _logistic(i, True))

@impl("02_power")
def _(i):
    A, k = rs.dvector("A"), rs.lscalar("k")
    powers, _ = rs.scan(lambda prior, A: prior * A, outputs_info=rs.ones_like(A), non_sequences=A, n_steps=k)
    return call([A, k], [powers[-1]], i)

@impl("04_cumsum")
def _(i):
    x = rs.dmatrix("x")
    s, _ = rs.scan(lambda x, s: s + x, sequences=x, outputs_info=rs.zeros_like(x[0]))
    return call([x], [s], i)

def _rnn():
    x, Wx, Wh, b, h0 = rs.ftensor3("x"), rs.fmatrix("Wx"), rs.fmatrix("Wh"), rs.fvector("b"), rs.fmatrix("h0")
    return (x, Wx, Wh, b, h0), lambda x, h: rs.tanh(x @ Wx + h @ Wh + b)
@impl("05a_rnn_fwd")
def _(i):
    (x, Wx, Wh, b, h0), step = _rnn()
    h, _ = rs.scan(step, sequences=x, outputs_info=h0)
    return call([x, Wx, Wh, b, h0], [h], i)
def _rnn_grad(i, **options):
    (x, Wx, Wh, b, h0), step = _rnn(); target = rs.fmatrix("target")
    h = rs.loop(step, over=x, init=h0, **options)
    loss = rs.sum((h[-1] - target) ** 2)
    return call([x, Wx, Wh, b, h0, target], [loss, *rs.grad(loss, [Wx, Wh, b])], i)
impl("05b_rnn_grad")(lambda i: _rnn_grad(i)); impl("16a_mem_plain")(lambda i: _rnn_grad(i))
@impl("16b_mem_ckpt")
def _(i):
    (x, Wx, Wh, b, h0), step = _rnn(); target = rs.fmatrix("target")
    h, _ = rs.scan_checkpoints(step, sequences=x, outputs_info=h0, save_every_N=100)
    loss = rs.sum((h[-1] - target) ** 2)
    return call([x, Wx, Wh, b, h0, target], [loss, *rs.grad(loss, [Wx, Wh, b])], i)

@impl("06_lstm_train")
def _(i):
    x, Wx, Wh, b = rs.ftensor3("x"), rs.fmatrix("Wx"), rs.fmatrix("Wh"), rs.fvector("b")
    h0, c0, target = rs.fmatrix("h0"), rs.fmatrix("c0"), rs.fmatrix("target"); H = i["h0"].shape[1]
    def step(x, h, c):
        a = x @ Wx + h @ Wh + b
        I, F, G, O = (a[:, k * H:(k + 1) * H] for k in range(4))
        c = rs.sigmoid(F) * c + rs.sigmoid(I) * rs.tanh(G)
        return dict(h=rs.sigmoid(O) * rs.tanh(c), c=c)
    out = rs.loop(step, over=dict(x=x), init=dict(h=h0, c=c0))
    loss = rs.sum((out.h[-1] - target) ** 2)
    return call([x, Wx, Wh, b, h0, c0, target], [loss, *rs.grad(loss, [Wx, Wh, b])], i)

@impl("07_gru_latency")
def _(i):
    x, h0, Wx, Wh, bx, bh = rs.ftensor3("x"), rs.fmatrix("h0"), rs.fmatrix("Wx"), rs.fmatrix("Wh"), rs.fvector("bx"), rs.fvector("bh")
    H = i["h0"].shape[1]
    def step(x, h):
        p, a = x @ Wx + bx, h @ Wh + bh
        r, z = rs.sigmoid(p[:, :H] + a[:, :H]), rs.sigmoid(p[:, H:2 * H] + a[:, H:2 * H])
        n = rs.tanh(p[:, 2 * H:] + r * a[:, 2 * H:])
        return n + z * (h - n)
    h, _ = rs.scan(step, sequences=x, outputs_info=h0)
    return call([x, h0, Wx, Wh, bx, bh], [h], i)

@impl("08a_until_scalar")
def _(i):
    x0, f, maxv = rs.dscalar("x0"), rs.dscalar("f"), rs.dscalar("maxv")
    xs, _ = rs.scan(lambda x: (x * f, rs.until(x * f > maxv)), outputs_info=x0, n_steps=i["n_max"])
    return call([x0, f, maxv], [xs[-1]], i)
@impl("08c_fixedpoint")
def _(i):
    M, c, x0, eps = rs.dmatrix("M"), rs.dvector("c"), rs.dvector("x0"), rs.dscalar("eps")
    def step(x):
        new = M @ x + c; d = new - x
        return new, rs.until(rs.sqrt(rs.sum(d * d)) < eps)
    xs, _ = rs.scan(step, outputs_info=x0, n_steps=i["n_max"])
    return call([M, c, x0, eps], [xs[-1]], i)

def _garch(i):
    @rs.compile
    def nll(p, y, e_init, s0):
        c, phi, th1, th2, om, al, be = (p[k] for k in range(7))
        def step(y, e, s):     # y: taps -1, 0; e: taps -2, -1
            (y_tm1, y_t), (e_tm2, e_tm1) = y, e
            return dict(e=y_t - c - phi * y_tm1 - th1 * e_tm1 - th2 * e_tm2, s=om + al * e_tm1 ** 2 + be * s)
        out = rs.loop(step, over=dict(y=rs.taps(y, -1, 0)), init=dict(e=rs.taps(e_init, -2, -1), s=s0))
        return 0.5 * rs.sum(rs.log(out.s) + out.e ** 2 / out.s)
    return nll
@impl("09_garch_grad")
def _(i):
    f = rs.value_and_grad(_garch(i))
    return lambda: list(f(i["p"], i["y"], i["e_init"], i["s0"]))
@impl("09a_garch_fwd")
def _(i):
    f = _garch(i)
    return lambda: [f(i["p"], i["y"], i["e_init"], i["s0"])]

@impl("10a_lorenz_scalar")
def _(i):
    from specs.w10_lorenz import rk4
    s0 = rs.dvector("s0")
    xyz, _ = rs.scan(lambda x, y, z: list(rk4(x, y, z)), outputs_info=[s0[0], s0[1], s0[2]], n_steps=i["T"])
    return call([s0], xyz, i)

@impl("11_kalman_grad")
def _(i):
    F, q, r, y = rs.dmatrix("F"), rs.dvector("q"), rs.dvector("r"), rs.dmatrix("y")
    H, x0, P0 = rs.dmatrix("H"), rs.dvector("x0"), rs.dmatrix("P0")
    Q, R = rs.diag(rs.exp(q)), rs.diag(rs.exp(r))
    def step(y, x, P):
        x, P = F @ x, F @ P @ F.T + Q
        v, PH = y - H @ x, P @ H.T
        S = H @ PH + R
        K = rs.linalg.solve(S, PH.T).T
        _, logdet = rs.linalg.slogdet(S)
        return dict(x=x + K @ v, P=P - K @ (H @ P), loss=logdet + v @ rs.linalg.solve(S, v))
    out = rs.loop(step, over=dict(y=y), init=dict(x=x0, P=P0))
    L = -0.5 * (rs.sum(out.loss) + y.shape[0] * 2 * np.log(2 * np.pi))
    return call([F, q, r, y, H, x0, P0], [L, *rs.grad(L, [F, q, r])], i)

@impl("12_rbm_gibbs")
def _(i):
    W, bv, bh, v0 = rs.fmatrix("W"), rs.fvector("bv"), rs.fvector("bh"), rs.fmatrix("v0")
    random = rs.random.Stream(0)
    def step(v, pv):
        ph = rs.sigmoid(v @ W + bh)
        h = random.bernoulli(ph, dtype="float32")
        pv = rs.sigmoid(h @ W.T + bv)
        return dict(v=random.bernoulli(pv, dtype="float32"), pv=pv)
    out = rs.loop(step, init=dict(v=v0, pv=v0), n_steps=i["k"])
    return call([W, bv, bh, v0], [out.pv[-1], out.v[-1]], i)

@impl("13_hmm_grad")
def _(i):
    A, B, pi = rs.dmatrix("logA"), rs.dmatrix("logB"), rs.dvector("logpi")
    alpha, _ = rs.scan(lambda b, a: rs.logsumexp(a[:, None] + A, axis=0) + b, sequences=B[1:], outputs_info=pi + B[0])
    L = rs.logsumexp(alpha[-1], axis=0)
    return call([A, B, pi], [L, *rs.grad(L, [A, B, pi])], i)

@impl("15a_linrec_fwd")
def _(i):
    a, b = rs.fmatrix("a"), rs.fmatrix("b")
    h, _ = rs.scan(lambda a, b, h: a * h + b, sequences=[a, b], outputs_info=rs.zeros_like(a[0]))
    return call([a, b], [h], i)

@impl("17a_elemwise")
def _(i):
    from specs.w17_map_gemm import chain
    x = rs.fvector("x")
    return call([x], [chain(x, rs.tanh, rs.exp, rs.log)], i)
def _gemm(i, matrix):
    A, B = matrix("A"), matrix("B")
    return call([A, B], [A @ B], i)
impl("17b_gemm_f32")(lambda i: _gemm(i, rs.fmatrix)); impl("17c_gemm_f64")(lambda i: _gemm(i, rs.dmatrix))
