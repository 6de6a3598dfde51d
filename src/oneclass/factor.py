"""The Cholesky factor of a matrix whose rows live in the slots of a ring.

A factor is built front to back, so a chunk that overwrites some slots leaves valid what is in front of them, and of the rows behind
them the columns in front of them; only the rest is computed again. Forgetting and learning are therefore one step, and no error is
carried from chunk to chunk. Knows nothing of kernels or alarms.

Three other designs were measured and left. Updating the factor by rotations (LAPACK dtpqrt) costs more from chunks of n/15 rows
on and carries its error along. Handing everything behind the changed slot to dtrsm and dpotrf at once ran at 30 GFLOP/s where the
products below run at 52, and its bits depend on where the chunk began. Products of more than 100 rows and columns ran at 45:
OpenBLAS multiplies matrices of up to 10⁶ products without copying them first, so all products here are of one block by one block.
"""

import numpy as np
from scipy.linalg import blas

from oneclass.loops import cholesky, invert_lower, is_compiled
from oneclass.symmetric import symmetric_product
from oneclass.types import Floats

ONE_BLOCK_UP_TO = 200
BLOCK = 100
ASIDE = 1 / 6
"""The share of the block columns, next to the diagonal, whose sums are put aside for the next chunk.

At n = 2500 that takes 0.2 n² numbers and spares a twentieth of the time; all of them would take 0.5 n² and spare a fifth.
"""


class IndefiniteError(ArithmeticError):
    """The matrix is not positive definite; `slot` is the first row at which that shows."""

    def __init__(self, slot: int) -> None:
        super().__init__(f"not positive definite at row {slot}")
        self.slot = slot


def block_size(capacity: int | None) -> int:
    """Rows per block: the whole window up to 200 rows, then equal blocks of at most 100.

    Up to 200 rows a full factorisation costs no more than a partial one. The size depends on the capacity alone, so that the factor
    has the same bits whatever happened before; equal blocks suit round chunk sizes.
    """
    if capacity is None:
        return BLOCK
    return capacity if capacity <= ONE_BLOCK_UP_TO else -(-capacity // -(-capacity // BLOCK))


class Factor:
    """Φ = K + diag(ridge) in slots, and its lower Cholesky factor L, kept block row by block row.

    Every block row is computed from the ones in front of it by the same operations in the same order, whatever its history: L is a
    pure function of K, ridge and the block size, to the last bit, and may be dropped and computed again at any time.

    Block row I (slots start:end) is stored transposed, as (columns, rows): then every product below runs on contiguous memory.
    A full factorisation is n³/3 flops and equals scipy.linalg.cholesky(K + diag(ridge), lower=True).
    """

    def __init__(self, block: int) -> None:
        self.block = block
        self.size = 0
        self._bounds: list[tuple[int, int]] = []  # (start, end) of each block row
        self._kernel: list[Floats] = []  # (end, end - start): K[start:end, :end]ᵀ, down to the diagonal of K
        # What is computed from it. Arrays that are no longer valid are kept to be written over: fresh ones would cost page faults
        # at every chunk.
        self._valid: list[int] = []  # of each block row of L, how many blocks from the left are valid
        self._inverse_rows = 0  # of the block rows of L⁻¹, how many are valid
        self._next = 0  # the block row in which the next chunk will begin, if it goes on where the last one ended
        self._front: list[Floats] = []  # (start, end - start): L[start:end, :start]ᵀ
        self._aside: list[list[Floats]] = []  # of blocks near the diagonal: K less the first `_taken` of the products behind L
        self._taken = np.zeros((0, 0), dtype=np.int64)  # for each block of K, how many of them
        self._diagonal: list[Floats] = []  # L[start:end, start:end] in Fortran order; no meaning above the diagonal
        self._inverted: list[Floats | None] = []  # the inverse of that block, zero above, once somebody needs it
        self._inverse_front: list[Floats] = []  # (start, end - start): L⁻¹[start:end, :start]ᵀ
        self._sums: list[Floats] = []  # like it: the sum of the first `_summed` of the products that it is made of
        self._summed: list[int] = []

    @property
    def peak(self) -> float:
        """The largest number on the diagonal of K."""
        return max(float(panel[start:].diagonal().max()) for (start, _), panel in zip(self._bounds, self._kernel, strict=True))

    def write(self, slots: slice, rows: Floats) -> None:
        """Put `rows` = K[slots, :] into the matrix, as rows and as columns; slots beyond the present size enlarge it."""
        if rows.shape[1] != self.size:
            self._resize(rows.shape[1])
        for index, (start, end) in enumerate(self._bounds):
            panel = self._kernel[index]
            if slots.start < end:
                panel[slots.start : min(slots.stop, end)] = rows[: end - slots.start, start:end]
            first, last = max(slots.start, start), min(slots.stop, end)
            if first < last:
                panel[:last, first - start : last - start] = rows[first - slots.start : last - slots.start, :last].T
        # A row of L knows only the rows in front of it, and of its own numbers in K those up to the same place.
        first, last = slots.start // self.block, (slots.stop - 1) // self.block
        for index in range(first, len(self._bounds)):
            self._valid[index] = min(self._valid[index], 0 if index <= last else first)
            if index <= last or self._summed[index] > first:
                self._summed[index] = 0
        changed = slice(first, last + 1)
        self._taken[changed] = self._taken[:, changed] = 0
        self._taken[self._taken > first] = 0
        self._inverse_rows, self._next = min(self._inverse_rows, first), slots.stop // self.block

    def factorise(self, ridge: Floats) -> None:
        """Compute the block rows that are not valid. Raises IndefiniteError, and then keeps those in front of the bad one."""
        for index, (start, end) in enumerate(self._bounds):
            if self._valid[index] > index:
                continue
            self._eliminate(index)
            failed = cholesky(self._remainder(index, index), ridge[start:end], self._diagonal[index])
            if failed:
                raise IndefiniteError(start + failed - 1)
            self._inverted[index] = None
            self._valid[index] = index + 1

    def solve(self, targets: Floats) -> Floats:
        """Φ⁻¹ targets, for targets of shape (n,) or (n, k): one substitution forwards and one backwards, 2n² flops a column."""
        if len(self._bounds) == 1:
            return _substitute(self._diagonal[0], _substitute(self._diagonal[0], targets, transposed=0), transposed=1)
        solution = targets.copy()
        for index, (start, end) in enumerate(self._bounds):
            if start:
                solution[start:end] -= self._front[index].T @ solution[:start]
            solution[start:end] = _substitute(self._diagonal[index], solution[start:end], transposed=0)
        for index, (start, end) in reversed(list(enumerate(self._bounds))):
            solution[start:end] = _substitute(self._diagonal[index], solution[start:end], transposed=1)
            if start:
                solution[:start] -= self._front[index] @ solution[start:end]
        return solution

    @property
    def is_hasty(self) -> bool:
        """Whether a solution gains from being refined.

        Products with inverted blocks lose digits that substitution keeps, here and inside OpenBLAS's dpotrf. One block, by the
        compiled loop, has lost none: there a residual in float64 is coarser than the error of the solution itself (n = 150,
        C = 1e8, d = 3, width twice the median distance: the error of θ was 4e-8, and 1e-7 after a step of refinement).
        """
        return len(self._bounds) > 1 or not is_compiled()

    def refined(self, solution: Floats, targets: Floats, ridge: Floats) -> Floats:
        """One step of iterative refinement: Φ⁻¹ is applied to the residual of `solution`, 4n² flops a column."""
        return solution + self.solve(targets - self._times(solution) - (ridge * solution.T).T)

    def inverse_diagonal(self) -> Floats:
        """The diagonal of Φ⁻¹: the squared norms of the columns of L⁻¹, whose front is valid as long as that of L. n³/3 flops."""
        diagonal = np.zeros(self.size)
        for index, (start, end) in enumerate(self._bounds):
            inverted = self._inverted_block(index)
            if start:
                row = self._inverse_front[index]
                if index >= self._inverse_rows:
                    self._invert_row(index, row)
                diagonal[:start] += np.vecdot(row, row)
            diagonal[start:end] += np.vecdot(inverted.T, inverted.T)
            self._inverse_rows = max(self._inverse_rows, index + 1)
        return diagonal

    def _eliminate(self, index: int) -> None:
        """L[start:end, :start]ᵀ, one block of columns after the other; those that are valid stay."""
        front = self._front[index]
        for before in range(self._valid[index], index):
            a, b = before * self.block, (before + 1) * self.block
            rest = self._remainder(index, before)
            # A product with the inverted block runs three times as fast as dtrsm. The price is an error that grows with the
            # condition of a block; see `is_hasty`.
            inverted, half = self._inverted_block(before), (b - a) // 2
            np.matmul(inverted[:half, :half], rest[:half], out=front[a : a + half])  # the rest of these rows is zero
            np.matmul(inverted[half:], rest, out=front[a + half : b])

    def _remainder(self, index: int, column: int) -> Floats:
        """(K[I, J] - L[I, :J] · L[J, :J]ᵀ)ᵀ of two block rows; of a diagonal block only what is above the diagonal counts."""
        tile = slice(*self._bounds[column])
        kept = self._next if self._next <= column and index - column < len(self._aside[index]) else 0
        rest = self._kernel[index][tile]
        if kept:
            # Put aside on its way is what the next chunk will find unchanged; the sum has the same bits.
            aside, taken = self._aside[index][index - column], int(self._taken[index, column])
            if not taken:
                np.copyto(aside, rest)
            self._subtract_products(index, column, aside, range(taken, kept))
            self._taken[index, column] = kept
            rest = aside
        if kept == column:
            return rest
        rest = rest.copy()
        self._subtract_products(index, column, rest, range(kept, column))
        return rest

    def _subtract_products(self, index: int, column: int, rest: Floats, blocks: range) -> None:
        """Take (L[I, block] · L[J, block]ᵀ)ᵀ of these blocks from `rest`."""
        front, other = self._front[index], self._front[column]
        for block in blocks:
            tile = slice(*self._bounds[block])
            if index == column:
                blas.dsyrk(-1.0, front[tile].T, beta=1.0, c=rest.T, lower=1, overwrite_c=1)
            else:
                blas.dgemm(-1.0, front[tile].T, other[tile].T, beta=1.0, c=rest.T, trans_b=1, overwrite_c=1)

    def _invert_row(self, index: int, row: Floats) -> None:
        """L⁻¹[start:end, :start]ᵀ = -(L_II⁻¹ · L[start:end, :start] · L⁻¹[:start, :start])ᵀ into `row`."""
        # Put aside on its way is what the next chunk will find unchanged: a third of the work, and the sum has the same bits.
        kept = self._next if self._next <= index else self._summed[index]
        self._add_products(index, self._sums[index], range(self._summed[index], kept))
        self._summed[index] = kept
        done = kept * self.block
        row[:done] = self._sums[index][:done]
        self._add_products(index, row, range(kept, index))
        for tile in self._tiles(index):
            blas.dtrmm(-1.0, self._inverted_block(index), row[tile].T, lower=1, overwrite_b=1)

    def _add_products(self, index: int, total: Floats, blocks: range) -> None:
        """Add (L[start:end, block] · L⁻¹[block, :])ᵀ of these blocks to `total`, which ends where the first of them begins."""
        front = self._front[index]
        for before in blocks:
            a, b = before * self.block, (before + 1) * self.block
            for tile in self._tiles(before):
                blas.dgemm(1.0, front[a:b].T, self._inverse_front[before][tile].T, beta=1.0, c=total[tile].T, overwrite_c=1)
            total[a:b] = blas.dtrmm(1.0, self._inverted_block(before), front[a:b].T, side=1, lower=1).T

    def _tiles(self, index: int) -> list[slice]:
        """The slots in front of a block row, block by block."""
        return [slice(start, end) for start, end in self._bounds[:index]]

    def _inverted_block(self, index: int) -> Floats:
        inverted = self._inverted[index]
        if inverted is None:
            inverted = self._inverted[index] = invert_lower(self._diagonal[index])
        return inverted

    def _times(self, values: Floats) -> Floats:
        """K values."""
        product = np.zeros_like(values)
        for index, (start, end) in enumerate(self._bounds):
            panel = self._kernel[index]
            product[:start] += panel[:start] @ values[start:end]
            product[start:end] += panel[:start].T @ values[:start] + symmetric_product(panel[start:].T, values[start:end])
        return product

    def _resize(self, size: int) -> None:
        """Make room for more slots: whole blocks stay, the last one grows, new ones follow."""
        whole = self.size // self.block
        self._inverse_rows = min(self._inverse_rows, whole)
        last = self._kernel[whole:]
        for rows in (self._kernel, self._front, self._diagonal, self._inverted, self._inverse_front, self._sums, self._aside):
            del rows[whole:]
        del self._valid[whole:], self._summed[whole:]
        self.size = size
        self._bounds = [(start, min(start + self.block, size)) for start in range(0, size, self.block)]
        count = len(self._bounds)
        taken = np.zeros((count, count), dtype=np.int64)
        taken[:whole, :whole] = self._taken[:whole, :whole]
        self._taken = taken
        for start, end in self._bounds[whole:]:
            panel = np.zeros((end, end - start))
            if last:
                old = last.pop()
                panel[: len(old), : old.shape[1]] = old
            self._kernel.append(panel)
            self._front.append(np.zeros((start, end - start)))
            self._diagonal.append(np.zeros((end - start, end - start), order="F"))
            self._inverted.append(None)
            self._valid.append(0)
            # Zeros of the system's own, and so no memory, until they are needed; never what forgotten rows have left behind.
            self._inverse_front.append(np.zeros((start, end - start)))
            self._sums.append(np.zeros((start, end - start)))
            self._summed.append(0)
            near = self._bounds[len(self._aside) :: -1][: 1 + int(ASIDE * count)] if start else []  # the first has nothing in front
            self._aside.append([np.zeros((b - a, end - start)) for a, b in near])


def _substitute(lower: Floats, values: Floats, *, transposed: int) -> Floats:
    if values.ndim == 1:
        return blas.dtrsv(lower, values, lower=1, trans=transposed)
    return blas.dtrsm(1.0, lower, values, lower=1, trans_a=transposed)
