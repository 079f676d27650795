import { assertEquals, assertThrows } from "@std/assert";
import { toyDecoder } from "../../tests/support/toy_decoder.ts";
import { countLayers, groupRules, jsonRules, placeNodes } from "./rules.ts";

const GRAPH = toyDecoder();
const nameOf = (written: string) => written;

function devicesOf(rules: Parameters<typeof placeNodes>[1]): Record<string, string> {
  return Object.fromEntries(
    [...placeNodes(GRAPH, rules)].map(([{ name }, devices]) => [name, devices.join("&")]),
  );
}

Deno.test("groups share the layers; what stands before is the first group's, what stands behind the last one's", () => {
  assertEquals(countLayers(GRAPH), 2);
  const { devices, rules } = groupRules("a&b;c&d", { layers: 2, nameOf });
  assertEquals(devices, ["a", "b", "c", "d"]);
  const places = devicesOf(rules);
  assertEquals(
    [
      places.embed,
      places["layers.0.q"],
      places["layers.1.attention"],
      places.last_rows,
      places.head,
    ],
    ["0&1", "0&1", "2&3", "2&3", "2&3"],
  );
});

Deno.test("JSON says it by node, op or layer; the last rule counts, and views stay with their values", () => {
  const { rules } = jsonRules({
    devices: ["wasm", "gpu"],
    place: { "*": "wasm", "layers.1": 1, "layers.1 op:attention": "wasm", "op:embed": 1 },
  });
  const places = devicesOf(rules);
  assertEquals(
    [places.embed, places["layers.0.q"], places["layers.1.q"], places["layers.1.q_heads"]],
    ["1", "0", "1", "1"],
  );
  assertEquals([places["layers.1.attention"], places["layers.1.k_append"], places.head], [
    ...["0", "1", "0"],
  ]);
});

Deno.test("a layer without a device, a device that is not there and a rule of nothing are refused", () => {
  const place = (place: Record<string, number>) =>
    devicesOf(jsonRules({ devices: ["wasm"], place }).rules);
  assertThrows(
    () => place({ first: 0, last: 0, "layers.1": 0 }),
    RangeError,
    "layer 0 is on no device",
  );
  assertThrows(() => place({ "layers.0-1": 0, last: 0 }), RangeError, "embed is on no device");
  assertThrows(() => place({ "*": 1 }), RangeError, "device 1 is not there; there are wasm");
  assertThrows(() => place({ "*": 0, "layers.2": 0 }), RangeError, 'nothing of it is "layers.2"');
  assertThrows(() => jsonRules({ devices: [1] } as never), RangeError, '"devices" must be');
  assertThrows(() => jsonRules({ devices: [], plce: {} } as never), RangeError, "mean place?");
  assertThrows(() => jsonRules({ devices: [] } as never), RangeError, '"place" must say');
});
