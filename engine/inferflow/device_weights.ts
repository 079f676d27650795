// Number formats that a configuration asks for (spec IF-13): its keys become a policy, and the weights are rounded
// to it before the model is loaded, by the levels of Inferflow's program. The rounded copy is a temporary file:
// `troodon quantize` makes one to keep. F16, which upstream takes where nothing is said, is what the file has.

import { closing } from "../byte_source.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { hasEncoder, isFormatName } from "../../quant/mod.ts";
import { MOST_OUTLIERS } from "../../quant/outliers.ts";
import { INFERFLOW_TENSORS, inferflowPolicy } from "../../quant/policies.ts";
import { openModel } from "../models/open_model.ts";
import { createTemporaryFolder, removeFolder } from "../io.ts";
import { quantizeModel } from "../quantize/quantize.ts";
import { planQuantization } from "../quantize/plan.ts";
import { type Configuration, numberOf, textOf, wrong } from "./values.ts";

const KEY = "device_weight_data_type";

/** Formats that are no reason to touch a file: computing is in float32 anyway. */
const AS_STORED = ["", "F16", "F32"];

/** The policy of a model's section; undefined where the weights stay as they are. */
export function readWeightPolicy(config: Configuration, section: string): QuantPolicy | undefined {
  const formatOf = (key: string): string | undefined => {
    const format = textOf(config, { section, key })?.toUpperCase() ?? "";
    if (AS_STORED.includes(format)) return undefined;
    if (isFormatName(format) && hasEncoder(format)) return format;
    throw wrong(config, {
      section,
      key,
      message: "must be a number format in which weights can be stored",
    });
  };
  const format = formatOf(KEY);
  const tensors = Object.fromEntries(
    INFERFLOW_TENSORS.flatMap((name) => {
      const own = formatOf(`${KEY}.${name}`);
      return own === undefined ? [] : [[name, own]];
    }),
  );
  const threshold = readThreshold(config, section);
  const outliers = numberOf(config, { section, key: "delta_tensor_ratio" }, {
    ...{ max: MOST_OUTLIERS, integer: false },
  });
  if (format === undefined && Object.keys(tensors).length === 0) return undefined;
  return inferflowPolicy({
    format: format ?? "keep",
    tensors,
    ...threshold !== undefined && { threshold },
    ...outliers !== undefined && { outliers },
  });
}

/** A number of values, or a product as upstream's own files have it (`2000*2000`). */
function readThreshold(config: Configuration, section: string): number | undefined {
  const key = "tensor_quant_threshold";
  const factors = textOf(config, { section, key })?.split("*").map((part) => part.trim()) ?? [];
  const isProduct = factors.length > 1 && factors.every((part) => /^\d+$/.test(part));
  return isProduct
    ? factors.reduce((product, part) => product * Number(part), 1)
    : numberOf(config, { section, key }, { max: 2 ** 48 });
}

/**
 * Runs `work` on the path of a model whose weights are rounded to a policy. The copy is deleted when `work` is done,
 * which may have loaded it.
 *
 * @throws As `quantizeModel`.
 */
export async function withRoundedWeights<T>(
  path: string,
  policy: QuantPolicy,
  { signal, warnings, work }: {
    readonly signal: AbortSignal;
    readonly warnings: Set<string>;
    readonly work: (path: string) => Promise<T>;
  },
): Promise<T> {
  const folder = createTemporaryFolder("troodon-weights-");
  try {
    const file = await openModel(path);
    using _file = closing(file);
    const { container } = planQuantization(file, policy);
    const copy = `${folder}/model${container === "folder" ? "" : `.${container}`}`;
    const { tensors } = await quantizeModel(file, { path: copy, policy }, {
      levels: "upstream",
      signal,
    });
    const others = tensors.filter(({ insteadOf }) => insteadOf !== undefined);
    if (others.length > 0) {
      const [{ insteadOf, to }] = others as [typeof others[0]];
      warnings.add(
        `${path}: rows of ${others.length} tensors are no multiple of ${insteadOf}'s block, ${to} is used`,
      );
    }
    return await work(copy);
  } finally {
    removeFolder(folder);
  }
}
