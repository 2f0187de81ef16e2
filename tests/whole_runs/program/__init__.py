"""A second program of the papers' algorithms: NumPy, SciPy and autograd, dense, in u's own coordinates.

It imports nothing of the package that it is compared with. q(u) = N(m, S) is held as such, K is inverted,
and gradients of bounds are autograd's; the only thing that is fast is the size of the problems.

`svgpbench.checks.dense` has part of this algebra too, in NumPy alone and with slopes in closed form. Runs
also need gradients in θ, so every formula here is one that autograd differentiates.
"""
