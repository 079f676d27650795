// `troodon plan MODEL --device gpu` as a user calls it.

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { DispatchReport } from "../engine/cli/plan_gpu.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { gpuTest } from "./support/gpu.ts";
import { TINY_LLAMA } from "./support/models.ts";

const PLAN = ["plan", TINY_LLAMA, "--device", "gpu"];

gpuTest("plan counts the dispatches of a token by layer and in all", async () => {
  const permissions = [`--allow-read=${TINY_LLAMA}`];
  const [text, json] = await Promise.all(
    [[], ["--json"]].map((more) => troodon([...PLAN, ...more, "--context", "64"], { permissions })),
  );
  assertEquals([text!.code, json!.code], [0, 0], text!.err + json!.err);
  const reports = JSON.parse(json!.out) as DispatchReport[];
  assertEquals(reports.map(({ position }) => position), [0, 63]);
  for (const { layers, dispatches } of reports) {
    assertEquals(layers.reduce((sum, { count }) => sum + count, 0), dispatches);
    for (const { layer, count } of layers) if (layer) assert(count > 0 && count <= 9, layer);
  }
  assertMatch(text!.out, new RegExp(`in all +${reports[0]!.dispatches} dispatches a token`));
});

Deno.test("options of plan that do not go together are refused", async () => {
  assertRefused(await troodon([...PLAN, "--bind", "N=1"]), 2, /--bind does not go with --device/);
  assertRefused(
    await troodon(["plan", TINY_LLAMA, "--context", "8"]),
    2,
    /--context goes with --device gpu/,
  );
});
