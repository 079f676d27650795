// A worker of encode_pool.ts: encodes the runs that it is sent, one after another.

import { type EncodeJob, encodeRun } from "./encode_run.ts";

/** A run to encode; `job` only where it is another than before. */
export interface RunOrder {
  readonly job?: EncodeJob;
  readonly values: Float32Array<ArrayBuffer>;
}

/** What comes back: a run, with its values, or why there is none. */
export type RunReply =
  | {
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly decoded: Float32Array<ArrayBuffer>;
    readonly values: Float32Array<ArrayBuffer>;
  }
  | { readonly problem: string };

interface WorkerScope {
  onmessage: (event: MessageEvent<RunOrder>) => void;
  postMessage(reply: RunReply | "ready", transfer?: Transferable[]): void;
}

const scope = globalThis as unknown as WorkerScope;
const told: { job?: EncodeJob } = {};

scope.onmessage = ({ data: { job = told.job!, values } }) => {
  told.job = job;
  try {
    const { bytes, decoded } = encodeRun(job, values);
    scope.postMessage({ bytes, decoded, values }, [bytes.buffer, decoded.buffer, values.buffer]);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    scope.postMessage({ problem: error.message });
  }
};
scope.postMessage("ready");
