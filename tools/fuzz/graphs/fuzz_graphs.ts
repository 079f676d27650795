// `deno task fuzz graphs`: random graphs on a device, judged one after the other; a failing one is made small and
// written to files. Used by the fuzz worker with many graphs and by tests/fuzz_graphs_test.ts with few.

import { openDevice } from "../../../engine/run/devices.ts";
import type { DeviceName } from "../../../engine/run/backend.ts";
import { describe, writeCase } from "./describe.ts";
import { judge, type Judges, type Verdict } from "./judge.ts";
import { openPeer, PEER_VERSION } from "./peer.ts";
import { randomGraph } from "./random_graph.ts";
import { shrink } from "./shrink.ts";
import type { GraphCase } from "./writer.ts";

/** Which graphs. */
export interface GraphOrder {
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly device?: DeviceName | undefined;
  /** Folder for failing graphs; default: the one for temporary files. */
  readonly out?: string | undefined;
  /** Called for each graph that is begun, and for each smaller form of one that failed. */
  tick?(index: number): void;
  /** Called for a graph that fails, once it is written. */
  failed(index: number, message: string): void;
}

/** What became of them. */
export interface GraphCounts {
  /** Graphs that all agree on. */
  readonly agreed: number;
  /** Those of them that onnxruntime does not run, by reason. */
  readonly alone: ReadonlyMap<string, number>;
  /** Version of onnxruntime; undefined: it is not there. */
  readonly peer: string | undefined;
}

/** How to get the peer. */
export const PEER_REMEDY = `python3 -m pip install onnxruntime==${PEER_VERSION}`;

// Rows cut among threads are for every eighth graph: on a busy machine threads wait for each other.
const WASM_THREADS = [1, 2];

/** Judges graphs `from` to `to`. */
export async function fuzzGraphs(order: GraphOrder): Promise<GraphCounts> {
  const { seed, from, to, device = "wasm", tick = () => {}, failed } = order;
  const devices = await Promise.all(
    (device === "wasm" ? WASM_THREADS : [1]).map((threads) =>
      openDevice(device, { shared: true, threads })
    ),
  );
  await using peer = await openPeer();
  const alone = new Map<string, number>();
  let agreed = 0;
  for (let index = from; index < to; index++) {
    tick(index);
    const given = randomGraph(seed, index, { few: device === "gpu" });
    const judges: Judges = { device: devices[index % 8 === 7 ? devices.length - 1 : 0]!, peer };
    const verdict = await judge(given, judges);
    if (verdict.kind === "failure") {
      const small = await smallest(given, verdict, { ...judges, tick: () => tick(index) });
      failed(index, await report(small, `${folderOf(order)}/fuzz-graphs-${seed}-${index}`));
      continue;
    }
    agreed++;
    if (verdict.kind === "same") continue;
    const reason = reasonOf(verdict.message);
    alone.set(reason, (alone.get(reason) ?? 0) + 1);
  }
  return { agreed, alone, peer: peer?.version };
}

interface Failed {
  readonly given: GraphCase;
  readonly message: string;
}

async function smallest(
  given: GraphCase,
  failure: Verdict & { readonly kind: "failure" },
  { tick, ...judges }: Judges & { tick(): void },
): Promise<Failed> {
  let message = failure.message;
  // Only where onnxruntime says what is right is it asked again.
  const asked = failure.who === "peer" || failure.who === "reference"
    ? judges
    : { ...judges, peer: undefined };
  const small = await shrink(given, {
    async fails(candidate) {
      tick();
      const verdict = await judge(candidate, asked);
      const isSame = verdict.kind === "failure" && verdict.who === failure.who;
      if (isSame) message = verdict.message;
      return isSame;
    },
  });
  return { given: small, message };
}

async function report({ given, message }: Failed, path: string): Promise<string> {
  return `${message}\n${describe(given)}\nwritten to ${await writeCase(given, path)}`;
}

function folderOf({ out = Deno.env.get("TMPDIR") ?? "/tmp" }: GraphOrder): string {
  return out.replace(/\/$/, "");
}

/** What onnxruntime does not do, without the names of a graph. */
function reasonOf(message: string): string {
  const op = /operator \((\w+)\)|running (\w+) node|Node, \("\w*", (\w+)|for (\w+)\(/.exec(message);
  const type = /'?tensor\((\w+)\)'?|bfloat16/.exec(message);
  const named = op?.slice(1).find((name) => name !== undefined);
  if (!named && !type) return message.slice(0, 80);
  return [named, type?.[1] ?? type?.[0]].filter(Boolean).join(" of ");
}
