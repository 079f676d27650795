// What a plan made ready on WASM says of itself, in one memory (backend.ts) or in several (parts.ts).

import type { SimdVariant } from "../../../wasm/probe.ts";
import type { Node } from "../../graph/graph.ts";
import type { PreparedPlan } from "../backend.ts";

/** What the WASM backend adds to an executable. */
export interface WasmPlan extends PreparedPlan {
  /** Threads in use. */
  readonly threads: number;
  /** `baseline` or `relaxed`. */
  readonly simd: SimdVariant;
  /** What differs from what was asked for, one sentence each. */
  readonly notes: readonly string[];
  /** Names of the chosen kernels, in order of execution. */
  readonly kernels: readonly string[];
  /** Nodes without a kernel, which run by their reference. */
  readonly hostNodes: readonly Node[];
  /** Bytes of WASM memory that were claimed from the system. */
  readonly committedBytes: number;
}
