"""The catalogue of the 26 data sets of the paper's Tables II and IV: shape, target class, source, and what to know of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from oneclass.streams.formats import Reader, abalone, ecoli, electricity, plain_text, poker, sonar


@dataclass(frozen=True)
class Source:
    """A public file: where it lies in which commit of which repository, and how it becomes records."""

    repository: str
    commit: str
    path: str
    reader: Reader | None = plain_text  # None: its format takes more than reading text; the user converts it
    blob: str | None = None  # the id that git gives to the file, where that is all there is to check it by

    def __str__(self) -> str:
        return f"github.com/{self.repository}, commit {self.commit[:10]}, {self.path}"


@dataclass(frozen=True)
class Dataset:
    """One data set of the paper, as its file must be."""

    name: str
    count: int
    features: int
    targets: int
    target_labels: Sequence[int]
    target: str
    source: Source
    sha256: str | None  # of the unzipped file of records; None: only the source's blob is known
    note: str
    columns: str = ""  # the names of the features; empty: x1, x2, ...
    table: str = "IV"

    @property
    def header(self) -> str:
        """The first line of the file."""
        return f"{self.columns or ','.join(f'x{number}' for number in range(1, self.features + 1))},label"

    @property
    def description(self) -> str:
        """What the data set is, in one paragraph."""
        return (
            f"{self.name} (Table {self.table}): {self.count:,} rows, {self.features} features; {self.targets:,} targets "
            f"({self.target}), {self.count - self.targets:,} others. {self.note} Source: {self.source}."
        )


_ARCHIVE = ("ATISLabs/SCARGC.jl", "84368f3bd275ad86efcbf3f7ba2bd97e1aab2c8d")
_MEASURES = "Length,Diameter,Height,Whole_weight,Shucked_weight,Viscera_weight,Shell_weight"


def _synthetic(name: str, count: int, targets: int, sha256: str, note: str) -> Dataset:
    """A set of the archive of non-stationary streams (Souza et al. 2015), two features."""
    file = name.replace("-", "_") if "-2C-" in name else name
    source = Source(*_ARCHIVE, f"src/datasets/synthetic/{file}.txt")
    return Dataset(name, count, 2, targets, (1,), "class 1", source, sha256, note)


def _out_of_reach(name: str, features: int, blob: str) -> Dataset:
    """A set of the archive that was known by its git blob alone when this was written."""
    source = Source(*_ARCHIVE, f"src/datasets/synthetic/{name.replace('-', '_')}.txt", blob=blob)
    note = "Two Gaussians whose means and deviations move, in more dimensions."
    return Dataset(name, 200_000, features, 100_000, (1,), "class 1, by convention", source, None, note)


# In the order of the paper's tables. Abbreviated commits name sources that are not fetched.
_SETS = (
    _synthetic(
        "1CDT",
        16_000,
        8_000,
        "c137fb70aca343351fd59ccb43898e4e050a18b5bdc091f2b31461f070fedadc",
        "The others move along a diagonal, the targets stay.",
    ),
    _synthetic(
        "1CHT",
        16_000,
        8_000,
        "4e3587a2af6f745ca214b7d3ded768a2ebe56dc822bea09fbdb7f130834b76d0",
        "The others move along an axis, the targets stay.",
    ),
    _synthetic(
        "4CE1CF",
        173_250,
        34_650,
        "460cc949d6de804eaf6d7b1ff0e2dfc218335eb25fc54f72f5d9c6d43265d6ce",
        "Four classes move apart round the fixed targets. Only 15,750 rows are distinct: step k, of 750 k rows, repeats those of "
        "all steps before.",
    ),
    _synthetic(
        "4CR",
        144_400,
        36_100,
        "0c69e6324cfc221f7207336f327c1173da315d78c640264cf2f9078eb77e3558",
        "Four classes rotate on one circle; which is the target hardly matters.",
    ),
    _synthetic(
        "GEARS-2C-2D",
        200_000,
        100_000,
        "e0420291396caa41f951f938a725e7d0b473b4f2538063b10635352e6d823b79",
        "Two five-armed gears rotate in place, side by side.",
    ),
    _synthetic(
        "4CRE-V1",
        125_000,
        31_250,
        "6a8f8e324078c5fc4930e903b4cb8cc946fc6f87dc4cefb647469f0b71b73aaf",
        "Four classes rotate while the circle grows and shrinks.",
    ),
    _synthetic(
        "4CRE-V2",
        183_000,
        45_750,
        "9f7d4d812d3da64a740c6db914411b8c7fbb6a5ae8196588172a6ae40acc9bd4",
        "As 4CRE-V1, closer together.",
    ),
    _synthetic(
        "5CVT",
        24_000,
        8_000,
        "f6a9097d787e24fc17ada68fc26c4171d95a9e86c94f127760e65201d6528794",
        "Five classes move upwards side by side; the largest is the target.",
    ),
    _synthetic(
        "2CDT",
        16_000,
        8_000,
        "063d08565a0cc35587543d6ec8aa0d2cd400f8626c5ac67ce92641de27d82eae",
        "Both classes move along a diagonal, the others ahead.",
    ),
    _synthetic(
        "2CHT",
        16_000,
        8_000,
        "3214392a1365ab922766d21397bb6e50b500a00c931f79d334b86f2a184f5b91",
        "Both classes move along an axis.",
    ),
    _synthetic(
        "1CSurr",
        55_283,
        20_200,
        "e89ab980b98dc25a02767c283e5489da208ac8b17cb9ce58bbb112ac004e8f5f",
        "The targets travel round the wide, fixed class of the others.",
    ),
    _synthetic(
        "UG-2C-2D",
        100_000,
        50_000,
        "5256d38aca10510b7dfd2d0cedfd83b3188577ec0071b9a0d91b0a87bb125e23",
        "Two Gaussians whose means and deviations move.",
    ),
    _out_of_reach("UG-2C-3D", 3, "272399c611f7ce3022e956178216b8eb2f851e18"),
    _out_of_reach("UG-2C-5D", 5, "09d6fe02554a0797e4810773eab992f80e11ea88"),
    _synthetic(
        "MG-2C-2D",
        200_000,
        100_000,
        "459ba707176026b2b93c433e20160adb56154c2f54230c9da21f1e7385b25ae7",
        "Two Gaussian mixtures whose modes move, meet and part.",
    ),
    _synthetic(
        "FG-2C-2D",
        200_000,
        150_000,
        "fb6f3bc8c265108442e764172c5151b43c1fdd61a5cc11aa0bb60fc748d3de71",
        "Four Gaussians on a circle, the others among the targets.",
    ),
    Dataset(
        "Electricity",
        45_312,
        8,
        19_237,
        (1,),
        "the price goes up",
        Source(
            "diegomarron/ElasticSwapRandomForest",
            "446130248d9b7ff1ad46d1889e7afab960674924",
            "datasets/elecNormNew.arff",
            electricity,
        ),
        "e10e76ebaa7776ab7416c687635b3d2c059e1913e6019db4c06771a8f55d092e",
        "Half hours of the electricity market of New South Wales in their order; all features in [0, 1] but the day, 1 to 7.",
        "date,day,period,nswprice,nswdemand,vicprice,vicdemand,transfer",
    ),
    Dataset(
        "Poker-hand",
        829_201,
        10,
        415_526,
        (0,),
        "nothing in the hand",
        Source("marouabahri/UMAP-kNN", "a7b119aecec744d6b3a3cf7036ca3fd79f3e12ce", "datasets/poker.zip", poker),
        "b0b4750dae3b16226993e06d5cd53f49a21f1a96dffd7b708019a710608b18d2",
        "Suits 1 to 4 and raw ranks 1 to 13 of five cards. Hands are sorted as text, none is there twice: this order is the drift.",
        "s1,r1,s2,r2,s3,r3,s4,r4,s5,r5",
    ),
    Dataset(
        "Keystroke",
        1_600,
        10,
        400,
        (1,),
        "user 1",
        Source(*_ARCHIVE, "src/datasets/real/keystroke.txt"),
        "280e838c1c3461f7c3ce0dd92133bc59fffa8195eaf1c816c8c03aaa29c94339",
        "Four users type a password in eight sessions; every four rows hold one row of each.",
    ),
    Dataset(
        "Abalone",
        4_177,
        10,
        2_770,
        range(9, 30),
        "9 rings or more",
        Source("kosicsd12176/abalone", "864492147da3862bbb6c94d8c970abd48c088b61", "abalone.data", abalone),
        "0a509e02f963dda14b637654a1b0da9f27d8b3d03fc71f5f22e4cae7501bac70",
        "The sex as three columns of 0 and 1, which alone gives the paper's 10 features, and seven measures. The order is no time.",
        f"sex_M,sex_F,sex_I,{_MEASURES}",
    ),
    Dataset(
        "Breast-Cancer",
        699,
        9,
        458,
        (2,),
        "benign",
        Source("Chandan-IITI/One-Class-Kernel-ELM", "a57cbbeafd", "ELM_DD _MATLAB_ToolBox/oc_505.mat", None),
        "1b3edfc2af608aeb283efc322f1135012a6828aed329a97c571cc3352fdf1f84",
        "Table II has the two counts swapped. 16 missing values of bare nuclei are stored as -1.",
        table="II",
    ),
    Dataset(
        "Diabetes",
        768,
        8,
        500,
        (0,),
        "class 0",
        Source("Chandan-IITI/LMKAD", "ad1f95161d", "pima.mat", None),
        "de3cfd600811c6adfae3983ee6b4a42e0349c1a5d2249940a6805ddbe57ba646",
        "The Pima Indians, in the order of the UCI repository.",
        table="II",
    ),
    Dataset(
        "Ecoli",
        336,
        7,
        52,
        (8,),
        "pp, the periplasm",
        Source("mglowinski/python-data-analyse", "8a489bbb9dd707273427b90a55cbe10ffb74193e", "ecoli.data", ecoli),
        "b5e65bdd104b3c908968f9b1a7e30ff2b0c271fe0f1d9ab310f9bc4766ee7c72",
        "Labels: cp 1, im 2, imS 3, imL 4, imU 5, om 6, omL 7, pp 8; sorted by class.",
        "mcg,gvh,lip,chg,aac,alm1,alm2",
        "II",
    ),
    Dataset(
        "Liver",
        345,
        6,
        145,
        (1,),
        "class 1",
        Source("Chandan-IITI/LMKAD", "ad1f95161d", "bupa.mat", None),
        "e94943ade04e64d14c601c0530639cd1dc5ef593fbef53dffb305ae55c1f0a58",
        "BUPA liver disorders, sorted by class.",
        table="II",
    ),
    Dataset(
        "Sonar",
        208,
        60,
        111,
        (1,),
        "mines",
        Source("mihailosu/mpi-random-forest", "2043196f9a8679f7555b5f261a269472be129737", "sonar.all-data", sonar),
        "2d3842c292ebe68d5ccbe653a4a8276b313d6d0bc94b21f9cfcb8dfa0f6dace7",
        "Mines and rocks, sorted by class.",
        table="II",
    ),
    Dataset(
        "SPECTF",
        349,
        44,
        95,
        (0,),
        "class 0",
        Source(
            "Chandan-IITI/Deep-Kernel-Learning-for-One-class-Classification",
            "2c3f067178",
            "src/data/benchmarkSmall/SPECTHeart.mat",
            None,
        ),
        "a92886cce8dff4358523a6fa293d835f6ad7aca276ea3d8cc4d74591bf4d5af8",
        "The older file of 349 rows, its parts joined; the original order is lost.",
        table="II",
    ),
)

DATASETS = {each.name: each for each in _SETS}
"""All data sets by name, in the order of the paper's tables: streams first."""
