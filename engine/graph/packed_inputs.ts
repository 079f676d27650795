// Which ops read which input as a packed weight: matrices in the layout of their kernels. Every other op
// reads elements one after another.

const PACKED: Readonly<Record<string, number>> = {
  embed: 1,
  expert_matmul: 1,
  expert_matmul_q8: 1,
  matmul: 1,
  matmul_int7: 1,
  matmul_q8: 1,
};

/** Whether an op's kernels read input `index` packed. */
export function readsPacked(op: string, index: number): boolean {
  return PACKED[op] === index;
}
