// The options that say how a model is found, by name: all calls that take one have them. The options of each such call hold
// the list complete.

/** Keys of the options of finding a model. */
export const SOURCE_KEYS = {
  cacheDir: true,
  endpoint: true,
  offline: true,
  signal: true,
  onProgress: true,
  onChoice: true,
} as const;
