"""Each line marked `# wrong` is reported by a type checker, and no other."""

import numpy as np

import rscan as rs


@rs.compile
def loss(a: rs.Variable, x: rs.Variable) -> rs.Variable:
    return rs.sum((x - a) ** 2)


def cost(a: rs.Variable, x: rs.Variable) -> rs.Variable:
    return rs.sum((x - a) ** 2)


x = rs.dvector("x")
f = rs.function([x], rs.sum(x))

rs.dvectr("x")  # wrong: no such name
rs.exp("x")  # wrong: text is no operand
rs.grad(rs.sum(x), "x")  # wrong: derivatives are by variables
loss(0.5)  # wrong: an argument is missing
loss("a", np.ones(3))  # wrong: text is no array
f.explan()  # wrong: no such method
rs.scan(lambda v: v, sequence=x)  # wrong: no such parameter
total: str = f([1.0])  # wrong: a function returns arrays
rs.function("x", x)  # wrong: inputs are variables
rs.dscalar(3)  # wrong: a name is text
rs.vmap(3)  # wrong: not a function
slope: list[rs.Variable] = rs.grad(rs.sum(x), x)  # wrong: one variable, one gradient
rs.linalg.solv(x, x)  # wrong: no such name
rs.fft.ffft(x)  # wrong: no such name
rs.special.gamln(x)  # wrong: no such name
y = rs.stats.nrm  # wrong: no such name
y = rs.loop(lambda v: {"h": v}, init={"h": 0.0}, n_steps=3) + 1.0  # wrong: several rows by name are no variable
y = rs.scan(lambda v: v, outputs_info=x, n_steps=3) + 1.0  # wrong: scan returns two things
rs.grad(cost)(0.5, np.ones(3)).explain()  # wrong: a gradient is an array

loss(0.5, [1.0, 2.0])
loss(x[0], x)
