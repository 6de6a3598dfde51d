"""Every other classifier of the paper's tables, under the contract of `oneclass.checks`.

>>> import numpy as np
>>> from oneclass import rivals
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> [str(rivals.by_name(name)(alarm_rate=0.1).fit(X).predict([[6.0, 6.0]])[0]) for name in ("knndd", "gauss_dd", "OCKELM")]
['-1', '-1', '-1']
"""

from oneclass.errors import InvalidParameterError
from oneclass.rivals.autoencoder import AutoEncoder
from oneclass.rivals.densities import Gaussian, NaiveParzen, Parzen
from oneclass.rivals.incremental_svdd import IncrementalSVDD
from oneclass.rivals.kernel_elm import AAKELM, GOCELM, OCKELM
from oneclass.rivals.kernel_pca import OnlineKernelPCA
from oneclass.rivals.minimax import MinimaxProbability
from oneclass.rivals.neighbours import KNearest
from oneclass.rivals.prototypes import KMeans, SelfOrganisingMap
from oneclass.rivals.random_features import RandomFeatureBoundary, RandomFeatureReconstruction
from oneclass.rivals.refitted import Refitted
from oneclass.rivals.rival import Rival
from oneclass.rivals.subspaces import PCA
from oneclass.rivals.svdd import SVDD, OneClassSVM

__all__ = [
    "AAKELM",
    "GOCELM",
    "OCKELM",
    "PCA",
    "SVDD",
    "AutoEncoder",
    "Gaussian",
    "IncrementalSVDD",
    "KMeans",
    "KNearest",
    "MinimaxProbability",
    "NaiveParzen",
    "OneClassSVM",
    "OnlineKernelPCA",
    "Parzen",
    "RandomFeatureBoundary",
    "RandomFeatureReconstruction",
    "Refitted",
    "SelfOrganisingMap",
]

PAPER_NAMES: dict[str, type[Rival]] = {
    "knndd": KNearest,
    "svdd": SVDD,
    "OCSVM": OneClassSVM,
    "kmeans_dd": KMeans,
    "parzen_dd": Parzen,
    "nparzen_dd": NaiveParzen,
    "pca_dd": PCA,
    "mpm_dd": MinimaxProbability,
    "incsvdd": IncrementalSVDD,
    "som_dd": SelfOrganisingMap,
    "autoenc_dd": AutoEncoder,
    "gauss_dd": Gaussian,
    "OCKELM": OCKELM,
    "AAKELM": AAKELM,
    "OKPCA": OnlineKernelPCA,
    "GOCELM": GOCELM,
    "OCELM": RandomFeatureBoundary,
    "OS-OCELM": RandomFeatureBoundary,
    "AAELM": RandomFeatureReconstruction,
    "OS-AAELM": RandomFeatureReconstruction,
}
"""The classes by the names that the paper's tables have for them."""


def by_name(name: str) -> type[Rival]:
    """The class of that name, the paper's ("knndd") or ours ("KNearest"); capitals do not matter."""
    ours = {each.__name__: each for each in (*PAPER_NAMES.values(), Refitted)}
    known = {key.lower(): value for key, value in (ours | PAPER_NAMES).items()}
    if name.lower() not in known:
        raise InvalidParameterError(f"there is no classifier {name!r}: choose one of {', '.join([*PAPER_NAMES, *ours])}")
    return known[name.lower()]
