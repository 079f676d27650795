import { assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { getOp } from "../../ops/mod.ts";
import { commonSubexpressions } from "./common_subexpressions.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};

Deno.test("nodes alike become one, and what differs in an attribute alone stays apart", () => {
  const builder = createGraphBuilder("alike", getOp);
  const x = builder.input("x", [4], "f32");
  const scaled = (name: string, factor: number) =>
    builder.op("unary", [x], { kind: "scale", alpha: factor }, name)[0]!;
  const sum = (name: string, a: number, b: number) =>
    builder.op(
      "binary",
      [scaled(`${name}.a`, a), scaled(`${name}.b`, b)],
      { kind: "add" },
      name,
    )[0]!;
  builder.output(
    "y",
    builder.op("binary", [sum("one", 2, 3), sum("other", 2, 3)], { kind: "mul" }, "product")[0]!,
  );
  const { nodes } = commonSubexpressions.run(builder.build(), CONTEXT);
  assertEquals(
    nodes.map((
      { name, op, attributes },
    ) => [name, attributes.kind, op === "unary" ? attributes.alpha : ""]),
    [["one.a", "scale", 2], ["one.b", "scale", 3], ["one", "add", ""], ["product", "mul", ""]],
  );
});
