"""Formulas of the E-step of each method, in the notation of its source file, as LaTeX and MathML.

s = n/b is the scale of a minibatch and ρ the rate. w = L⁻¹k_u(x) are the whitened covariances of a row
with the inducing points. Sums are over the rows of the batch.
"""

from __future__ import annotations

from typing import NamedTuple

from latex2mathml.converter import convert
from markupsafe import Markup


class Formula(NamedTuple):
    """A formula in LaTeX with a description."""

    description: str
    latex: str

    @property
    def mathml(self) -> Markup:
        """Formula as MathML, not escaped, because the LaTeX is a constant of this file."""
        return Markup(convert(self.latex, display="block"))


SLOPES = Formula(
    "derivatives of the expected log likelihood, which the likelihood states",
    r"\alpha_i = \frac{\partial}{\partial \mu_i} \mathbb{E}_{q(f_i)} \log p(y_i \mid f_i), \qquad "
    r"\beta_i = -2 \frac{\partial}{\partial v_i} \mathbb{E}_{q(f_i)} \log p(y_i \mid f_i)",
)
_TWO_PARTS = Formula(
    "then γ, here by Newton's step; Adam, Eq. 17 and Eq. 16a go up the same slope",
    r"a \leftarrow a + \rho \left(D_\gamma + s K_\perp^\top \mathrm{diag}(\beta) K_\perp\right)^{-1} "
    r"\left(s K_\perp^\top \alpha - D_\gamma a\right)",
)

FORMULAS: dict[str, tuple[Formula, ...]] = {
    "t-svgp": (
        Formula(
            "marginals, with B = I + C",
            r"\mu_i = w_i^\top B^{-1} c, \qquad v_i = \kappa_i - w_i^\top w_i + w_i^\top B^{-1} w_i",
        ),
        SLOPES,
        Formula(
            "the whitened dual parameters (Adam et al. 2021, Eqs. 22–24)",
            r"c \leftarrow (1-\rho)\, c + \rho s \sum_i w_i \left(\beta_i \mu_i + \alpha_i\right), \qquad "
            r"C \leftarrow (1-\rho)\, C + \rho s \sum_i \beta_i\, w_i w_i^\top",
        ),
    ),
    "q-svgp": (
        SLOPES,
        Formula(
            "natural gradient of the whitened covariance S (Salimbeni et al. 2018a, Eq. 10)",
            r"S'^{-1} = (1-\rho)\, S^{-1} + \rho \left(I + s \sum_i \beta_i\, w_i w_i^\top\right)",
        ),
        Formula(
            "and of the whitened mean",
            r"m' = m + \rho\, S' \left(s \sum_i \alpha_i w_i - m\right)",
        ),
    ),
    "diagonal-precision": (
        Formula(
            "2M numbers a latent (Kobe 2021, Eq. 3.5)",
            r"m = K \mu, \qquad S = \left(K^{-1} + \mathrm{diag}\, g\right)^{-1}",
        ),
        SLOPES,
        Formula(
            "exact: the natural gradient of the family; A = K⁻¹K_uf, ∘ entry by entry",
            r"g \leftarrow (1-\rho)\, g + \rho\, (S \circ S)^{-1} (SA \circ SA)\, s \beta",
        ),
        Formula(
            "the mean, with the new S",
            r"m \leftarrow m + \rho\, S' \left(s A \alpha - K^{-1} m\right)",
        ),
    ),
    "decoupled": (
        Formula(
            "a basis α for the mean, another β for the covariance (Cheng and Boots 2017, Eqs. 7–8)",
            r"m(x) = k_{x\alpha} a, \qquad v(x) = \kappa - k_{x\beta} (B^{-1} + K_\beta)^{-1} k_{\beta x}, "
            r"\qquad B = L_B L_B^\top",
        ),
        Formula(
            "the slopes that Adam or plain steps go up; b marks the batch, and its α and β carry the scale s",
            r"\partial_a = K_{\alpha b}\, \alpha - K_\alpha a, \qquad "
            r"\partial_{L_B} = \mathrm{tril}\left(\left(U\, \mathrm{diag}(\beta)\, U^\top - S B S\right) "
            r"L_B\right)",
        ),
    ),
    "orth": (
        Formula(
            "the mean's own part is orthogonal to β (Salimbeni et al. 2018b, Eq. 12)",
            r"m(x) = \left(k_{x\gamma} - k_{x\beta} K_\beta^{-1} K_{\beta\gamma}\right) a + "
            r"k_{x\beta} K_\beta^{-1} m_\beta, \qquad "
            r"D_\gamma = K_\gamma - K_{\gamma\beta} K_\beta^{-1} K_{\beta\gamma}",
        ),
        SLOPES,
        Formula(
            "first β, by the E-step of the coupled method at the marginals that have γ's mean in them",
            r"(m_\beta, S_\beta) \leftarrow \mathrm{E}_{\mathrm{coupled}}(m_\beta, S_\beta)",
        ),
        _TWO_PARTS,
    ),
    "hybrid": (
        Formula(
            "as ORTH without the projection (Salimbeni et al. 2018b, Eq. 11)",
            r"m(x) = k_{x\gamma} a + k_{x\beta} K_\beta^{-1} m_\beta",
        ),
        SLOPES,
        Formula(
            "the slope of γ, which β pulls on through the prior",
            r"\partial_a = s K_{\gamma b}\, \alpha - K_\gamma a - K_{\gamma\beta} K_\beta^{-1} m_\beta",
        ),
    ),
    "t-vgp": (
        Formula(
            "a Gaussian site for every datum (Adam et al. 2021, Sec. 3)",
            r"S = \left(K^{-1} + \mathrm{diag}\, \beta\right)^{-1}, \qquad m = S \lambda_1",
        ),
        SLOPES,
        Formula(
            "the sites; of a minibatch those of its rows, times s, and all decay",
            r"\lambda_{1,i} \leftarrow (1-\rho)\, \lambda_{1,i} + \rho \left(\beta_i \mu_i + \alpha_i\right)"
            r", \qquad \beta_i \leftarrow (1-\rho)\, \beta_i + \rho\, \beta_i(q)",
        ),
    ),
    "q-vgp": (
        SLOPES,
        Formula(
            "q-SVGP's step with the inputs themselves as inducing points, whitened",
            r"S'^{-1} = (1-\rho)\, S^{-1} + \rho \left(I + s\, L^\top \mathrm{diag}(\beta)\, L\right), "
            r"\qquad m' = m + \rho\, S' \left(s L^\top \alpha - m\right)",
        ),
    ),
    "gpr": (
        Formula(
            "the log marginal likelihood, a function of θ alone",
            r"\log \mathcal{N}\left(y \mid 0,\ K_{ff} + \sigma^2 I\right)",
        ),
    ),
    "sgpr": (
        Formula(
            "Titsias's collapsed bound, with B = I + WWᵀ/σ², c = Wy/σ², W = L⁻¹K_uf",
            r"-\tfrac{n}{2} \log 2\pi\sigma^2 - \tfrac12 \log |B| - \tfrac12 \left(\frac{y^\top y}{\sigma^2}"
            r" - c^\top B^{-1} c\right) - \frac{\sum_i \kappa_i - \|W\|_F^2}{2 \sigma^2}",
        ),
    ),
}
"""Formulas by method; a method of another package has none."""
