// What `troodon quantize` makes of its flags about rounding: a text, an importance matrix, outliers.

import { MOST_OUTLIERS } from "../../quant/outliers.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import type { ImportanceMatrix } from "../formats/imatrix.ts";
import type { CalibrationRequest } from "../quantize/rounding.ts";
import { UsageError } from "./args.ts";
import { readText } from "./quant_policy.ts";

/** The text and what is to be made of it. */
export async function readCalibration(
  flags: {
    readonly calibrate?: string | undefined;
    readonly method?: CalibrationRequest["method"];
    readonly "calibrate-tokens"?: number | undefined;
    readonly threads?: number | undefined;
  },
): Promise<CalibrationRequest | undefined> {
  if (flags.calibrate === undefined) {
    for (const name of ["method", "calibrate-tokens"] as const) {
      if (flags[name] !== undefined) throw new UsageError(`--${name} needs --calibrate TEXT`);
    }
    return undefined;
  }
  return {
    text: await readText(flags.calibrate),
    method: flags.method,
    tokens: flags["calibrate-tokens"],
    threads: flags.threads,
  };
}

/** The importance matrix of --imatrix. */
export async function readImportance(
  { imatrix, calibrate }: {
    readonly imatrix?: string | undefined;
    readonly calibrate?: string | undefined;
  },
): Promise<ImportanceMatrix | undefined> {
  if (imatrix === undefined) return undefined;
  if (calibrate !== undefined) throw new UsageError("Give either --calibrate or --imatrix");
  return await (await import("../quantize/quantization.ts")).readImportance(imatrix);
}

/** A policy with another share of outliers where no rule of it has its own. */
export function withOutliers(policy: QuantPolicy, outliers: number): QuantPolicy {
  if (outliers <= MOST_OUTLIERS) return { ...policy, outliers };
  throw new UsageError(`--outliers is ${outliers}: at most ${MOST_OUTLIERS} can be kept apart`);
}
