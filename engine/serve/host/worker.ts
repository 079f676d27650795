// What runs in the worker: an engine on models of its own thread, which has a pool of threads of its own. Messages come
// by a port that is asked between two steps, since a thread that computes without a break gets what comes by itself up to
// 200 ms late (pause.ts); the worker's own messages say that there is something, for one that is idle.

import process from "node:process";
import { receiveMessageOnPort } from "node:worker_threads";
import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { Model } from "../../decode/model.ts";
import { askForThreads } from "../../../wasm/threads.ts";
import { load } from "../../models/load.ts";
import { atEachTurn } from "../../pause.ts";
import { LocalEngine } from "./local_engine.ts";
import type { Request, WorkerOpening } from "./messages.ts";
import type { ModelEntry } from "./models.ts";
import { RequestServer } from "./request_server.ts";

/** What of the global scope of a worker is used here. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<WorkerOpening | undefined>) => void) | null;
  postMessage(message: unknown): void;
}

const scope = globalThis as unknown as WorkerScope;

scope.onmessage = ({ data }) => {
  if (!data) return; // Something lies in a port that is still to come.
  const { settings: { entries, gpu, maxMemory }, port, threads } = data;
  askForThreads(threads);
  const engine = new LocalEngine(entries, { maxMemory, load: loaderWith(gpu), busyMs });
  const server = new RequestServer(engine, (replies) => scope.postMessage(replies));
  const poll = () => {
    for (;;) {
      const next = receiveMessageOnPort(port as never) as { message: Request } | undefined;
      if (!next) return;
      server.receive(next.message);
    }
  };
  atEachTurn(poll);
  scope.onmessage = poll;
  poll();
};

/** Loads with a GPU of another giver, which is opened for the first model. */
function loaderWith(gpu: string | undefined) {
  let opened: Promise<{ readonly gpu?: GpuProvider }> | undefined;
  return async ({ source, options }: ModelEntry, signal: AbortSignal): Promise<Model> =>
    await load(source, { ...options, ...await (opened ??= openGpu(gpu)), signal });
}

async function openGpu(from: string | undefined): Promise<{ readonly gpu?: GpuProvider }> {
  if (from === undefined) return {};
  const { openDawn } = await import("../../run/dawn.ts");
  return { gpu: await openDawn(from) };
}

function busyMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
