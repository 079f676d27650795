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
