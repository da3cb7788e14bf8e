import numpy as np
import rscan.theano as theano
import rscan.theano.tensor as T

x = T.dvector("x")
double, _ = theano.map(lambda v: v * 2, x)
total, _ = theano.reduce(lambda v, acc: acc + v, x, T.constant(np.float64(0)))
left, _ = theano.foldl(lambda v, acc: acc * 2 + v, x, T.constant(np.float64(0)))
right, _ = theano.foldr(lambda v, acc: acc * 2 + v, x, T.constant(np.float64(0)))
print(*theano.function([x], [double, total, left, right])([1, 2, 3]))

A = T.vector("A")
rows, _ = theano.scan_checkpoints(lambda prior, A: prior * A, outputs_info=T.ones_like(A), non_sequences=A, n_steps=10,
                                  save_every_N=4)
print(theano.function([A], rows)([1, 2]))
print(theano.function([A], T.grad(rows[-1].sum(), A))([1, 2]))

backwards, _ = theano.scan(lambda v: v, sequences=x, go_backwards=True)
print(theano.function([x], backwards)([1, 2, 3]))

n = T.iscalar("n")
none, _ = theano.scan(lambda acc: acc + 1, outputs_info=T.constant(np.float64(0)), n_steps=n)
print(theano.function([n], none)(0).shape)
