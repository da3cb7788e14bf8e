import numpy as np
import rscan.theano as theano
import rscan.theano.tensor as T

a = T.vector("a")
s0 = T.scalar("s0")
result, updates = theano.scan(fn=lambda current_element, prior: prior + current_element, sequences=a, outputs_info=s0)
f = theano.function([a, s0], result, updates=updates)
print(f(np.ones(20), 0))

# A vector at each time step
m = T.matrix("m")
v0 = T.vector("v0")
result, updates = theano.scan(fn=lambda current_element, prior: prior + current_element, sequences=m, outputs_info=v0)
f = theano.function([m, v0], result, updates=updates)
print(f(np.ones((20, 3)), np.zeros(3)))

# Fixed data for every step
k = T.scalar("k")
result, updates = theano.scan(fn=lambda current_element, prior, k: prior * k + current_element,
                              sequences=a, outputs_info=s0, non_sequences=k)
f = theano.function([a, s0, k], result, updates=updates)
print(f(np.ones(8), 0, 5))
