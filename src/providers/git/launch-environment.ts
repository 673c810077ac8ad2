import { dirname } from 'node:path'

/** Settings that bound git's caches and memory maps, in the form of environment variables (git-config(1), GIT_CONFIG_COUNT). */
const memorySettings = settingsOf({
  'core.deltaBaseCacheLimit': '32m',
  'core.packedGitWindowSize': '32m',
  'core.packedGitLimit': '256m',
  'pack.windowMemory': '32m',
  'pack.threads': '1',
})

function settingsOf(settings: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(settings)
  return {
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(
      entries.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  }
}

/**
 * Returns the environment of a process of git. It starts empty: nothing of this process's environment, and so nothing of a client's, reaches
 * git (git(1), environment variables).
 *
 * @param own The git to run, the provider's own folder to run in, and the object directories to read.
 */
export function gitEnvironment(
  own: { readonly git: string; readonly folder: string; readonly objects: string },
  gitDir: string,
  extra: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  return {
    PATH: `${dirname(own.git)}:/usr/bin:/bin`,
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: own.folder,
    GIT_DIR: gitDir,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: own.objects,
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    ...memorySettings,
    ...extra,
  }
}
