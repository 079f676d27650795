// The plan of a model as a coordinator has it that places parts of it (place/peer/): from this side's file, by the options
// that were sent.

import { DeviceError } from "../errors.ts";
import { pullModel } from "../formats/hub/pull.ts";
import type { LoadOptions } from "../decode/model.ts";
import type { Plan } from "../plan/plan.ts";
import { openModel } from "./open_model.ts";
import { prepareModel } from "./prepare.ts";

/** Plans it; the file stays open until weights are read. */
export async function planForPeer(
  path: string | undefined,
  load: Readonly<Record<string, unknown>>,
): Promise<{ readonly plan: Plan; close(): void }> {
  if (path === undefined) throw new DeviceError("the peer has no model");
  const options = load as LoadOptions;
  const file = await openModel(await pullModel(path, { offline: true }));
  const none = () => false;
  try {
    const { openAdapters } = await import("./adapters/adapter.ts");
    const adapters = await openAdapters(options.adapters ?? []);
    const { plan } = await prepareModel(file, {
      ...{ options, adapters: adapters.all },
      // Parts are rewritten for the device when they are cut.
      kernels: { hasKernel: none, takes: none, fusesNeighbours: false },
    });
    return {
      plan,
      close() {
        adapters[Symbol.dispose]();
        file.close();
      },
    };
  } catch (error) {
    file.close();
    throw error;
  }
}
