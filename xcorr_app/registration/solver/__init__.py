"""One weighted Gauss-Newton for all that moves: `basis` says what may move and how, `gauss_newton` solves."""
