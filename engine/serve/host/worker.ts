// What runs in the worker: an engine on models of its own thread, which has a pool of threads of its own. Messages come
// by a port that is asked between two steps, since a thread that computes without a break gets what comes by itself up to
// 200 ms late (pause.ts); the worker's own messages say that there is something, for one that is idle.

import process from "node:process";
import { receiveMessageOnPort } from "node:worker_threads";
import { atEachTurn } from "../../pause.ts";
import { LocalEngine } from "./local_engine.ts";
import type { Request, WorkerOpening } from "./messages.ts";
import { RequestServer } from "./request_server.ts";

/** What of the global scope of a worker is used here. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<WorkerOpening | undefined>) => void) | null;
  postMessage(message: unknown): void;
}

const scope = globalThis as unknown as WorkerScope;

scope.onmessage = ({ data }) => {
  const { settings: { entries, ...options }, port } = data!;
  const server = new RequestServer(
    new LocalEngine(entries, { ...options, busyMs }),
    (replies) => scope.postMessage(replies),
  );
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

function busyMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
