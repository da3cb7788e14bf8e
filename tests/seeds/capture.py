import numpy as np
import rscan.theano as theano
import rscan.theano.tensor as TT

W   = TT.matrix()
W_2 = W**2
def f(x):
    return TT.dot(x,W_2)

xs = TT.matrix()
result, updates = theano.scan(f, sequences=xs)
apply = theano.function([xs, W], result, updates=updates)
print(apply(np.eye(2), np.array([[1., 2.], [3., 4.]])))
