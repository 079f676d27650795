import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FormatError } from "../errors.ts";
import { describeFile } from "./describe_spec.ts";
import { checkSpec } from "./spec_check.ts";
import { specSchema } from "./spec_schema.ts";
import { specFiles } from "./specs/mod.ts";
import llama from "./specs/llama.json" with { type: "json" };
import { openModel } from "./open_model.ts";
import { fixturePath } from "../../tests/support/fixtures.ts";

/** As much of JSON Schema as the schema of specs uses. */
function accepts(node: unknown, value: unknown, root: Node): boolean {
  if (typeof node === "boolean") return node;
  const { $ref, anyOf, enum: words, type, properties, required, additionalProperties, items } =
    node as Node;
  if ($ref) return accepts(root.$defs![$ref.slice("#/$defs/".length)], value, root);
  if (anyOf) return anyOf.some((one) => accepts(one, value, root));
  if (words) return words.includes(value);
  switch (type) {
    case "null":
      return value === null;
    case "string":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "array":
      return Array.isArray(value) && value.every((one) => accepts(items, one, root));
    case "object": {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
      const entries = Object.entries(value);
      return (required ?? []).every((key) => Object.hasOwn(value, key)) &&
        entries.every(([key, one]) =>
          accepts(properties?.[key] ?? additionalProperties ?? true, one, root)
        );
    }
    default:
      throw new Error(`type ${type}`);
  }
}

interface Node {
  readonly $ref?: string;
  readonly $defs?: Record<string, unknown>;
  readonly anyOf?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly type?: string;
  readonly properties?: Record<string, unknown>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: unknown;
}

Deno.test("the schema accepts every shipped spec, and not one with a wrong or missing key", () => {
  const root = specSchema() as Node;
  for (const file of specFiles) assertEquals(accepts(root, file, root), true, file.name);
  const [good] = specFiles as unknown as readonly Record<string, unknown>[];
  assertEquals(accepts(root, { ...good, $schema: "schema.json" }, root), true);
  assertEquals(accepts(root, { ...good, norms: {} }, root), false);
  assertEquals(accepts(root, { ...good, norm: { kind: "batch" } }, root), false);
  const { layer: _missing, ...rest } = good!;
  assertEquals(accepts(root, rest, root), false);
  const change = { containers: { gguf: { norm: { kind: 1 } } } };
  assertEquals(accepts(root, { ...good, ...change }, root), false);
});

Deno.test("every shipped spec says where an editor finds the schema", () => {
  const here = new URL("./spec_schema.json", import.meta.url).href;
  for (const file of specFiles as unknown as readonly Record<string, string>[]) {
    const stated = new URL(file.$schema!, new URL("./specs/", import.meta.url)).href;
    assertEquals(stated, here, file.name);
  }
});

Deno.test("checkSpec() tries every case and names the key of a fault in one", async () => {
  for (const file of specFiles) assertEquals((await checkSpec(file, "x.json")).name, file.name);
  const [good] = specFiles as unknown as readonly Record<string, unknown>[];
  const cases = [{ given: ["experts"], use: { norm: { kind: "batch" } } }];
  const fault = await assertRejects(() => checkSpec({ ...good, cases }, "mine.json"), FormatError);
  assertMatch(fault.message, /mine\.json, norm\.kind: must be one of/);
  const nobody = { ...good, matches: { huggingface: [], gguf: [] } };
  await assertRejects(() => checkSpec(nobody, "mine.json"), FormatError);
});

Deno.test("checkSpec() tells a spec that no model can be built of", async () => {
  const refused = async (change: object, message: RegExp) => {
    const error = await assertRejects(() => checkSpec({ ...llama, ...change }, "mine.json"));
    assertMatch((error as Error).message, message);
  };
  await refused({ defaults: { ...llama.defaults, headDim: 33 } }, /rotates 33 channels of heads/);
  await refused({ defaults: { ...llama.defaults, heads: 6, kvHeads: 4 } }, /does not divide the 6/);
  await refused({ defaults: { ...llama.defaults, activation: "mish" } }, /"mish" is not built/);
  const { attention, containers: { huggingface, gguf: { cases: _cases, ...gguf } } } = llama;
  const containers = { huggingface, gguf };
  const sliding = {
    ...attention,
    kinds: { full: { ...attention.kinds.full, window: "windowStart" } },
  };
  await refused(
    { attention: sliding, containers },
    /windowStart: is missing, and the model cannot/,
  );
  const embedding = { scale: 1, positions: { offset: 0 } };
  await refused({ embedding }, /names\.tensors\.positions: has no name for it/);
});

Deno.test("describeFile() tells the blocks of a model after its cases", async () => {
  const file = await openModel(fixturePath("models/opt_350m"));
  try {
    const blocks = Object.fromEntries(describeFile(file));
    assertEquals(
      blocks.layer,
      [
        "x = attention_norm(x + attention(x))",
        "x = feed_forward_norm(x + feedForward(x))",
      ].join("; "),
    );
    assertEquals(blocks.embedding, "projected from 16 to 32, plus learnt positions");
    assertEquals(blocks.head, "no norm");
  } finally {
    file.close();
  }
});
