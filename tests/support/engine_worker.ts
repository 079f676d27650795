// The server's own worker, which says besides how much its heap holds when somebody asks for it.

import "../../engine/serve/host/worker.ts";
import { liveHeapBytes } from "./heap.ts";

const asked = new BroadcastChannel("heap asked");
const told = new BroadcastChannel("heap told");
asked.onmessage = () => told.postMessage(liveHeapBytes());
