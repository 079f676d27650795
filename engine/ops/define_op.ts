// Turns an op file's definition, with typed attributes, into the plain OpRecord that the rest reads.

import { type AttributeRules, type AttributesOf, readAttributes } from "./attributes.ts";
import type { TensorType } from "../graph/graph.ts";
import type { OpRecord, ReferenceCall } from "./op.ts";
import { type CaseDraft, type CaseRandom, namedCase } from "./op_case.ts";

/** A ReferenceCall whose attributes have the types of the rules. */
export type TypedCall<R extends AttributeRules> = Omit<ReferenceCall, "attributes"> & {
  readonly attributes: AttributesOf<R>;
};

/** What an op file writes. */
export interface OpDefinition<R extends AttributeRules>
  extends Omit<OpRecord, "attributes" | "cases" | "infer" | "reference" | "rules"> {
  readonly attributes: R;
  infer(
    inputs: readonly (TensorType | undefined)[],
    attributes: AttributesOf<R>,
  ): TensorType[];
  reference(call: TypedCall<R>): void;
  readonly cases?: (random: CaseRandom) => readonly CaseDraft[];
}

// What hangs on symbols is checked when these have values (engine/run/bindings.ts).
function checkShape({ shape }: TensorType): void {
  const bad = shape.find((dim) => typeof dim === "number" && !(dim >= 0));
  if (bad !== undefined) throw new RangeError(`the result would have a dim of ${bad}`);
}

/** Makes an op record; attributes are checked and completed before the shape rule or reference runs. */
export function defineOp<const R extends AttributeRules>(definition: OpDefinition<R>): OpRecord {
  const read = (given: Readonly<Record<string, unknown>>) =>
    readAttributes(definition.attributes, given as Parameters<OpRecord["attributes"]>[0]);
  const { cases, ...rest } = definition;
  return Object.freeze(
    {
      ...rest,
      ...cases && { cases: (random: CaseRandom) => cases(random).map(namedCase) },
      rules: definition.attributes,
      attributes: (given) => read(given) as ReturnType<OpRecord["attributes"]>,
      infer(inputs, given) {
        const types = definition.infer(inputs, read(given));
        types.forEach(checkShape);
        return types;
      },
      reference: (call) => definition.reference({ ...call, attributes: read(call.attributes) }),
    } satisfies OpRecord,
  );
}
