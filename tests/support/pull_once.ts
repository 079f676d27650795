// Pulls one model and prints what came of it as one line of JSON. Tests run it as a process of its own,
// with exactly the permissions, the PATH and the rivals that they are about.
//
//   deno run … tests/support/pull_once.ts MODEL [OPTIONS as JSON]

import { openModel } from "../../engine/models/open_model.ts";
import { pullModel } from "../../engine/formats/hub/pull.ts";

const [model, options = "{}"] = Deno.args;
const phases = new Set<string>();
try {
  const path = await pullModel(model, {
    ...JSON.parse(options),
    onProgress: ({ phase }) => phases.add(phase),
  });
  const opened = await openModel(path);
  const tensors = opened.tensors.size;
  opened.close();
  console.log(JSON.stringify({ path, tensors, phases: [...phases] }));
} catch (error) {
  const { name, message } = error as Error;
  console.log(JSON.stringify({ error: name, message, phases: [...phases] }));
}
