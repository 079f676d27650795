// Processes and temporary files of a task, which an interrupt must not leave behind: Ctrl-C, or a request to end
// that reaches only the task. Peers get some time to end what they have started themselves (a browser).

const GRACE_MS = 2000;

const children = new Set<Deno.ChildProcess>();
const temporary = new Set<string>();
const state = { isListening: false, isEnding: false };

/** Starts a process that ends with the task. */
export function startChild(name: string, options: Deno.CommandOptions): Deno.ChildProcess {
  listen();
  const child = new Deno.Command(name, options).spawn();
  children.add(child);
  child.status.then(() => children.delete(child));
  return child;
}

/** Whether a program is there and succeeds; what it prints is thrown away. */
export async function succeeds(
  name: string,
  args: readonly string[],
  cwd?: string,
): Promise<boolean> {
  try {
    const child = startChild(name, {
      args: [...args],
      ...{ stdin: "null", stdout: "null", stderr: "null" },
      ...cwd !== undefined && { cwd },
    });
    return (await child.status).success;
  } catch {
    return false;
  }
}

/** Deletes a file or folder when the task is interrupted; otherwise whoever made it does. */
export function deleteAtInterrupt(path: string): void {
  listen();
  temporary.add(path);
}

function listen(): void {
  if (state.isListening) return;
  state.isListening = true;
  const signals: Deno.Signal[] = Deno.build.os === "windows"
    ? ["SIGINT", "SIGBREAK"]
    : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) Deno.addSignalListener(signal, endAll);
}

/** Whether an interrupt is ending the process: what fails now fails because of it. */
export function isInterrupted(): boolean {
  return state.isEnding;
}

async function endAll(): Promise<void> {
  state.isEnding = true;
  const all = [...children];
  const send = (signal: Deno.Signal) => {
    for (const child of all) {
      try {
        child.kill(signal);
      } catch {
        // It has ended.
      }
    }
  };
  send("SIGTERM");
  const ended = Promise.all(all.map(({ status }) => status));
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, GRACE_MS))]);
  send("SIGKILL");
  await ended;
  for (const path of temporary) {
    try {
      Deno.removeSync(path, { recursive: true });
    } catch {
      // It is gone already.
    }
  }
  Deno.exit(130);
}
