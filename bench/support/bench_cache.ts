// Where benches keep what they fetched or made: beside the cache of models, outside the repository.

/** A folder of that name, made where it is missing. */
export async function benchCache(name: string): Promise<string> {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${home}/troodon-bench/${name}`;
  await Deno.mkdir(folder, { recursive: true });
  return folder;
}
