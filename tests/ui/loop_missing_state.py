"""A step of rs.loop that forgets a state."""

import rscan as rs

xs, h0, c0 = rs.dvector("xs"), rs.dscalar("h0"), rs.dscalar("c0")


def step(x, h, c):
    return dict(h=rs.tanh(x + c))


out = rs.loop(step, over=dict(x=xs), init=dict(h=h0, c=c0))
