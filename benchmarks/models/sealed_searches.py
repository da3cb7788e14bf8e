"""Searches: positions of extremes, gathers, sorts, paths that are followed back."""

import numpy as np

import rscan as rs
from models import Model


class NeedlemanWunsch(Model):
    """Global alignment of two sequences: the table row by row, and the path followed back through its decisions."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(m=120, n=100)
    small = dict(m=5, n=4)

    def make(self, random, m, n):
        scores = np.where(np.eye(4) > 0, 2.0, -1.0) + 0.1 * random.normal(size=(4, 4))
        return random.integers(0, 4, size=m), random.integers(0, 4, size=n), scores, 1.3

    def rscan(self, m, n):
        @rs.compile
        def align(a, b, scores, gap):
            first = -gap * rs.arange(n + 1)

            def row(a_i, i, above):
                similarity = scores[a_i][b]

                def cell(s, diagonal, up, left):
                    candidates = rs.stack([diagonal + s, up - gap, left - gap])
                    return dict(left=rs.max(candidates), move=rs.argmax(candidates))

                edge = -gap * i
                out = rs.loop(cell, over=dict(s=similarity, diagonal=above[:-1], up=above[1:]), init=dict(left=edge))
                return dict(above=rs.concatenate([rs.stack([edge]), out.left]), moves=out.move)

            table = rs.loop(row, over=dict(a_i=a, i=rs.arange(1.0, m + 1)), init=dict(above=first))

            def back(i, j):
                inside = (i > 0) & (j > 0)
                move = rs.where(inside, table.moves[rs.maximum(i, 1) - 1, rs.maximum(j, 1) - 1], rs.where(i > 0, 1, 2))
                i, j = rs.where(move != 2, i - 1, i), rs.where(move != 1, j - 1, j)
                i, j = rs.maximum(i, 0), rs.maximum(j, 0)
                return dict(i=i, j=j)

            path = rs.loop(back, init=dict(i=m, j=n), n_steps=m + n)
            return table.above[-1, -1], path.i, path.j

        return align

    def jax(self, m, n):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def align(a, b, scores, gap):
            first = -gap * jnp.arange(n + 1)

            def row(above, a_i_i):
                a_i, i = a_i_i
                edge = -gap * i

                def cell(left, x):
                    s, diagonal, up = x
                    candidates = jnp.stack([diagonal + s, up - gap, left - gap])
                    best = jnp.max(candidates)
                    return best, (best, jnp.argmax(candidates))

                _, (values, moves) = lax.scan(cell, edge, (scores[a_i][b], above[:-1], above[1:]))
                return jnp.concatenate([edge[None], values]), moves

            last, moves = lax.scan(row, first, (a, jnp.arange(1.0, m + 1)))

            def back(ij, _):
                i, j = ij
                inside = (i > 0) & (j > 0)
                move = jnp.where(inside, moves[jnp.maximum(i, 1) - 1, jnp.maximum(j, 1) - 1], jnp.where(i > 0, 1, 2))
                i, j = jnp.where(move != 2, i - 1, i), jnp.where(move != 1, j - 1, j)
                ij = jnp.maximum(i, 0), jnp.maximum(j, 0)
                return ij, ij

            _, (i, j) = lax.scan(back, (m, n), None, length=m + n)
            return last[-1], i, j

        return align


class BellmanFordPath(Model):
    """Shortest distances from a node with predecessors, and the path to the farthest node, followed back."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(nodes=120)
    small = dict(nodes=7)

    def make(self, random, nodes):
        costs = random.exponential(size=(nodes, nodes)) + 0.1
        costs[random.random((nodes, nodes)) > 4 / nodes] = np.inf
        ring = np.arange(nodes)
        costs[ring, (ring + 1) % nodes] = 1 + random.random(nodes)
        return costs, 0

    def rscan(self, nodes):
        @rs.compile
        def paths(costs, source):
            distance0 = rs.where(rs.arange(nodes) == source, 0.0, np.inf)

            def relax(distance, predecessor):
                through = distance[:, None] + costs
                best = rs.min(through, axis=0)
                shorter = best < distance
                new = rs.where(shorter, best, distance)
                predecessor = rs.where(shorter, rs.argmin(through, axis=0), predecessor)
                return dict(distance=new, predecessor=predecessor), rs.until(rs.all(new == distance))

            out = rs.loop(relax, init=dict(distance=distance0, predecessor=rs.arange(nodes)), n_steps=nodes)
            distance, predecessor = out.distance[-1], out.predecessor[-1]
            path = rs.loop(lambda at: predecessor[at], init=rs.argmax(distance), n_steps=nodes)
            return distance, predecessor, path

        return paths

    def jax(self, nodes):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def paths(costs, source):
            distance0 = jnp.where(jnp.arange(nodes) == source, 0.0, jnp.inf)

            def relax(state):
                distance, predecessor, _ = state
                through = distance[:, None] + costs
                best = jnp.min(through, axis=0)
                shorter = best < distance
                return (
                    jnp.where(shorter, best, distance),
                    jnp.where(shorter, jnp.argmin(through, axis=0), predecessor),
                    jnp.any(shorter),
                )

            distance, predecessor, _ = lax.while_loop(lambda s: s[2], relax, (distance0, jnp.arange(nodes), True))

            def follow(at, _):
                at = predecessor[at]
                return at, at

            _, path = lax.scan(follow, jnp.argmax(distance), None, length=nodes)
            return distance, predecessor, path

        return paths


class BeamDecoder(Model):
    """Beam search over a bigram language model with scores that depend on time; the best sentence is read back."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(steps=40, words=40, beam=8)
    small = dict(steps=4, words=5, beam=2)

    def make(self, random, steps, words, beam):
        def log_softmax(a):
            return a - np.log(np.sum(np.exp(a), axis=-1, keepdims=True))

        return log_softmax(2 * random.normal(size=(words, words))), log_softmax(2 * random.normal(size=(steps, words)))

    def rscan(self, steps, words, beam):
        @rs.compile
        def decode(bigram, emission):
            first = rs.argsort(-emission[0])[:beam]

            def step(e, score, word):
                total = rs.ravel(score[:, None] + bigram[word] + e[None, :])
                best = rs.argsort(-total)[:beam]
                return dict(score=total[best], word=best % words, parent=best // words)

            out = rs.loop(step, over=dict(e=emission[1:]), init=dict(score=emission[0][first], word=first))

            def back(words, parents, k):
                return dict(k=parents[k], chosen=words[k])

            path = rs.loop(back, over=dict(words=out.word, parents=out.parent), init=dict(k=0), reverse=True)
            return out.score[-1], path.chosen

        return decode

    def jax(self, steps, words, beam):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def decode(bigram, emission):
            score, word = lax.top_k(emission[0], beam)

            def step(state, e):
                score, word = state
                total = (score[:, None] + bigram[word] + e).ravel()
                score, best = lax.top_k(total, beam)
                return (score, best % words), (best % words, best // words)

            (score, _), (chosen, parents) = lax.scan(step, (score, word), emission[1:])

            def back(k, row):
                words, parents = row
                return parents[k], words[k]

            _, path = lax.scan(back, 0, (chosen, parents), reverse=True)
            return score, path

        return decode


class EloLeague(Model):
    """Elo ratings of a league from games in order: two ratings are read and written per game; gradient by the gain."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(players=100, games=2000)
    small = dict(players=5, games=9)

    def make(self, random, players, games):
        home = random.integers(0, players, size=games)
        away = (home + random.integers(1, players, size=games)) % players
        return np.array([np.log(20.0), 0.3]), home, away, (random.random(games) < 0.55).astype(float)

    def rscan(self, players, games):
        @rs.compile
        def loss(theta, home, away, won):
            gain, advantage = rs.exp(theta[0]) / 400, theta[1]

            def game(i, j, won, ratings):
                p = rs.sigmoid(ratings[i] - ratings[j] + advantage)
                change = gain * (won - p)
                ratings = ratings.at[i].add(change).at[j].add(-change)
                return dict(ratings=ratings, loss=-(won * rs.log(p) + (1 - won) * rs.log(1 - p)))

            out = rs.loop(game, over=dict(i=home, j=away, won=won), init=dict(ratings=rs.zeros(players)))
            return rs.mean(out.loss)

        return rs.value_and_grad(loss)

    def jax(self, players, games):
        import jax
        import jax.numpy as jnp
        from jax import lax

        def loss(theta, home, away, won):
            gain, advantage = jnp.exp(theta[0]) / 400, theta[1]

            def game(ratings, row):
                i, j, won = row
                z = ratings[i] - ratings[j] + advantage
                change = gain * (won - jax.nn.sigmoid(z))
                ratings = ratings.at[i].add(change).at[j].add(-change)
                return ratings, -(won * jax.nn.log_sigmoid(z) + (1 - won) * jax.nn.log_sigmoid(-z))

            _, losses = lax.scan(game, jnp.zeros(players), (home, away, won))
            return jnp.mean(losses)

        return jax.jit(jax.value_and_grad(loss))
