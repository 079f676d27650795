// What sessions need of a loaded model. The executable is shared by all of them; whoever wants something of it asks
// the queue (step_queue.ts).

import { UnsupportedError } from "../errors.ts";
import type { Executable } from "../run/executable.ts";
import { createStep } from "../run/step.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
import type { SourceHead, SpeechConfig } from "../formats/media/speech_config.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { CacheRoom } from "./cache_room.ts";
import { type ModelMemory, totalMemory } from "./memory.ts";
import type { Sight } from "./pictures/sight.ts";
import type { PictureTower } from "./pictures/tower.ts";
import { PromptsUnderWay } from "./prompts_under_way.ts";
import { createStepQueue, type StepRunner } from "./step_queue.ts";

/** A prepared model with its limits. */
export interface Runtime {
  /** Path or name, for messages. */
  readonly name: string;
  readonly executable: Executable;
  /** Runs its steps. */
  readonly queue: StepRunner;
  /** Prompts that sessions compute. */
  readonly prompts: PromptsUnderWay;
  /** Who holds rows of its caches. */
  readonly caches: CacheRoom;
  /** Positions a session holds. */
  readonly capacity: number;
  /** Rows of a step, and rows of it that may have logits. */
  readonly batch: number;
  readonly logitRows: number;
  readonly vocabulary: number;
  /** So many best tokens of a row have logits, the others −Infinity; absent: all have. */
  readonly candidates?: number | undefined;
  /** Length of the hidden state when the graph gives it out, else 0. */
  readonly hidden: number;
  /** What the model is made of, and what that kind adds. */
  readonly network: Network;
  /** Of encoders. */
  readonly encoder: EncoderFacts | undefined;
  /** How a decoder that gives out hidden states makes one vector of a text; absent: of others. */
  readonly pooling?: Pooling | undefined;
  /** Of encoder-decoders. */
  readonly source: SourceMemory | undefined;
  /** Of encoders of pictures, and of those of texts that lie in one file with one. */
  readonly tower?: PictureTower | undefined;
  /** Of models that see: how they look at pictures. */
  readonly sight?: Sight | undefined;
  /** Adapters of the executable, by index. */
  readonly adapters: readonly AdapterInfo[];
  /** SHA-256 of model and cache layout, 32 bytes: saved sessions carry it. */
  fingerprint(): Promise<Uint8Array>;
  /** @throws {UnsupportedError} If the model's files hold none. */
  tokenizer(): Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
  /** For the figures of a generation. */
  readonly loadMs: number;
  readonly memory: ModelMemory;
}

/**
 * Kinds of models: one that continues, one that reads, one that reads and then writes, and one that looks at pictures.
 * @category Encoders
 */
export type Network = "decoder" | "encoder" | "encoder-decoder" | "picture";

/** @throws {UnsupportedError} If the model continues no text. */
export function checkContinues({ name: file, network }: Pick<Runtime, "name" | "network">): void {
  if (network === "picture") {
    throw new UnsupportedError("looks at pictures, and continues no text", {
      ...{ file, remedy: "Use classifyImage() or embedImage()" },
    });
  }
  if (network === "encoder") {
    throw new UnsupportedError("is an encoder, which continues no text", {
      ...{ file, remedy: "Load one that does, such as smollm2-135m" },
    });
  }
}

/**
 * An adapter in memory.
 * @category Encoders
 */
export interface AdapterInfo {
  /** By which generations speak of it. */
  readonly name: string;
  /** How much it counts, unless a generation says otherwise. */
  readonly scale: number;
  /** Matrices of the model that it changes. */
  readonly matrices: number;
}

/** How sequences go into an encoder and what comes out. */
export interface EncoderFacts {
  /** Most tokens of a sequence, special ones included. */
  readonly maxTokens: number;
  /** How rows become one vector, unless the caller says. */
  readonly pooling: Pooling;
  /** Output beside `hidden`. */
  readonly head: "logits" | "scores" | "vectors" | undefined;
  /** Columns of it. */
  readonly headWidth: number;
  /** Names of the columns of `scores`. */
  readonly labels: readonly string[];
  /** Labels exclude each other, or each may hold. */
  readonly isMultiLabel: boolean;
  /** End tokens between two texts. */
  readonly pairSeparators: number;
  /** Of encoders whose head gives the vector of a whole text. */
  readonly whole?: WholeTexts;
}

/** How a text becomes one vector inside the model. */
export interface WholeTexts {
  /** Index of the token whose row stands for the text. */
  rowOf(tokens: readonly number[]): number;
  /** What texts are filled up with, and to which length; absent: they are not. */
  readonly padded?: { readonly id: number; readonly length: number };
}

/**
 * How the rows of a sequence become one vector.
 * @category Encoders
 */
export type Pooling = "mean" | "cls" | "last" | "mask";

/** What an encoder-decoder says of its sources and targets. */
export interface SourceMemory {
  /** Most tokens of a source; of sound, the rows of every window. */
  readonly capacity: number;
  /** With what every target begins. */
  readonly start: readonly number[];
  /** How translations are asked for. */
  readonly translation: TranslationRule | undefined;
  /** Of models that listen: a source is not tokens but the features of a window of sound. */
  readonly sound?: SpeechConfig | undefined;
  /** Of models that listen, loaded to time words. */
  readonly words?: WordHeads | undefined;
}

/** By which of the decoder's looks at the sound words are timed; they, or queries and keys of their layers, are outputs. */
export interface WordHeads {
  readonly heads: readonly SourceHead[];
  /** Heads of a layer's queries, and of its keys. */
  readonly headCount: number;
  readonly keyHeadCount: number;
  readonly headDim: number;
  /** Factor of their products. */
  readonly scale: number;
  /**
   * Outputs by layer that hold what its heads look at, where a graph gives out that in place of queries and keys: f32[1,
   * heads, rows, positions]. A head is as wide then as a source is long.
   */
  readonly looks?: readonly string[];
}

/** See the spec's key `translation`. */
export interface TranslationRule {
  readonly prompt?: string | undefined;
  readonly sourceToken?: string | undefined;
  readonly targetToken?: string | undefined;
}

/** What a runtime is made of. */
export interface RuntimeParts extends
  Omit<
    Runtime,
    "queue" | "caches" | "prompts" | "memory" | "capacity" | "batch" | "logitRows" | "loadMs"
  > {
  readonly limits: Readonly<Record<"contextLength" | "batch" | "logitRows" | "sessions", number>>;
  /** When loading began, by `performance.now()`. */
  readonly start: number;
}

/** Adds queue and figures to the parts. */
export function createRuntime({ limits, start, ...parts }: RuntimeParts): Runtime {
  const { executable, adapters } = parts;
  const { weights, arena, statePerSlot, states, other, streamed } = executable.memory;
  const { contextLength: capacity, batch, logitRows, sessions } = limits;
  const caches = new CacheRoom(executable, parts.name);
  const rows = Math.max(batch, parts.source?.capacity ?? 0);
  return {
    ...parts,
    ...{ capacity, batch, logitRows, caches, prompts: new PromptsUnderWay() },
    queue: createStepQueue({
      ...{ executable, caches, batch, logitRows },
      createStep: ({ patches }) => createStep(rows, adapters.length, { patches }),
    }),
    loadMs: performance.now() - start,
    memory: totalMemory({
      ...{
        weights,
        activations: arena,
        sessionCache: statePerSlot,
        cache: states,
        sessions,
        other: other + (parts.sight?.bytes ?? 0),
      },
      cacheTokens: parts.executable.rows.poolTokens,
      ...streamed && { streamed },
    }),
  };
}
