// A process that closes models of a GPU during a token, and its devices with work in flight, and then ends by itself.

import type { GpuProvider } from "../../gpu/gpu.ts";
import { load } from "../../mod.ts";
import { disguisedGpu } from "./disguised_gpu.ts";
import { TINY_LLAMA } from "./models.ts";

let closed = 0;
for (let time = 0; time < 20; time++) {
  let device: GPUDevice | undefined;
  const provider = await disguisedGpu((opened) => device = opened) as GpuProvider;
  const model = await load(TINY_LLAMA, {
    ...{ device: "gpu", gpu: provider, precision: "exact", contextLength: 64, selfTest: false },
  });
  const session = model.createSession();
  for (const token of [3, 4, 5]) await session.eval([token]);
  // The next token is under way.
  const next = session.eval([6]);
  if (time % 2 === 0) device!.destroy();
  model.dispose();
  await next.catch(() => {});
  session.dispose();
  model.dispose();
  device!.destroy();
  closed++;
}
console.log(`${closed} closed`);
