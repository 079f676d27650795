import { assertEquals, assertThrows } from "@std/assert";
import { readFixture } from "../../tests/support/fixtures.ts";
import { layerRanges, parseGroups, shapeOf } from "./grammar.ts";

interface Partition {
  readonly devices: string;
  readonly layers: number;
  readonly heads: number;
  readonly strategy?: string;
  readonly groups?: number;
  readonly all_reduces_per_forward?: number;
  readonly error?: boolean;
  readonly parts?: readonly {
    readonly device: number;
    readonly layers_1based: readonly number[];
    readonly heads_1based: readonly number[];
  }[];
}

const { partitions } = JSON.parse(readFixture("decoding/placement.json")) as {
  readonly partitions: readonly Partition[];
};

for (const one of partitions) {
  const { devices, layers, heads } = one;
  Deno.test(`${devices} shares ${layers} layers of ${heads} heads as Inferflow's table 4 does`, () => {
    const read = () => shapeOf(parseGroups(devices), { layers, heads });
    if (one.error) return void assertThrows(read, RangeError);
    const { strategy, groups, allReduces, shares } = read();
    assertEquals([strategy, groups, allReduces], [
      one.strategy!,
      one.groups!,
      one.all_reduces_per_forward!,
    ]);
    const from1 = (range: readonly number[]) => range.map((at) => at + 1);
    assertEquals(
      shares.map((share) => ({
        device: Number(share.device),
        layers_1based: from1(share.layers),
        heads_1based: from1(share.heads),
      })),
      one.parts! as never,
    );
  });
}

Deno.test("groups may say how many layers they have, and the others share the rest", () => {
  assertEquals(layerRanges(parseGroups("wasm=3; gpu0;gpu1"), 10), [[0, 3], [3, 7], [7, 10]]);
  assertThrows(
    () => layerRanges(parseGroups("0=4;1=4"), 10),
    RangeError,
    "it has 10 layers, and the placement gives out 8",
  );
  assertThrows(() => layerRanges(parseGroups("0;1;2"), 2), RangeError, "on 3 groups");
});

Deno.test("what is no placement is refused by what is wrong with it", () => {
  for (
    const [text, why] of [
      ["0&1;2", "groups must have as many devices each, and they have 2 and 1"],
      ["0;0", "device 0 stands there twice"],
      ["", "is no group of devices"],
      ["0;;1", "is no group of devices"],
      ["0&", "is no group of devices"],
      ["0=x", "is no group of devices"],
    ] as const
  ) assertThrows(() => parseGroups(text), RangeError, why);
  assertThrows(
    () => shapeOf(parseGroups("0&1&2"), { layers: 4, heads: 32 }),
    RangeError,
    "32 heads",
  );
  assertThrows(
    () => shapeOf(parseGroups("0&1"), { layers: 4, heads: 32, kvHeads: 1 }),
    RangeError,
    "1 heads of keys and values",
  );
});
