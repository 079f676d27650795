// The variables that choose a card are those of the process, so this file runs alone.

import { assert, assertEquals } from "@std/assert";
import type { GpuProvider } from "../../gpu/capabilities.ts";
import { disguisedGpu } from "../../tests/support/disguised_gpu.ts";
import { gpuTest } from "../../tests/support/gpu.ts";
import { TINY_LLAMA } from "../../tests/support/models.ts";
import { load } from "../models/load.ts";

gpuTest(
  "with one step at a time the cards of a machine are this process's, and asked for by address",
  async () => {
    const cards = ["pci-0000_00_01_0", "pci-0000_00_02_0"], seen: (string | undefined)[] = [];
    const gpu: GpuProvider = {
      async requestAdapter() {
        seen.push(Deno.env.get("DRI_PRIME"));
        return await (await disguisedGpu()).requestAdapter();
      },
    };
    Deno.env.set("TROODON_GPUS", cards.join());
    const own = Deno.env.get("DRI_PRIME");
    Deno.env.delete("DRI_PRIME");
    const logitsOn = async (placement: string) => {
      const placed = { placement, gpu, lanes: 1, selfTest: false };
      using model = await load(TINY_LLAMA, {
        ...{ contextLength: 16, precision: "exact", threads: 1 },
        ...placed,
      });
      using session = model.createSession();
      await session.eval([3, 1, 4]);
      return [...session.logits()];
    };
    try {
      const actual = await logitsOn("0;1"), expected = await logitsOn("reference");
      assert(expected.every((value, i) => Math.abs(value - actual[i]!) <= 1e-3));
      assertEquals(new Set(seen.filter((card) => card !== undefined)), new Set(cards));
      assertEquals(Deno.env.get("DRI_PRIME"), undefined);
    } finally {
      Deno.env.delete("TROODON_GPUS");
      if (own !== undefined) Deno.env.set("DRI_PRIME", own);
    }
  },
);
