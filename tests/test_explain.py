"""What `expected` and `explain` answer, and the gradients they stand on."""

import numpy as np
import pytest
import reference
from pairs import KERNELS, TWINS, both_models, every_kernel, every_twin, half_cubed, normal

from oneclass import KernelBoundary, KernelReconstruction
from oneclass.kernels import RBF

FRESH = np.concatenate([normal(8, seed=1), 4 * normal(8, seed=2), normal(2)])


def boundary(chosen, **more):
    return KernelBoundary(**chosen, C=5.0, alarm_rate=0.1, **more).fit(normal(60))


@every_twin
def test_a_boundary_is_compared_with_the_nearest_accepted_row(chosen, twin):
    """`expected` is the row of the window nearest to x among those that are themselves accepted."""
    fitted = boundary(chosen, threshold="training")
    accepted = normal(60)[fitted.predict(normal(60)) == 1]
    nearest = ((FRESH[:, None, :] - accepted) ** 2).sum(axis=2).argmin(axis=1)
    assert len(accepted) < 60
    np.testing.assert_array_equal(fitted.expected(FRESH), accepted[nearest])
    assert (fitted.predict(fitted.expected(FRESH)) == 1).all()


def test_nearest_is_meant_as_the_kernel_sees_it():
    """With scaled features the nearest row is nearest after scaling, and is answered in the units of X."""
    units = np.array([1.0, 1024.0, 0.125])
    plain, scaled = KernelBoundary().fit(normal(60)), KernelBoundary().fit(normal(60) * units)
    np.testing.assert_array_equal(scaled.expected(FRESH * units), plain.expected(FRESH) * units)


@every_twin
def test_boundary_shares_add_up(chosen, twin):
    """The shares of the features add up to d(x) - d(expected), for every kernel, near and far."""
    fitted = boundary(chosen)
    d = -fitted.score_samples(FRESH) + fitted.score_samples(fitted.expected(FRESH))
    shares = fitted.explain(FRESH)
    np.testing.assert_allclose(shares.sum(axis=1), d, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(shares).max()))


@every_twin
def test_boundary_shares_are_the_integral_of_the_gradient(chosen, twin):
    """Each share is the integral of the gradient of d along the way from `expected`, as differences of the naive fit give it."""
    fitted, naive = boundary(chosen), reference.fit(normal(60), twin, 5.0)
    for row, origin, shares in zip(FRESH[:3], fitted.expected(FRESH), fitted.explain(FRESH), strict=False):
        ends = np.linspace(0.0, 1.0, 1001)
        middles = origin + ((ends[1:] + ends[:-1]) / 2)[:, None] * (row - origin)
        gradient = np.empty_like(middles)
        for feature, step in enumerate(1e-5 * np.eye(3)):
            gradient[:, feature] = (reference.distances(naive, middles + step) - reference.distances(naive, middles - step)) / 2e-5
        integral = gradient.mean(axis=0) * (row - origin)
        # Of 64 pieces; the kinks of |f - 1| and, for the Laplacian, of the kernel at every row cost most of this.
        np.testing.assert_allclose(shares, integral, rtol=0, atol=0.05 * np.abs(integral).max())


@pytest.mark.parametrize("chosen", [{"kernel": "rbf", "width": 1.5}, {"kernel": half_cubed}], ids=["rbf", "function"])
def test_the_feature_that_moved_is_named(chosen):
    """A normal row with one feature moved away is explained by that feature, of both models."""
    for model in (KernelBoundary, KernelReconstruction):
        fitted = model(**chosen, C=1.0).fit(normal(80))
        for feature in range(3):
            row = np.zeros((1, 3))
            row[0, feature] = 6.0
            shares = fitted.explain(row)[0]
            assert shares.argmax() == feature
            assert shares[feature] > 0.5 * np.abs(shares).sum()


def test_a_row_of_the_window_needs_no_explanation():
    """A row that is its own `expected` has shares of exactly zero features moved: they add up to nothing."""
    fitted = boundary({"width": 1.5})
    own = fitted.expected(FRESH)
    np.testing.assert_array_equal(fitted.expected(own), own)
    np.testing.assert_allclose(fitted.explain(own), 0.0, atol=1e-12)


@every_twin
def test_a_reconstruction_is_compared_with_its_image(chosen, twin):
    """`expected` of the reconstruction model is k(x)ᵀβ of the naive fit, and `explain` the squared residual of each feature."""
    fitted = KernelReconstruction(**chosen, C=5.0).fit(normal(60))
    naive = reference.fit(normal(60), twin, 5.0, "reconstruction")
    image = naive.kernel(FRESH, naive.window) @ naive.beta
    np.testing.assert_allclose(fitted.expected(FRESH), image, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fitted.explain(FRESH), (FRESH - image) ** 2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fitted.explain(FRESH).sum(axis=1), -fitted.score_samples(FRESH), rtol=1e-12)


def test_a_reconstruction_is_in_the_units_of_the_rows():
    """With automatic scaling `expected` has the units of X; the shares are those of the scaled rows and add up to d."""
    units = np.array([1.0, 1024.0, 0.125])
    plain, scaled = KernelReconstruction().fit(normal(60)), KernelReconstruction().fit(normal(60) * units)
    np.testing.assert_array_equal(scaled.expected(FRESH * units), plain.expected(FRESH) * units)
    np.testing.assert_array_equal(scaled.explain(FRESH * units), plain.explain(FRESH))


@both_models
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_explaining_a_row_does_not_depend_on_the_rows_beside_it(model, kernel):
    """`expected` and `explain` of one row are those it has among others, to rounding."""
    fitted = model(kernel, C=5.0).fit(normal(60))
    for call in (fitted.expected, fitted.explain):
        alone = np.concatenate([call(row) for row in FRESH[:, None, :]])
        np.testing.assert_allclose(alone, call(FRESH), rtol=1e-9, atol=1e-9)


@every_kernel
def test_gradients_are_differences(kernel):
    """The gradient of sum_j w_j k(x, y_j) agrees with central differences of the kernel, for every kernel and combination."""
    X, Y, weights = normal(6, seed=3), normal(9, seed=4), normal(6, features=9, seed=5)
    differences = np.empty_like(X)
    for feature, step in enumerate(1e-6 * np.eye(3)):
        differences[:, feature] = (weights * (kernel(X + step, Y) - kernel(X - step, Y))).sum(axis=1) / 2e-6
    np.testing.assert_allclose(kernel.gradient(X, Y, weights), differences, rtol=1e-6, atol=1e-6)


def test_a_gradient_at_a_row_itself_is_zero():
    """The RBF kernel is flat at its centre."""
    x = normal(1)
    np.testing.assert_array_equal(RBF(1.0).gradient(x, x, np.ones((1, 1))), np.zeros((1, 3)))


def test_every_twin_is_explained():
    """The kernels under test here are all the kernels there are, a sum, a product and a function among them."""
    assert {"rbf", "laplacian", "rational_quadratic", "polynomial", "linear", "sum", "product", "function"} <= set(TWINS)
