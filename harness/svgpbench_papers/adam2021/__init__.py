"""Adam, Chang, Khan and Solin 2021: dual parameterization of sparse variational Gaussian processes."""
