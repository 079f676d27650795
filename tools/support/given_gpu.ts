// Who gives the GPU of a task, which is asked for before its cases: without one each of them would fail alike.

import { UsageError } from "../../engine/cli/args.ts";
import { gpuOption } from "../../engine/cli/gpu_flag.ts";
import { sharedGpu } from "../../gpu/shared.ts";

/**
 * The option of `load` that `--gpu` asks for.
 *
 * @throws {UsageError} If device gpu is to compute and there is none.
 */
export async function givenGpu(
  { gpu, device }: { readonly gpu: string | undefined; readonly device: string },
): ReturnType<typeof gpuOption> {
  const given = await gpuOption({ gpu, device });
  if (device === "gpu") {
    await sharedGpu({ provider: given.gpu }).catch(({ message }: Error) => {
      throw new UsageError(`--device gpu: ${message}`);
    });
  }
  return given;
}
