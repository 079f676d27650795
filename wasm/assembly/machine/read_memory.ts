// Reads memory as fast as it comes; benches put kernels that stream weights beside it.
import { nextChunk, addressAt, chunksOf, min, u32At } from "./runtime";
import { READ_MEMORY_ADDRESS, READ_MEMORY_BYTES } from "../generated/opcodes";

const CHUNK: u32 = 65536;
/** Where sums go, so that no compiler finds the reading useless. */
const SINK: usize = memory.data(16, 16);

export function read_memory(ip: usize): void {
  const bytes = u32At(ip, READ_MEMORY_BYTES), address = addressAt(ip, READ_MEMORY_ADDRESS);
  const total = chunksOf(bytes, CHUNK);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const start = <u32>c * CHUNK;
    let at = address + start;
    let a = i32x4.splat(0), b = a;
    for (const end = at + min(bytes - start, CHUNK); at < end; at += 64) {
      a = i32x4.add(a, i32x4.add(v128.load(at), v128.load(at, 16)));
      b = i32x4.add(b, i32x4.add(v128.load(at, 32), v128.load(at, 48)));
    }
    v128.store(SINK, i32x4.add(a, b));
  }
}
