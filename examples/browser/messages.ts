// What a page and its engine say to each other.

import type { Picture } from "../../engine/platform/browser/mod.ts";

/** What a page asks for. */
export type Order =
  | {
    readonly kind: "load";
    readonly url: string;
    readonly sha256?: string;
    readonly device?: "wasm" | "gpu";
  }
  | { readonly kind: "chat"; readonly text: string; readonly maxTokens?: number }
  | { readonly kind: "embed"; readonly texts: readonly string[] }
  | { readonly kind: "classify"; readonly picture: Picture }
  | { readonly kind: "transcribe"; readonly samples: Float32Array }
  | { readonly kind: "check"; readonly device: "wasm" | "gpu"; readonly ops?: readonly string[] };

/** What the engine answers; `done` is the last word to an order. */
export type News =
  | {
    readonly id: number;
    readonly kind: "progress";
    readonly text: string;
    readonly share: number;
  }
  | { readonly id: number; readonly kind: "piece"; readonly text: string }
  | { readonly id: number; readonly kind: "done"; readonly value: unknown }
  | { readonly id: number; readonly kind: "failed"; readonly message: string };
