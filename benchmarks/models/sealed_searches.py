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


class ArrayDijkstra(Model):
    """Dijkstra's algorithm without a queue: the nearest open node is found by a minimum, and its row relaxed."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(nodes=250)
    small = dict(nodes=6)

    def make(self, random, nodes):
        costs = random.exponential(size=(nodes, nodes)) + 0.05
        costs[random.random((nodes, nodes)) > 6 / nodes] = np.inf
        return np.minimum(costs, costs.T), 0

    def rscan(self, nodes):
        @rs.compile
        def dijkstra(costs, source):
            def settle(distance, done, parent):
                node = rs.argmin(rs.where(done, np.inf, distance))
                through = distance[node] + costs[node]
                shorter = (through < distance) & ~done
                return dict(
                    distance=rs.where(shorter, through, distance),
                    done=done.at[node].set(True),
                    parent=rs.where(shorter, node, parent),
                    node=node,
                )

            everywhere = rs.arange(nodes)
            init = dict(
                distance=rs.where(everywhere == source, 0.0, np.inf),
                done=rs.zeros(nodes, dtype="bool"),
                parent=rs.full((nodes,), -1),
            )
            out = rs.loop(settle, init=init, n_steps=nodes)
            return out.distance[-1], out.parent[-1], out.node[: nodes // 2]

        return dijkstra

    def jax(self, nodes):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def dijkstra(costs, source):
            def settle(state, _):
                distance, done, parent = state
                node = jnp.argmin(jnp.where(done, jnp.inf, distance))
                through = distance[node] + costs[node]
                shorter = (through < distance) & ~done
                new = jnp.where(shorter, through, distance), done.at[node].set(True), jnp.where(shorter, node, parent)
                return new, node

            distance = jnp.full(nodes, jnp.inf).at[source].set(0.0)
            start = (distance, jnp.zeros(nodes, bool), jnp.full(nodes, -1))
            (distance, _, parent), order = lax.scan(settle, start, None, length=nodes)
            return distance, parent, order[: nodes // 2]

        return dijkstra


class ChangePoints(Model):
    """Optimal partitioning of a series into pieces of constant mean, by dynamic programming with a penalty per piece."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(steps=400)
    small = dict(steps=8)

    def make(self, random, steps):
        return np.repeat(random.normal(size=8) * 2, -(-steps // 8))[:steps] + random.normal(size=steps), 8.0

    def rscan(self, steps):
        @rs.compile
        def segment(y, penalty):
            sums = rs.concatenate([rs.zeros(1), rs.cumsum(y)])
            squares = rs.concatenate([rs.zeros(1), rs.cumsum(y**2)])
            starts = rs.arange(steps)

            def extend(t, F):
                cost = squares[t] - squares[:-1] - (sums[t] - sums[:-1]) ** 2 / rs.maximum(t - starts, 1)
                total = rs.where(starts < t, F[:-1] + cost + penalty, np.inf)
                return dict(F=F.at[t].set(rs.min(total)), begin=rs.argmin(total))

            out = rs.loop(extend, over=dict(t=rs.arange(1, steps + 1)), init=dict(F=rs.full((steps + 1,), -penalty)))

            def back(end):
                begin = out.begin[end - 1]
                return begin, rs.until(begin == 0)

            changes = rs.loop(back, init=steps, n_steps=steps)
            marks = rs.set_subtensor(rs.zeros(steps, dtype="bool")[changes], True)
            return out.F[-1, -1], marks

        return segment

    def jax(self, steps):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def segment(y, penalty):
            sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(y)])
            squares = jnp.concatenate([jnp.zeros(1), jnp.cumsum(y**2)])
            starts = jnp.arange(steps)

            def extend(F, t):
                cost = squares[t] - squares[:-1] - (sums[t] - sums[:-1]) ** 2 / jnp.maximum(t - starts, 1)
                total = jnp.where(starts < t, F[:-1] + cost + penalty, jnp.inf)
                return F.at[t].set(jnp.min(total)), jnp.argmin(total)

            F, begin = lax.scan(extend, jnp.full(steps + 1, -penalty), jnp.arange(1, steps + 1))

            def back(state):
                end, marks = state
                return begin[end - 1], marks.at[begin[end - 1]].set(True)

            _, marks = lax.while_loop(lambda s: s[0] > 0, back, (steps, jnp.zeros(steps, bool)))
            return F[-1], marks

        return segment


class BoostedStumps(Model):
    """Least-squares boosting of stumps: columns sorted once, the best cut of all columns found from running sums per round."""

    kind = "searches, gathers, sorts"
    dtype = "float64"
    size = dict(rows=200, columns=10, rounds=40)
    small = dict(rows=6, columns=2, rounds=3)

    def make(self, random, rows, columns, rounds):
        X = random.normal(size=(rows, columns))
        return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * random.normal(size=rows), 0.3

    def rscan(self, rows, columns, rounds):
        @rs.compile
        def boost(X, y, rate):
            order = rs.argsort(X, axis=0)
            left = rs.arange(1, rows)[:, None]

            def fit(prediction):
                residual = y - prediction
                running = rs.cumsum(residual[order], axis=0)
                total = running[-1]
                gain = running[:-1] ** 2 / left + (total - running[:-1]) ** 2 / (rows - left)
                best = rs.argmax(gain)
                cut, column = best // columns, best % columns
                threshold = X[order[cut, column], column]
                low = running[cut, column] / (cut + 1)
                high = (total[column] - running[cut, column]) / (rows - cut - 1)
                new = prediction + rate * rs.where(X[:, column] <= threshold, low, high)
                return dict(prediction=new, column=column, threshold=threshold, mse=rs.mean((y - new) ** 2))

            out = rs.loop(fit, init=dict(prediction=rs.zeros(rows)), n_steps=rounds)
            return out.column, out.threshold, out.mse

        return boost

    def jax(self, rows, columns, rounds):
        import jax
        import jax.numpy as jnp
        from jax import lax

        @jax.jit
        def boost(X, y, rate):
            order = jnp.argsort(X, axis=0)
            left = jnp.arange(1, rows)[:, None]

            def fit(prediction, _):
                residual = y - prediction
                running = jnp.cumsum(residual[order], axis=0)
                total = running[-1]
                gain = running[:-1] ** 2 / left + (total - running[:-1]) ** 2 / (rows - left)
                cut, column = jnp.unravel_index(jnp.argmax(gain), gain.shape)
                threshold = X[order[cut, column], column]
                low = running[cut, column] / (cut + 1)
                high = (total[column] - running[cut, column]) / (rows - cut - 1)
                new = prediction + rate * jnp.where(X[:, column] <= threshold, low, high)
                return new, (column, threshold, jnp.mean((y - new) ** 2))

            return lax.scan(fit, jnp.zeros(rows), None, length=rounds)[1]

        return boost
