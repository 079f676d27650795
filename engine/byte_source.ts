// Random access to bytes, wherever they lie: what every reader of a file reads through.

/** Random access to bytes: a file, a URL with ranges, or memory. */
export interface ByteSource {
  /** Path or URL, for messages. */
  readonly name: string;
  /** Total length in bytes. */
  readonly size: number;
  /**
   * Reads exactly `target.length` bytes from `offset` into `target` (which may lie in shared memory).
   *
   * @throws {FormatError} If the range leaves the source.
   */
  readInto(offset: number, target: Uint8Array): void | Promise<void>;
  /**
   * Reads as `readInto` does while this thread goes on; undefined: it does not, now, for so few
   * bytes, or into shared memory.
   *
   * @throws {FormatError} If the range leaves the source.
   */
  readBeside?(offset: number, target: Uint8Array): Promise<void> | undefined;
  /**
   * For sources that other threads can open for themselves: the file, in the words of `FILE_READER` (engine/io.ts).
   */
  readonly file?: string;
  /**
   * Opens the file of that plain name beside this one; absent where there is no folder (memory).
   *
   * @throws {SourceError} If there is no such file.
   */
  openSibling?(name: string): ByteSource | Promise<ByteSource>;
  /** Releases the file handle or connection. Reading afterwards throws. */
  close(): void;
}

/** A copy of a range of a source, from its start unless said. */
export async function readBytes(
  source: ByteSource,
  { offset = 0, length }: { readonly offset?: number; readonly length: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  await source.readInto(offset, bytes);
  return bytes;
}

/** Reads as `readInto` does, beside this thread where the source can. */
export function readBeside(
  source: ByteSource,
  { offset, target }: { readonly offset: number; readonly target: Uint8Array },
): void | Promise<void> {
  return source.readBeside?.(offset, target) ?? source.readInto(offset, target);
}

/** Pieces in one. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}

/** Closes what is open at the end of a scope: `using _file = closing(file)`. */
export function closing(open: { close(): void }): Disposable {
  return { [Symbol.dispose]: () => open.close() };
}
