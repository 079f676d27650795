// What a model file looks like to the rest of the engine: bytes by range, and named tensors in them.
// Readers (gguf, safetensors, …) parse headers through ByteSource and never load a tensor themselves;
// the backend asks for tensor bytes when it has a place to put them.

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
  /** Releases the file handle or connection. Reading afterwards throws. */
  close(): void;
}

/** One tensor of a model file. */
export interface TensorInfo {
  /** Name as the file writes it. */
  readonly name: string;
  /** Outermost dimension first: a matrix is `[rows, columns]`, columns contiguous. */
  readonly shape: readonly number[];
  /** Name of a record in quant/. */
  readonly format: string;
  /** Where its bytes are: the source and the absolute offset in it. */
  readonly source: ByteSource;
  /** Absolute offset of the first byte in `source`. */
  readonly offset: number;
  /** Length in bytes, already checked against the source's size. */
  readonly byteLength: number;
}

/** A value of GGUF metadata or of a config file. */
export type MetadataValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly MetadataValue[]
  | { readonly [key: string]: MetadataValue };

/** A parsed model file (or set of shards): metadata and tensors, no weights loaded. */
export interface WeightFile {
  /** `gguf`, `safetensors`, … */
  readonly kind: string;
  /** Path or URL, for messages. */
  readonly name: string;
  /** GGUF key/value pairs, or `config.json` of a Hugging Face folder. */
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  /** Tensors by name, in file order. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Closes every source. */
  close(): void;
}
