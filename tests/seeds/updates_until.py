import rscan.theano as theano
import rscan.theano.tensor as T

x = theano.shared(0, "x")
y1 = T.dscalar("y1")

def step(y1_tm1, y2_tm1):
    y1_t, y2_t = y1_tm1 + 1, y2_tm1 * 2
    return [y1_t, y2_t], {x:x+1}, theano.scan_module.until(x < 50)

outputs, updates = theano.scan(step, outputs_info=[y1, T.constant(1.)], n_steps=100)
f = theano.function([y1], outputs, updates=updates)
print(f(0.), x.get_value())
x.set_value(49)
print(f(0.), x.get_value())
x.set_value(50)
first, second = f(0.)
print(len(first), first[-1], second[-1] == 2.0**100, x.get_value())
