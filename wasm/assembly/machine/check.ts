// Kernel that tests the machine itself.
//   for each chunk c: if c is trap_at: trap; else cells[c] += 1
import { nextChunk, addressAt, u32At } from "./runtime";
import { MACHINE_CHECK_CELLS, MACHINE_CHECK_TOTAL, MACHINE_CHECK_TRAP_AT } from "../generated/opcodes";

export function machine_check(ip: usize): void {
  const cells = addressAt(ip, MACHINE_CHECK_CELLS);
  const total = u32At(ip, MACHINE_CHECK_TOTAL);
  const trapAt = u32At(ip, MACHINE_CHECK_TRAP_AT);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    if (<u32>c == trapAt) unreachable();
    const cell = cells + (<usize>c << 2);
    store<u32>(cell, load<u32>(cell) + 1);
  }
}
