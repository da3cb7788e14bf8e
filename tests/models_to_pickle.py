"""Functions of a module, for tests that send them to other processes."""

import rscan as rs


@rs.compile
def loss(a, x):
    out = rs.loop(lambda x, h: {"h": a * h + (1 - a) * x}, over={"x": x}, init={"h": x[0]})
    return rs.sum((x - out.h) ** 2)


def plain(a, x):
    return rs.sum(rs.exp(a * x))


both = rs.value_and_grad(loss)
