"""An error of an operation, at one step of a nested loop."""

import numpy as np

import rscan as rs

table, rows = rs.dvector("table"), rs.lmatrix("rows")


def lookup(row):
    values, _ = rs.scan(lambda i: table[i], sequences=row, name="inner")
    return values.sum()


sums, updates = rs.scan(lookup, sequences=rows, name="outer")
rs.function([table, rows], sums)(np.ones(4), np.array([[0, 1], [3, 4]]))
