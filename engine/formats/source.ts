// What a model file looks like to the rest of the engine: bytes by range, and named tensors in them.
// Readers (gguf, safetensors, …) parse headers through ByteSource and never load a tensor themselves;
// the backend asks for tensor bytes when it has a place to put them.

import type { ByteSource } from "../byte_source.ts";

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
  /** Weights that were taken out of it before it was quantised, and are to be added again. */
  readonly outliers?: OutlierTensors;
}

/** Where the outliers of a tensor are (outliers.ts). */
export interface OutlierTensors {
  /** I32 [rows + 1]: by row, where its entries begin. */
  readonly starts: TensorInfo;
  /** I32 [entries]. */
  readonly columns: TensorInfo;
  /** F32 [entries]: what is to be added to the tensor's own value. */
  readonly values: TensorInfo;
}

/** A GGUF array of numbers; 64-bit integers come as float64 unless a value is beyond 2^53. */
export type NumericArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/**
 * A value of GGUF metadata or of a config file. Integers within ±2^53 are numbers whatever their width.
 * GGUF strings that are not UTF-8 keep each stray byte as U+DC80…U+DCFF (see `stringBytes`).
 */
export type MetadataValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | NumericArray
  | readonly MetadataValue[]
  | { readonly [key: string]: MetadataValue };

/** A parsed model file (or set of shards): metadata and tensors, no weights loaded. */
export interface WeightFile {
  /** Whose names and metadata it has: `gguf`, `safetensors` (those of Hugging Face), `pickle`, `llama2c`, `onnx`. */
  readonly kind: string;
  /** What it lies in, where that is not `kind`: safetensors that were written from a GGUF file. */
  readonly container?: string;
  /** Path or URL, for messages. */
  readonly name: string;
  /** GGUF key/value pairs, or `config.json` of a Hugging Face folder. */
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  /** Tensors by name, in file order. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /**
   * Text of another file of the model (`tokenizer.json`, `generation_config.json`, …), undefined when
   * there is none; the method is absent where there is no folder.
   */
  readText?(name: string): Promise<string | undefined>;
  /** The same for files that are no text (`tokenizer.model`, `tokenizer.bin`). */
  readBytes?(name: string): Promise<Uint8Array | undefined>;
  /** Closes every source. */
  close(): void;
}
