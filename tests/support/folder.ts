// A folder of a test's own.

/** Runs `body` with a temporary folder, gives what it gives, and removes the folder whatever happens. */
export async function withFolder<T>(body: (folder: string) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir();
  try {
    return await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
