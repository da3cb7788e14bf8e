import rscan.theano as theano
import rscan.theano.tensor as T

Sequence1, Sequence2, Sequence3 = T.vectors("Sequence1", "Sequence2", "Sequence3")
Output1, Output2, Output3 = T.vector("Output1"), T.scalar("Output2"), T.scalar("Output3")
Argument1, Argument2 = T.scalars("Argument1", "Argument2")

def fn(*args):
    print([arg.name for arg in args])
    return [args[5], args[0], args[7]]

outputs, updates = theano.scan(fn,
    sequences = [ dict(input= Sequence1, taps = [-3,2,-1]),
                  Sequence2,
                  dict(input = Sequence3, taps = 3) ],
    outputs_info = [ dict(initial = Output1, taps = [-3,-5]),
                     dict(initial = Output2, taps = None),
                     Output3 ],
    non_sequences = [ Argument1,
                      Argument2])
f = theano.function([Sequence1, Sequence2, Sequence3, Output1, Output3, Argument1, Argument2], outputs, updates=updates,
                    on_unused_input="ignore")
print(f(range(10), range(10), range(20), [10, 11, 12, 13, 14], 0, 0, 0))
