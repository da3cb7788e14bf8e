"""Recurrences of several kinds, written for Theano."""

import numpy as np, theano, theano.tensor as T
rng=np.random.RandomState(0); floatX=theano.config.floatX
nin,nh,no=3,6,2
def sh(*s): return theano.shared(np.asarray(rng.uniform(-.1,.1,s),dtype=floatX))
u=T.tensor3(); t=T.tensor3(); h0=T.alloc(np.asarray(0.,dtype=floatX), u.shape[1], nh); lr=T.scalar()
W,Wi,Wo,bh=sh(nh,nh),sh(nin,nh),sh(nh,no),sh(nh)
def step(u_t,h_tm1,W,Wi,Wo):
    h_t=T.tanh(T.dot(u_t,Wi)+T.dot(h_tm1,W)+bh); y_t=T.dot(h_t,Wo); return h_t,y_t
[h,y],_=theano.scan(step,sequences=u,outputs_info=[h0,None],non_sequences=[W,Wi,Wo])
err=((y-t)**2).sum(axis=2).mean(); ps=[W,Wi,Wo,bh]; gs=T.grad(err,ps)
norm=T.sqrt(sum([T.sum(g**2) for g in gs])); gs=[T.switch(norm>1., g/norm, g) for g in gs]
mom=[theano.shared(p.get_value()*0) for p in ps]
ups=[(m,.9*m-lr*g) for m,g in zip(mom,gs)]+[(p,p+.9*m-lr*g) for p,m,g in zip(ps,mom,gs)]
fn=theano.function([u,t,lr],err,updates=ups,mode=theano.Mode(linker='cvm'))
U=rng.randn(20,4,nin).astype(floatX); Y=np.stack([np.cumsum(U[:,:,0],0),U[:,:,1]],-1).astype(floatX)
e=[float(fn(U,Y,.05)) for _ in range(50)]; print(e[0],e[-1])
# ctc-like / fibonacci / mandelbrot
c=T.dscalar(); 
def fib(a,b): return a+b
f,_=theano.scan(fib,outputs_info=[{'initial':T.constant(np.array([0,1],dtype='int64')),'taps':[-2,-1]}],n_steps=10); print(theano.function([],f)())
# primes / collatz with until
n=T.lscalar()
def collatz(x): return T.switch(T.eq(x%2,0), x//2, 3*x+1), theano.scan_module.until(T.le(x,2))
s,_=theano.scan(collatz,outputs_info=n,n_steps=1000); print(theano.function([n],s)(6))
# ngram log prob
X=T.imatrix(); P=T.dmatrix()
r,_=theano.scan(lambda row,P: P[row[:-1],row[1:]].sum(), sequences=X, non_sequences=P); print(theano.function([X,P],r)([[0,1,1],[1,0,1]],np.eye(2)))
# tensordot/batched attention
Q=T.dtensor3(); K=T.dtensor3(); A=T.batched_dot(Q,K.dimshuffle(0,2,1)); sm=T.nnet.softmax(A.reshape((A.shape[0]*A.shape[1],A.shape[2]))).reshape(A.shape); print(theano.function([Q,K],sm)(rng.rand(2,3,4),rng.rand(2,5,4)).sum())
