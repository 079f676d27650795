// Finds the fixture files of tests, wherever the tests are started from.

/** Absolute path of a file in tests/fixtures. */
export function fixturePath(name: string): string {
  return decodeURIComponent(new URL(`../fixtures/${name}`, import.meta.url).pathname);
}

/** Text of a file in tests/fixtures. */
export function readFixture(name: string): string {
  return Deno.readTextFileSync(fixturePath(name));
}
