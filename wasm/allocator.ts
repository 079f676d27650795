// Addresses in WASM memory: a first-fit free list over a space that grows at its end. Everything is
// aligned to a cache line. Addresses are plain numbers up to 2^32, never 32-bit signed integers.

/** Alignment of every block, in bytes. */
export const ALIGNMENT = 64;

/** Most bytes that one WASM memory can hold. */
export const ADDRESS_SPACE: number = 2 ** 32;

/** Hands out address ranges. */
export interface Allocator {
  /**
   * Reserves bytes and returns their address.
   *
   * @throws {OutOfMemoryError} If the address space has no room.
   */
  allocate(bytes: number): number;
  /** Gives a block back; throws RangeError if `address` is none. */
  release(address: number): void;
  /** Bytes in use. */
  readonly usedBytes: number;
}

/** The address space or the system has no room; a RangeError that callers can tell from others. */
export class OutOfMemoryError extends RangeError {
  override name = "OutOfMemoryError";
}

interface Range {
  start: number;
  end: number;
}

/**
 * Makes an allocator for addresses from `base`.
 *
 * @param ensure Called with the end of the space in use whenever it rises; may throw to refuse.
 */
export function createAllocator(
  base: number,
  { ensure, limit = ADDRESS_SPACE }: {
    readonly ensure: (end: number) => void;
    readonly limit?: number | undefined;
  },
): Allocator {
  const first = Math.ceil(base / ALIGNMENT) * ALIGNMENT;
  const blocks = new Map<number, number>();
  const free: Range[] = []; // ascending, never touching each other or `top`
  let top = first;
  let used = 0;

  function allocate(bytes: number): number {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new RangeError(`Cannot allocate ${bytes} bytes: not a size`);
    }
    const size = Math.max(1, Math.ceil(bytes / ALIGNMENT)) * ALIGNMENT;
    const index = free.findIndex((range) => range.end - range.start >= size);
    let address = top;
    if (index >= 0) {
      const range = free[index]!;
      address = range.start;
      range.start += size;
      if (range.start === range.end) free.splice(index, 1);
    } else {
      if (top + size > limit) {
        throw new OutOfMemoryError(
          `Cannot allocate ${bytes} bytes of WASM memory: ${used} of ${limit} bytes are in use`,
        );
      }
      ensure(top + size);
      top += size;
    }
    blocks.set(address, size);
    used += size;
    return address;
  }

  function release(address: number): void {
    const size = blocks.get(address);
    if (size === undefined) {
      throw new RangeError(`Cannot release ${address}: not an allocated block`);
    }
    blocks.delete(address);
    used -= size;
    const range = { start: address, end: address + size };
    const at = free.findIndex(({ start }) => start > address);
    const index = at < 0 ? free.length : at;
    const next = free[index];
    if (next && next.start === range.end) {
      range.end = next.end;
      free.splice(index, 1);
    }
    const previous = free[index - 1];
    if (previous && previous.end === range.start) previous.end = range.end;
    else free.splice(index, 0, range);
    const last = free.at(-1);
    if (last && last.end === top) {
      top = last.start;
      free.pop();
    }
  }

  return {
    allocate,
    release,
    get usedBytes(): number {
      return used;
    },
  };
}
