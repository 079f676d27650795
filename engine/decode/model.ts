// What a loaded model is to its users: immutable facts, a tokenizer, and a source of sessions. Weights and
// caches live behind it in the backend; whoever loads a model disposes of it.

import type { GpuProvider } from "../../gpu/capabilities.ts";
import type { AdapterInfo, Network } from "./runtime.ts";
import type { Session } from "./session.ts";
import type { PullChoice } from "../formats/hub/locate.ts";
import type { PullProgress } from "../formats/hub/progress.ts";
import type { PlacementOptions } from "../place/open_placement.ts";
import type { DeviceName, KvFormat, StreamingFigures } from "../run/backend.ts";
import type { PriorityOptions } from "../run/pacer.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { ModelMemory } from "./memory.ts";

/**
 * How exact a model computes.
 * @category Models
 */
export type Precision = "fast" | "exact" | "strict";

/**
 * Tensors of one number format.
 * @category Models
 */
export interface FormatCount {
  /** Name as GGUF writes it, e.g. `Q4_1`. */
  readonly format: string;
  /** How many. */
  readonly tensors: number;
  /** Bytes of all. */
  readonly bytes: number;
}

/**
 * Facts about a model.
 * @category Models
 */
export interface ModelInfo {
  /** Name that the file gives itself, else its file name. */
  readonly name: string;
  /** Name of the spec by which it is built. */
  readonly architecture: string;
  /** Whether it continues text, reads whole texts, or reads one and writes another. */
  readonly network: Network;
  /** What the weights lie in: `gguf`, `safetensors`, `pickle`, `llama2c` or `onnx`. */
  readonly container: string;
  /** As the file states it. */
  readonly license: string | undefined;
  /** Number of weights. */
  readonly parameters: number;
  /** By number format, most bytes first. */
  readonly tensors: readonly FormatCount[];
  /** Number of token ids. */
  readonly vocabulary: number;
  /** Positions a session holds. */
  readonly contextLength: number;
  /** Positions the model was trained for. */
  readonly trainedContextLength: number;
  /** Number of layers. */
  readonly layers: number;
  /** Width of the residual stream. */
  readonly hidden: number;
  /** Query heads of a layer. */
  readonly heads: number;
  /** Heads of keys and values. */
  readonly kvHeads: number;
  /** Channels of a head. */
  readonly headDim: number;
  /** Width inside the feed-forward block. */
  readonly feedForward: number;
  /** Labels of a head that judges whole texts, 1 of a reranker; 0: it has none. */
  readonly labels: number;
  /** How exact it computes. */
  readonly precision: Precision;
  /** Float matrices of an encoder that are rounded to 7 bit while they are loaded; 0 with `exact`. */
  readonly rounded: number;
  /** Number format of keys and values. */
  readonly kvFormat: KvFormat;
  /** What was odd about the files; one sentence each. */
  readonly warnings: readonly string[];
}

/**
 * What a model computes in one step, and the memory for it.
 * @category Models
 */
export interface PlanSummary {
  /** One for each kernel call, in order. */
  readonly steps: readonly object[];
  /** Groups of steps between which threads wait for each other. */
  readonly waves: number;
  /** Bytes for all activations. */
  readonly arenaBytes: number;
  /** The same without reuse, for comparison. */
  readonly naiveBytes: number;
  /** Most bytes that are live at once: no plan can take less. */
  readonly lowerBoundBytes: number;
}

/**
 * What is known of a model before its weights are read.
 * @category Models
 */
export interface ModelDescription {
  /** Facts. */
  readonly info: ModelInfo;
  /** As planned; `weights` are the bytes in the file. */
  readonly memory: ModelMemory;
  /** Schedule and memory of a step. */
  readonly plan: PlanSummary;
}

/**
 * What a model does, and has done.
 * @category Models
 */
export interface ModelActivity {
  /** Answers that were started on the model itself and have a session. */
  readonly running: number;
  /** Those that wait for one. */
  readonly waiting: number;
  /** Steps since it was loaded. */
  readonly steps: number;
  /** Their rows: one a token of each session, and those of prompts. */
  readonly rows: number;
  /** Rows of the caches in use, of `memory.cacheTokens`. */
  readonly cacheRows: number;
}

/**
 * A loaded language model.
 * @category Models
 */
export interface Model extends Disposable {
  /** Path, URL or name that it was loaded by. */
  readonly name: string;
  /** Facts about it. */
  readonly info: ModelInfo;
  /** Where it is computed. */
  readonly device: DeviceName;
  /** Threads in use. */
  readonly threads: number;
  /** What the device had to do without, such as threads; one sentence each. */
  readonly notes: readonly string[];
  /** Time that loading took, downloads left out, in milliseconds. */
  readonly loadMs: number;
  /**
   * Text to token ids and back.
   *
   * @throws {UnsupportedError} If the model's files hold none (weights without tokenizer.json).
   */
  readonly tokenizer: Tokenizer;
  /** How the model wants conversations written; absent in base models. */
  readonly chatTemplate: ChatTemplate | undefined;
  /** Memory in use, by what for. */
  readonly memory: ModelMemory;
  /** What it does right now, and how much it has done. */
  readonly activity: ModelActivity;
  /** Schedule and memory of a step. */
  readonly plan: PlanSummary;
  /** Adapters that were loaded with it, in the order of the options. */
  readonly adapters: readonly AdapterInfo[];
  /** What streaming has cost since the last call; undefined where weights are held whole. */
  streaming(): StreamingFigures | undefined;
  /**
   * Opens an empty timeline; dispose of it to make place for another.
   *
   * @throws {ResourceError} If as many are open as `sessions` said when the model was loaded.
   */
  createSession(): Session;
  /** Frees weights and caches. Later calls throw a TypeError. */
  dispose(): void;
}

/**
 * Told while a model is fetched and loaded.
 * @category Models
 */
export interface ModelProgress extends Omit<PullProgress, "phase"> {
  /** What happens right now; `load` is from disk into memory. */
  readonly phase: PullProgress["phase"] | "load";
}

/**
 * Options of {@linkcode load}.
 * @category Models
 */
export interface LoadOptions extends SourceOptions, PlacementOptions, PriorityOptions {
  /**
   * Where to compute. `auto` takes the fastest that works; `reference` is the slow definition by which the
   * others are judged. Default `auto`.
   */
  readonly device?: "auto" | DeviceName;
  /**
   * What gives the adapter of device `gpu`: by default `navigator.gpu`; the object of the npm package `webgpu`
   * computes with Dawn.
   */
  readonly gpu?: GpuProvider;
  /**
   * Most steps of a greedy answer that device `gpu` computes before they are asked for, 0 to 64; an answer that
   * ends otherwise wastes at most twice as many. Default 8 on a GPU.
   */
  readonly stepsAhead?: number;
  /**
   * Of device `gpu`: reads what every node made, one by one, and throws a DeviceError that names step and node where
   * a NaN or an infinity appears first. Slow: for finding out why an answer fails. Default false.
   */
  readonly debug?: boolean;
  /** Threads of the `wasm` device, 1 to 256. Default: the machine's. One where workers are not allowed. */
  readonly threads?: number;
  /**
   * `exact` multiplies the stored weights by float32 activations; `fast` rounds activations to 8 bit in
   * groups of 32, which moves log-probabilities by hundredths, and large matrices that the file of an encoder
   * holds as floats to 7 bit in groups of 64; `strict` is exact but for matrices in LF8, whose activations become
   * LF8 too and whose sums are taken in the order of LlamaF's algorithm 1, to the same bits on `wasm` and
   * `reference`. On `gpu` `strict` is for models without LF8: exact, and a row is computed by the same kernels in
   * whatever step, so that answers have the bits that they have alone; prompts take longer for it. Default `fast`.
   */
  readonly precision?: Precision;
  /** Positions a session holds. Default: what the model was trained for, at most 4096. */
  readonly contextLength?: number;
  /**
   * Sessions that may be open at once at most; answers that are started on the model itself borrow one each, and wait
   * their turn when there is none. Default 16 where they share one pool of cache pages, so that places cost no
   * memory; 1 for encoder-decoders and models in ONNX.
   */
  readonly sessions?: number;
  /**
   * Tokens that the caches of all sessions hold together, at least 64. A text that several sessions begin with counts
   * once, and what earlier sessions computed is kept until room is wanted. Default: `contextLength` for
   * each of `sessions`; where those are not given for one, or for sixteen as far as they fit 4096.
   */
  readonly cacheTokens?: number;
  /** Most tokens computed in one step; longer prompts go in pieces of it. Default 256, on a GPU 512. */
  readonly batch?: number;
  /**
   * Most tokens of a step that may have logits, see {@linkcode Session.eval}; one more than are drafted at once
   * ({@linkcode GenerateOptions.draft}). Default: as many as `sessions`, so that a step takes all answers one token
   * further, and 16 at least; of ONNX models 1.
   */
  readonly logitRows?: number;
  /**
   * Of ONNX models: the past that a step sees is padded, and what is padded is masked, to a multiple of this,
   * so that the memory of keys and values is laid out anew once in so many tokens. Default 64; 1 is none.
   * Of other models on device `gpu`: sizes of a step change once in so many positions (TL-6); by default, with
   * every doubling of the context. On other devices nothing depends on them.
   */
  readonly padTo?: 1 | 64 | 128;
  /**
   * Number format of keys and values. `Q8_0` halves the memory of sessions, on device `wasm` and heads of whole
   * blocks of 32 channels only, and costs about as much fidelity as the rounding of activations. Default `F16`,
   * with another precision than `fast` `F32`.
   */
  readonly kvFormat?: KvFormat;
  /**
   * Of device `wasm`: most bytes of one WASM memory, 1 MiB to 4 GiB, the default and the most that 32-bit addresses
   * reach. A model that is larger is cut between layers and lies in several memories.
   */
  readonly memoryBytes?: number;
  /**
   * Streams weights from their files instead of holding them: those of one or two layers are in memory at once, and the
   * next ones are read while these compute. A model of any size runs, slowly: every step reads all of its
   * weights, whatever its rows, of a mixture of experts those that are chosen and were not lately. How long that takes
   * is measured and said in {@linkcode Model.notes}. For models in local files; false: never. Default: where
   * `maxHostBytes`, or what memory the system says is free, leaves no other way.
   */
  readonly stream?: boolean | StreamingOptions;
  /**
   * Most bytes that a model may take of the host's memory: weights, caches and activations. One that takes more is
   * streamed, as many of its layers staying in memory as there is room for, or refused before a weight is read. With
   * several devices it is what those on the CPU may take together.
   */
  readonly maxHostBytes?: number;
  /**
   * Low-rank adapters (LoRA) to load with the model, by path or with more. What the model computes is that of
   * merged weights; its own stay as they are. Generations may weigh them otherwise
   * ({@linkcode GenerateOptions.adapters}).
   */
  readonly adapters?: readonly (string | AdapterOptions)[];
  /**
   * Heads of keys and values to pool those of the model to, by {@linkcode meanPoolKV}: a smaller cache, and a
   * model that needs training to be as good again. Default: as many as it has.
   */
  readonly kvHeads?: number;
  /** Jinja text of a chat template to use instead of the file's; null for none. */
  readonly chatTemplate?: string | null;
  /**
   * Names of kernels that must not be used, because `troodon doctor` found them wrong on this machine.
   * Where no other kernel does the work, load throws an UnsupportedError.
   */
  readonly excludeKernels?: readonly string[];
  /**
   * Of device `gpu`: whether kernels are tried on small cases before they are used on an adapter for the first time. One
   * that computes wrong there is left out, with a note, or the model is computed on device `wasm`. Default true.
   */
  readonly selfTest?: boolean;
  /**
   * Content of a spec file, parsed: the architecture by which to build the model, instead of the shipped one
   * that its file names. `troodon spec check` checks such a file.
   */
  readonly spec?: unknown;
  /** Of models that see: false leaves out what looks at pictures. Default true. */
  readonly pictures?: boolean;
  /** Of GGUF models that see: path of the file that looks at pictures for them, whose name begins with mmproj as a rule. */
  readonly mmproj?: string;
  /**
   * Of models that see pictures in sizes of their own: most rows of a picture, each in the place of a token; larger ones are
   * made smaller. Default 1280.
   */
  readonly pictureRows?: number;
  /** Whether sessions give out {@linkcode Session.embedding}. Default false. */
  readonly embeddings?: boolean;
  /**
   * Of models that listen: whether {@linkcode transcribe} can time single words, for which what the decoder sees of the
   * sound is kept. Default false.
   */
  readonly words?: boolean;
}

/**
 * How weights are streamed.
 * @category Models
 */
export interface StreamingOptions {
  /** Layers whose weights are in memory at once. Default 2, or 1 where that is what `maxHostBytes` leaves room for. */
  readonly depth?: 1 | 2;
  /** Threads that load, 0 to 16; with 0 nothing is loaded while something computes. Default 2, beside large slots 3. */
  readonly loaders?: number;
  /** Reads no faster than this, to leave some of a disk to others. */
  readonly bytesPerSecond?: number;
  /** Bytes for experts that were chosen lately. Default: as many as one token chooses in all layers. */
  readonly expertCacheBytes?: number;
}

/**
 * Options of finding a model.
 * @category Models
 */
export interface SourceOptions {
  /** Folder of downloaded models. Default: the user's cache folder. */
  readonly cacheDir?: string;
  /** Address of a Hugging Face mirror for `hf:` sources. Default: HF_ENDPOINT, else huggingface.co. */
  readonly endpoint?: string;
  /** Whether only cached models may be used. Default false. */
  readonly offline?: boolean;
  /** Stops downloading and loading. */
  readonly signal?: AbortSignal;
  /** Called now and then while downloading and loading. */
  readonly onProgress?: (progress: ModelProgress) => void;
  /** Called with what was chosen of a repository of the hub (`owner/repo`), and why, before it is fetched. */
  readonly onChoice?: (choice: PullChoice) => void;
}

/**
 * An adapter as `load` takes it.
 * @category Models
 */
export interface AdapterOptions {
  /** Path of a GGUF adapter, or of a PEFT folder or its safetensors file. */
  readonly path: string;
  /** Factor beside the adapter's own; 1 by default. It may be changed for each generation. */
  readonly scale?: number;
  /** By which generations speak of it. Default: name of the folder, or of the file without its ending. */
  readonly name?: string;
}
