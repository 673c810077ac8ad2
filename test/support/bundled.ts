import { join } from 'node:path'
import { bundleVariable } from './bundle-folder.ts'

/**
 * The file of an entry of the bundle that `bundle-setup.ts` makes of `src/` and of the programs of tests, once for each run of
 * vitest. It starts in half the time that a loader of TypeScript needs.
 *
 * @param entry `tests/NAME` for `test/support/NAME.ts`; otherwise the path of an entry below `src/`, without its extension.
 */
export function bundled(entry: string): string {
  const folder = process.env[bundleVariable]
  if (folder === undefined) throw new Error(`${bundleVariable} is not set: run this with vitest, which sets it.`)
  return join(folder, `${entry}.js`)
}
