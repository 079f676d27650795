// The command line interface: `deno run -A main.ts COMMAND`. engine/cli/command_line.ts has the commands.

import config from "./deno.json" with { type: "json" };
import { runCommandLine } from "./engine/cli/command_line.ts";
import { exit, processArguments, systemTerminal } from "./engine/cli/terminal.ts";

if (import.meta.main) {
  exit(
    await runCommandLine(processArguments(), {
      ...{ terminal: systemTerminal(), version: config.version, exit, isProcess: true },
    }),
  );
}
