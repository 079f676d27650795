// Which tensors have which number format and why: of a file as it is, by the policy that stands in it if it was
// written by `quantize`, or as a policy would make it. Tensors of one role, format and reason are one row.

import { chooseFormat, type QuantPolicy } from "../../quant/policy.ts";
import { parsePolicy } from "./policy_file.ts";
import { roleOf, type TensorRole } from "../../quant/tensor_roles.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { POLICY_KEY } from "../formats/stored_formats.ts";
import { isFloatFormat, modelFacts, planQuantization } from "./plan.ts";
import { outlierBytes } from "./outliers.ts";

/** Tensors that are treated alike. */
export interface PolicyRow {
  readonly role: TensorRole;
  readonly format: string;
  /** The rule, or why there is none; empty where nothing is known. */
  readonly reason: string;
  readonly tensors: number;
  readonly bytes: number;
  /** Weights that stand beside them in float32. */
  readonly outliers: number;
}

/** A file as it is. */
export function describeFormats(file: WeightFile): PolicyRow[] {
  const policy = storedPolicy(file);
  const model = modelFacts(file);
  return rowsOf([...file.tensors.values()].map((tensor) => {
    const outliers = tensor.outliers?.values.shape[0] ?? 0;
    const choice = policy && isFloatFormat(tensor.format)
      ? chooseFormat(policy, tensor, model)
      : undefined;
    const isMet = choice?.format === undefined || choice.format.name === tensor.format;
    return {
      tensor,
      format: tensor.format,
      outliers,
      bytes: tensor.byteLength + outlierBytes({ tensor, outliers }),
      reason: choice && isMet ? explained(choice) : "",
    };
  }));
}

/**
 * A file as a policy would make it, and what of the policy is without effect on it.
 *
 * @throws As `planQuantization`.
 */
export function describeQuantized(
  file: WeightFile,
  policy: QuantPolicy,
): { readonly rows: PolicyRow[]; readonly warnings: readonly string[] } {
  const { tensors, warnings } = planQuantization(file, policy);
  const rows = rowsOf(
    tensors.map(({ format, byteLength, ...planned }) => ({
      ...planned,
      format: format.name,
      bytes: byteLength + outlierBytes(planned),
      reason: explained(planned),
    })),
  );
  return { rows, warnings };
}

function explained(
  { reason, insteadOf }: {
    readonly reason: string;
    readonly insteadOf?: string | undefined;
  },
): string {
  return insteadOf ? `${reason}, rows do not fill blocks of ${insteadOf}` : reason;
}

/** The policy that a file was written by; none if it says none, or one of another version. */
function storedPolicy({ metadata }: WeightFile): QuantPolicy | undefined {
  const text = metadata.get(POLICY_KEY);
  if (typeof text !== "string") return undefined;
  try {
    return parsePolicy(text);
  } catch (error) {
    // It is for people only: the file is as good without it.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

interface Entry {
  readonly tensor: TensorInfo;
  readonly format: string;
  readonly reason: string;
  readonly bytes: number;
  readonly outliers: number;
}

function rowsOf(entries: readonly Entry[]): PolicyRow[] {
  const groups = Map.groupBy(
    entries,
    ({ tensor: { name, shape }, format, reason }) =>
      [roleOf(name, shape), format, reason].join("\n"),
  );
  return [...groups].map(([key, members]) => {
    const [role, format, reason] = key.split("\n") as [TensorRole, string, string];
    const sum = (of: (entry: Entry) => number) =>
      members.reduce((total, entry) => total + of(entry), 0);
    return {
      ...{ role, format, reason, tensors: members.length },
      bytes: sum(({ bytes }) => bytes),
      outliers: sum(({ outliers }) => outliers),
    };
  });
}
