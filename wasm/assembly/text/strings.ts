// Lists of strings as GGUF files hold them (a length field, then bytes, string by string), in a small module of its own
// (wasm/strings.ts): vocabularies are measured, checked and hashed before V8 has compiled anything, and its
// interpreter takes ten times as long for each byte. Addresses are those of the module's memory.

/**
 * Notes at `starts` where strings begin, counted on from `base`, the place of `at`: of at most `most` strings and only of
 * those that are whole before `end`; behind them, as if another one followed. Returns how many there are.
 */
export function measure(
  at: usize, end: usize, starts: usize, most: u32, base: u32, lengthBytes: u32,
): u32 {
  const first = at;
  let found: u32 = 0;
  for (; found < most && at + lengthBytes <= end; found++) {
    const length = <usize>load<u32>(at);
    if (lengthBytes == 8 && load<u32>(at, 4) != 0) break;
    const start = at + lengthBytes;
    if (length > end - start) break;
    store<u32>(starts + ((<usize>found) << 2), base + <u32>(start - first));
    at = start + length;
  }
  store<u32>(starts + ((<usize>found) << 2), base + <u32>(at - first) + lengthBytes);
  return found;
}

/** The hashes of strings that begin at the places `starts`, `base` being the place of `bytes`. Returns the longest's bytes. */
export function hash(
  bytes: usize, base: u32, starts: usize, count: u32, lengthBytes: u32, hashes: usize,
): u32 {
  let longest: usize = 0;
  for (let i: u32 = 0; i < count; i++) {
    const word = starts + ((<usize>i) << 2);
    const start = bytes + load<u32>(word) - base, end = bytes + load<u32>(word, 4) - lengthBytes - base;
    store<u32>(hashes + ((<usize>i) << 2), hashOf(start, end));
    longest = max(longest, end - start);
  }
  return <u32>longest;
}

/**
 * Enters strings into the table `slots` by their hashes, from string `from` on: n + 1 into the first free slot behind that of
 * the hash. Returns the first one that it did not enter: its hash is there already, or no probe is left of those at `probes`.
 */
export function enter(
  hashes: usize, from: u32, count: u32, slots: usize, mask: u32, probes: usize,
): u32 {
  let left = load<u32>(probes), i = from;
  for (; i < count; i++) {
    const hash = load<u32>(hashes + ((<usize>i) << 2));
    let slot = slots + (<usize>(hash & mask) << 2), other = load<u32>(slot);
    while (other != 0 && left != 0 && load<u32>(hashes + (<usize>(other - 1) << 2)) != hash) {
      left--;
      slot = slots + ((slot - slots + 4) & ((<usize>mask << 2) | 3));
      other = load<u32>(slot);
    }
    if (other != 0) break;
    store<u32>(slot, i + 1);
  }
  store<u32>(probes, left);
  return i;
}

// FNV-1a, with the high bits folded in: neighbours differ in their last byte only. wasm/strings.ts has the same.
function hashOf(from: usize, end: usize): u32 {
  let hash: u32 = 0x811c9dc5;
  for (; from < end; from++) hash = (hash ^ load<u8>(from)) * 0x01000193;
  return hash ^ (hash >>> 15);
}

/** The first of such strings that has no such byte behind its first one, or -1. */
export function without(
  bytes: usize, base: u32, starts: usize, count: u32, lengthBytes: u32, byte: u32,
): i32 {
  for (let i: u32 = 0; i < count; i++) {
    const word = starts + ((<usize>i) << 2);
    const end = bytes + load<u32>(word, 4) - lengthBytes - base;
    let at = bytes + load<u32>(word) - base + 1;
    while (at < end && load<u8>(at) != byte) at++;
    if (at >= end) return i;
  }
  return -1;
}
